from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.errors import InvalidConfigurationError, UnreadableFileError
from pylog.files.offset_json_file import read_offset_json_file
from pylog.model import TopicPartition

if TYPE_CHECKING:
    from pathlib import Path

SOUND = '{"topic": "t", "partition": 0, "offset": 1}'


def test_offsets_are_read_as_kafkas_script_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    path.write_text(
        '{"partitions": [{"topic": "foo", "partition": 1, "offset": 9223372036854775807},'
        '{"topic": "bar", "partition": 0, "offset": -1, "more": 1}], "more": {}}'
    )
    offsets = read_offset_json_file(path)
    assert offsets == {("foo", 1): 9223372036854775807, ("bar", 0): None}
    assert list(offsets) == [TopicPartition("foo", 1), TopicPartition("bar", 0)]
    path.write_text('{"partitions": [], "version": 1}')
    assert read_offset_json_file(path) == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Expecting value"),
        ("[" * 100_000, "offsets are malformed"),
        ("[]", 'not of the form {"partitions": '),
        ('{"version": 1}', 'not of the form {"partitions": '),
        ('{"partitions": {}}', 'not of the form {"partitions": '),
        ('{"partitions": [], "version": 2}', "version '2' is unknown, expected 1"),
        ('{"partitions": [], "version": true}', "version 'true' is unknown, expected 1"),
        ('{"partitions": [1]}', "entry '1' is not a topic, a partition"),
        ('{"partitions": [{"topic": "t", "partition": 0}]}', "is not a topic, a partition"),
        ('{"partitions": [{"topic": 1, "partition": 0, "offset": 1}]}', "is not a topic"),
        ('{"partitions": [{"topic": "t", "partition": -1, "offset": 1}]}', "is not a topic"),
        ('{"partitions": [{"topic": "t", "partition": 2147483648, "offset": 1}]}', "is not a"),
        ('{"partitions": [{"topic": "t", "partition": true, "offset": 1}]}', "is not a topic"),
        ('{"partitions": [{"topic": "t", "partition": 0, "offset": -2}]}', "is not a topic"),
        ('{"partitions": [{"topic": "t", "partition": 0, "offset": 1.0}]}', "is not a topic"),
        ('{"partitions": [{"topic": "t", "partition": 0, "offset": "1"}]}', "is not a topic"),
        (f'{{"partitions": [{SOUND}, {SOUND}]}}', "partition t-0 is there twice"),
    ],
)
def test_what_is_malformed_names_the_file(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "offsets.json"
    path.write_text(text)
    with pytest.raises(InvalidConfigurationError) as refused:
        read_offset_json_file(path)
    assert reason in str(refused.value)
    assert str(refused.value).startswith(f"{path}: offsets are malformed: ")


def test_a_file_that_is_not_there_or_is_a_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigurationError, match="none: there is no such file of offsets"):
        read_offset_json_file(tmp_path / "none")
    with pytest.raises(UnreadableFileError, match="a directory"):
        read_offset_json_file(tmp_path)

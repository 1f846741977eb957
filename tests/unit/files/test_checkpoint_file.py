from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pylog.errors import CorruptCheckpointError, KafkaStorageError, LogDirectoryError
from pylog.files import checkpoint_file
from pylog.files.checkpoint_file import (
    CheckpointNumberError,
    read_offset_checkpoint,
    write_checkpoint,
    write_offset_checkpoint,
)
from pylog.files.durable_io import DurableIO
from pylog.model import TopicPartition
from tests.support.recording_io import Fault, FaultyIO, Kind, RecordingIO

if TYPE_CHECKING:
    from pathlib import Path


def write(tmp_path: Path, data: bytes | str) -> Path:
    path = tmp_path / "recovery-point-offset-checkpoint"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def test_every_line_of_a_real_checkpoint_is_an_entry(tmp_path: Path) -> None:
    path = write(
        tmp_path, "0\n3\nfmt1-none 0 55\n__transaction_state 1 7\nfmt1-gzip 0 3000000000\n"
    )
    assert read_offset_checkpoint(path) == {
        TopicPartition("fmt1-none", 0): 55,
        TopicPartition("__transaction_state", 1): 7,
        TopicPartition("fmt1-gzip", 0): 3_000_000_000,
    }


@pytest.mark.parametrize("text", ["", "0\n", "0", "0\n0\n", "0\n0", "+0\n-0\n"])
def test_checkpoint_without_entries_is_empty(tmp_path: Path, text: str) -> None:
    assert read_offset_checkpoint(write(tmp_path, text)) == {}


def test_missing_file_is_empty(tmp_path: Path) -> None:
    assert read_offset_checkpoint(tmp_path / "missing") == {}


@pytest.mark.parametrize(
    "text",
    [
        "0\n1\na\t0  5",
        "0\n1\na 0 5 \n",
        "0\r\n1\r\na 0 5\r\n",
        "0\r1\ra 0 5\r",
        "0\n1\na +0 05\n",
        "\u0660\n1\na 00 \u0665\n",
    ],
)
def test_whitespace_and_line_ends_are_those_of_java(tmp_path: Path, text: str) -> None:
    assert read_offset_checkpoint(write(tmp_path, text)) == {TopicPartition("a", 0): 5}


def test_last_line_of_a_partition_counts(tmp_path: Path) -> None:
    path = write(tmp_path, "0\n2\na 0 5\na 0 6\n")
    assert read_offset_checkpoint(path) == {TopicPartition("a", 0): 6}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1\n0\n", "version 1, expected 0"),
        ("\n0\n", "version in line 1 is malformed: '' is not an integer"),
        ("zero\n0\n", "version in line 1 is malformed: 'zero' is not an integer"),
        ("\0\0\0\0", r"version in line 1 is malformed: '\\x00\\x00"),
        ("0\nmany\n", "entry count in line 2 is malformed: 'many' is not an integer"),
        ("0\n99999999999\n", "'99999999999' does not fit into int32"),
        ("0\n-1\n", "a negative number of entries in its second line: -1"),
        ("0\n2\na 0 5\n", "1 entries, its second line says 2"),
        ("0\n0\na 0 5\n", "1 entries, its second line says 0"),
        ("0\n1\na 0\n", "line 3, 'a 0', is malformed: it has 2 fields, expected 3"),
        ("0\n1\na 0 5 6\n", "it has 4 fields, expected 3"),
        ("0\n1\n a 0 5\n", "it has 4 fields, expected 3"),
        ("0\n1\n\na 0 5\n", "line 3, '', is malformed"),
        ("0\n1\n 0 5\n", "the topic is empty"),
        ("0\n2\na 0 5\nb x 5\n", "line 4, 'b x 5', is malformed: 'x' is not an integer"),
        ("0\n1\na 2147483648 5\n", "'2147483648' does not fit into int32"),
        ("0\n1\na 0 9223372036854775808\n", "'9223372036854775808' does not fit into int64"),
        ("0\n1\na 0 \u00b2\n", "is not an integer"),
        ("0\n1\na 0 " + "9" * 5000 + "\n", "…', is malformed"),
    ],
)
def test_broken_format_is_an_error_that_shows_the_line(
    tmp_path: Path, text: str, reason: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(CorruptCheckpointError, match=reason) as caught:
        read_offset_checkpoint(path)
    assert caught.value.path == path
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 600


def test_text_that_is_not_utf8_is_an_error_with_its_position(tmp_path: Path) -> None:
    with pytest.raises(CorruptCheckpointError, match="not utf-8") as caught:
        read_offset_checkpoint(write(tmp_path, b"0\n1\n\xff 0 5\n"))
    assert caught.value.position == 4


def test_huge_file_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_file, "MAX_TEXT_FILE_BYTES", 10)
    with pytest.raises(CorruptCheckpointError, match="has 11 bytes, expected at most 10"):
        read_offset_checkpoint(write(tmp_path, "0\n" * 5 + "0"))


def test_directory_is_an_error_of_the_log_directory(tmp_path: Path) -> None:
    with pytest.raises(LogDirectoryError):
        read_offset_checkpoint(tmp_path)


@settings(deadline=None)  # files and busy machines are slow at times
@given(
    st.dictionaries(
        st.tuples(
            st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True), st.integers(0, 2**31 - 1)
        ),
        st.integers(-1, 2**63 - 1),
    )
)
def test_what_a_broker_writes_is_read_back(
    scratch: Path, offsets: dict[tuple[str, int], int]
) -> None:
    lines = [f"{topic} {partition} {offset}\n" for (topic, partition), offset in offsets.items()]
    path = write(scratch, "".join(["0\n", f"{len(lines)}\n", *lines]))
    assert read_offset_checkpoint(path) == offsets


@settings(deadline=None)  # files and busy machines are slow at times
@given(st.one_of(st.binary(max_size=80), st.text(max_size=40).map(lambda t: f"0\n1\n{t}".encode())))
def test_any_bytes_are_a_checkpoint_or_corrupt(scratch: Path, data: bytes) -> None:
    try:
        read_offset_checkpoint(write(scratch, data))
    except CorruptCheckpointError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - no error is fine too


@pytest.mark.parametrize(
    ("offsets", "text"),
    [
        ({}, "0\n0\n"),
        ({TopicPartition("web-events", 0): 8531}, "0\n1\nweb-events 0 8531\n"),
        (
            {TopicPartition("b", 11): 3_000_000_000, TopicPartition("a", 2): 0},
            "0\n2\nb 11 3000000000\na 2 0\n",
        ),
    ],
)
def test_offsets_are_written_one_line_a_partition_in_their_order(
    tmp_path: Path, offsets: dict[TopicPartition, int], text: str
) -> None:
    path = write(tmp_path, "what was there before, and longer than what comes")
    write_offset_checkpoint(DurableIO(), path, offsets)
    assert path.read_bytes() == text.encode()
    assert read_offset_checkpoint(path) == offsets


def test_checkpoint_of_another_version_and_other_fields_is_written(tmp_path: Path) -> None:
    write_checkpoint(DurableIO(), tmp_path / "c", 7, ["é 1", "b"])
    assert (tmp_path / "c").read_bytes() == "7\n2\né 1\nb\n".encode()


def test_checkpoint_is_replaced_as_a_whole(tmp_path: Path) -> None:
    io = RecordingIO(tmp_path)
    write_offset_checkpoint(io, tmp_path / "c", {TopicPartition("a", 0): 5})
    assert io.summary == [
        "create c.tmp",
        "write c.tmp 0+10",
        "sync c.tmp",
        "replace c.tmp c",
        "sync-directory .",
    ]


def test_failed_write_keeps_the_old_checkpoint(tmp_path: Path) -> None:
    path = write(tmp_path, "0\n1\na 0 5\n")
    io = FaultyIO(Fault(kinds=frozenset({Kind.SYNC})))
    with pytest.raises(KafkaStorageError):
        write_offset_checkpoint(io, path, {TopicPartition("a", 0): 6})
    assert read_offset_checkpoint(path) == {TopicPartition("a", 0): 5}


@pytest.mark.parametrize("topic", ["", "a b", "a\nb", "\t"])
def test_topic_that_would_break_its_line_is_refused(tmp_path: Path, topic: str) -> None:
    with pytest.raises(ValueError, match="cannot stand in a checkpoint"):
        write_offset_checkpoint(DurableIO(), tmp_path / "c", {TopicPartition(topic, 0): 5})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "ends_a_broker"),
    [("0\n-1\n", True), ("0\n1\na 0 x\n", True), ("0\n2\na 0 5\n", False), ("0\nx\n", False)],
)
def test_what_is_no_input_or_output_error_to_kafka_is_told_apart(
    tmp_path: Path, text: str, *, ends_a_broker: bool
) -> None:
    with pytest.raises(CorruptCheckpointError) as raised:
        read_offset_checkpoint(write(tmp_path, text))
    assert isinstance(raised.value, CheckpointNumberError) is ends_a_broker

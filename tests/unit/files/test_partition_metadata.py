from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pylog.errors import CorruptCheckpointError, SegmentVanishedError
from pylog.files.durable_io import DurableIO
from pylog.files.partition_metadata import (
    ZERO_UUID,
    PartitionMetadata,
    format_uuid,
    new_topic_id,
    parse_uuid,
    read_partition_metadata,
    write_partition_metadata,
)
from tests.support.recording_io import RecordingIO

if TYPE_CHECKING:
    from pathlib import Path

# Written by a 3.9.1 broker.
REAL_TEXT = "version: 0\ntopic_id: 7bGSu7gYRDuEkZTQ2w4F_g"
REAL_ID = uuid.UUID("edb192bb-b818-443b-8491-94d0db0e05fe")


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "partition.metadata"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\nfuture: yes\n"])
def test_file_of_a_real_broker_is_read(tmp_path: Path, end: str) -> None:
    assert read_partition_metadata(write(tmp_path, REAL_TEXT + end)) == (0, REAL_ID)


@pytest.mark.parametrize(
    "text",
    [
        " " + REAL_TEXT,
        "\ufeff" + REAL_TEXT,
        REAL_TEXT.replace(": ", ":\t \t"),
        REAL_TEXT.replace("version", "v").replace("topic_id", "id"),
        REAL_TEXT.replace(" 0", " +00"),
        REAL_TEXT.replace(" 0", " \u0660"),
        REAL_TEXT + "==",
    ],
)
def test_only_the_values_count(tmp_path: Path, text: str) -> None:
    assert read_partition_metadata(write(tmp_path, text)) == (0, REAL_ID)


def test_higher_version_is_accepted(tmp_path: Path) -> None:
    path = write(tmp_path, REAL_TEXT.replace("version: 0", "version: 7"))
    assert read_partition_metadata(path) == PartitionMetadata(7, REAL_ID)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "has 0 lines, expected line 1: 'version: …'"),
        ("version: 0\n", "has 1 lines, expected line 2: 'topic_id: …'"),
        ("version:0\n" + REAL_TEXT[11:], "line 1 is 'version:0', expected 'version: …'"),
        (REAL_TEXT[11:] + "\nversion: 0", "'7bGSu7gYRDuEkZTQ2w4F_g' is not an integer"),
        (REAL_TEXT + " ", "'7bGSu7gYRDuEkZTQ2w4F_g ' is not a UUID"),
        (REAL_TEXT + "\t", "is not a UUID"),
        (REAL_TEXT + "=", "is not a UUID"),
        (REAL_TEXT.replace(" 0", " 0 "), "'0 ' is not an integer"),
        (REAL_TEXT.replace(" 0", " 0: 1"), "line 1 is 'version: 0: 1'"),
        (REAL_TEXT.replace(" ", "\u2003"), "line 1 is 'version:"),
        ("\n" + REAL_TEXT, "line 1 is ''"),
        ("version: x\n" + REAL_TEXT[11:], "'x' is not an integer"),
        ("version: -1\n" + REAL_TEXT[11:], "version -1, expected 0 or above"),
        ("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "zero topic id"),
        ("version: 0\ntopic_id: 7bGSu7gYRDuEkZTQ2w4F_", "not a UUID of 22 base64url characters"),
        ("version: 0\ntopic_id: " + str(REAL_ID), "not a UUID of 22 base64url characters"),
        ("\0" * 50, "line 1 is"),
    ],
)
def test_malformed_file_is_corrupt(tmp_path: Path, text: str, reason: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(CorruptCheckpointError, match=reason) as caught:
        read_partition_metadata(path)
    assert caught.value.path == path


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SegmentVanishedError):
        read_partition_metadata(tmp_path / "partition.metadata")


@settings(deadline=None)  # busy machines are slow at times
@given(st.uuids())
def test_uuid_text_is_read_back(value: uuid.UUID) -> None:
    text = format_uuid(value)
    assert len(text) == 22
    assert parse_uuid(text) == parse_uuid(text + "==") == value


@settings(deadline=None)  # busy machines are slow at times
@given(st.text(max_size=30))
def test_any_text_is_a_uuid_or_a_bad_value(text: str) -> None:
    try:
        parse_uuid(text)
    except ValueError as error:
        assert "not a UUID" in str(error)  # noqa: PT017 - no error is fine too


def test_file_is_written_as_a_broker_does(tmp_path: Path) -> None:
    path = write(tmp_path, "what was there before, and longer than what comes, by a good deal")
    write_partition_metadata(DurableIO(), path, REAL_ID)
    assert path.read_bytes() == REAL_TEXT.encode()


def test_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    io = RecordingIO(tmp_path)
    write_partition_metadata(io, tmp_path / "p", REAL_ID)
    assert io.summary[2:] == ["sync p.tmp", "replace p.tmp p", "sync-directory ."]


def test_zero_uuid_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="zero UUID is not a topic id"):
        write_partition_metadata(DurableIO(), tmp_path / "p", ZERO_UUID)
    assert list(tmp_path.iterdir()) == []


def test_new_topic_id_is_random_and_of_version_4() -> None:
    ids = {new_topic_id() for _ in range(1_000)}
    assert len(ids) == 1_000
    assert all(each.version == 4 for each in ids)
    assert not any(format_uuid(each).startswith("-") for each in ids)


def test_new_topic_id_is_neither_reserved_nor_like_an_option() -> None:
    dash = uuid.UUID(bytes=b"\xf8" + bytes(15))
    assert format_uuid(dash) == "-AAAAAAAAAAAAAAAAAAAAA"
    drawn = iter([ZERO_UUID, uuid.UUID(int=1), uuid.UUID(int=99), dash, REAL_ID])
    assert new_topic_id(lambda: next(drawn)) == REAL_ID
    assert new_topic_id(lambda: uuid.UUID(int=100)) == uuid.UUID(int=100)

"""The entries beside a staged file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import crcmod.predefined
import numpy as np
import pytest

from pylog.errors import CorruptRecordError, SegmentVanishedError
from pylog.files.staged_entries import StagedEntries, read_staged_entries
from pylog.files.staged_files import StagedFile
from pylog.model import TopicPartition

if TYPE_CHECKING:
    from pathlib import Path

ROWS = ((100, 3, -1, 2**32 - 1), (61, 1, 2**40, 7))
CONTENT = b"".join(
    size.to_bytes(4, "big")
    + count.to_bytes(4, "big")
    + time.to_bytes(8, "big", signed=True)
    + crc.to_bytes(4, "big")
    for size, count, time, crc in ROWS
)
STAGED = StagedFile(
    ".pylog-staged-0123456789abcdef-01234567-0.batches",
    TopicPartition("orders", 0),
    161,
    2,
    4,
    2**32 - 1,
    7,
    crcmod.predefined.mkCrcFun("crc-32c")(CONTENT),
)


def test_they_are_written_as_the_format_says() -> None:
    columns = [np.array(each, dtype=np.int64) for each in zip(*ROWS, strict=True)]
    assert StagedEntries(*columns).to_bytes() == CONTENT


def test_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / STAGED.entries_name
    path.write_bytes(CONTENT)
    entries = read_staged_entries(path, STAGED)
    assert entries.sizes_bytes.tolist() == [100, 61]
    assert entries.record_counts.tolist() == [3, 1]
    assert entries.max_timestamps.tolist() == [-1, 2**40]
    assert entries.crcs.tolist() == [2**32 - 1, 7]
    assert STAGED.entries_name == ".pylog-staged-0123456789abcdef-01234567-0.entries"


@pytest.mark.parametrize("at", range(len(CONTENT)))
def test_any_other_byte_is_an_error(tmp_path: Path, at: int) -> None:
    path = tmp_path / "x.entries"
    content = bytearray(CONTENT)
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorruptRecordError, match="checksum"):
        read_staged_entries(path, STAGED)


@pytest.mark.parametrize("content", [b"", CONTENT[:-1], CONTENT + b"\0"])
def test_another_length_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.entries"
    path.write_bytes(content)
    with pytest.raises(CorruptRecordError, match="bytes, expected 40"):
        read_staged_entries(path, STAGED)


@pytest.mark.parametrize("other", [{"size_bytes": 162}, {"record_count": 5}, {"last_crc": 8}])
def test_rows_that_are_not_those_of_the_file_are_an_error(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    path = tmp_path / "x.entries"
    path.write_bytes(CONTENT)
    with pytest.raises(CorruptRecordError, match="staged entries are of 161 bytes"):
        read_staged_entries(path, STAGED._replace(**other))


def test_no_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SegmentVanishedError):
        read_staged_entries(tmp_path / "x.entries", STAGED)

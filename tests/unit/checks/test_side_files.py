"""Side files that are missing, empty or damaged are reported, and are not errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import pylog
from tests.support.batches import batch_v2, plain_records, with_bad_crc
from tests.support.log_files import (
    OFFSET_ENTRY,
    TIME_ENTRY,
    TRANSACTION_ENTRY,
    segment_path,
    write_partition,
)

if TYPE_CHECKING:
    from pathlib import Path

BATCHES = [batch_v2(plain_records(offset, 2, timestamp=1000 + offset)) for offset in (10, 12, 14)]
SIZE = len(BATCHES[0].data)


def state_of(directory: Path, kind: str) -> tuple[Any, ...]:
    (row,) = pylog.read_table(directory, "segments").to_pylist()
    return tuple(row[kind].values())


def write(directory: Path, suffix: str, content: bytes) -> Path:
    path = segment_path(write_partition(directory, {10: BATCHES}), 10, suffix)
    path.write_bytes(content)
    return path


def offset_entries(*entries: tuple[int, int]) -> bytes:
    return b"".join(OFFSET_ENTRY.pack(*entry) for entry in entries)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", ("empty", 0, None)),
        (bytes(80), ("empty", 0, None)),
        (offset_entries((3, SIZE), (5, 2 * SIZE)), ("ok", 2, None)),
        (offset_entries((3, SIZE)) + bytes(80), ("ok", 1, None)),
        (
            offset_entries((3, SIZE))[:-1],
            ("damaged", 0, "index length 7 is not a multiple of the entry size 8"),
        ),
        (
            offset_entries((5, SIZE), (3, 2 * SIZE)),
            (
                "damaged",
                2,
                f"entry 1 is (13, {2 * SIZE}), expected both above (15, {SIZE})",
            ),
        ),
        (
            offset_entries((3, 3 * SIZE)),
            (
                "damaged",
                1,
                f"last entry is byte {3 * SIZE} of the log, whose batches end at {3 * SIZE}",
            ),
        ),
    ],
)
def test_the_state_of_an_offset_index(
    tmp_path: Path, content: bytes, expected: tuple[Any, ...]
) -> None:
    write(tmp_path, ".index", content)
    assert state_of(tmp_path, "offset_index") == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (TIME_ENTRY.pack(1014, 5), ("ok", 1, None)),
        (
            TIME_ENTRY.pack(1014, 6),
            ("damaged", 1, "last entry has offset 16, the segment's batches end before 16"),
        ),
    ],
)
def test_the_state_of_a_time_index(
    tmp_path: Path, content: bytes, expected: tuple[Any, ...]
) -> None:
    write(tmp_path, ".timeindex", content)
    assert state_of(tmp_path, "time_index") == expected


@pytest.mark.parametrize(
    ("content", "state", "entries"),
    [
        (b"", "empty", 0),
        (TRANSACTION_ENTRY.pack(0, 1, 10, 12, 13), "ok", 1),
        (TRANSACTION_ENTRY.pack(7, 1, 10, 12, 13), "damaged", None),
    ],
)
def test_the_state_of_a_transaction_index(
    tmp_path: Path, content: bytes, state: str, entries: int | None
) -> None:
    write(tmp_path, ".txnindex", content)
    found = state_of(tmp_path, "transaction_index")
    assert found[:2] == (state, entries)
    assert (found[2] is not None) is (state == "damaged")


def test_a_missing_index_is_reported_as_such(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, {10: BATCHES}, with_index=False, with_time_index=False)
    for kind in ("offset_index", "time_index", "transaction_index"):
        assert state_of(directory, kind) == ("missing", None, None)
    assert pylog.read_table(directory, "index_entries").num_rows == 0


def test_a_damaged_transaction_index_is_one_row_with_the_defect(tmp_path: Path) -> None:
    content = TRANSACTION_ENTRY.pack(0, 1, 10, 12, 13) + TRANSACTION_ENTRY.pack(7, 1, 10, 14, 15)
    path = write(tmp_path, ".txnindex", content)
    rows = pylog.read_table(tmp_path, "index_entries").to_pylist()
    (row,) = (row for row in rows if row["index"] == "transaction")
    assert row["defect"] == "transaction index entry has version 7, expected 0"
    assert (row["file"], row["entry"], row["producer_id"]) == (path.name, None, None)


def test_a_damaged_snapshot_is_one_row_with_the_defect(tmp_path: Path) -> None:
    path = write(tmp_path, ".snapshot", b"\x00\x01")
    (row,) = pylog.read_table(tmp_path, "producers").to_pylist()
    assert (row["snapshot"], row["snapshot_offset"]) == (path.name, 10)
    assert row["defect"] == "producer snapshot has 2 bytes, expected at least 10"
    assert (row["producer_id"], row["last_offset"], row["timestamp"]) == (None, None, None)


def test_wrong_checksums_are_reported_and_raise_nothing(tmp_path: Path) -> None:
    broken = [with_bad_crc(built) for built in BATCHES[1:]]
    write_partition(tmp_path, {10: [BATCHES[0], *broken]})
    checked = pylog.read_table(tmp_path, "batches", check_crc=True)
    assert checked["is_valid_crc"].to_pylist() == [True, False, False]
    unchecked = pylog.read_table(tmp_path, "batches")
    assert unchecked["is_valid_crc"].to_pylist() == [None, None, None]


def test_a_tail_after_the_last_batch_is_not_a_batch(tmp_path: Path) -> None:
    path = segment_path(write_partition(tmp_path, {10: BATCHES}), 10)
    path.write_bytes(path.read_bytes() + bytes(500))
    (row,) = pylog.read_table(tmp_path, "segments").to_pylist()
    assert (row["valid_bytes"], row["size_in_bytes"]) == (3 * SIZE, 3 * SIZE + 500)
    assert (row["next_offset"], row["batches"], row["records"]) == (16, 3, 6)

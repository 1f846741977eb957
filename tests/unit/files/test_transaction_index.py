from __future__ import annotations

import struct
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pylog.errors import CorruptIndexError, SegmentVanishedError
from pylog.files.transaction_index import (
    TransactionIndexEntry,
    collect_aborted_transactions,
    read_transaction_index,
)
from pylog.model import AbortedTransaction

if TYPE_CHECKING:
    from pathlib import Path

GOLDEN_ENTRY = bytes.fromhex("000000000000000000010000000000000000000000000000001d0000000000000008")
# Written by a 4.3.0 broker, base offset 29.
REAL_ENTRY = bytes.fromhex("00000000000000000001000000000000001400000000000000240000000000000018")
KAFKA_TEST_ENTRIES = [
    TransactionIndexEntry(0, 0, 0, 10, 11),
    TransactionIndexEntry(0, 1, 5, 15, 13),
    TransactionIndexEntry(0, 2, 18, 35, 25),
    TransactionIndexEntry(0, 3, 32, 50, 40),
]


def pack(*entries: tuple[int, int, int, int, int]) -> bytes:
    return b"".join(struct.pack(">hqqqq", *entry) for entry in entries)


def write(tmp_path: Path, data: bytes, name: str = "00000000000000000000.txnindex") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def test_entry_has_the_layout_of_the_format(tmp_path: Path) -> None:
    path = write(tmp_path, GOLDEN_ENTRY)
    assert read_transaction_index(path) == [TransactionIndexEntry(0, 1, 0, 29, 8)]


def test_entry_of_a_real_broker_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, REAL_ENTRY, "00000000000000000029.txnindex")
    assert read_transaction_index(path) == [TransactionIndexEntry(0, 1, 20, 36, 24)]


@pytest.mark.parametrize("cut", range(34))
def test_trailing_partial_entry_is_ignored(tmp_path: Path, cut: int) -> None:
    first = TransactionIndexEntry(0, 9, 1, 5, 6)
    path = write(tmp_path, pack(first) + GOLDEN_ENTRY[:cut])
    assert read_transaction_index(path) == [first]


def test_file_longer_than_one_read_is_read_whole(tmp_path: Path) -> None:
    entries = [(0, 7, slot, slot + 1, slot + 2) for slot in range(9000)]
    assert read_transaction_index(write(tmp_path, pack(*entries))) == entries


@pytest.mark.parametrize(
    ("entries", "position", "text"),
    [
        ([(1, 0, 0, 10, 11)], 0, "has version 1, expected 0"),
        ([(0, 0, 0, 10, 11), (-1, 0, 0, 11, 12)], 34, "has version -1, expected 0"),
        ([(0, 0, 0, 10, 11), (0, 1, 0, 10, 11)], 34, "last offset 10, expected at least 11"),
        ([(0, 0, 0, 10, 11), (0, 1, 0, 9, 11)], 34, "last offset 9, expected at least 11"),
        ([(0, 0, 0, -1, 11)], 0, "last offset -1, expected at least 0"),
    ],
)
def test_impossible_entry_is_named_with_its_position(
    tmp_path: Path, entries: list[tuple[int, int, int, int, int]], position: int, text: str
) -> None:
    path = write(tmp_path, pack(*entries))
    with pytest.raises(CorruptIndexError, match=text) as caught:
        read_transaction_index(path)
    assert caught.value.path == path
    assert caught.value.position == position


def test_last_offset_below_the_base_offset_of_the_name_is_corrupt(tmp_path: Path) -> None:
    data = pack((0, 0, 0, 10, 11))
    for name in ("00000000000000000011.txnindex", "00000000000000000011.txnindex.deleted"):
        with pytest.raises(CorruptIndexError, match=r"at least 11 \(the base offset\)"):
            read_transaction_index(write(tmp_path, data, name))
    assert len(read_transaction_index(write(tmp_path, data, "00000000000000000010.txnindex"))) == 1


def test_base_offset_can_be_given(tmp_path: Path) -> None:
    path = write(tmp_path, pack((0, 0, 0, 10, 11)), "aborted")
    assert len(read_transaction_index(path)) == 1
    with pytest.raises(CorruptIndexError, match="at least 12"):
        read_transaction_index(path, base_offset=12)


def test_missing_file_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    assert read_transaction_index(write(tmp_path, b"")) == []
    with pytest.raises(SegmentVanishedError):
        read_transaction_index(tmp_path / "00000000000000000009.txnindex")


@settings(deadline=None)  # files and busy machines are slow at times
@given(st.binary(max_size=200))
def test_any_bytes_are_entries_or_corrupt(scratch: Path, data: bytes) -> None:
    path = write(scratch, data, "hostile.txnindex")
    with suppress(CorruptIndexError):
        assert len(read_transaction_index(path)) == len(data) // 34


@pytest.mark.parametrize(
    ("start_offset", "end_offset", "slots", "is_complete"),
    [
        (0, 100, [0, 1, 2, 3], False),
        (0, 0, [], True),
        (0, 11, [0], True),  # the first entry says that all before 11 is decided
        (0, 12, [0, 1], True),
        (0, 32, [0, 1, 2], True),
        (0, 35, [0, 1, 2, 3], True),
        (10, 35, [0, 1, 2, 3], True),
        (11, 35, [1, 2, 3], True),
        (20, 41, [2, 3], False),
        (51, 60, [], False),
        (0, 1, [0], True),
    ],
)
def test_aborted_transactions_of_a_range_are_collected_as_in_kafka(
    start_offset: int,
    end_offset: int,
    slots: list[int],
    is_complete: bool,  # noqa: FBT001
) -> None:
    result = collect_aborted_transactions(KAFKA_TEST_ENTRIES, start_offset, end_offset)
    expected = [KAFKA_TEST_ENTRIES[slot] for slot in slots]
    assert result.is_complete is is_complete
    assert result.aborted_transactions == [
        AbortedTransaction(e.producer_id, e.first_offset, e.last_offset) for e in expected
    ]


def test_no_entries_make_an_incomplete_search() -> None:
    assert collect_aborted_transactions([], 0, 10) == ([], False)

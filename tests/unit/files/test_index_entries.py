from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pylog.files.byte_source import ByteSource
from pylog.files.index_entries import PAGE_BYTES
from pylog.files.offset_index import OffsetIndexEntries
from pylog.files.time_index import TimeIndexEntries
from pylog.model import NO_TIMESTAMP, OffsetPosition, TimestampOffset

if TYPE_CHECKING:
    from pathlib import Path

BASE = 1000
INT32_MAX = 2**31 - 1


class MemorySource(ByteSource):
    """ByteSource over bytes that counts its reads."""

    def __init__(self, data: bytes) -> None:
        self.path = "memory"
        self.data = data
        self.read_count = 0
        self.is_closed = False

    def size(self) -> int:
        return len(self.data)

    def read_at(self, position: int, length: int) -> bytes:
        self.read_count += 1
        assert length <= PAGE_BYTES
        return self.data[position : position + length]

    def read_into(self, position: int, buffer: memoryview) -> int:
        raise NotImplementedError

    def next_data(self, position: int) -> int | None:
        raise NotImplementedError

    def close(self) -> None:
        self.is_closed = True


def offset_index(entries: list[tuple[int, int]], tail: bytes = b"") -> OffsetIndexEntries:
    data = b"".join(struct.pack(">ii", *entry) for entry in entries)
    return OffsetIndexEntries.paged(MemorySource(data + tail), BASE)


def time_index(entries: list[tuple[int, int]], tail: bytes = b"") -> TimeIndexEntries:
    data = b"".join(struct.pack(">qi", *entry) for entry in entries)
    return TimeIndexEntries.paged(MemorySource(data + tail), BASE)


@st.composite
def sorted_entries(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Entries that increase in both columns; many enough, often, to fill several pages."""
    count = draw(st.one_of(st.integers(0, 8), st.integers(300, 1400)))
    steps = draw(st.integers(1, 1000))
    first = draw(st.integers(1, 50))
    return [(first + slot * steps, 7 + slot * (steps + 1)) for slot in range(count)]


@settings(deadline=None)  # busy machines are slow at times
@given(
    entries=sorted_entries(),
    zero_slots=st.integers(0, 1200),
    partial=st.integers(0, 7),
    data=st.data(),
)
def test_offset_lookup_is_bisection_of_the_plain_list(
    entries: list[tuple[int, int]], zero_slots: int, partial: int, data: st.DataObject
) -> None:
    assume(entries or zero_slots != 1)  # a single zero entry is a record at the base offset
    index = offset_index(entries, bytes(8 * zero_slots + partial))
    offsets = [BASE + relative for relative, _ in entries]
    assert index.entry_count == len(entries)
    assert index.slot_count == len(entries) + zero_slots
    top = (offsets or [BASE])[-1] + 3
    for target in data.draw(st.lists(st.integers(BASE - 3, top), max_size=20)):
        slot = bisect_right(offsets, target) - 1
        expected = OffsetPosition(offsets[slot], entries[slot][1]) if slot >= 0 else (BASE, 0)
        assert index.lookup(target) == expected
    positions = [position for _, position in entries]
    end = data.draw(st.integers(0, (positions or [0])[-1] + 3))
    slot = bisect_left(positions, end)
    upper = index.fetch_upper_bound_offset(OffsetPosition(BASE, 0), end)
    assert upper == (None if slot == len(entries) else (offsets[slot], positions[slot]))


@settings(deadline=None)  # busy machines are slow at times
@given(entries=sorted_entries(), zero_slots=st.integers(0, 700), data=st.data())
def test_time_lookup_is_bisection_of_the_plain_list(
    entries: list[tuple[int, int]], zero_slots: int, data: st.DataObject
) -> None:
    index = time_index(entries, bytes(12 * zero_slots))
    timestamps = [timestamp for timestamp, _ in entries]
    # A file of one zero entry looks like a record at timestamp 0 of the first offset.
    lone_zero = not entries and zero_slots == 1
    assert index.entry_count == len(entries) + lone_zero
    top = (timestamps or [0])[-1] + 3
    for target in data.draw(st.lists(st.integers(-2, top), max_size=20)):
        slot = bisect_right(timestamps, target) - 1
        expected = (timestamps[slot], BASE + entries[slot][1]) if slot >= 0 else None
        if expected is None:
            expected = (0, BASE) if lone_zero and target >= 0 else (NO_TIMESTAMP, BASE)
        assert index.lookup(target) == expected


@settings(deadline=None)  # busy machines are slow at times
@given(
    data=st.one_of(
        st.binary(max_size=400),
        st.tuples(st.binary(min_size=1, max_size=64), st.integers(1, 400)).map(
            lambda t: t[0] * t[1]
        ),
    ),
    target=st.integers(-(2**63), 2**63 - 1),
)
def test_any_bytes_give_a_possible_answer(data: bytes, target: int) -> None:
    offsets = OffsetIndexEntries.paged(MemorySource(data), BASE)
    found = offsets.lookup(target)
    assert found.offset >= BASE
    assert found.position >= 0
    assert found == (BASE, 0) or found.offset <= target
    offsets.fetch_upper_bound_offset(found, target)
    times = TimeIndexEntries.paged(MemorySource(data), BASE)
    assert times.lookup(target).offset >= BASE
    for index in (offsets, times):
        assert len(list(index)) == index.entry_count <= index.slot_count
        index.last_entry()
        index.find_defect()


@pytest.mark.parametrize("slots", [511, 512, 513, 1023, 1024, 1025])
@pytest.mark.parametrize("count", [1, 510, 511])
def test_zero_tail_is_found_next_to_page_boundaries(slots: int, count: int) -> None:
    entries = [(slot + 1, slot * 10) for slot in range(count)]
    assert offset_index(entries, bytes(8 * (slots - count))).entry_count == count


def test_lookup_in_a_full_sized_index_reads_few_pages() -> None:
    source = MemorySource(struct.pack(">qi", 5, 5) + bytes(12 * 873_812))
    index = TimeIndexEntries.paged(source, BASE)
    assert index.lookup(7) == (5, BASE + 5)
    assert source.read_count <= 14
    before = source.read_count
    assert index.lookup(6) == (5, BASE + 5)
    assert source.read_count == before


def test_lookup_in_a_full_index_reads_few_pages() -> None:
    data = b"".join(struct.pack(">ii", slot + 1, slot) for slot in range(1_310_720))
    source = MemorySource(data)
    index = OffsetIndexEntries.paged(source, BASE)
    assert index.lookup(BASE + 777_777) == (BASE + 777_777, 777_776)
    assert source.read_count <= 14


def test_first_slot_may_have_relative_offset_zero() -> None:
    index = time_index([(5, 0), (9, 4)], bytes(120))
    assert list(index) == [(5, BASE), (9, BASE + 4)]


def test_unused_preallocated_index_has_no_entries() -> None:
    assert offset_index([], bytes(4096)).entry_count == 0
    assert time_index([], bytes(4092)).last_entry() is None


def test_single_zero_entry_of_a_trimmed_time_index_is_an_entry() -> None:
    assert list(time_index([(0, 0)])) == [TimestampOffset(0, BASE)]


def test_missing_and_empty_files_have_no_entries(tmp_path: Path) -> None:
    empty = tmp_path / "empty.index"
    empty.touch()
    for path in (empty, tmp_path / "missing.index"):
        with OffsetIndexEntries.open(path, BASE) as index:
            assert index.entry_count == 0
            assert list(index) == []
            assert index.last_entry() is None
            assert index.lookup(BASE + 5) == (BASE, 0)
            assert index.find_defect() is None


def test_an_unreadable_file_has_no_entries_and_a_defect(tmp_path: Path) -> None:
    with TimeIndexEntries.open(tmp_path, BASE) as index:
        assert list(index) == []
        assert "not a regular file but a directory" in (index.find_defect() or "")


@pytest.mark.parametrize("slot", [-1, 2, 100])
def test_entry_outside_the_index_is_a_bad_argument(slot: int) -> None:
    index = offset_index([(1, 1), (2, 2)], bytes(80))
    assert index.entry(1) == (BASE + 2, 2)
    with pytest.raises(ValueError, match=r"not in 0 \.\. 1"):
        index.entry(slot)


def test_file_that_becomes_shorter_reads_as_zeros() -> None:
    source = MemorySource(b"".join(struct.pack(">ii", n, n) for n in range(1, 3000)))
    index = OffsetIndexEntries.paged(source, BASE)
    assert index.entry_count == 2999
    source.data = b""
    assert index.lookup(BASE + 1500).position >= 0
    assert len(list(index)) == 2999


def test_close_releases_the_source() -> None:
    source = MemorySource(b"")
    with OffsetIndexEntries.paged(source, BASE):
        assert not source.is_closed
    assert source.is_closed


@pytest.mark.parametrize(
    ("index", "defect"),
    [
        (offset_index([]), None),
        (offset_index([(0, 0)]), None),
        (offset_index([(3, 1)], b"abc"), "index length 11 is not a multiple of the entry size 8"),
        (offset_index([(3, 1), (-7, 2)]), "last index offset 993 is below base offset 1000"),
        (time_index([(3, 1), (4, -1)]), "last index offset 999 is below base offset 1000"),
        (time_index([(3, 1), (2, 5)]), "last index timestamp 2 is below the first one, 3"),
        (time_index([(3, 1)], bytes(24)), None),
        (time_index([], b"x"), "index length 1 is not a multiple of the entry size 12"),
    ],
)
def test_defect_is_what_the_broker_complains_about(
    index: OffsetIndexEntries | TimeIndexEntries, defect: str | None
) -> None:
    assert index.find_defect() == defect

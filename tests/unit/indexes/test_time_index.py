from __future__ import annotations

import struct
from bisect import bisect_right
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.errors import IndexOffsetOverflowError, InvalidOffsetError
from pylog.files.durable_io import DurableIO
from pylog.indexes.time_index import TimeIndex
from pylog.model import NO_TIMESTAMP, TimestampOffset

if TYPE_CHECKING:
    from pathlib import Path


BASE = 45
MAX_ENTRIES = 30
NAME = "00000000000000000045.timeindex"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / NAME


@pytest.fixture
def index(path: Path) -> TimeIndex:
    return TimeIndex(path, BASE, MAX_ENTRIES * 12, DurableIO())


def append_tens(index: TimeIndex, count: int) -> None:
    """Append timestamp 10 at offset 55, 20 at 65, and so on."""
    for number in range(1, count + 1):
        assert index.maybe_append(number * 10, BASE + number * 10)


def all_entries(index: TimeIndex) -> list[TimestampOffset]:
    return [index.entry(slot) for slot in range(index.entries)]


# ---- look-ups


def test_empty_index_answers_with_no_timestamp(index: TimeIndex) -> None:
    for target in (NO_TIMESTAMP, 0, 100, 2**63 - 1):
        assert index.lookup(target) == (NO_TIMESTAMP, BASE)
    assert index.last_entry == (NO_TIMESTAMP, BASE)
    assert index.entries == 0


@given(
    steps=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=40),
    targets=st.lists(st.integers(-3, 1500), max_size=20),
)
def test_entries_are_the_rising_timestamps_and_lookup_is_their_bisection(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[int, int]],
    targets: list[int],
) -> None:
    index = TimeIndex(tmp_path_factory.mktemp("index") / NAME, BASE, 12 * 50, DurableIO())
    timestamp, offset, expected = -1, BASE, []
    for timestamp_step, offset_step in steps:
        timestamp, offset = timestamp + timestamp_step, offset + offset_step
        if timestamp_step:
            expected.append((timestamp, offset))
        assert index.maybe_append(timestamp, offset) == (timestamp_step > 0)
    assert all_entries(index) == expected
    for target in targets:
        slot = bisect_right([stamp for stamp, _ in expected], target) - 1
        assert index.lookup(target) == (expected[slot] if slot >= 0 else (NO_TIMESTAMP, BASE))
    index.close()


def test_last_entry_is_the_last_one(index: TimeIndex) -> None:
    append_tens(index, 3)
    assert index.last_entry == (30, 75)
    assert index.entry(2) == (30, 75)
    with pytest.raises(ValueError, match=r"slot 3 is not in 0 \.\. 2 of .*timeindex"):
        index.entry(3)
    with pytest.raises(ValueError, match="slot -1 is not in"):
        index.entry(-1)


# ---- appending


def test_entries_are_written_at_once_big_endian_and_relative(index: TimeIndex, path: Path) -> None:
    index.maybe_append(1_713_115_202_403, 50)
    index.maybe_append(1_713_115_209_974, BASE + 2**31 - 1)
    assert path.read_bytes()[:36].hex() == (
        "0000018edd9f8363000000050000018edd9fa0f67fffffff000000000000000000000000"
    )


@pytest.mark.parametrize(
    ("timestamp", "offset"),
    [(30, 75), (30, 76), (30, 1000)],
)
def test_timestamp_of_the_last_entry_is_not_written_again(
    index: TimeIndex, timestamp: int, offset: int
) -> None:
    append_tens(index, 3)
    assert not index.maybe_append(timestamp, offset)
    assert index.entries == 3
    assert index.last_entry == (30, 75)


def test_segment_without_timestamps_has_no_entries(index: TimeIndex) -> None:
    assert not index.maybe_append(NO_TIMESTAMP, BASE + 7)
    assert not index.maybe_append(NO_TIMESTAMP, BASE + 9, skip_full_check=True)
    assert index.entries == 0
    assert index.maybe_append(0, BASE + 9)


def test_larger_timestamp_at_the_same_offset_is_written(index: TimeIndex) -> None:
    assert index.maybe_append(10, 50)
    assert index.maybe_append(11, 50)
    assert all_entries(index) == [(10, 50), (11, 50)]


def test_one_slot_is_kept_for_the_last_entry_of_the_segment(index: TimeIndex) -> None:
    append_tens(index, MAX_ENTRIES - 2)
    assert (index.entries, index.is_full) == (28, False)
    assert index.maybe_append(290, 335)
    assert (index.entries, index.is_full) == (29, True)
    with pytest.raises(ValueError, match=r"no entry fits into .*timeindex, which has 29 of 29"):
        index.maybe_append(10_000, 1000)
    assert index.maybe_append(10_000, 1000, skip_full_check=True)
    assert index.entries == MAX_ENTRIES
    with pytest.raises(ValueError, match=r"no entry fits into .*timeindex, which has 30 of 30"):
        index.maybe_append(10_001, 1001, skip_full_check=True)
    assert index.last_entry == (10_000, 1000)


def test_full_index_refuses_also_what_it_would_leave_out(index: TimeIndex) -> None:
    append_tens(index, MAX_ENTRIES - 1)
    with pytest.raises(ValueError, match="which has 29 of 29"):
        index.maybe_append(290, 335)
    assert not index.maybe_append(290, 335, skip_full_check=True)


def test_last_entry_may_be_forced_again_into_a_trimmed_index(index: TimeIndex) -> None:
    append_tens(index, 2)
    index.trim_to_valid_size()
    assert not index.maybe_append(20, 65, skip_full_check=True)
    assert all_entries(index) == [(10, 55), (20, 65)]


def test_offsets_must_not_go_down(index: TimeIndex) -> None:
    append_tens(index, 3)
    with pytest.raises(InvalidOffsetError, match=r" at byte 36: offset 74 cannot follow 75"):
        index.maybe_append(10_000, 74)
    with pytest.raises(InvalidOffsetError, match="offset 74 cannot follow 75"):
        index.maybe_append(10_000, 74, skip_full_check=True)
    assert index.entries == 3


def test_timestamps_must_not_go_down(index: TimeIndex) -> None:
    append_tens(index, 3)
    with pytest.raises(ValueError, match=r"timestamp 29 cannot follow 30 in time index .*index"):
        index.maybe_append(29, 80)
    assert index.entries == 3


@pytest.mark.parametrize("offset", [BASE - 1, BASE + 2**31])
def test_offsets_must_fit_into_32_bits_relative_to_the_base(index: TimeIndex, offset: int) -> None:
    with pytest.raises(IndexOffsetOverflowError, match=f"offset {offset} cannot"):
        index.maybe_append(5, offset)
    assert index.entries == 0


def test_an_entry_at_the_base_offset_does_not_hide_a_wrong_one_after_it(index: TimeIndex) -> None:
    with pytest.raises(IndexOffsetOverflowError, match=f"offset {BASE + 2**31} cannot"):
        index.append_all([(10, BASE), (12, BASE + 2**31)])
    assert index.entries == 0


def test_several_entries_are_appended_by_the_same_rules(index: TimeIndex, path: Path) -> None:
    pairs = [(10, 47), (12, 48), (13, 90)]
    index.append_all(pairs)
    assert all_entries(index) == pairs
    index.append_all([])
    index.trim_to_valid_size()
    assert path.read_bytes() == struct.pack(">qiqiqi", 10, 2, 12, 3, 13, 45)


@pytest.mark.parametrize(
    ("pairs", "error"),
    [
        ([(40, 80), (50, 79)], InvalidOffsetError),
        ([(40, 80), (39, 81)], ValueError),
        ([(40, 80), (50, BASE + 2**31)], IndexOffsetOverflowError),
        ([(40 + n, 80 + n) for n in range(27)], ValueError),
    ],
)
def test_all_or_none_of_several_entries_are_appended(
    index: TimeIndex, pairs: list[tuple[int, int]], error: type[Exception]
) -> None:
    append_tens(index, 3)
    with pytest.raises(error):
        index.append_all(pairs)
    assert all_entries(index) == [(10, 55), (20, 65), (30, 75)]


# ---- the file


def test_index_of_one_slot_is_always_full(path: Path) -> None:
    index = TimeIndex(path, BASE, 12, DurableIO())
    assert index.is_full
    assert index.maybe_append(5, 50, skip_full_check=True)


# ---- truncation


@pytest.mark.parametrize(("offset", "kept"), [(45, 0), (55, 0), (56, 1), (66, 2), (75, 2), (76, 3)])
def test_truncation_goes_by_offset_and_not_by_timestamp(
    index: TimeIndex, path: Path, offset: int, kept: int
) -> None:
    append_tens(index, 3)
    index.truncate_to(offset)
    assert all_entries(index) == [(10, 55), (20, 65), (30, 75)][:kept]
    assert path.read_bytes()[kept * 12 :] == bytes(360 - kept * 12)
    assert index.maybe_append(100, 145)
    assert index.last_entry == (100, 145)

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

import pytest

from pylog.errors import (
    IndexOffsetOverflowError,
    InvalidOffsetError,
)
from pylog.files.durable_io import DurableIO
from pylog.indexes.offset_index import OffsetIndex
from pylog.model import OffsetPosition

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


BASE = 45
MAX_ENTRIES = 30
NAME = "00000000000000000045.index"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / NAME


@pytest.fixture
def index(path: Path) -> OffsetIndex:
    return OffsetIndex(path, BASE, MAX_ENTRIES * 8, DurableIO())


def all_entries(index: OffsetIndex) -> list[OffsetPosition]:
    return [index.entry(slot) for slot in range(index.entries)]


# ---- look-ups


def test_first_record_of_the_segment_may_be_an_entry(index: OffsetIndex) -> None:
    index.append(BASE, 3)
    assert index.lookup(BASE) == (BASE, 3)
    assert index.last_offset == BASE


def test_upper_bound_is_the_first_entry_at_or_after_the_range(index: OffsetIndex) -> None:
    index.append_all([(45, 0), (46, 10), (47, 23)])
    assert index.fetch_upper_bound_offset(OffsetPosition(BASE, 0), 11) == (47, 23)


# ---- appending


def test_entries_are_written_at_once_big_endian_and_relative(
    index: OffsetIndex, path: Path
) -> None:
    index.append(46, 414)
    index.append_all([(50, 749), (BASE + 2**31 - 1, 2**31 - 1)])
    assert path.read_bytes()[:32].hex() == (
        "000000010000019e00000005000002ed7fffffff7fffffff0000000000000000"
    )


def test_index_takes_just_as_many_entries_as_it_has_room_for(index: OffsetIndex) -> None:
    for slot in range(MAX_ENTRIES):
        assert not index.is_full
        index.append(BASE + slot + 1, slot)
    assert index.is_full
    with pytest.raises(ValueError, match=r"1 entries do not fit into .* which has 30 of 30"):
        index.append(BASE + MAX_ENTRIES + 1, 1)
    assert index.entries == MAX_ENTRIES


def test_entries_that_do_not_all_fit_are_not_appended_in_part(index: OffsetIndex) -> None:
    index.append_all([(BASE + n, n) for n in range(1, 29)])
    with pytest.raises(ValueError, match="3 entries do not fit"):
        index.append_all([(80, 1), (81, 2), (82, 3)])
    assert index.entries == 28
    index.append_all([(80, 1), (81, 2)])
    assert index.is_full


@pytest.mark.parametrize("offset", [51, 50, 46])
def test_offsets_must_go_up(index: OffsetIndex, offset: int) -> None:
    index.append(51, 0)
    with pytest.raises(InvalidOffsetError, match=rf" at byte 8: offset {offset} cannot follow 51"):
        index.append(offset, 1)
    with pytest.raises(InvalidOffsetError, match=r" at byte 16: offset 52 cannot follow 52"):
        index.append_all([(52, 5), (52, 6)])
    assert all_entries(index) == [(51, 0)]


@pytest.mark.parametrize("offset", [BASE - 1, BASE + 2**31, -1])
def test_offsets_must_fit_into_32_bits_relative_to_the_base(
    index: OffsetIndex, offset: int
) -> None:
    assert not index.can_append_offset(offset)
    with pytest.raises(
        IndexOffsetOverflowError, match=rf"offset {offset} cannot .* expected 45 to 2147483692"
    ):
        index.append(offset, 1)
    assert index.entries == 0
    assert index.can_append_offset(BASE + 2**31 - 1)


# ---- threads


@pytest.fixture
def threads_take_short_turns() -> Iterator[None]:
    """Let threads take turns more often than usual: more of what can happen does in less time."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(usual / 100)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("threads_take_short_turns")
def test_readers_see_the_entries_of_some_moment_while_one_thread_writes(
    index: OffsetIndex,
) -> None:
    is_done = threading.Event()
    wrong: list[object] = []

    def read() -> None:
        while not is_done.is_set():
            try:
                offset, position = index.lookup(BASE + 7)
                last_offset = index.last_offset
            except Exception as error:  # noqa: BLE001 - any would be wrong
                wrong.append(error)
                return
            # Every entry's position is ten times its relative offset.
            if position != 10 * (offset - BASE) or not BASE <= last_offset <= BASE + 20:
                wrong.append((offset, position, last_offset))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(400):
        index.append_all([(BASE + n, 10 * n) for n in range(1, 11)])
        index.append_all([(BASE + n, 10 * n) for n in range(11, 21)])
        index.truncate_to(BASE + number % 20)
        if number % 5 == 0:
            index.trim_to_valid_size()
            index.release()
            index.resize(MAX_ENTRIES * 8)
        index.reset()
    is_done.set()
    for reader in readers:
        reader.join()
    assert wrong == []

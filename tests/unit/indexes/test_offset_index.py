from __future__ import annotations

import struct
import sys
import threading
from bisect import bisect_left, bisect_right
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.errors import (
    CorruptIndexError,
    IndexOffsetOverflowError,
    InvalidOffsetError,
    KafkaStorageError,
    SegmentVanishedError,
)
from pylog.files.durable_io import DurableIO
from pylog.indexes.offset_index import OffsetIndex
from pylog.model import OffsetPosition
from tests.support.golden import golden_partitions
from tests.support.kafka_dump import dumped_files, not_dumped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Counted
    from tests.support.golden import GoldenRoot

BASE = 45
MAX_ENTRIES = 30
NAME = "00000000000000000045.index"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / NAME


@pytest.fixture
def index(path: Path) -> OffsetIndex:
    return OffsetIndex(path, BASE, MAX_ENTRIES * 8, DurableIO())


def reopened(index: OffsetIndex) -> OffsetIndex:
    index.close()
    return OffsetIndex(index.path, index.base_offset, index.max_index_size, DurableIO())


def all_entries(index: OffsetIndex) -> list[OffsetPosition]:
    return [index.entry(slot) for slot in range(index.entries)]


class FailingIO(DurableIO):
    """A disk that takes part of one write, and fails."""

    is_full = False

    def pwrite(self, path: str, descriptor: int, position: int, data: memoryview) -> int:
        if self.is_full and len(data) <= 4:
            raise OSError(28, "No space left on device")
        return super().pwrite(path, descriptor, position, data[:4] if self.is_full else data)


# ---- look-ups


def test_empty_index_answers_with_the_segments_start(index: OffsetIndex) -> None:
    for target in (0, BASE - 1, BASE, BASE + 1000):
        assert index.lookup(target) == (BASE, 0)
    assert index.last_offset == BASE
    assert index.entries == 0


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (BASE - 1, (45, 0)),
        (45, (45, 0)),
        (46, (46, 7)),
        (48, (46, 7)),
        (49, (49, 9)),
        (50, (50, 1000)),
        (10**15, (50, 1000)),
    ],
)
def test_lookup_is_the_entry_at_or_below_the_target(
    index: OffsetIndex, target: int, expected: tuple[int, int]
) -> None:
    index.append_all([(46, 7), (49, 9), (50, 1000)])
    assert index.lookup(target) == expected
    assert reopened_trimmed(index).lookup(target) == expected


def reopened_trimmed(index: OffsetIndex) -> OffsetIndex:
    index.trim_to_valid_size()
    return reopened(index)


def test_first_record_of_the_segment_may_be_an_entry(index: OffsetIndex) -> None:
    index.append(BASE, 3)
    assert index.lookup(BASE) == (BASE, 3)
    assert index.last_offset == BASE


@given(
    steps=st.lists(st.tuples(st.integers(1, 50), st.integers(0, 900)), max_size=40),
    targets=st.lists(st.integers(0, 2500), max_size=20),
)
def test_lookup_is_bisection_of_the_plain_list(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[int, int]],
    targets: list[int],
) -> None:
    path = tmp_path_factory.mktemp("index") / NAME
    entries: list[tuple[int, int]] = []
    for offset_step, position_step in steps:
        offset, position = entries[-1] if entries else (BASE, 0)
        entries.append((offset + offset_step, position + position_step))
    index = OffsetIndex(path, BASE, 8 * 50, DurableIO())
    for offset, position in entries:
        index.append(offset, position)
    assert all_entries(index) == entries
    for target in targets:
        slot = bisect_right([offset for offset, _ in entries], target) - 1
        assert index.lookup(target) == (entries[slot] if slot >= 0 else (BASE, 0))
        slot = bisect_left([position for _, position in entries], target)
        upper = index.fetch_upper_bound_offset(OffsetPosition(BASE, 0), target)
        assert upper == (entries[slot] if slot < len(entries) else None)
    index.close()


@pytest.mark.parametrize(
    ("position", "size_bytes", "expected"),
    [
        (0, 0, (45, 0)),
        (0, 5, (46, 10)),
        (0, 10, (46, 10)),
        (0, 11, (47, 23)),
        (0, 23, (47, 23)),
        (10, 13, (47, 23)),
        (10, 14, (48, 37)),
        (23, 14, (48, 37)),
        (37, 0, (48, 37)),
        (37, 1, None),
        (0, 200, None),
    ],
)
def test_upper_bound_is_the_first_entry_at_or_after_the_range(
    index: OffsetIndex, position: int, size_bytes: int, expected: tuple[int, int] | None
) -> None:
    assert index.fetch_upper_bound_offset(OffsetPosition(BASE, position), size_bytes) is None
    index.append_all([(45, 0), (46, 10), (47, 23), (48, 37)])
    found = index.fetch_upper_bound_offset(OffsetPosition(BASE, position), size_bytes)
    assert found == expected


@pytest.mark.parametrize("slot", [-1, 1, 29])
def test_entry_outside_the_index_is_a_bad_argument(index: OffsetIndex, slot: int) -> None:
    index.append(46, 1)
    assert index.entry(0) == (46, 1)
    with pytest.raises(ValueError, match=r"not in 0 \.\. 0 of .*\.index"):
        index.entry(slot)


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


def test_failed_write_leaves_the_entries_as_they_were(path: Path) -> None:
    io = FailingIO()
    index = OffsetIndex(path, BASE, MAX_ENTRIES * 8, io)
    index.append(46, 1)
    io.is_full = True
    with pytest.raises(KafkaStorageError, match="No space left"):
        index.append_all([(47, 2), (48, 3)])
    assert all_entries(index) == [(46, 1)]
    io.is_full = False
    index.append(49, 4)
    assert all_entries(reopened_trimmed(index)) == [(46, 1), (49, 4)]


# ---- the file


def test_nothing_is_made_before_the_first_use(index: OffsetIndex, path: Path) -> None:
    assert not index.exists_on_disk
    with pytest.raises(SegmentVanishedError, match=r"index: .*does not exist"):
        index.ensure_exists()
    index.release()
    assert not path.exists()
    assert not index.is_full
    assert path.stat().st_size == MAX_ENTRIES * 8
    index.ensure_exists()


@pytest.mark.parametrize(
    ("max_index_size", "length", "room"),
    [
        (10_485_760, 10_485_760, 1_310_720),
        (8, 8, 1),
        (23, 16, 2),
        (10_485_763, 10_485_760, 1_310_720),
    ],
)
def test_new_file_has_its_full_size_in_whole_entries(
    path: Path, max_index_size: int, length: int, room: int
) -> None:
    index = OffsetIndex(path, BASE, max_index_size, DurableIO())
    assert (index.length, index.max_entries, index.entries) == (length, room, 0)
    assert path.stat().st_size == length
    assert path.stat().st_blocks * 512 < 65_536  # a hole


def test_size_below_one_entry_is_refused_when_the_file_is_made(path: Path) -> None:
    index = OffsetIndex(path, BASE, 7, DurableIO())
    with pytest.raises(ValueError, match="index size 7 is less than one entry, 8 bytes"):
        index.lookup(BASE)
    assert not path.exists()


def test_trimmed_file_holds_the_entries_and_nothing_else(index: OffsetIndex, path: Path) -> None:
    index.append_all([(51, 0), (52, 1)])
    assert (index.size_in_bytes, index.length) == (16, 240)
    index.trim_to_valid_size()
    assert path.read_bytes() == struct.pack(">iiii", 6, 0, 7, 1)
    assert (index.size_in_bytes, index.length) == (16, 16)


def test_reopened_index_has_its_entries_and_no_room_for_more(index: OffsetIndex) -> None:
    index.append_all([(51, 0), (52, 1)])
    again = reopened_trimmed(index)
    assert again.lookup(51) == (51, 0)
    assert again.lookup(52) == (52, 1)
    assert (again.last_offset, again.entries, again.max_entries) == (52, 2, 2)
    assert again.is_full
    with pytest.raises(ValueError, match="which has 2 of 2"):
        again.append(53, 2)
    assert again.resize(MAX_ENTRIES * 8)
    again.append(53, 2)
    assert again.lookup(60) == (53, 2)


def test_file_that_is_there_is_trusted_with_its_zeros(index: OffsetIndex, path: Path) -> None:
    index.append(51, 7)
    again = reopened(index)
    assert (again.entries, again.is_full) == (30, True)
    assert again.last_offset == BASE
    again.reset()
    assert (again.entries, again.length) == (0, 240)
    assert path.read_bytes() == bytes(240)


def test_releasing_does_not_trim_and_the_next_use_opens_again(
    index: OffsetIndex, path: Path
) -> None:
    index.append(51, 7)
    index.trim_to_valid_size()
    index.resize(17)
    index.release()
    index.release()
    assert path.stat().st_size == 16
    assert index.entry(0) == (51, 7)


def test_closing_does_not_trim_and_the_next_use_is_refused(index: OffsetIndex, path: Path) -> None:
    index.append(51, 7)
    index.trim_to_valid_size()
    index.resize(17)
    index.close()
    index.close()
    assert path.stat().st_size == 16
    for use in (lambda: index.entry(0), lambda: index.append(52, 8), index.flush, index.reset):
        with pytest.raises(ValueError, match=r"\.index is closed$"):
            use()


def test_file_of_length_zero_has_neither_entries_nor_room(path: Path) -> None:
    path.touch()
    index = OffsetIndex(path, BASE, MAX_ENTRIES * 8, DurableIO())
    assert (index.entries, index.max_entries, index.is_full) == (0, 0, True)
    index.sanity_check()


@pytest.mark.parametrize(
    ("new_size", "is_changed", "length"),
    [(240, False, 240), (247, False, 240), (80, True, 80), (87, True, 80), (400, True, 400)],
)
def test_resizing_says_whether_the_length_is_another_one(
    index: OffsetIndex, path: Path, new_size: int, *, is_changed: bool, length: int
) -> None:
    index.append_all([(51, 0), (52, 1)])
    assert index.resize(new_size) is is_changed
    assert (index.length, index.max_entries) == (length, length // 8)
    assert path.stat().st_size == length
    assert all_entries(index) == [(51, 0), (52, 1)]


def test_resizing_keeps_entries_that_do_not_fit(index: OffsetIndex, path: Path) -> None:
    index.append_all([(51, 0), (52, 1)])
    assert index.resize(8)
    assert path.stat().st_size == 16
    assert index.is_full
    assert index.lookup(52) == (52, 1)


# ---- truncation


@pytest.mark.parametrize(
    ("offset", "kept"), [(56, 10), (55, 9), (54, 8), (50, 4), (46, 0), (45, 0), (0, 0)]
)
def test_truncation_removes_entries_at_or_above_the_offset(
    index: OffsetIndex, path: Path, offset: int, kept: int
) -> None:
    index.append_all([(BASE + n, n) for n in range(1, 11)])
    index.truncate_to(offset)
    assert all_entries(index) == [(BASE + n, n) for n in range(1, kept + 1)]
    assert index.last_offset == BASE + kept
    assert index.length == path.stat().st_size == 240
    assert path.read_bytes()[kept * 8 :] == bytes(240 - kept * 8)
    index.append(BASE + 11, 11)
    assert index.entries == kept + 1


def test_truncation_between_entries_keeps_what_is_below(index: OffsetIndex) -> None:
    index.append_all([(50, 1), (60, 2), (70, 3)])
    index.truncate_to(61)
    assert all_entries(index) == [(50, 1), (60, 2)]


def test_truncating_everything_gives_an_empty_index(index: OffsetIndex, path: Path) -> None:
    index.truncate()
    index.append_all([(46, 1), (47, 2)])
    index.truncate()
    assert (index.entries, index.last_offset, index.length) == (0, BASE, 240)
    assert path.read_bytes() == bytes(240)
    index.append(46, 9)
    assert index.lookup(46) == (46, 9)


# ---- checks


def test_sound_indexes_pass_the_check(index: OffsetIndex) -> None:
    index.sanity_check()
    index.append(BASE, 0)
    index.sanity_check()  # the last offset may be the base offset
    index.append(BASE + 5, 10)
    reopened_trimmed(index).sanity_check()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (struct.pack(">iix", 3, 1), "index length 9 is not a multiple of the entry size 8"),
        (bytes(7), "index length 7 is not a multiple of the entry size 8"),
        (struct.pack(">ii", -5, 0), "last index offset 40 is below base offset 45"),
        (struct.pack(">iiii", 3, 1, -1, 9), "last index offset 44 is below base offset 45"),
    ],
)
def test_impossible_indexes_do_not_pass_the_check(path: Path, content: bytes, reason: str) -> None:
    path.write_bytes(content)
    index = OffsetIndex(path, BASE, MAX_ENTRIES * 8, DurableIO())
    with pytest.raises(CorruptIndexError, match=f"index: {reason}$"):
        index.sanity_check()
    index.reset()
    index.sanity_check()


# ---- names


def test_renamed_index_is_written_under_its_new_name(path: Path) -> None:
    io = FailingIO()
    index = OffsetIndex(path, BASE, MAX_ENTRIES * 8, io)
    index.append(46, 1)
    target = path.with_suffix(".index.swap")
    target.write_bytes(b"old")
    index.rename_to(target, missing_ok=True)
    assert (index.path, path.exists()) == (str(target), False)
    index.append(47, 2)
    index.trim_to_valid_size()
    assert target.read_bytes() == struct.pack(">iiii", 1, 1, 2, 2)
    with pytest.raises(ValueError, match=r"\.index\.swap"):
        index.append_all([(50 + n, n) for n in range(31)])
    index.resize(MAX_ENTRIES * 8)
    io.is_full = True
    with pytest.raises(KafkaStorageError, match=r"\.index\.swap.*: .*No space left on device"):
        index.append(48, 3)


def test_renaming_an_index_without_file_gives_the_file_to_come_its_name(
    index: OffsetIndex, path: Path
) -> None:
    target = path.with_suffix(".renamed")
    index.rename_to(target, missing_ok=True)
    assert not target.exists()
    index.append(46, 1)
    assert target.exists()
    assert not path.exists()


def test_deleting_says_whether_there_was_a_file(index: OffsetIndex, path: Path) -> None:
    index.append(46, 1)
    assert index.delete_if_exists()
    assert not path.exists()
    assert not index.delete_if_exists()


def test_a_deleted_index_has_no_entries_and_makes_no_file_again(
    index: OffsetIndex, path: Path
) -> None:
    index.append(46, 1)
    index.delete_if_exists()
    assert index.lookup(46) == (45, 0)
    index.flush()
    with pytest.raises(ValueError, match="has been deleted"):
        index.append(47, 2)
    assert not path.exists()


def test_flush_makes_the_file(index: OffsetIndex, path: Path) -> None:
    index.flush()
    assert path.stat().st_size == 240


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


# ---- brokers


@pytest.mark.parametrize("partition_id", golden_partitions())
def test_index_files_of_brokers_hold_what_kafka_dumps_and_are_written_alike(
    golden_root: GoldenRoot, tmp_path: Path, counted: Counted, partition_id: str
) -> None:
    partition = golden_root.partition(partition_id)
    lines = dumped_files(partition)
    names = {path.name for path in partition.directory.glob("*.index")} & lines.keys()
    outcomes: Counter[str] = Counter()
    for name in names - not_dumped(partition):
        kafkas = [(int(line["offset"]), int(line["position"])) for line in lines[name]]
        content = (partition.directory / name).read_bytes()
        is_trimmed = len(content) == 8 * len(kafkas)
        outcomes[f"{'' if is_trimmed else 'not '}trimmed"] += 1
        loaded, written = loaded_and_written(tmp_path / name, content, kafkas)
        assert loaded[: len(kafkas)] == kafkas, name
        assert set(loaded[len(kafkas) :]) <= {(int(name[:20]), 0)}, name
        assert written == content[: 8 * len(kafkas)], name
    counted("offset indexes of brokers", outcomes)


def loaded_and_written(
    path: Path, content: bytes, kafkas: list[tuple[int, int]]
) -> tuple[list[OffsetPosition], bytes]:
    """Return what is loaded from a broker's file, and the file that Kafka's entries make."""
    base_offset = int(path.name[:20])
    path.write_bytes(content)
    index = OffsetIndex(path, base_offset, 10_485_760, DurableIO())
    loaded = all_entries(index)
    index.close()
    fresh_path = path.with_suffix(".fresh")
    fresh = OffsetIndex(fresh_path, base_offset, 10_485_760, DurableIO())
    fresh.append_all(kafkas)
    fresh.trim_to_valid_size()
    fresh.close()
    return loaded, fresh_path.read_bytes()

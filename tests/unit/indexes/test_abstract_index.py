"""What an offset index and a time index have in common: the file, its room, truncation, names."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pylog.errors import CorruptIndexError, KafkaStorageError, SegmentVanishedError
from pylog.files.durable_io import DurableIO
from pylog.indexes.offset_index import OffsetIndex
from pylog.indexes.time_index import TimeIndex
from tests.support.golden import golden_partitions
from tests.support.kafka_dump import dumped_files, not_dumped

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.conftest import Counted
    from tests.support.golden import GoldenRoot

BASE = 45
MAX_ENTRIES = 30
ROOM = 10_485_760
Index = OffsetIndex | TimeIndex


class Kind(NamedTuple):
    """One of the two: entry ``n`` is of offset ``BASE + n``, at position or timestamp ``n``."""

    kind: type[OffsetIndex] | type[TimeIndex]
    suffix: str
    entry_bytes: int

    def path(self, directory: Path) -> Path:
        return directory / f"{BASE:020}{self.suffix}"

    def open(
        self, path: Path | str, max_index_size: int | None = None, io: DurableIO | None = None
    ) -> Index:
        size = MAX_ENTRIES * self.entry_bytes if max_index_size is None else max_index_size
        return self.kind(path, BASE, size, io or DurableIO())

    def entry(self, n: int) -> tuple[int, int]:
        return (n, BASE + n) if self.kind is TimeIndex else (BASE + n, n)

    def content(self, *numbers: int) -> bytes:
        """Return the bytes of entries: Kafka's timestamps have 8 bytes, all other numbers 4."""
        first = 8 if self.kind is TimeIndex else 4
        return b"".join(n.to_bytes(first, "big") + n.to_bytes(4, "big") for n in numbers)


OFFSETS = Kind(OffsetIndex, ".index", 8)
TIMES = Kind(TimeIndex, ".timeindex", 12)


@pytest.fixture(params=[OFFSETS, TIMES], ids=["offsets", "times"])
def of(request: pytest.FixtureRequest) -> Kind:
    kind: Kind = request.param
    return kind


@pytest.fixture
def path(of: Kind, tmp_path: Path) -> Path:
    return of.path(tmp_path)


@pytest.fixture
def index(of: Kind, path: Path) -> Index:
    return of.open(path)


def append(index: Index, numbers: Iterable[int]) -> None:
    for n in numbers:
        if isinstance(index, TimeIndex):
            index.maybe_append(n, BASE + n, skip_full_check=True)
        else:
            index.append(BASE + n, n)


def numbers_in(index: Index) -> list[int]:
    """Return the number of each entry; both of its parts have to say the same."""
    found = [sorted(index.entry(slot)) for slot in range(index.entries)]
    assert all(offset == BASE + n for n, offset in found)
    return [n for n, _ in found]


class FailingIO(DurableIO):
    """A disk that takes part of one write, and fails."""

    is_full = False

    def pwrite(self, path: str, descriptor: int, position: int, data: memoryview) -> int:
        if self.is_full and len(data) <= 4:
            raise OSError(28, "No space left on device")
        return super().pwrite(path, descriptor, position, data[:4] if self.is_full else data)


# ---- the file


def test_nothing_is_made_before_the_first_use(index: Index, path: Path) -> None:
    assert not index.exists_on_disk
    with pytest.raises(SegmentVanishedError, match=r"index: .*does not exist"):
        index.ensure_exists()
    index.release()
    assert not path.exists()
    assert not index.is_full
    index.ensure_exists()
    assert path.exists()


def test_flush_makes_the_file(of: Kind, index: Index, path: Path) -> None:
    index.flush()
    assert path.stat().st_size == MAX_ENTRIES * of.entry_bytes


@pytest.mark.parametrize("more", [0, 1, 7])
@pytest.mark.parametrize("room", [1, 2, 870_000])
def test_new_file_has_its_full_size_in_whole_entries(
    of: Kind, path: Path, room: int, more: int
) -> None:
    index = of.open(path, room * of.entry_bytes + more)
    assert (index.length, index.max_entries, index.entries) == (room * of.entry_bytes, room, 0)
    assert path.stat().st_size == room * of.entry_bytes
    assert path.stat().st_blocks * 512 < 65_536  # a hole


def test_size_below_one_entry_is_refused_when_the_file_is_made(of: Kind, path: Path) -> None:
    size = of.entry_bytes
    index = of.open(path, size - 1)
    expected = f"index size {size - 1} is less than one entry, {size} bytes"
    with pytest.raises(ValueError, match=expected):
        index.lookup(BASE)
    assert not path.exists()


def test_file_of_length_zero_has_neither_entries_nor_room(of: Kind, path: Path) -> None:
    path.touch()
    index = of.open(path)
    assert (index.entries, index.max_entries, index.is_full) == (0, 0, True)
    index.sanity_check()


def test_trimmed_file_holds_the_entries_and_nothing_else(
    of: Kind, index: Index, path: Path
) -> None:
    append(index, (6, 7))
    size = of.entry_bytes
    assert (index.size_in_bytes, index.length) == (2 * size, MAX_ENTRIES * size)
    index.trim_to_valid_size()
    assert path.read_bytes() == of.content(6, 7)
    assert (index.size_in_bytes, index.length) == (2 * size, 2 * size)


def test_reopened_index_has_its_entries_and_no_room_for_more(
    of: Kind, index: Index, path: Path
) -> None:
    append(index, (6, 7))
    index.trim_to_valid_size()
    index.close()
    again = of.open(path)
    assert (numbers_in(again), again.lookup(of.entry(7)[0])) == ([6, 7], of.entry(7))
    assert (again.max_entries, again.is_full) == (2, True)
    assert again.resize(MAX_ENTRIES * of.entry_bytes)
    append(again, (8,))
    assert numbers_in(again) == [6, 7, 8]


def test_file_that_is_there_is_trusted_with_its_zeros(of: Kind, index: Index, path: Path) -> None:
    append(index, (6,))
    index.close()
    again = of.open(path)
    assert (again.entries, again.is_full) == (MAX_ENTRIES, True)
    again.reset()
    assert (again.entries, path.read_bytes()) == (0, bytes(MAX_ENTRIES * of.entry_bytes))


def test_releasing_does_not_trim_and_the_next_use_opens_again(
    of: Kind, index: Index, path: Path
) -> None:
    append(index, (6,))
    index.trim_to_valid_size()
    index.resize(2 * of.entry_bytes + 1)
    index.release()
    index.release()
    assert path.stat().st_size == 2 * of.entry_bytes
    assert index.entry(0) == of.entry(6)


def test_closing_does_not_trim_and_the_next_use_is_refused(
    of: Kind, index: Index, path: Path
) -> None:
    append(index, (6,))
    index.trim_to_valid_size()
    index.resize(2 * of.entry_bytes + 1)
    index.close()
    index.close()
    assert path.stat().st_size == 2 * of.entry_bytes
    for use in (lambda: index.entry(0), lambda: append(index, (7,)), index.flush, index.reset):
        with pytest.raises(ValueError, match=rf"\{of.suffix} is closed$"):
            use()


@pytest.mark.parametrize(
    ("entries", "more", "is_changed"),
    [(30, 0, False), (30, 7, False), (10, 0, True), (10, 7, True), (50, 0, True)],
)
def test_resizing_says_whether_the_length_is_another_one(
    of: Kind, index: Index, path: Path, entries: int, more: int, *, is_changed: bool
) -> None:
    append(index, (6, 7))
    assert index.resize(entries * of.entry_bytes + more) is is_changed
    assert (index.length, index.max_entries) == (entries * of.entry_bytes, entries)
    assert path.stat().st_size == entries * of.entry_bytes
    assert numbers_in(index) == [6, 7]


def test_resizing_keeps_entries_that_do_not_fit(of: Kind, index: Index, path: Path) -> None:
    append(index, (6, 7))
    assert index.resize(of.entry_bytes)
    assert path.stat().st_size == 2 * of.entry_bytes
    assert (index.is_full, numbers_in(index)) == (True, [6, 7])


def test_failed_write_leaves_the_entries_as_they_were(of: Kind, path: Path) -> None:
    io = FailingIO()
    index = of.open(path, io=io)
    append(index, (1,))
    io.is_full = True
    with pytest.raises(KafkaStorageError, match="No space left"):
        append(index, (2,))
    assert numbers_in(index) == [1]
    io.is_full = False
    append(index, (4,))
    index.trim_to_valid_size()
    assert path.read_bytes() == of.content(1, 4)


# ---- truncation


@pytest.mark.parametrize(
    ("offset", "kept"), [(56, 10), (55, 9), (54, 8), (50, 4), (46, 0), (45, 0), (0, 0)]
)
def test_truncation_removes_entries_at_or_above_the_offset(
    of: Kind, index: Index, path: Path, offset: int, kept: int
) -> None:
    append(index, range(1, 11))
    index.truncate_to(offset)
    assert numbers_in(index) == list(range(1, kept + 1))
    assert path.read_bytes() == of.content(*range(1, kept + 1)).ljust(index.length, b"\0")
    assert index.length == MAX_ENTRIES * of.entry_bytes
    append(index, (11,))
    assert numbers_in(index)[kept:] == [11]


def test_truncation_between_entries_keeps_what_is_below(index: Index) -> None:
    append(index, (5, 15, 25))
    index.truncate_to(BASE + 16)
    assert numbers_in(index) == [5, 15]


def test_truncating_everything_gives_an_empty_index(of: Kind, index: Index, path: Path) -> None:
    index.truncate()
    append(index, (1, 2))
    index.truncate()
    assert (index.entries, path.read_bytes()) == (0, bytes(MAX_ENTRIES * of.entry_bytes))
    append(index, (1,))
    assert numbers_in(index) == [1]


def test_a_length_that_is_not_of_whole_entries_does_not_pass_the_check(
    of: Kind, path: Path
) -> None:
    for length in (of.entry_bytes - 1, of.entry_bytes + 1):
        path.write_bytes(bytes(length))
        expected = f"length {length} is not a multiple of the entry size {of.entry_bytes}$"
        with pytest.raises(CorruptIndexError, match=expected):
            of.open(path).sanity_check()


def test_sound_indexes_pass_the_check(of: Kind, index: Index, path: Path) -> None:
    index.sanity_check()
    append(index, (0, 5))  # the first offset may be the base offset
    index.sanity_check()
    index.trim_to_valid_size()
    index.close()
    of.open(path).sanity_check()


# ---- names


def test_renamed_index_is_written_under_its_new_name(of: Kind, path: Path) -> None:
    io = FailingIO()
    index = of.open(path, io=io)
    append(index, (1,))
    target = path.with_name(f"{path.name}.swap")
    target.write_bytes(b"old")
    index.rename_to(target, missing_ok=True)
    assert (index.path, path.exists()) == (str(target), False)
    append(index, (2,))
    index.trim_to_valid_size()
    assert target.read_bytes() == of.content(1, 2)
    index.resize(MAX_ENTRIES * of.entry_bytes)
    io.is_full = True
    with pytest.raises(KafkaStorageError, match=r"index\.swap.*: .*No space left on device"):
        append(index, (3,))


def test_renaming_an_index_without_file_gives_the_file_to_come_its_name(
    index: Index, path: Path
) -> None:
    target = path.with_suffix(".renamed")
    index.rename_to(target, missing_ok=True)
    assert not target.exists()
    append(index, (1,))
    assert (target.exists(), path.exists()) == (True, False)


def test_a_deleted_index_has_no_entries_and_makes_no_file_again(index: Index, path: Path) -> None:
    append(index, (1,))
    assert index.delete_if_exists()
    assert not path.exists()
    assert not index.delete_if_exists()
    assert index.entries == 0
    index.flush()
    with pytest.raises(ValueError, match="has been deleted"):
        append(index, (2,))
    assert not path.exists()


# ---- brokers


@pytest.mark.parametrize("partition_id", golden_partitions())
def test_index_files_of_brokers_hold_what_kafka_dumps_and_are_written_alike(
    golden_root: GoldenRoot, tmp_path: Path, counted: Counted, partition_id: str, of: Kind
) -> None:
    partition = golden_root.partition(partition_id)
    lines = dumped_files(partition)
    names = {path.name for path in partition.directory.glob(f"*{of.suffix}")} & lines.keys()
    outcomes: Counter[str] = Counter()
    for name in names - not_dumped(partition):
        base_offset = int(name[:20])
        fields = ("timestamp", "offset") if of is TIMES else ("offset", "position")
        kafkas = [
            (int(line[fields[0]]), int(line[fields[1]]))
            for slot, line in enumerate(lines[name])
            # 0.11 dumps the zero tail of a time index, too.
            if of is OFFSETS or slot == 0 or int(line["offset"]) != base_offset
        ]
        content = (partition.directory / name).read_bytes()
        size = of.entry_bytes * len(kafkas)
        outcomes["trimmed" if len(content) == size else "not trimmed"] += 1
        loaded, written = loaded_and_written(of, tmp_path / name, content, kafkas)
        assert loaded[: len(kafkas)] == kafkas, name
        empty = (0, base_offset) if of is TIMES else (base_offset, 0)
        assert set(loaded[len(kafkas) :]) <= {empty}, name
        assert written == content[:size], name
    counted(f"{'time' if of is TIMES else 'offset'} indexes of brokers", outcomes)


def loaded_and_written(
    of: Kind, path: Path, content: bytes, kafkas: list[tuple[int, int]]
) -> tuple[list[tuple[int, int]], bytes]:
    """Return what is loaded from a broker's file, and the file that Kafka's entries make."""
    path.write_bytes(content)
    index = of.kind(path, int(path.name[:20]), ROOM, DurableIO())
    loaded: list[tuple[int, int]] = [index.entry(slot) for slot in range(index.entries)]
    index.close()
    fresh_path = path.with_suffix(".fresh")
    fresh = of.kind(fresh_path, int(path.name[:20]), ROOM, DurableIO())
    fresh.append_all(kafkas)
    fresh.trim_to_valid_size()
    fresh.close()
    return loaded, fresh_path.read_bytes()

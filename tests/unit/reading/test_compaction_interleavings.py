"""Readers beside a log cleaner, whose steps are done between any two of a reader's system calls.

The cleaner does what Kafka's does, in its order: write .cleaned, rename that to .swap, the old
segments to .deleted, .swap to nothing, and delete. Nothing here sleeps: the schedule says before
which call how many steps are done.
"""

from __future__ import annotations

import os
import time
from itertools import chain, product
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import SegmentVanishedError
from tests.support.batches import Built, batch_v2, joined, plain_records
from tests.support.log_files import write_partition, write_segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pylog.tables import TableName

    Schedule = Callable[[int], int]

_SUFFIXES = (".log", ".index", ".timeindex")
_ALL = 1_000
_STAT, _OPEN, _SCANDIR = os.stat, os.open, os.scandir


def run(first: int, end: int, *, keeps: range | None = None) -> list[Built]:
    """Return batches of five offsets; of those that were compacted, the records that are left."""
    found = []
    for at in range(first, end, 5):
        records = [each for each in plain_records(at, 5) if keeps is None or each.offset in keeps]
        if records:
            found.append(batch_v2(records, base_offset=at, last_offset=at + 4))
    return found


def replaced(
    directory: Path, base: int, old: Sequence[int], batches: Sequence[Built], *, deletes: bool
) -> Iterator[None]:
    """Put one segment in the place of others, a system call a step."""
    new = directory.with_name("new")
    write_segment(new, base, batches)

    def name(of: int, suffix: str, state: str = "") -> Path:
        return directory / f"{of:020d}{suffix}{state}"

    for suffix in _SUFFIXES:
        (new / f"{base:020d}{suffix}").rename(name(base, suffix, ".cleaned"))
        yield
    for suffix in _SUFFIXES:
        name(base, suffix, ".cleaned").rename(name(base, suffix, ".swap"))
        yield
    for each, suffix in product(old, _SUFFIXES):
        name(each, suffix).rename(name(each, suffix, ".deleted"))
        yield
    for suffix in _SUFFIXES:
        name(base, suffix, ".swap").rename(name(base, suffix))
        yield
    for each, suffix in product(old if deletes else (), _SUFFIXES):
        name(each, suffix, ".deleted").unlink()
        yield


def retained(directory: Path, old: Sequence[int]) -> Iterator[None]:
    """Delete the first segments, as retention does."""
    for each, suffix in product(old, _SUFFIXES):
        path = directory / f"{each:020d}{suffix}"
        path.rename(f"{path}.deleted")
        yield


OLD = {base: run(base, base + 20) for base in (0, 20, 40, 60)}
END = 80
CLEANERS: dict[str, Callable[[Path], Iterator[None]]] = {
    "two segments into one": lambda d: replaced(d, 0, [0, 20], run(0, 40), deletes=True),
    "few records are left": lambda d: replaced(
        d, 0, [0, 20], run(0, 20, keeps=range(12, 14)), deletes=True
    ),
    "no record is left": lambda d: replaced(d, 0, [0, 20], [], deletes=False),
    # The second one takes the number that the file system gave to a file which is gone.
    "twice": lambda d: chain(
        replaced(d, 0, [0, 20], run(0, 40), deletes=True),
        replaced(d, 0, [0, 40], run(0, 60, keeps=range(7, 50)), deletes=True),
    ),
    "three times into the same file": lambda d: chain.from_iterable(
        replaced(d, 0, [0], run(0, 20, keeps=range(each, 20)), deletes=False) for each in (1, 2, 3)
    ),
}


class Between:
    """Does the steps of a cleaner before a reader's system calls below a directory."""

    def __init__(self, directory: Path, steps: Iterator[None], schedule: Schedule) -> None:
        self._below = str(directory)
        self._steps = steps
        self._schedule = schedule
        self._is_reader = True
        self.calls = 0

    def before_call(self, path: object) -> None:
        if not (self._is_reader and isinstance(path, str) and path.startswith(self._below)):
            return
        self._is_reader = False
        for _ in range(self._schedule(self.calls)):
            next(self._steps, None)
        self.calls += 1
        self._is_reader = True

    def finish(self) -> None:
        self._is_reader = False
        for _ in self._steps:
            pass


class _Entry:
    """An entry of a listed directory whose `stat` is a call of its own."""

    def __init__(self, entry: os.DirEntry[str], between: Between) -> None:
        self._entry, self._between = entry, between
        self.name, self.path = entry.name, entry.path

    def is_dir(self, **options: bool) -> bool:
        return self._entry.is_dir(**options)

    def stat(self, **options: bool) -> os.stat_result:
        self._between.before_call(self.path)
        return _STAT(self.path, **options)


class _Entries:
    def __init__(self, path: str, between: Between) -> None:
        with _SCANDIR(path) as entries:
            self._entries = [_Entry(each, between) for each in entries]

    def __enter__(self) -> Iterator[_Entry]:
        return iter(self._entries)

    def __exit__(self, *_error: object) -> None:
        pass


def watch(monkeypatch: pytest.MonkeyPatch, between: Between) -> None:
    def stat(path: str, **options: bool) -> os.stat_result:
        between.before_call(path)
        return _STAT(path, **options)

    def open_(path: str, flags: int, mode: int = 0o777) -> int:
        between.before_call(path)
        return _OPEN(path, flags, mode)

    def scandir(path: str = ".") -> _Entries:
        between.before_call(path)
        return _Entries(path, between)

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr(os, "open", open_)
    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)


def _offsets(directory: Path, **options: object) -> list[int]:
    scan = pylog.scan(directory, **options)  # type: ignore[arg-type]
    found: list[int] = scan.to_table()["offset"].to_pylist()
    assert not list(scan.damage)
    return found


def _offsets_or_loss(directory: Path) -> list[int] | str:
    try:
        return _offsets(directory)
    except SegmentVanishedError as error:
        return str(error)


def _partitions(directory: Path) -> None:
    (row,) = pylog.read_table(directory, "partitions").to_pylist()
    assert (row["log_start_offset"], row["log_end_offset"]) == (0, END)
    assert not row["defects"]


READS: dict[str, Callable[[Path], list[int] | None]] = {
    "scan": _offsets,
    "scan in parts": lambda path: _offsets(path, max_partition_bytes=400),
    "scan that skips damage": lambda path: _offsets(path, mode="DROPMALFORMED"),
    "scan without indexes": lambda path: _offsets(path, use_indexes=False),
    "committed": lambda path: _offsets(path, isolation="read_committed"),
    "partitions": _partitions,
}
TABLES = ("segments", "batches", "transactions", "index_entries", "cleaning", "latest")


def _no_problem(directory: Path) -> None:
    assert not pylog.stats(directory).problems


def _transactions(directory: Path) -> None:
    assert not pylog.transactions(directory).errors


def _whole_table(name: TableName) -> Callable[[Path], None]:
    def read(directory: Path) -> None:
        assert pylog.read_table(directory, name).num_rows or name == "transactions"

    return read


READS |= {table: _whole_table(table) for table in TABLES}  # type: ignore[arg-type]
READS["stats"] = _no_problem
READS["list of transactions"] = _transactions


def schedules(calls: int) -> Iterator[Schedule]:
    """Yield the schedules: steps before one call and then one before each, or before two calls."""
    for first, burst in product(range(calls + 1), (1, 6, 12, _ALL)):
        yield lambda call, first=first, burst=burst: (  # type: ignore[misc]
            0 if call < first else burst if call == first else 1
        )
    # The state before the first call stays until the reader has listed it.
    for second, burst in product(range(calls + 1), (3, 4, 6, 7, 9, 12, 13)):
        yield lambda call, second=second, burst=burst: (  # type: ignore[misc]
            burst * (call == 0) + 3 * (call == second)
        )


def _played(
    monkeypatch: pytest.MonkeyPatch,
    place: Path,
    cleaner: Callable[[Path], Iterator[None]],
    schedule: Schedule,
    read: Callable[[Path], Any],
) -> tuple[Any, int]:
    directory = write_partition(place, OLD)
    between = Between(directory, cleaner(directory), schedule)
    with monkeypatch.context() as patched:
        watch(patched, between)
        answer = read(directory)
    between.finish()
    return answer, between.calls


@pytest.mark.parametrize("cleaner", CLEANERS)
@pytest.mark.parametrize("reader", READS)
@pytest.mark.thorough(one_in=5)
def test_nothing_is_lost_between_any_two_steps_of_a_cleaner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str, cleaner: str
) -> None:
    read, steps = READS[reader], CLEANERS[cleaner]
    _, calls = _played(monkeypatch, tmp_path / "calm", steps, lambda _call: 0, read)
    left = set(pylog.scan(tmp_path / "calm").to_table()["offset"].to_pylist())
    assert {*range(60, END)} <= left <= {*range(END)}
    for number, schedule in enumerate(schedules(calls)):
        answer, _ = _played(monkeypatch, tmp_path / str(number), steps, schedule, read)
        if answer is not None:
            assert answer == sorted(set(answer))
            assert left <= set(answer) <= {*range(END)}


def test_a_read_from_the_start_beside_retention_is_what_the_log_holds_at_some_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def steps(directory: Path) -> Iterator[None]:
        return retained(directory, [0, 20])

    _, calls = _played(monkeypatch, tmp_path / "calm", steps, lambda _call: 0, _offsets)
    starts = set()
    for number, burst in product(range(calls + 1), (3, 6)):
        place = tmp_path / f"{number}-{burst}"
        answer, _ = _played(
            monkeypatch,
            place,
            steps,
            lambda call, number=number, burst=burst: burst if call == number else 0,  # type: ignore[misc]
            _offsets_or_loss,
        )
        if isinstance(answer, str):  # the records from 0 to 19 had been given by then
            assert "are lost, offsets 20 to 39;" in answer
            continue
        starts.add(answer[0])
        assert answer == list(range(answer[0], END))
    assert starts == {0, 20, 40}


def test_a_new_file_with_the_number_of_an_old_one_is_another_file(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, OLD)
    scan = pylog.scan(directory)
    scan.plan()
    path = directory / f"{0:020d}.log"
    # As where the file system gives the inode number again: only length and time are others.
    path.write_bytes(joined(run(0, 20, keeps=range(3, 9))))
    (directory / f"{99:020d}.log.deleted").write_bytes(b"")
    assert scan.to_table()["offset"].to_pylist() == [*range(3, 9), *range(20, END)]

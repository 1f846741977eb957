"""Random histories of a compacted partition's replicas, and damage: `merge` against the truth.

No key has a wrong last value in the result: it has what is its last one, if that is intact on some
disk, or it has none, and the offset is reported. A deleted key does not come back.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from typing import TYPE_CHECKING, Literal, NamedTuple

import pylog
from pylog.jobs import merge
from tests.support.compacted_histories import random_compacted_history, write_cleaned
from tests.support.log_files import tree
from tests.support.replica_histories import PARTITION, damage, whole_in, write_epochs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pylog.results import MergedPartition
    from tests.conftest import Counted, HowMany
    from tests.support.batches import Stored
    from tests.support.compacted_histories import Batch, CompactedHistory, Kept

SEED = 5507
Isolation = Literal["read_uncommitted", "read_committed"]


class Case(NamedTuple):
    history: CompactedHistory
    directories: list[Path]
    hits: list[tuple[int, str]]
    intact: list[list[list[tuple[Kept, bool]]]]  # by replica, by segment


def _case(place: Path, number: int) -> Case:
    choice = random.Random(SEED * 1_000_003 + number)
    history = random_compacted_history(choice)
    directories = []
    for node, replica in enumerate(history.replicas):
        log_directory = place / f"n{node}"
        directories.append(write_cleaned(history, replica, log_directory))
        text = f"version=1\ncluster.id=c\nnode.id={node}\n"
        (log_directory / "meta.properties").write_text(text)
    hits = []
    for _ in range(choice.randrange(9)):
        node = choice.randrange(3)
        hits.append((node, damage(directories[node], choice)))
    if not number % 3:
        hits += _lose_a_new_leader(history, directories, number)
    intact = [
        [
            [(each, whole_in(directory, each.built().data)) for each in kept]
            for _, kept in replica.segments
        ]
        for directory, replica in zip(directories, history.replicas, strict=True)
    ]
    return Case(history, directories, hits, intact)


def _lose_a_new_leader(
    history: CompactedHistory, directories: list[Path], number: int
) -> Iterator[tuple[int, str]]:
    """Have one of them led last, and lose all its segments: only its epochs are left."""
    node = number // 3 % len(directories)
    for path in directories[node].glob("0*"):
        path.unlink()
        yield node, "lose a segment"
    end = max(each.end for each in history.replicas)
    epochs = sorted({(each.epoch, each.base) for each in history.log})
    starts = dict(reversed(epochs))  # the first offset of each epoch
    write_epochs(directories[node], [*sorted(starts.items()), (1000, end)])


def _proves_cleaned(segments: list[list[tuple[Kept, bool]]], offset: int) -> bool:
    """Whether intact neighbours in a file of a replica say that a cleaner removed a record."""
    for kept in segments:
        for at, (each, is_whole) in enumerate(kept):
            if each.batch.base <= offset <= each.batch.last:
                return is_whole and offset not in {one.offset for one in each.records}
            if each.batch.base > offset:
                return bool(at) and is_whole and kept[at - 1][1]
    return False


def _records(
    result: Path, isolation: Isolation
) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    for batch in pylog.scan(result / PARTITION, isolation=isolation).to_reader():
        yield from zip(
            *(batch[name].to_pylist() for name in ("offset", "key", "value")), strict=True
        )


class Judge:
    """Holds one result against the truth, key by key."""

    def __init__(self, case: Case, merged: MergedPartition, result: Path, what: str) -> None:
        self.outcomes: Counter[str] = Counter()
        self._case, self._what = case, what
        self._truth = {
            one.offset: (one, each)
            for each in case.history.log
            for one in each.records
            if each.kind is None
        }
        self._gaps = [(each.start_offset, each.end_offset) for each in merged.gaps]
        self._branches: list[tuple[int, int | None]] = [
            (each.start_offset, each.end_offset) for each in merged.branches
        ]
        places = [str(each) for each in case.directories]
        root = case.intact[places.index(merged.leader)] if merged.leader else []
        self._own = {one.offset for kept in root for each, ok in kept if ok for one in each.records}
        if self._has_moved_batch(result):
            # Base offsets are outside of checksums: of an only copy nothing tells that it is wrong.
            self.outcomes["moved by damage"] += 1
            return
        found = self._values(result)
        for key, last in case.history.last_of_keys().items():
            self._look_at(key, last, *found.get(key, (-1, None)))

    def _has_moved_batch(self, result: Path) -> bool:
        known = {(one.key, one.value) for one, _ in self._truth.values()}
        moved = False
        for offset, key, value in _records(result, "read_uncommitted"):
            assert (key, value) in known, self._what
            record, _ = self._truth.get(offset, (None, None))
            moved |= record is None or (key, value) != (record.key, record.value)
        return moved

    def _values(self, result: Path) -> dict[bytes | None, tuple[int, bytes | None]]:
        """Return the last value of each key that counts; all records are the log's."""
        found: dict[bytes | None, tuple[int, bytes | None]] = {}
        for offset, key, value in _records(result, "read_uncommitted"):
            _, batch = self._truth[offset]
            if batch.is_ended and not batch.is_aborted:
                found[key] = offset, value
        for offset, _, _ in _records(result, "read_committed"):
            _, batch = self._truth[offset]
            if batch.is_aborted or not batch.is_ended:
                # Readers take it for a part of the producer's next transaction.
                assert not any(self._is_intact(each) for each in self._marker_of(batch)), (
                    f"{self._what}: offset {offset}"
                )
        return found

    def _marker_of(self, batch: Batch) -> list[Stored]:
        markers = (
            each.records
            for each in self._case.history.log
            if each.producer == batch.producer and each.kind is not None and each.base > batch.base
        )
        return next(markers, [])

    def _look_at(self, key: bytes, last: Stored, offset: int, value: bytes | None) -> None:
        said = f"{self._what}: {key!r} has {value!r} at {offset}, and last {last}"
        if offset == last.offset or (value is None and last.value is None):
            self.outcomes["right"] += 1
        elif _is_in(self._branches, last.offset):
            # A flipped bit in the header of the last batch, which no checkpoint contradicts.
            self.outcomes["of another history"] += 1
        elif self._is_intact(last):
            # Of a transaction without a marker nobody knows whether it has come later.
            is_open = self._truth[last.offset][1].producer is not None
            assert value is None or (is_open and offset in self._own), said
            assert _is_in(self._gaps, last.offset), said
            self.outcomes["held back"] += 1
        elif value is None:
            self.outcomes["lost"] += 1
        else:
            self._look_at_earlier(last, offset, said)
            self.outcomes["an earlier value"] += 1

    def _look_at_earlier(self, last: Stored, offset: int, said: str) -> None:
        """Check that nothing tells of a last record that is on no disk any more."""
        assert not any(_proves_cleaned(each, offset) for each in self._case.intact), said
        was_cleaned = last.value is None and not all(
            any(last in each.records for _, kept in replica.segments for each in kept)
            for replica in self._case.history.replicas
            if replica.end > last.offset
        )
        # Of a file that is gone as a whole nothing tells.
        lost_files = any("segment" in hit or "replica" in hit for _, hit in self._case.hits)
        assert offset in self._own or lost_files or not was_cleaned, said

    def _is_intact(self, record: Stored) -> bool:
        return any(
            is_whole and record in each.records
            for segments in self._case.intact
            for kept in segments
            for each, is_whole in kept
        )


def _is_in(ranges: list[tuple[int, int | None]], offset: int) -> bool:
    return any(start <= offset < (end or sys.maxsize) for start, end in ranges)


def test_no_key_of_a_compacted_log_has_a_wrong_last_value(
    tmp_path: Path, how_many: HowMany, counted: Counted
) -> None:
    outcomes: Counter[str] = Counter()
    count = how_many(40, 2000)
    for number in range(count):
        place = tmp_path / str(number)
        case = _case(place, number)
        what = f"seed {SEED}, case {number}, {case.hits}"
        before = tree(place)
        (merged,) = merge(*case.directories, to=place / "out").partitions
        after = {name: data for name, data in tree(place).items() if not name.startswith("out/")}
        assert after == before, what
        outcomes += Judge(case, merged, place / "out", what).outcomes
    counted("last values", outcomes)
    assert outcomes["right"] > 0.95 * outcomes.total()
    assert outcomes["moved by damage"] <= count // 100

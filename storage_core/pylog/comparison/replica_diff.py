"""Two replicas of a partition: batch headers first, records where those differ.

Headers of both are walked side by side (`pylog.comparison.batch_join`). Where both have the same
ones nothing is decoded. Where they differ, and both have batches, records are compared by offset:
they may be the same, in batches that were compressed anew, or that another cleaner has rewritten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.comparison.batch_join import BatchJoin
from pylog.comparison.diff_summary import Difference, Differences, DiffKind, PartitionDiff
from pylog.comparison.legacy_batches import find_first_offsets
from pylog.comparison.lineage import Evidence, find_lineage
from pylog.comparison.replica_log import read_ahead
from pylog.errors import CorruptRecordError, InvalidRecordError, LogDirectoryError
from pylog.log_file.batch_walk import walk_headers
from pylog.record.record_batch import RecordBatch
from pylog.text.words import offsets_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pylog.comparison.batch_join import BatchStretch
    from pylog.comparison.replica_log import ReplicaLog, Rows
    from pylog.files.leader_epochs import EpochEntry
    from pylog.record.record import Record

_LEFT, _RIGHT = 0, 1
_ONLY = (DiffKind.ONLY_LEFT, DiffKind.ONLY_RIGHT)
_DAMAGED = (DiffKind.DAMAGED_LEFT, DiffKind.DAMAGED_RIGHT)
_FIELDS = ("timestamp", "timestamp type", "key", "value", "headers")


def diff_replicas(
    left: ReplicaLog, right: ReplicaLog, *, verifies: bool, end_offset: int | None = None
) -> PartitionDiff:
    """Return in what two replicas differ, below an offset.

    Without ``verifies`` no checksum is looked at: what is damaged within a batch is not seen.
    """
    replicas = [left, right]
    stretches = _stretches(replicas, verifies=verifies)
    if end_offset is not None:
        stretches = [each for each in stretches if each.start_offset < end_offset]
    found = Differences()
    same = 0
    for zone in _zones(stretches):
        if len(zone) == 1 and len(zone[0].places) == len(replicas):
            same += zone[0].records
        else:
            _compare(zone, replicas, found)
    _add_damage(stretches, replicas, found, end_offset)
    notes = _which_is_right(stretches, replicas) if found.counts else []
    return PartitionDiff(
        *left.directory.topic_partition,
        left.path,
        right.path,
        "replicas",
        same,
        found.in_order(),
        found.counts,
        notes,
    )


def _stretches(replicas: Sequence[ReplicaLog], *, verifies: bool) -> list[BatchStretch]:
    for each in replicas:
        if each.unreadable is not None:
            raise LogDirectoryError(each.unreadable, each.path)
    epochs = [each.epochs for each in replicas]
    if not verifies:
        try:
            rows = [read_ahead(each.rows(skips_damage=False)) for each in replicas]
            return _joined(rows, epochs, replicas)
        except CorruptRecordError:
            pass  # headers show damage: what it is, checksums tell
    rows = [each.rows(skips_damage=True) for each in replicas]
    stretches = _joined(rows, epochs, replicas)
    for each in replicas:
        for damaged in each.damage:
            if damaged.is_unreadable:
                raise LogDirectoryError(damaged.reason, damaged.path)
    return stretches


def _joined(
    rows: Sequence[Iterable[Rows]],
    epochs: Sequence[Sequence[EpochEntry]],
    replicas: Sequence[ReplicaLog],
) -> list[BatchStretch]:
    stretches = BatchJoin(rows, epochs, keeps_epochs=True).run()
    find_first_offsets(stretches, replicas)
    return stretches


def _zones(stretches: Sequence[BatchStretch]) -> Iterator[list[BatchStretch]]:
    """Yield stretches that share offsets with one another together, in rising offsets."""
    zone: list[BatchStretch] = []
    end = 0
    for each in stretches:
        if zone and each.start_offset >= end:
            yield zone
            zone = []
        end = max(end, each.end_offset) if zone else each.end_offset
        zone.append(each)
    if zone:
        yield zone


def _compare(
    zone: Sequence[BatchStretch], replicas: Sequence[ReplicaLog], found: Differences
) -> None:
    """Add what differs over some offsets."""
    sides = [[each for each in zone if at in each.places] for at in (_LEFT, _RIGHT)]
    if not all(sides):
        at = _LEFT if sides[_LEFT] else _RIGHT
        for each in sides[at]:
            _add_only(at, each, replicas, found)
        return
    if _differ_in_epoch_alone(zone):
        one, other = zone
        detail = f"epoch {_of(_LEFT, one, other)} and {_of(_RIGHT, one, other)}"
        found.add(Difference(DiffKind.EPOCH, one.start_offset, one.end_offset, one.records, detail))
        return
    left, right = (_all_records(replicas[at], at, sides[at]) for at in (_LEFT, _RIGHT))
    here = Differences()
    _compare_records(left, right, here)
    found.add_all(here, unless=None if set(here.counts) == {DiffKind.BATCH} else DiffKind.BATCH)


def _of(at: int, one: BatchStretch, other: BatchStretch) -> int:
    return one.epoch if at in one.places else other.epoch


def _differ_in_epoch_alone(zone: Sequence[BatchStretch]) -> bool:
    if len(zone) != 2:
        return False
    one, other = zone
    return (
        one.epoch != other.epoch
        and one.checksum == other.checksum
        and (one.start_offset, one.end_offset, one.size_bytes, one.batches)
        == (other.start_offset, other.end_offset, other.size_bytes, other.batches)
    )


def _add_only(
    at: int, stretch: BatchStretch, replicas: Sequence[ReplicaLog], found: Differences
) -> None:
    other = replicas[1 - at]
    start, end = stretch.start_offset, stretch.end_offset
    for damaged in other.damage:
        if damaged.next_offset < end and (damaged.end_offset is None or start < damaged.end_offset):
            # The damaged one is told by itself.
            return
    detail = f"epoch {stretch.epoch}"
    found.add(Difference(_ONLY[at], start, end, stretch.records, detail))


def _add_damage(
    stretches: Sequence[BatchStretch],
    replicas: Sequence[ReplicaLog],
    found: Differences,
    end_offset: int | None,
) -> None:
    """Add the damage of both; a torn end counts only where the other one has records there."""
    for at, replica in enumerate(replicas):
        damaged_end, _ = replica.damaged_end() or (None, 0)
        for damaged in replica.damage:
            start, end = damaged.next_offset, damaged.end_offset
            beside = [
                each
                for each in stretches
                if 1 - at in each.places
                and at not in each.places
                and start < each.end_offset
                and (end is None or each.start_offset < end)
            ]
            is_committed = end_offset is None or start < end_offset
            if end is None and not beside and not (damaged is damaged_end and is_committed):
                continue
            last = max([start + 1, *(each.end_offset for each in beside)]) if end is None else end
            records = sum(each.records for each in beside) or max(1, last - start)
            detail = f"{damaged.path} at byte {damaged.position}: {damaged.reason}"
            found.add(Difference(_DAMAGED[at], start, max(last, start + 1), records, detail))


def _all_records(
    replica: ReplicaLog, at: int, stretches: Sequence[BatchStretch]
) -> Iterator[Record]:
    for each in stretches:
        yield from _records(replica, at, each)


def _records(replica: ReplicaLog, at: int, stretch: BatchStretch) -> Iterator[Record]:
    place = stretch.places[at]
    end = place.position + stretch.size_bytes
    with replica.segments[place.file].open_log() as source:
        for batch in walk_headers(source, place.position, end):
            data = memoryview(source.read_at(batch.position, batch.header.size_bytes))
            try:
                yield from RecordBatch(data).records()
            except (CorruptRecordError, InvalidRecordError) as error:
                raise type(error)(error.reason, source.path, batch.position) from error


def _compare_records(left: Iterator[Record], right: Iterator[Record], found: Differences) -> None:
    one, other = next(left, None), next(right, None)
    while one is not None or other is not None:
        if one is not None and (other is None or one.offset < other.offset):
            found.add(Difference(DiffKind.ONLY_LEFT, one.offset, one.offset + 1, 1))
            one = next(left, None)
        elif other is not None and (one is None or other.offset < one.offset):
            found.add(Difference(DiffKind.ONLY_RIGHT, other.offset, other.offset + 1, 1))
            other = next(right, None)
        elif one is not None and other is not None:
            pairs = zip(_FIELDS, one[1:6], other[1:6], strict=True)
            parts = [name for name, mine, yours in pairs if mine != yours]
            kind = DiffKind.RECORD if parts else DiffKind.BATCH
            found.add(Difference(kind, one.offset, one.offset + 1, 1, ", ".join(parts)))
            one, other = next(left, None), next(right, None)


def _which_is_right(stretches: Sequence[BatchStretch], replicas: Sequence[ReplicaLog]) -> list[str]:
    """Return what leader epochs say about two histories that part."""
    evidence = [Evidence(each.path, each.epochs, each.node_id) for each in replicas]
    lineage = find_lineage(stretches, evidence)
    if lineage.undecided:
        return [f"epochs do not tell which one is right: {lineage.undecided[0]}"]
    found = [
        f"by leader epochs, {replicas[1 - at].path} is right, where epoch {lineage.epoch} is the "
        f"last one: {offsets_text(each.start_offset, each.end_offset)} of epoch {each.epoch} in "
        f"{replicas[at].path} were written by a leader whose history has ended"
        for each in lineage.branches
        for at in each.places
    ]
    return found[:1]

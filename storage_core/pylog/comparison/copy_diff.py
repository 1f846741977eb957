"""Two logs that should have the same records at other offsets: matched by content, in order.

As a copy by MirrorMaker or by a consumer and a producer has them. Records are matched by key, value
and timestamp; if that finds nothing, by key and value, as where the copy has times of its own. That
the headers of two that match are others is a difference. Both logs are read once, in step; where
they part, they are joined again at the nearest records that are the same, within a window of each.
So a copy may start later, lack records, or have some twice.

The map of offsets has a line for each record that both have, as `pylog.recovery.offset_translation`
reads it.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, NamedTuple

from pylog.comparison.diff_summary import Difference, Differences, DiffKind, PartitionDiff
from pylog.reading.scan import scan

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from pylog.comparison.replica_log import ReplicaLog
    from pylog.model import IsolationLevel, TopicPartition

_WINDOW = 100_000
"""Records of each log in which the next ones that are the same are looked for."""
_SURE = 3
"""So many in a row join two logs again, or all that are left."""


class _Head(NamedTuple):
    offset: int
    content: int
    timestamp: int
    headers: int


def header_hashes(column: pa.Array) -> list[int]:
    """Return a number for the headers of each record, which is the same for the same ones."""
    if not len(column.flatten()):
        return [0] * len(column)
    return [
        hash(tuple((each["key"], each["value"]) for each in headers)) if headers else 0
        for headers in column.to_pylist()
    ]


class _Matching:
    """Tells which records are the same: by their timestamps, too, until that finds none."""

    has_timestamps = True

    def key(self, head: _Head) -> tuple[int, int]:
        return head.content, head.timestamp if self.has_timestamps else 0


class _Stream:
    """The records of a log that have been read, and were not compared yet."""

    def __init__(self, path: str, isolation: IsolationLevel) -> None:
        found = scan(
            path,
            columns=["offset", "timestamp", "key", "value", "headers"],
            isolation=isolation,
            mode="DROPMALFORMED",
            timestamp_unit="ms",
        )
        self.damage = found.damage
        self._batches = iter(found.to_reader())
        self.held: list[_Head] = []
        self.at = 0

    def fill(self, count: int) -> int:
        """Hold at least so many records, if there are; return how many."""
        while len(self.held) - self.at < count:
            batch = next(self._batches, None)
            if batch is None:
                break
            if self.at:
                del self.held[: self.at]
                self.at = 0
            offsets = batch["offset"].to_pylist()
            stamps = batch["timestamp"].cast("int64").to_pylist()
            contents = map(
                hash, zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True)
            )
            self.held += map(_Head, offsets, contents, stamps, header_hashes(batch["headers"]))
        return len(self.held) - self.at

    def take(self) -> _Head:
        self.at += 1
        return self.held[self.at - 1]

    def peek(self, ahead: int = 0) -> _Head:
        return self.held[self.at + ahead]


def diff_copies(
    left: ReplicaLog,
    right: ReplicaLog,
    *,
    isolation: IsolationLevel,
    on_match: Callable[[int, int], None] | None = None,
) -> PartitionDiff:
    """Return in what a log and its copy differ; ``on_match`` is told the offsets of each match."""
    streams = [_Stream(each.directory.path, isolation) for each in (left, right)]
    found = Differences()
    same = 0
    first_shift = last_shift = None
    one, other = streams
    matching = _Matching()
    while one.fill(1) and other.fill(1):
        if matching.key(one.peek()) != matching.key(other.peek()):
            _join_again(one, other, matching, found)
            continue
        mine, yours = one.take(), other.take()
        same += 1
        last_shift = mine.offset - yours.offset
        first_shift = last_shift if first_shift is None else first_shift
        if on_match is not None:
            on_match(mine.offset, yours.offset)
        pairs = (("timestamp", mine[2], yours[2]), ("headers", mine[3], yours[3]))
        parts = [name for name, left_one, right_one in pairs if left_one != right_one]
        if parts:
            _add(found, DiffKind.RECORD, mine, yours, ", ".join(parts))
    for stream, kind in ((one, DiffKind.ONLY_LEFT), (other, DiffKind.ONLY_RIGHT)):
        while stream.fill(1):
            head = stream.take()
            found.add(Difference(kind, head.offset, head.offset + 1, 1))
    found.add_damage(DiffKind.DAMAGED_LEFT, one.damage)
    found.add_damage(DiffKind.DAMAGED_RIGHT, other.damage)
    notes = []
    if same:
        notes.append(f"offsets of the left log are {first_shift} higher at the first match")
        if last_shift != first_shift:
            notes.append(f"and {last_shift} higher at the last one")
    return PartitionDiff(
        *left.directory.topic_partition,
        left.path,
        right.path,
        "copies",
        same,
        found.in_order(),
        found.counts,
        notes,
    )


def _add(found: Differences, kind: DiffKind, mine: _Head, yours: _Head, detail: str) -> None:
    found.add(Difference(kind, mine.offset, mine.offset + 1, 1, detail, yours.offset))


def _join_again(one: _Stream, other: _Stream, matching: _Matching, found: Differences) -> None:
    """Pass over what differs, up to where both logs are the same again."""
    counts = min(one.fill(_WINDOW), _WINDOW), min(other.fill(_WINDOW), _WINDOW)
    mine, yours = _nearest(one, other, matching, counts)
    if (mine, yours) == counts and min(counts) > 1 and matching.has_timestamps:
        matching.has_timestamps = False
        return
    while mine and yours:
        left, right = one.take(), other.take()
        what = "timestamp" if left.content == right.content else "key or value"
        _add(found, DiffKind.RECORD, left, right, what)
        mine, yours = mine - 1, yours - 1
    for stream, count, kind in (
        (one, mine, DiffKind.ONLY_LEFT),
        (other, yours, DiffKind.ONLY_RIGHT),
    ):
        for _ in range(count):
            head = stream.take()
            found.add(Difference(kind, head.offset, head.offset + 1, 1))


def _nearest(
    one: _Stream, other: _Stream, matching: _Matching, counts: tuple[int, int]
) -> tuple[int, int]:
    """Return how many records of each to pass over; all that are held if none are the same."""
    mine = [matching.key(one.peek(at)) for at in range(counts[0])]
    yours = [matching.key(other.peek(at)) for at in range(counts[1])]
    places: dict[tuple[int, int], list[int]] = {}
    for at, key in enumerate(yours):
        places.setdefault(key, []).append(at)
    best = counts
    for at, key in enumerate(mine):
        if at >= sum(best):
            break
        for there in places.get(key, ())[:_SURE]:
            is_sure = mine[at : at + _SURE] == yours[there : there + _SURE] or (
                min(len(mine) - at, len(yours) - there) < _SURE
            )
            if is_sure and at + there < sum(best):
                best = at, there
    return best


class OffsetMapFile:
    """A CSV file of topic, partition, old and new offset, which is written line by line."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "w", encoding="utf-8", newline="")  # noqa: PTH123, SIM115
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerow(["topic", "partition", "old_offset", "new_offset"])

    def lines_of(self, topic_partition: TopicPartition) -> Callable[[int, int], None]:
        """Return what writes the lines of a partition."""
        topic, partition = topic_partition
        return lambda old, new: self._writer.writerow([topic, partition, old, new])

    def __enter__(self) -> OffsetMapFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

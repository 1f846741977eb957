"""`diff`: what logs have in common, and where they differ first."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import TYPE_CHECKING, Literal

from pylog.comparison.copy_diff import OffsetMapFile, diff_copies
from pylog.comparison.diff_summary import (
    DIFF_MODES,
    Difference,
    DiffKind,
    DiffSummary,
    PartitionDiff,
)
from pylog.comparison.key_diff import diff_latest
from pylog.comparison.replica_diff import diff_replicas
from pylog.comparison.replica_log import ReplicaLog, directories_of
from pylog.errors import UnknownTopicOrPartitionError
from pylog.locations import location, printable_location
from pylog.model import IsolationLevel

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pylog.model import TopicPartition
    from pylog.reading.discovery import PartitionDirectory

    DiffMode = Literal["auto", "replicas", "copies", "compacted"]


def diff(  # noqa: PLR0913 - keyword-only options, one for each thing a user may say
    *paths: str | os.PathLike[str],
    topics: Collection[str] | None = None,
    partitions: Collection[int] | None = None,
    mode: DiffMode = "auto",
    only_headers: bool = False,
    only_committed: bool = False,
    isolation: str = "read_uncommitted",
    offset_map: str | os.PathLike[str] | None = None,
) -> DiffSummary:
    """Compare logs: replicas of a partition, a topic and its copy, or compacted logs.

    Parameters
    ----------
    *paths
        Log directories, or partition directories; two or more. Each other one is compared with the
        first. A single partition on both sides is compared whatever its name is, else those of one
        name are.
    topics, partitions
        Only these; None for all.
    mode
        ``replicas``: the same offsets, batch for batch. ``copies``: other offsets, matched by key
        and value; headers are compared. ``compacted``: the latest value of each key, and its
        headers. ``auto``: copies where the ids of
        the topics differ, compacted where a checkpoint says that a cleaner has been there, else
        replicas.
    only_headers
        Whether replicas are compared by the headers of batches alone, and no checksum is looked at:
        much faster, and damage within a batch is not seen.
    only_committed
        Whether replicas are compared below the lowest high watermark of both alone, as far as
        checkpoints have one: a follower may lag. Of compacted logs, keys that have a record from
        there on are not compared.
    isolation
        Which records of copies and compacted logs count, as for `pylog.scan`.
    offset_map
        A CSV file that gets the offsets of all records that a log and its copy have: topic,
        partition, offset on the left, offset on the right. `pylog.jobs.restore_groups` reads it.

    Raises
    ------
    LogDirectoryError
        A path cannot be read.
    UnknownTopicOrPartitionError
        No partition that is wanted is under the paths.
    ValueError
        The arguments contradict each other.

    Examples
    --------
    >>> found = pylog.jobs.diff("kafka/intact", "kafka/damaged", topics=["orders"])
    >>> [(each.partition, each.first_offset, each.records) for each in found.partitions]
    [(0, 15, 47), (1, 42, 42)]
    """
    if len(paths) < 2:
        msg = "give at least two logs to compare"
        raise ValueError(msg)
    level = IsolationLevel.parse(isolation)
    if mode not in DIFF_MODES:
        msg = f"mode {mode!r} is not one of {', '.join(DIFF_MODES)}"
        raise ValueError(msg)
    if offset_map is not None and len(paths) > 2:
        msg = "a map of offsets is one of two logs"
        raise ValueError(msg)
    sides = [_wanted(path, topics, partitions) for path in paths]
    if not any(sides):
        raise UnknownTopicOrPartitionError("no partition that is wanted is under the paths")
    pairs = [pair for other in sides[1:] for pair in _pairs(sides[0], other)]
    written = nullcontext() if offset_map is None else OffsetMapFile(os.fspath(offset_map))
    found = []
    with written as map_file:
        for left, right in pairs:
            if left is None or right is None:
                found.append(_alone(left, right))
                continue
            logs = ReplicaLog(left), ReplicaLog(right)
            chosen = _mode_of(*logs) if mode == "auto" else mode
            end = _committed_end(logs) if only_committed else None
            if chosen == "compacted":
                found.append(diff_latest(*logs, isolation=level, end_offset=end))
            elif chosen == "copies":
                lines = None if map_file is None else map_file.lines_of(left.topic_partition)
                found.append(diff_copies(*logs, isolation=level, on_match=lines))
            else:
                found.append(diff_replicas(*logs, verifies=not only_headers, end_offset=end))
    return DiffSummary(found)


def _wanted(
    path: str | os.PathLike[str],
    topics: Collection[str] | None,
    partitions: Collection[int] | None,
) -> dict[TopicPartition, PartitionDirectory]:
    return {
        each.topic_partition: each
        for each in directories_of(location(path))
        if each.is_live(include_stray=False)
        and (topics is None or each.topic_partition.topic in topics)
        and (partitions is None or each.topic_partition.partition in partitions)
    }


def _pairs(
    one: dict[TopicPartition, PartitionDirectory], other: dict[TopicPartition, PartitionDirectory]
) -> Iterator[tuple[PartitionDirectory | None, PartitionDirectory | None]]:
    if len(one) == len(other) == 1:
        yield next(iter(one.values())), next(iter(other.values()))
        return
    for each in sorted({*one, *other}):
        yield one.get(each), other.get(each)


def _alone(left: PartitionDirectory | None, right: PartitionDirectory | None) -> PartitionDiff:
    there = left or right
    assert there is not None  # noqa: S101 - for the type checker
    kind = DiffKind.ONLY_RIGHT if left is None else DiffKind.ONLY_LEFT
    difference = Difference(kind, 0, 0, 0, "the whole partition")
    return PartitionDiff(
        *there.topic_partition,
        None if left is None else printable_location(left.path),
        None if right is None else printable_location(right.path),
        "replicas",
        0,
        [difference],
        {kind.value: 1},
    )


def _mode_of(left: ReplicaLog, right: ReplicaLog) -> str:
    ids = {left.topic_id, right.topic_id}
    if len(ids) == 2 and None not in ids:
        return "copies"
    marks = {left.cleaned_up_to, right.cleaned_up_to}
    return "replicas" if marks == {None} else "compacted"


def _committed_end(logs: tuple[ReplicaLog, ReplicaLog]) -> int | None:
    marks = [each.high_watermark for each in logs if each.high_watermark is not None]
    return min(marks, default=None)

"""Partitions that checkpoints or the cluster's metadata names, and that have no directory."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from pylog.errors import CorruptCheckpointError, LogDirectoryError
from pylog.files.checkpoint_file import known_offset_checkpoint
from pylog.files.file_names import (
    FUTURE_DIR_SUFFIX,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    find_partition_directory_name,
)
from pylog.files.looks import lasting
from pylog.findings import kinds
from pylog.findings.finding import Effect, Finding, FindingKind, Severity
from pylog.locations import join
from pylog.text.words import named
from pylog.writing.node_disks import Place, names_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pylog.model import TopicPartition
    from pylog.writing.node import Node
    from pylog.writing.node_disks import Assignment

LOADED = ("", FUTURE_DIR_SUFFIX)
"""States of which a partition may have one directory each."""
Held = tuple["Node", "TopicPartition"]
"""A node, and a partition that one of its log directories has."""
_LISTED = 5
RECORDED = (RECOVERY_POINT_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT)
"""Checkpoints that have a line of each partition, and up to where it reached."""


def never_seen(
    are_clean: Mapping[str, bool], nodes: Mapping[str, Node]
) -> Iterator[tuple[str, Finding]]:
    """Yield partitions that the metadata place on a node, and that nothing on its disks names."""
    for path, node in nodes.items():
        if path != node.disks.first or not node.disks.metas.keys() <= are_clean.keys():
            continue
        absent = _absent_by_metadata(node)
        if not all(are_clean[each] for each in node.disks.metas):  # a broker may be making them
            absent = lasting(absent, partial(_absent_now, node), node.disks.metas)
        for topic_partition, assignment in absent.items():
            place = assignment.path or path
            message = (
                f"the cluster's metadata assigns {topic_partition} to node {node.node_id}, and "
                "none of its log directories has it"
            )
            found = kinds.ABSENT_PARTITION.found(
                join(place, str(topic_partition)), message, severity=Severity.ERROR
            )
            if assignment.others:
                them = ", ".join(map(str, assignment.others))
                message = f"{message}; nodes in sync that have it: {them}"
                found = found._replace(severity=Severity.WARNING, message=message)
            elif assignment.is_new and assignment.path and not are_clean[place]:
                message = f"{message}. The broker may have ended before it made the directory"
                found = found._replace(
                    severity=Severity.WARNING, message=message, own_effect=Effect.UNKNOWN
                )
            elif not assignment.is_certain:
                found = found._replace(own_effect=Effect.UNKNOWN)
            yield place, found
            for each in unserved(node, topic_partition, place):
                yield place, each


def unserved(node: Node, topic_partition: TopicPartition, place: str) -> Iterator[Finding]:
    """Yield why nobody leads a partition that a broker makes anew in a log directory, if so."""
    for each in node.problems_of_place(topic_partition, join(place, str(topic_partition))):
        effect = None if each.is_certain else Effect.UNKNOWN
        yield each.kind.found(each.path, each.reason, own_effect=effect)


def _absent_now(node: Node) -> dict[TopicPartition, Assignment] | None:
    now = node.refreshed()
    return _absent_by_metadata(now) if now.knows_metadata else None


def _absent_by_metadata(node: Node) -> dict[TopicPartition, Assignment]:
    here = loaded(name for path in node.disks.metas for name in names_in(path))
    recorded = {
        each
        for path in node.disks.metas
        for name in RECORDED
        for each, offset in offsets_in(path, name).items()
        if offset
    }
    known = here | recorded
    return {
        topic_partition: assignment
        for topic_partition, assignment in node.assigned_partitions()
        if assignment.place in (Place.GIVEN, Place.GONE) and topic_partition not in known
    }


def loaded(names: Iterable[str]) -> set[TopicPartition]:
    """Return the partitions that a broker loads from directories of these names."""
    found = map(find_partition_directory_name, names)
    return {each.topic_partition for each in found if each is not None and each.state in LOADED}


def absent_partitions(
    path: str, node: Node, absent: Iterable[TopicPartition], *, is_clean: bool
) -> Iterator[Finding]:
    """Yield a finding for each partition that a broker misses, and one for all others.

    A crash leaves lines of partitions that have just been moved or deleted, a clean stop leaves
    none. The cluster's metadata knows better than either.
    """
    ends = {each: recorded_offsets(path, each) for each in sorted(absent)}
    if not ends:
        return
    reached = {each: offsets for each, offsets in ends.items() if offsets[1]}
    missed = _missed(reached, node, is_clean=is_clean)

    def look() -> set[TopicPartition] | None:
        now = node.refreshed()
        if node.knows_metadata and not now.knows_metadata:
            return None
        return _missed(reached, now, is_clean=is_clean).keys() - loaded(names_in(path))

    if not is_clean:  # a broker may be about to delete them, or has just made them
        missed = lasting(missed, look, [path])
    for each, (start, end) in missed.items():
        place = join(path, str(each))
        yield gone(kinds.ABSENT_PARTITION, place, "the directory is missing", start, end)
    said = missed.keys() | loaded(names_in(path))
    for name in RECORDED:
        offsets = offsets_in(path, name)
        others = [each for each in ends if each in offsets and each not in said]
        if others:
            listed = named(list(map(str, others)), _LISTED)
            message = f"names partitions that have no directory here: {listed}"
            yield kinds.ABSENT_PARTITION.found(join(path, name), message, severity=Severity.INFO)


def _missed(
    reached: dict[TopicPartition, tuple[int, int]], node: Node, *, is_clean: bool
) -> dict[TopicPartition, tuple[int, int]]:
    """Return those partitions without a directory that belong here."""
    missed = {}
    for each, offsets in reached.items():
        is_assigned = node.is_assigned(each)
        if is_clean if is_assigned is None else is_assigned:
            missed[each] = offsets
    return missed


def gone(kind: FindingKind, path: str, what: str, start: int, end: int) -> Finding:
    """Return that all records of a partition are gone."""
    message = f"{what}, and checkpoints say that the partition reached offset {end}"
    return kind.found(path, message, next_offset=start, end_offset=end, severity=Severity.ERROR)


def offsets_in(path: str, name: str) -> Mapping[TopicPartition, int]:
    """Return what a checkpoint says; nothing if it cannot be read, which is a finding."""
    with suppress(CorruptCheckpointError, LogDirectoryError):
        return known_offset_checkpoint(join(path, name))
    return {}


def recorded_offsets(path: str, topic_partition: TopicPartition) -> tuple[int, int]:
    """Return the first offset of a partition according to checkpoints, and the highest one."""
    end = max(0, *(offsets_in(path, name).get(topic_partition, 0) for name in RECORDED))
    start = offsets_in(path, LOG_START_OFFSET_CHECKPOINT).get(topic_partition, 0)
    return min(max(0, start), end), end

"""What is missing in a merged log, and what each replica has there."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from pylog.recovery.compacted_replicas import subtract
from pylog.recovery.merge_summary import GapCause, MergeGap
from pylog.text.words import counted, offsets_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pylog.comparison.batch_join import BatchStretch
    from pylog.comparison.lineage import LogLineage
    from pylog.comparison.replica_log import ReplicaLog
    from pylog.recovery.compacted_replicas import Span


def find_gaps(
    replicas: Sequence[ReplicaLog],
    lineage: LogLineage,
    log_start_offset: int,
    known_spans: Sequence[Span] = (),
) -> list[MergeGap]:
    """Return the offsets that the log of the last leader has had, and no replica has.

    Not those of ``known_spans``: a replica says that what was there is cleaned.
    """
    known = [each.stretch for each in lineage.taken]
    found = []
    for start, end in subtract(_holes(replicas, lineage, known, log_start_offset), known_spans):
        causes = [
            GapCause(each.path, _what_is_there(at, each, lineage, start, end))
            for at, each in enumerate(replicas)
        ]
        found.append(MergeGap(start, end, _is_cleaned(replicas, known, start, end), causes))
    return found


def _holes(
    replicas: Sequence[ReplicaLog],
    lineage: LogLineage,
    known: Sequence[BatchStretch],
    log_start_offset: int,
) -> Iterator[tuple[int, int]]:
    start = max(log_start_offset, _first_known(replicas, lineage))
    end = _end_known(replicas, lineage)
    if not known:
        if start < end:
            yield start, end
        return
    if start < known[0].start_offset:
        yield start, known[0].start_offset
    is_compacted = any(each.is_cleaned for each in known) or any(
        each.cleaned_up_to is not None for each in replicas
    )
    for one, other in pairwise(known):
        is_hole = one.end_offset < other.start_offset
        if is_hole and not (is_compacted and _follows_in_file(one, other)):
            yield one.end_offset, other.start_offset
    if known[-1].end_offset < end:
        yield known[-1].end_offset, end


def _follows_in_file(one: BatchStretch, other: BatchStretch) -> bool:
    """Whether one is right after the other in a file: a cleaner has taken out what was between."""
    return any(
        at in one.places
        and place.file == one.places[at].file
        and place.position == one.places[at].position + one.size_bytes
        for at, place in other.places.items()
    )


def _first_known(replicas: Sequence[ReplicaLog], lineage: LogLineage) -> int:
    """Return where the log started: by the epoch checkpoints, else by the first file's name."""
    root = lineage.root
    taken = {at for each in lineage.taken for at in each.stretch.places}
    starts = [
        each.epochs[0].start_offset
        for at, each in enumerate(replicas)
        if each.epochs and (at in taken or at == root)
    ]
    marks = [each.log_start_offset for each in replicas if each.log_start_offset is not None]
    starts = starts or [each.segments[0].base_offset for each in replicas if each.segments]
    return max([min(starts, default=0), *marks])


def _end_known(replicas: Sequence[ReplicaLog], lineage: LogLineage) -> int:
    """Return up to which offset the log has reached, by what is beside it."""
    branches = {at for each in lineage.branches for at in each.places}
    ends = [
        each.high_watermark
        for at, each in enumerate(replicas)
        if each.high_watermark is not None and at not in branches
    ]
    root = lineage.root
    if root is not None and replicas[root].epochs:
        ends.append(replicas[root].epochs[-1].start_offset)
    ends += [each.end_offset for each in lineage.unproven]
    return max(ends, default=0)


def _is_cleaned(
    replicas: Sequence[ReplicaLog], known: Sequence[BatchStretch], start: int, end: int
) -> bool:
    """Whether a cleaner may have taken out what is missing."""
    marks = [each.cleaned_up_to for each in replicas if each.cleaned_up_to is not None]
    if marks:
        return start < max(marks)
    is_damaged = any(
        each.next_offset < end and (each.end_offset is None or start < each.end_offset)
        for replica in replicas
        for each in replica.damage
    )
    return not is_damaged and any(each.is_cleaned for each in known)


def _what_is_there(at: int, replica: ReplicaLog, lineage: LogLineage, start: int, end: int) -> str:
    if replica.unreadable is not None:
        return f"cannot be read: {replica.unreadable}"
    for stretches, what in (
        (lineage.branches, "another history"),
        (lineage.unproven, "not proven to be of this log"),
        ([each.stretch for each in lineage.doubts if each.replica == at], "not believed"),
    ):
        for each in stretches:
            is_here = at in each.places or what == "not believed"
            if is_here and each.start_offset < end and start < each.end_offset:
                shown = offsets_text(each.start_offset, each.end_offset)
                return f"{what}: {shown} of epoch {each.epoch}"
    for damaged in replica.damage:
        if damaged.next_offset < end and (damaged.end_offset is None or start < damaged.end_offset):
            size = counted(damaged.end_position - damaged.position, "byte")
            return f"damaged: {size} at {damaged.position} of {damaged.path}: {damaged.reason}"
    held = [each.stretch for each in lineage.taken if at in each.stretch.places]
    if not held:
        return "nothing"
    if end <= held[0].start_offset:
        return f"starts at offset {held[0].start_offset}"
    if start >= held[-1].end_offset:
        return f"ends at offset {held[-1].end_offset}"
    return "nothing: no file has these offsets"

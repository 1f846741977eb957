"""What is missing in a merged log, and what each replica has there."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from pylog.recovery.compacted_replicas import subtract
from pylog.recovery.merge_summary import GapCause, MergeGap
from pylog.recovery.merged_log import log_start_of
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
    holes: list[tuple[int, int | None]] = list(
        subtract(_holes(replicas, lineage, known, log_start_offset), known_spans)
    )
    tail = _damaged_tail(replicas, lineage, known, log_start_offset)
    if tail is not None and not any(end is not None and end > tail for _, end in holes):
        holes.append((tail, None))
    found = []
    for start, end in holes:
        causes = [
            GapCause(each.path, _what_is_there(at, each, lineage, start, end))
            for at, each in enumerate(replicas)
        ]
        is_cleaned = end is not None and _is_cleaned(replicas, known, start, end)
        found.append(MergeGap(start, end, is_cleaned, causes))
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
    bases = [
        [each.base_offset for each in one.segments[:1]] + one.bases_without_log for one in replicas
    ]
    starts = starts or [min(each) for each in bases if each]
    return max(min(starts, default=0), log_start_of(replicas))


def forget_impossible_starts(replicas: Sequence[ReplicaLog], lineage: LogLineage) -> None:
    """Have no replica start beyond all that there was: its broker would delete all records."""
    end = max([_end_known(replicas, lineage), *(each.stretch.end_offset for each in lineage.taken)])
    for each in replicas:
        if each.log_start_offset is not None and each.log_start_offset > end:
            each.problems.append(
                f"{each.path} starts at offset {each.log_start_offset} according to its "
                f"checkpoint, and nothing else has got beyond {end}: it is not believed"
            )
            each.log_start_offset = None


def _damaged_tail(
    replicas: Sequence[ReplicaLog],
    lineage: LogLineage,
    known: Sequence[BatchStretch],
    log_start_offset: int,
) -> int | None:
    """Return where the log went on, if a replica has damaged batches there, and none intact ones.

    Or if no replica has files that can be listed. How far it went on is not known.
    """
    end = known[-1].end_offset if known else log_start_offset
    if not known and all(each.unreadable is not None for each in replicas):
        return end
    for each in _of_the_log(replicas, lineage):
        found = each.damaged_end()
        if found is None:
            continue
        damaged, end_position = found
        if damaged.is_unreadable:  # nor is it known how long it is
            if end <= damaged.next_offset:
                return damaged.next_offset
            continue
        later = [one for one in known if one.start_offset >= damaged.next_offset]
        # Batches are the same in all replicas, until a cleaner rewrites them.
        is_covered = damaged.next_offset < end and (
            any(one.is_cleaned for one in later)
            or sum(one.size_bytes for one in later) >= end_position - damaged.position
        )
        if not is_covered:
            return max(end, damaged.next_offset)
    return None


def _of_the_log(replicas: Sequence[ReplicaLog], lineage: LogLineage) -> list[ReplicaLog]:
    """Return the replicas that have no other history."""
    branches = {at for each in lineage.branches for at in each.places}
    return [each for at, each in enumerate(replicas) if at not in branches]


def _end_known(replicas: Sequence[ReplicaLog], lineage: LogLineage) -> int:
    """Return up to which offset the log has reached, by what is beside it."""
    ends = [each.reached_offset for each in _of_the_log(replicas, lineage)]
    leaders = replicas if lineage.root is None else [replicas[lineage.root]]
    ends += [each.epochs[-1].start_offset for each in leaders if each.epochs]
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


def _what_is_there(
    at: int, replica: ReplicaLog, lineage: LogLineage, start: int, gap_end: int | None
) -> str:
    end = start + 1 if gap_end is None else gap_end
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

"""What replicas of one compacted partition say of its offsets: what they have, and what is cleaned.

Each broker cleans for itself, so one replica has records that another one's cleaner has removed. A
cleaner only removes records below the last one of their key, that one if it is a tombstone whose
time is over, what was aborted, and what has no key. So a replica that says what is at an offset,
and has no record there, tells that nobody needs that record. Where it says nothing, the record may
be lost:

============================================= =================================================
between two batches of a replica              it says that what is not there was
============================================= =================================================
one follows the other in a file               cleaned
bytes are damaged, or are not of the lineage  nothing
a file ends, and a later offset begins the    nothing; it is taken for cleaned unless another
next one                                      replica has the last value of a key there
============================================= =================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.comparison.lineage import FOLLOWER, Taken

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from pylog.comparison.batch_join import BatchStretch
    from pylog.comparison.lineage import LogLineage
    from pylog.comparison.replica_log import ReplicaLog

Span = tuple[int, int]
"""Offsets ``[start, end)``."""


class Coverage:
    """Of which offsets a replica says what is there.

    Attributes
    ----------
    spans
        Those of which it does, ascending and apart.
    damaged, between_files
        Those between them of which it says nothing.
    """

    def __init__(self, at: int, replica: ReplicaLog, held: Iterable[BatchStretch]) -> None:
        self.spans: list[Span] = []
        self.damaged: list[Span] = []
        self.between_files: list[Span] = []
        before: BatchStretch | None = None
        for each in sorted(held, key=lambda one: one.start_offset):
            self._add(at, replica, before, each)
            before = each
        self._starts = np.array([start for start, _ in self.spans], dtype=np.int64)
        self._ends = np.array([end for _, end in self.spans], dtype=np.int64)

    def _add(
        self, at: int, replica: ReplicaLog, before: BatchStretch | None, stretch: BatchStretch
    ) -> None:
        place, start = stretch.places[at], stretch.start_offset
        base = min(start, replica.segments[place.file].base_offset)
        if place.position == 0:
            start = base
        if before is None:
            if base:
                self.between_files.append((0, base))
            if base < start:
                self.damaged.append((base, start))
            self.spans.append((start, stretch.end_offset))
            return
        last = before.places[at]
        end_position = last.position + before.size_bytes
        first, end = self.spans[-1]
        follows = (last.file, end_position) == (place.file, place.position)
        if follows or start <= end:
            self.spans[-1] = first, max(end, stretch.end_offset)
            return
        is_whole = end_position == replica.segments[last.file].size_bytes
        is_next = (place.file, place.position) == (last.file + 1, 0)
        (self.between_files if is_whole and is_next else self.damaged).append((end, start))
        self.spans.append((start, stretch.end_offset))

    def has(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return of which offsets it says what is there."""
        if not self.spans:
            return np.zeros(offsets.size, dtype=np.bool_)
        places = np.searchsorted(self._starts, offsets, side="right") - 1
        found: npt.NDArray[np.bool_] = (places >= 0) & (offsets < self._ends[places])
        return found


def coverages_of(replicas: Sequence[ReplicaLog], lineage: LogLineage) -> list[Coverage]:
    """Return what each replica says of the offsets of a lineage."""
    held = held_of(lineage)
    return [
        Coverage(at, replica, [each for each in held if at in each.places])
        for at, replica in enumerate(replicas)
    ]


def held_of(lineage: LogLineage) -> list[BatchStretch]:
    """Return all batches of a lineage that any replica has, also of offsets of which one is taken.

    What is taken comes first.
    """
    return [*(each.stretch for each in lineage.taken), *lineage.rewritten]


def copied_replica(lineage: LogLineage) -> int:
    """Return the replica that others fill: the last leader's, or else the one that goes furthest.

    The last leader's may have lost all its batches.
    """
    held = held_of(lineage)
    if not held or any(lineage.root in each.places for each in held):
        return lineage.root or 0
    return min(max(held, key=lambda each: each.end_offset).places)


def copied_first(lineage: LogLineage) -> list[Taken]:
    """Return what is taken if the replica that others fill is taken whole.

    That of the last leader is already. If it has nothing, batches of others were taken in the order
    of their offsets, also where a cleaner has rewritten them in the replica that is copied.
    """
    copied = copied_replica(lineage)
    if copied == lineage.root:
        return lineage.taken
    own = [Taken(each, FOLLOWER) for each in lineage.rewritten if copied in each.places]
    others = [
        each
        for each in lineage.taken
        if copied in each.stretch.places
        or not any(each.stretch.overlaps(one.stretch) for one in own)
    ]
    return sorted([*own, *others], key=lambda each: each.stretch.start_offset)


def is_cleaned(replicas: Sequence[ReplicaLog], lineage: LogLineage) -> bool:
    """Whether a cleaner has been at a log of which several replicas have something."""
    held = held_of(lineage)
    holders = {at for each in held for at in each.places}
    if len(holders) < 2 or any(each.is_legacy for each in held):
        return False
    return (
        any(each.is_cleaned for each in held)
        or any(each.cleaned_up_to is not None for each in replicas)
        or any(sum(at in each.jumping for each in held) > 1 for at in holders)
    )


def borders_of(replicas: Sequence[ReplicaLog], lineage: LogLineage) -> set[int]:
    """Return where replicas begin and end to say what is there.

    None where the last leader's replica is not damaged, and no other one has anything of which it
    says nothing.
    """
    coverages, copied = coverages_of(replicas, lineage), copied_replica(lineage)
    root = coverages[copied]
    others = [
        (each.start_offset, each.end_offset)
        for each in held_of(lineage)
        if copied not in each.places
    ]
    is_damaged = bool(root.damaged) or bool(replicas[copied].damage)
    if not is_damaged and not subtract(joined(others), root.spans):
        return set()
    return {border for each in coverages for span in each.spans for border in span}


def joined(spans: Iterable[Span]) -> list[Span]:
    """Return spans ascending, with those that touch as one."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def subtract(spans: Iterable[Span], others: Sequence[Span]) -> list[Span]:
    """Return what spans have that no other one has; all of them are ascending and apart."""
    found, at = [], 0
    for start, end in spans:
        while at < len(others) and others[at][1] <= start:
            at += 1
        place, rest = at, start
        while place < len(others) and others[place][0] < end:
            if rest < others[place][0]:
                found.append((rest, others[place][0]))
            rest = max(rest, others[place][1])
            place += 1
        if rest < end:
            found.append((rest, end))
    return found


def intersect(spans: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """Return what spans have that others have, too."""
    return subtract(spans, subtract(spans, others))

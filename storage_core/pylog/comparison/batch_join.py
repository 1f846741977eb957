"""Batches of several replicas, side by side: which of them have the same ones, over which offsets.

All replicas are walked at once, in the order of offsets, a window of each at a time. Two batches
are the same if offsets, epoch, size and checksum are. The epoch is not covered by the checksum:
where copies of a batch have several, one that does not lie between those of its neighbours, or that
the replica's checkpoint contradicts, is wrong, and the copy does not count.

What comes out is stretches: runs of batches of one epoch that the same replicas have, one after the
other in the files of each. So a healthy partition is a stretch a segment, whatever its size, and
memory depends on what differs.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.comparison.replica_log import (
    BASE,
    COLUMNS,
    CRC,
    EPOCH,
    FILE,
    FIRST_MS,
    FLAGS,
    IS_CLEANED,
    IS_LEGACY,
    IS_MOVED,
    IS_UNPROVED,
    JUMPS,
    LAST,
    MAX_MS,
    POSITION,
    RECORDS,
    SIZE,
)
from pylog.model import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy.typing as npt

    from pylog.files.leader_epochs import EpochEntry

    Rows = npt.NDArray[np.int64]

_REPLICA = COLUMNS
_CONTENT = (BASE, LAST, CRC, SIZE)
_OF_HEADERS = (*_CONTENT, EPOCH, RECORDS, FIRST_MS, MAX_MS)
_NOWHERE = -1
_LARGEST_EPOCH_STEP = 1000
"""An epoch that no checkpoint knows, and that is so far above the others, is a flipped bit."""


class BatchPlace(NamedTuple):
    """Where a stretch begins in a replica: which of its files, which byte."""

    file: int
    position: int


class OtherEpoch(NamedTuple):
    """A batch under an epoch that other replicas contradict, or checkpoints do."""

    replica: int
    base_offset: int
    stored_epoch: int
    epoch: int


@dataclass(slots=True)
class BatchStretch:
    """Batches of one epoch that the same replicas have, one after the other in the files of each.

    Attributes
    ----------
    start_offset, end_offset
        Offsets ``[start_offset, end_offset)``.
    places
        By replica, where the bytes begin; there are ``size_bytes`` of them in each.
    checksum
        Of the checksums of its batches: a sum, which is the same for the same batches.
    moved
        Replicas in whose files the one batch has another base offset, which is wrong.
    jumping
        Replicas in which it does not begin at the offset after the batch that is before it.
    is_cleaned
        Whether a cleaner has taken records out.
    """

    start_offset: int
    end_offset: int
    epoch: int
    batches: int
    records: int
    size_bytes: int
    first_timestamp: int
    max_timestamp: int
    places: dict[int, BatchPlace]
    checksum: int = 0
    is_cleaned: bool = False
    is_legacy: bool = False
    moved: set[int] = field(default_factory=set)
    jumping: set[int] = field(default_factory=set)

    def overlaps(self, other: BatchStretch) -> bool:
        """Whether both have an offset."""
        return self.start_offset < other.end_offset and other.start_offset < self.end_offset


class BatchJoin:
    """Joins the batches of replicas; one thread, one walk.

    With ``keeps_epochs`` none is taken for wrong: copies of a batch under several are different. A
    stretch ends at each of the offsets ``breaks``. ``proves`` gets the batches of a replica of
    which only headers were read, except those whose headers another replica has alike.

    Attributes
    ----------
    stretches
        All of them, by their first offsets, once `run` has ended.
    other_epochs
        Batches whose epochs were contradicted: these replicas do not count as having them.
    """

    def __init__(
        self,
        rows: Sequence[Iterable[Rows]],
        epochs: Sequence[Sequence[EpochEntry]],
        *,
        keeps_epochs: bool = False,
        breaks: Iterable[int] = (),
        proves: Callable[[int, Rows], object] = lambda _, __: None,
    ) -> None:
        self._keeps_epochs = keeps_epochs
        self._proves = proves
        self._inputs = [_Input(iter(each)) for each in rows]
        self._epochs = epochs
        entries = {entry.start_offset for each in epochs for entry in each} | set(breaks)
        self._breaks = np.array(sorted(entries), dtype=np.int64)
        self._open: dict[int, BatchStretch] = {}
        self._last_epochs: dict[int, int] = {}
        self.stretches: list[BatchStretch] = []
        self.other_epochs: list[OtherEpoch] = []

    def run(self) -> list[BatchStretch]:
        """Walk all replicas; return `stretches`."""
        while parts := self._next_parts():
            self._add(parts)
        self.stretches += self._open.values()
        self.stretches.sort(key=lambda each: (each.start_offset, each.end_offset))
        return self.stretches

    def _next_parts(self) -> dict[int, Rows]:
        """Return all batches up to where every replica has been read, by replica."""
        for each in self._inputs:
            each.fill()
        ends = [int(each.rows[LAST, -1]) for each in self._inputs if each.rows.shape[1]]
        if not ends:
            return {}
        parts = {at: each.take_up_to(min(ends)) for at, each in enumerate(self._inputs)}
        return {at: each for at, each in parts.items() if each.shape[1]}

    def _add(self, parts: dict[int, Rows]) -> None:
        self._prove(parts)
        before = dict(self._last_epochs)
        breaks = np.union1d(self._breaks, self._epoch_changes(parts))
        if len(parts) == len(self._inputs) and _are_alike(list(parts.values())):
            self._extend(_Groups.of_alike(list(parts.values())), breaks)
            return
        rows = np.concatenate(
            [
                np.concatenate([each, np.full((1, each.shape[1]), replica, dtype=np.int64)])
                for replica, each in parts.items()
            ],
            axis=1,
        )
        keys = [rows[each] for each in (_REPLICA, EPOCH, CRC, LAST, BASE)]
        rows = rows[:, np.lexsort(keys)]
        is_other = np.ones(rows.shape[1], dtype=np.bool_)
        is_other[1:] = (rows[_CONTENT, 1:] != rows[_CONTENT, :-1]).any(axis=0)
        is_new = is_other.copy()
        is_new[1:] |= rows[EPOCH, 1:] != rows[EPOCH, :-1]
        if not self._keeps_epochs and (is_new & ~is_other).any():
            contents = np.cumsum(is_other) - 1
            wrong = [
                at
                for content in np.unique(contents[is_new & ~is_other]).tolist()
                for at in self._wrong_epochs(rows, np.flatnonzero(contents == content), before)
            ]
            if wrong:
                rows = np.delete(rows, wrong, axis=1)
                is_new = np.ones(rows.shape[1], dtype=np.bool_)
                same = (*_CONTENT, EPOCH)
                is_new[1:] = (rows[same, 1:] != rows[same, :-1]).any(axis=0)
        which = np.cumsum(is_new) - 1
        groups = _Groups.of(rows, which, np.flatnonzero(is_new), len(self._inputs))
        self._extend(groups, breaks)

    def _prove(self, parts: dict[int, Rows]) -> None:
        if len(parts) > 1 and _are_alike(list(parts.values()), _OF_HEADERS):
            return
        if not any((rows[FLAGS] & IS_UNPROVED).any() for rows in parts.values()):
            return
        headers = np.concatenate([rows[_OF_HEADERS, :] for rows in parts.values()], axis=1)
        order = np.lexsort(headers)
        differs = (headers[:, order[1:]] != headers[:, order[:-1]]).any(axis=0)
        is_alone = np.empty(order.size, dtype=np.bool_)
        is_alone[order] = np.append(differs, True) & np.insert(differs, 0, True)
        start = 0
        for replica, rows in parts.items():
            alone = is_alone[start : start + rows.shape[1]]
            unproved = rows[:, alone & ((rows[FLAGS] & IS_UNPROVED) != 0)]
            if unproved.shape[1]:
                self._proves(replica, unproved)
            start += rows.shape[1]

    def _epoch_changes(self, parts: dict[int, Rows]) -> Rows:
        """Return the offsets at which the epoch of any replica changes."""
        found = []
        for replica, own in parts.items():
            changes = np.ones(own.shape[1], dtype=np.bool_)
            changes[0] = own[EPOCH, 0] != self._last_epochs.get(replica)
            changes[1:] = own[EPOCH, 1:] != own[EPOCH, :-1]
            self._last_epochs[replica] = int(own[EPOCH, -1])
            found.append(own[BASE, changes])
        return np.concatenate(found)

    def _wrong_epochs(self, rows: Rows, group: Rows, before: dict[int, int]) -> list[int]:
        """Return which copies of a batch, told under several epochs, have a wrong one.

        Two leaders may well have written the same batch, if its producer has sent it again. An
        epoch is wrong if it does not fit to those around it, or to the replica's own checkpoint.
        """
        base = int(rows[BASE, group[0]])
        told = {at: int(rows[EPOCH, at]) for at in group.tolist()}
        right = [at for at in told if self._is_plausible(rows, at, base, before)]
        if not right:
            return []
        known = {entry.epoch for each in self._epochs for entry in each}
        lowest = min(told[at] for at in right)
        right = [
            at for at in right if told[at] in known or told[at] - lowest <= _LARGEST_EPOCH_STEP
        ]
        wrong = [at for at in told if at not in right]
        best = max(right, key=lambda at: (told[at] in known, -told[at]))
        self.other_epochs += [
            OtherEpoch(int(rows[_REPLICA, at]), base, told[at], told[best]) for at in wrong
        ]
        return wrong

    def _is_plausible(self, rows: Rows, at: int, base: int, before: dict[int, int]) -> bool:
        replica, epoch = int(rows[_REPLICA, at]), int(rows[EPOCH, at])
        own = np.flatnonzero(rows[_REPLICA] == replica)
        place = int(np.searchsorted(own, at))
        lower = int(rows[EPOCH, own[place - 1]]) if place else before.get(replica, epoch)
        upper = int(rows[EPOCH, own[place + 1]]) if place + 1 < own.size else epoch
        told = _epoch_at(self._epochs[replica], base)
        is_told_otherwise = told is not None and told != epoch and told in (lower, upper)
        return lower <= epoch <= upper and not is_told_otherwise

    def _extend(self, groups: _Groups, breaks: Rows) -> None:
        for mask in np.unique(groups.masks).tolist():
            which = np.flatnonzero(groups.masks == mask)
            parts = groups.split(which, breaks)
            for part in parts:
                stretch = groups.stretch(part)
                before = self._open.get(mask)
                if (
                    part is parts[0]
                    and before is not None
                    and _continues(before, stretch)
                    and not _crosses_break(breaks, before.start_offset, stretch.start_offset)
                ):
                    _join(before, stretch)
                    continue
                if before is not None:
                    self.stretches.append(before)
                self._open[mask] = stretch


class _Input:
    """What has been read of a replica, and was not taken yet."""

    def __init__(self, rows: Iterator[Rows]) -> None:
        self._parts = rows
        self.rows: Rows = np.empty((COLUMNS, 0), dtype=np.int64)
        self._is_done = False

    def fill(self) -> None:
        while not self._is_done and not self.rows.shape[1]:
            found = next(self._parts, None)
            if found is None:
                self._is_done = True
            else:
                self.rows = found

    def take_up_to(self, last_offset: int) -> Rows:
        count = int(np.searchsorted(self.rows[LAST], last_offset, side="right"))
        taken, self.rows = self.rows[:, :count], self.rows[:, count:]
        return taken


def _are_alike(parts: Sequence[Rows], same: Sequence[int] = (*_CONTENT, EPOCH)) -> bool:
    """Whether all replicas have the same batches, as they usually do."""
    first = parts[0]
    return all(
        each.shape == first.shape and all(np.array_equal(each[at], first[at]) for at in same)
        for each in parts[1:]
    )


class _Groups(NamedTuple):
    """Batches, each once, and who has them where."""

    rows: Rows
    masks: Rows
    files: Rows
    positions: Rows
    flags: Rows

    @classmethod
    def of(cls, rows: Rows, which: Rows, starts: Rows, replicas: int) -> _Groups:
        """Return rows of all replicas as groups, of which `which` says whose each one is."""
        count = starts.size
        masks = np.zeros(count, dtype=np.int64)
        np.add.at(masks, which, 1 << rows[_REPLICA])
        shape = (replicas, count)
        files, positions = np.full(shape, _NOWHERE), np.full(shape, _NOWHERE)
        flags = np.zeros(shape, dtype=np.int64)
        for target, column in ((files, FILE), (positions, POSITION), (flags, FLAGS)):
            target[rows[_REPLICA], which] = rows[column]
        return cls(rows[:, starts], masks, files, positions, flags)

    @classmethod
    def of_alike(cls, parts: Sequence[Rows]) -> _Groups:
        """Return the batches of replicas that all have the same."""
        rows = parts[0]
        masks = np.full(rows.shape[1], (1 << len(parts)) - 1, dtype=np.int64)
        columns = (np.stack([each[at] for each in parts]) for at in (FILE, POSITION, FLAGS))
        return cls(rows, masks, *columns)

    def split(self, which: Rows, breaks: Rows) -> list[Rows]:
        """Return runs of the batches ``which``, all of the same replicas, that are one stretch."""
        if which.size == 1:
            return [which]
        rows, flags = self.rows[:, which], self.flags[:, which]
        ends = rows[EPOCH, 1:] != rows[EPOCH, :-1]
        ends |= (flags[:, 1:] & IS_MOVED).any(axis=0) | (flags[:, :-1] & IS_MOVED).any(axis=0)
        is_legacy = (rows[FLAGS, 1:] & IS_LEGACY) != 0
        ends |= ~is_legacy & (rows[BASE, 1:] != rows[LAST, :-1] + 1)
        files, positions = self.files[:, which], self.positions[:, which]
        ends |= (files[:, 1:] != files[:, :-1]).any(axis=0)
        follows = (positions[:, 1:] == positions[:, :-1] + rows[SIZE, :-1]) | (files[:, 1:] < 0)
        ends |= ~follows.all(axis=0)
        places = np.searchsorted(breaks, rows[BASE], side="right")
        ends |= places[1:] != places[:-1]
        return np.split(which, np.flatnonzero(ends) + 1)

    def stretch(self, part: Rows) -> BatchStretch:
        """Return batches that are one after the other as a stretch."""
        rows = self.rows[:, part]
        first = int(part[0])
        here = np.flatnonzero(self.files[:, first] >= 0).tolist()
        known = rows[FIRST_MS][rows[FIRST_MS] != NO_TIMESTAMP]
        return BatchStretch(
            int(rows[BASE, 0]),
            int(rows[LAST, -1]) + 1,
            int(rows[EPOCH, 0]),
            int(part.size),
            int(rows[RECORDS].sum()),
            int(rows[SIZE].sum()),
            int(known.min()) if known.size else NO_TIMESTAMP,
            int(rows[MAX_MS].max()),
            {
                at: BatchPlace(int(self.files[at, first]), int(self.positions[at, first]))
                for at in here
            },
            int(rows[CRC].sum()),
            bool((rows[FLAGS] & IS_CLEANED).any()),
            bool((rows[FLAGS] & IS_LEGACY).any()),
            {at for at in here if self.flags[at, first] & IS_MOVED},
            {at for at in here if self.flags[at, first] & JUMPS},
        )


def _continues(before: BatchStretch, after: BatchStretch) -> bool:
    """Whether the second of two stretches of the same replicas is the rest of the first."""
    return (
        before.epoch == after.epoch
        and (before.end_offset == after.start_offset or after.is_legacy)
        and not before.moved
        and not after.moved
        and all(
            place.file == before.places[at].file
            and place.position == before.places[at].position + before.size_bytes
            for at, place in after.places.items()
        )
    )


def _join(before: BatchStretch, after: BatchStretch) -> None:
    before.end_offset = after.end_offset
    before.batches += after.batches
    before.records += after.records
    before.size_bytes += after.size_bytes
    before.checksum += after.checksum
    stamps = [each.first_timestamp for each in (before, after)]
    before.first_timestamp = min(stamps) if NO_TIMESTAMP not in stamps else max(stamps)
    before.max_timestamp = max(before.max_timestamp, after.max_timestamp)
    before.is_cleaned |= after.is_cleaned
    before.is_legacy |= after.is_legacy


def _crosses_break(breaks: Rows, start: int, end: int) -> bool:
    """Whether an offset at which a stretch has to end lies in ``(start, end]``."""
    places = np.searchsorted(breaks, [start, end], side="right")
    return bool(places[0] != places[1])


def _epoch_at(entries: Sequence[EpochEntry], offset: int) -> int | None:
    above = bisect_right(entries, offset, key=lambda each: each.start_offset)
    return entries[above - 1].epoch if above else None

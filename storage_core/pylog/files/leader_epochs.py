"""Leader epoch checkpoint: at which offset each leader of a partition began to write.

A text checkpoint (`pylog.files.checkpoint_file`), version 0, in the partition directory, fields
``epoch start_offset``::

    0
    2
    0 0
    3 1204

Records at offsets ``start_offset`` up to the next entry's start were written under ``epoch``. Both
columns increase strictly. Epochs under which nothing was written may be missing, and so are those
whose records all lie below the log start offset; partitions of message format v0/v1 have none.
Written by brokers since 0.11.

`LeaderEpochFileCache` has the epochs of one partition that we own in memory and in the file.
Followers and consumers ask it where two logs part.

===================== ===========================================================
change                what a crash leaves, and what happens then
===================== ===========================================================
assign                the file is written before the records that need the entry:
                      an entry at or above the log end is removed at start-up
truncate, clear       the file may be older than the log: start-up truncates it
                      again at both ends
===================== ===========================================================

Source: LeaderEpochCheckpointFile, LeaderEpochFileCache (KIP-101, KIP-279; Kafka 3.9 and 4.3).
Differs from Kafka, which on loading silently drops earlier entries that a later one contradicts,
and writes the file in the background after truncation.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptCheckpointError
from pylog.files import disk
from pylog.files.checkpoint_file import read_checkpoint, write_checkpoint
from pylog.files.java_numbers import parse_integer

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from pylog.files.durable_io import DurableIO
    from pylog.model import TopicPartition

LEADER_EPOCH_CHECKPOINT_VERSION = 0

_LOGGER = logging.getLogger(__name__)
UNDEFINED_EPOCH = -1
UNDEFINED_EPOCH_OFFSET = -1


class EpochEntry(NamedTuple):
    """A leader epoch and the first offset written under it."""

    epoch: int
    start_offset: int


def read_epoch_entries(path: str | os.PathLike[str]) -> list[EpochEntry]:
    """Return the entries of a checkpoint as they are stored; [] if there is no such file."""
    return read_checkpoint(path, LEADER_EPOCH_CHECKPOINT_VERSION, 2, _parse_epoch_entry)


def loaded_entries(entries: Iterable[EpochEntry]) -> list[EpochEntry]:
    """Return stored entries as a broker has them that has loaded them.

    A later entry removes those before it that it contradicts.
    """
    kept: list[EpochEntry] = []
    for entry in entries:
        _remove_contradicted(kept, entry)
        kept.append(entry)
    return kept


def _remove_contradicted(kept: list[EpochEntry], entry: EpochEntry) -> list[EpochEntry]:
    """Remove the entries that a later one contradicts, and return them."""
    removed = []
    while kept and (kept[-1].epoch >= entry.epoch or kept[-1].start_offset >= entry.start_offset):
        removed.append(kept.pop())
    return removed


def read_leader_epoch_checkpoint(path: str | os.PathLike[str]) -> list[EpochEntry]:
    """Return the leader epochs of a partition, oldest first; [] if there is no such file."""
    entries = read_epoch_entries(path)
    try:
        _ensure_increasing(entries)
    except ValueError as error:
        raise CorruptCheckpointError(str(error), path) from error
    return entries


def write_leader_epoch_checkpoint(
    io: DurableIO, path: str | os.PathLike[str], entries: Sequence[EpochEntry]
) -> None:
    """Replace the leader epochs of a partition, and return when they are on the disk."""
    _ensure_increasing(entries)
    if entries and min(entries[0]) < 0:
        msg = f"leader epoch entry {tuple(entries[0])}: neither number can be negative"
        raise ValueError(msg)
    lines = [f"{epoch} {start_offset}" for epoch, start_offset in entries]
    write_checkpoint(io, path, LEADER_EPOCH_CHECKPOINT_VERSION, lines)


def _ensure_increasing(entries: Sequence[EpochEntry]) -> None:
    for before, entry in pairwise(entries):
        if entry.epoch <= before.epoch or entry.start_offset <= before.start_offset:
            msg = (
                f"leader epoch entry '{entry.epoch} {entry.start_offset}' follows "
                f"'{before.epoch} {before.start_offset}', expected both numbers to increase"
            )
            raise ValueError(msg)


def _parse_epoch_entry(fields: list[str]) -> EpochEntry:
    entry = EpochEntry(parse_integer(fields[0], 32), parse_integer(fields[1], 64))
    if min(entry) < 0:
        msg = "neither number can be negative"
        raise ValueError(msg)
    return entry


def end_offset_for(
    entries: Sequence[EpochEntry], requested_epoch: int, log_end_offset: int
) -> tuple[int, int]:
    """Return the highest epoch up to ``requested_epoch``, and the offset at which it ended."""
    if requested_epoch == UNDEFINED_EPOCH or not entries:
        return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
    if requested_epoch == entries[-1].epoch:
        return requested_epoch, log_end_offset
    higher = bisect_right(entries, requested_epoch, key=_epoch)
    if higher == len(entries):
        return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
    floor_epoch = entries[higher - 1].epoch if higher else requested_epoch
    return floor_epoch, entries[higher].start_offset


class LeaderEpochFileCache:
    """Leader epochs, oldest first; strictly increasing in both columns, as the file is.

    One writer, which the log's lock guards. Any number of threads may read meanwhile: a change
    replaces the entries as a whole, and only after the file has been written.
    """

    def __init__(self, topic_partition: TopicPartition, path: str, *, io: DurableIO) -> None:
        self.topic_partition = topic_partition
        self.path = path
        self._io = io
        self._entries: tuple[EpochEntry, ...] = ()
        if not disk.exists(path):
            io.open(path, create=True).close()
        for entry in read_epoch_entries(path):
            self._entries = self._with(entry)

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        """All entries, oldest first; never changes, a later call may give others."""
        return self._entries

    @property
    def is_empty(self) -> bool:
        """Whether the cache has no epoch."""
        return not self._entries

    @property
    def latest_entry(self) -> EpochEntry | None:
        """The entry of the highest epoch."""
        entries = self._entries
        return entries[-1] if entries else None

    @property
    def earliest_entry(self) -> EpochEntry | None:
        """The entry of the lowest epoch."""
        entries = self._entries
        return entries[0] if entries else None

    @property
    def latest_epoch(self) -> int | None:
        """The highest epoch."""
        latest = self.latest_entry
        return None if latest is None else latest.epoch

    def epoch_for_offset(self, offset: int) -> int | None:
        """Return the epoch under which ``offset`` was written, or would be now."""
        entries = self._entries
        above = bisect_right(entries, offset, key=_start_offset)
        return entries[above - 1].epoch if above else None

    def end_offset_for(self, requested_epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return what `end_offset_for` does of the entries."""
        return end_offset_for(self._entries, requested_epoch, log_end_offset)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Let ``epoch`` begin at ``start_offset``, unless it is the latest and began before."""
        latest = self.latest_entry
        if latest is not None and epoch == latest.epoch and start_offset >= latest.start_offset:
            return
        self._replace(self._with(EpochEntry(epoch, start_offset)))

    def _with(self, entry: EpochEntry) -> tuple[EpochEntry, ...]:
        if min(entry) < 0:
            msg = f"{entry} of partition {self.topic_partition} has a negative number"
            raise ValueError(msg)
        kept = list(self._entries)
        removed = _remove_contradicted(kept, entry)
        # An epoch that wrote nothing is replaced where it stands: that is how elections go.
        if any(each.start_offset != entry.start_offset for each in removed):
            _LOGGER.log(
                self._io.warning_level,
                "%s of partition %s contradicts %s, which are removed",
                entry,
                self.topic_partition,
                removed,
            )
        return (*kept, entry)

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove the entries that begin at or above ``end_offset``; a negative one removes none."""
        if end_offset >= 0:
            self._replace(each for each in self._entries if each.start_offset < end_offset)

    def truncate_from_start(self, start_offset: int) -> None:
        """Let the epoch of ``start_offset`` begin there, and remove the ones before it."""
        entries = self._entries
        above = bisect_right(entries, start_offset, key=_start_offset)
        if above:
            first = entries[above - 1]._replace(start_offset=start_offset)
            self._replace((first, *entries[above:]))

    def clear_and_flush(self) -> None:
        """Remove all entries, also from the file."""
        self._write(())
        self._entries = ()

    def _replace(self, entries: Iterable[EpochEntry]) -> None:
        changed = tuple(entries)
        if changed != self._entries:
            self._write(changed)
            self._entries = changed

    def _write(self, entries: tuple[EpochEntry, ...]) -> None:
        write_leader_epoch_checkpoint(self._io, self.path, entries)


def _epoch(entry: EpochEntry) -> int:
    return entry.epoch


def _start_offset(entry: EpochEntry) -> int:
    return entry.start_offset

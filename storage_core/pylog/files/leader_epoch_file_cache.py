"""The leader epochs of one partition in memory, and in file ``leader-epoch-checkpoint``.

An entry says at which offset the leader of an epoch began to write; epochs and start offsets both
increase strictly. Followers and consumers ask by it where two logs part.

===================== ===========================================================
change                what a crash leaves, and what happens then
===================== ===========================================================
assign                the file is written before the records that need the entry:
                      an entry at or above the log end is removed at start-up
truncate, clear       the file may be older than the log: start-up truncates it
                      again at both ends
===================== ===========================================================

Source: LeaderEpochFileCache (KIP-101, KIP-279; Kafka 4.3). Differs from Kafka, which writes the
file in the background after truncation.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from pathlib import Path
from typing import TYPE_CHECKING

from pylog.files.leader_epoch_checkpoint import (
    EpochEntry,
    read_epoch_entries,
    write_leader_epoch_checkpoint,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylog.files.durable_io import DurableIO
    from pylog.model import TopicPartition

_LOGGER = logging.getLogger(__name__)

UNDEFINED_EPOCH = -1
UNDEFINED_EPOCH_OFFSET = -1


class LeaderEpochFileCache:
    """Leader epochs, oldest first; strictly increasing in both columns, as the file is.

    One writer, which the log's lock guards. Any number of threads may read meanwhile: a change
    replaces the entries as a whole, and only after the file has been written.

    Parameters
    ----------
    topic_partition
        Named in errors and warnings.
    path
        The checkpoint file; created empty if there is none. Of entries that contradict each other
        the later ones count, as if they had been assigned in the order of the file.
    io
        What changes the disk.

    Raises
    ------
    CorruptCheckpointError
        The file does not follow the format.
    """

    def __init__(self, topic_partition: TopicPartition, path: str, *, io: DurableIO) -> None:
        self.topic_partition = topic_partition
        self.path = path
        self._io = io
        self._entries: tuple[EpochEntry, ...] = ()
        if not Path(path).exists():
            io.open(path, create=True).close()
        for entry in read_epoch_entries(path):
            self._entries = self._with(entry)

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        """All entries, oldest first; never changes, a later call may give others."""
        return self._entries

    @property
    def is_empty(self) -> bool:
        """Whether no epoch is known."""
        return not self._entries

    @property
    def latest_entry(self) -> EpochEntry | None:
        """The entry of the highest epoch."""
        return _last(self._entries)

    @property
    def earliest_entry(self) -> EpochEntry | None:
        """The entry of the lowest epoch."""
        entries = self._entries
        return entries[0] if entries else None

    @property
    def latest_epoch(self) -> int | None:
        """The highest epoch."""
        return _epoch_of(self.latest_entry)

    @property
    def previous_epoch(self) -> int | None:
        """The highest epoch but one."""
        return _epoch_of(_last(self._entries[:-1]))

    def previous_entry(self, epoch: int) -> EpochEntry | None:
        """Return the entry of the highest epoch below ``epoch``."""
        return _last([each for each in self._entries if each.epoch < epoch])

    def epoch_for_offset(self, offset: int) -> int | None:
        """Return the epoch under which ``offset`` was written, or would be now."""
        entries = self._entries
        return _epoch_of(_last(entries[: bisect_right(entries, offset, key=_start_offset)]))

    def end_offset_for(self, requested_epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return the highest epoch up to ``requested_epoch``, and the offset at which it ended.

        Parameters
        ----------
        requested_epoch
            An epoch, or `UNDEFINED_EPOCH`.
        log_end_offset
            Where the latest epoch ends for now.

        Returns
        -------
        tuple[int, int]
            Epoch and exclusive end. A requested epoch below all that are known ends where the
            first known one begins: what it wrote is no longer in the log. `UNDEFINED_EPOCH` and
            `UNDEFINED_EPOCH_OFFSET` if it is undefined, or above all that are known.
        """
        entries = self._entries
        if requested_epoch == UNDEFINED_EPOCH or not entries:
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        if requested_epoch == entries[-1].epoch:
            return requested_epoch, log_end_offset
        higher = bisect_right(entries, requested_epoch, key=_epoch)
        if higher == len(entries):
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        floor_epoch = entries[higher - 1].epoch if higher else requested_epoch
        return floor_epoch, entries[higher].start_offset

    def assign(self, epoch: int, start_offset: int) -> None:
        """Let ``epoch`` begin at ``start_offset``, unless it is the latest and began before.

        Entries that contradict this one, by epoch or by offset, are removed. The file has the
        entry when the call returns.

        Raises
        ------
        ValueError
            One of the numbers is negative.
        """
        latest = self.latest_entry
        if latest is not None and epoch == latest.epoch and start_offset >= latest.start_offset:
            return
        self._replace(self._with(EpochEntry(epoch, start_offset)))

    def _with(self, entry: EpochEntry) -> tuple[EpochEntry, ...]:
        if min(entry) < 0:
            msg = f"{entry} of partition {self.topic_partition} has a negative number"
            raise ValueError(msg)
        kept = list(self._entries)
        removed = []
        while kept and (
            kept[-1].epoch >= entry.epoch or kept[-1].start_offset >= entry.start_offset
        ):
            removed.append(kept.pop())
        # An epoch that wrote nothing is replaced where it stands: that is how elections go.
        if any(each.start_offset != entry.start_offset for each in removed):
            _LOGGER.warning(
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

    def clear(self) -> None:
        """Remove all entries from memory; the file, about to be deleted, stays as it is."""
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


def _last(entries: list[EpochEntry] | tuple[EpochEntry, ...]) -> EpochEntry | None:
    return entries[-1] if entries else None


def _epoch_of(entry: EpochEntry | None) -> int | None:
    return None if entry is None else entry.epoch

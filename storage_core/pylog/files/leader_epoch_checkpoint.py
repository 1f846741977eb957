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

Source: LeaderEpochCheckpointFile, LeaderEpochFileCache (KIP-101; Kafka 3.9 and 4.3). Differs from
Kafka, which on loading silently drops earlier entries that a later one contradicts.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptCheckpointError
from pylog.files.checkpoint_file import parse_integer, read_checkpoint, write_checkpoint

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from pylog.files.durable_io import DurableIO

LEADER_EPOCH_CHECKPOINT_VERSION = 0


class EpochEntry(NamedTuple):
    """A leader epoch and the first offset written under it."""

    epoch: int
    start_offset: int


def read_epoch_entries(path: str | os.PathLike[str]) -> list[EpochEntry]:
    """Return the entries of a checkpoint as they are stored; [] if there is no such file.

    They may contradict each other: it is for the caller to say what that means.

    Raises
    ------
    CorruptCheckpointError
        The file does not follow the format.
    LogDirectoryError
        The file cannot be read.
    """
    return read_checkpoint(path, LEADER_EPOCH_CHECKPOINT_VERSION, 2, _parse_epoch_entry)


def read_leader_epoch_checkpoint(path: str | os.PathLike[str]) -> list[EpochEntry]:
    """Return the leader epochs of a partition, oldest first; [] if there is no such file.

    Raises
    ------
    CorruptCheckpointError
        The file does not follow the format, or epochs or start offsets do not increase.
    LogDirectoryError
        The file cannot be read.
    """
    entries = read_epoch_entries(path)
    try:
        _ensure_increasing(entries)
    except ValueError as error:
        raise CorruptCheckpointError(str(error), path) from error
    return entries


def write_leader_epoch_checkpoint(
    io: DurableIO, path: str | os.PathLike[str], entries: Sequence[EpochEntry]
) -> None:
    """Replace the leader epochs of a partition, and return when they are on the disk.

    Parameters
    ----------
    io
        Writes the file, see `DurableIO.write_atomically`.
    path
        The checkpoint; created if there is none.
    entries
        Oldest first.

    Raises
    ------
    ValueError
        Epochs or start offsets do not increase, or one is negative.
    KafkaStorageError
        The file could not be written; what was there before is there still.
    """
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

"""Up to where the controllers' logs of the cluster's metadata are the same.

What most of those that vote have is agreed on, and is never taken back. Two logs are the same as
far as they have the same leader epochs, and as both go (KIP-595).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import LogStorageError
from pylog.files.file_names import LEADER_EPOCH_CHECKPOINT
from pylog.files.leader_epochs import read_epoch_entries
from pylog.locations import join
from pylog.writing.node_metadata import metadata_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.files.leader_epochs import EpochEntry


class LogHistory(NamedTuple):
    """The leader epochs of a log of the metadata, and where it ends."""

    epochs: list[EpochEntry]
    end_offset: int

    @classmethod
    def of(cls, directory: str) -> LogHistory | None:
        """Return the history of the log in a directory; None if it cannot be read."""
        try:
            end_offset = metadata_view(directory).log_end_offset
            return cls(read_epoch_entries(join(directory, LEADER_EPOCH_CHECKPOINT)), end_offset)
        except LogStorageError:
            return None

    @property
    def position(self) -> tuple[int, int]:
        """The last epoch, and the end: of two logs, the higher one is further."""
        return self.epochs[-1].epoch if self.epochs else 0, self.end_offset


def agreed_end_offset(known: Sequence[LogHistory], voters: int) -> int:
    """Return up to which offset most of some voters are known to have one log; 0 if none is."""
    needed = voters // 2 + 1
    if len(known) < needed:
        return 0
    furthest = max(known, key=lambda each: each.position)
    return sorted((common_end(furthest, each) for each in known), reverse=True)[needed - 1]


def common_end(one: LogHistory, other: LogHistory) -> int:
    """Return up to which offset two logs are the same; either may begin later than the other."""
    first = max(each.epochs[0].epoch if each.epochs else 0 for each in (one, other))
    epochs, other_epochs = (
        [entry for entry in each.epochs if entry.epoch >= first] for each in (one, other)
    )
    if not epochs or not other_epochs:
        return min(one.end_offset, other.end_offset) if epochs == other_epochs else 0
    if epochs[0].epoch != other_epochs[0].epoch:
        return 0
    shared = 1
    while epochs[shared:] and epochs[shared : shared + 1] == other_epochs[shared : shared + 1]:
        shared += 1
    parting = [*epochs[shared : shared + 1], *other_epochs[shared : shared + 1]]
    return min([one.end_offset, other.end_offset, *(each.start_offset for each in parting)])

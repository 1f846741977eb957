"""Exit statuses, the same for every command.

====  ============================================================================================
0     what was asked was done, and everything read is sound
1     findings: something read is damaged, be it a line of input
2     usage error, or a path that cannot be read or written, is locked, or holds no log; a record
      that a topic refuses
130   stopped with Ctrl-C
141   the reader of the output went away, as in ``pylog cat … | head``
====  ============================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import (
    CorruptCheckpointError,
    CorruptIndexError,
    CorruptRecordError,
    CorruptSnapshotError,
    InvalidRecordError,
    UnexpectedFileError,
)

if TYPE_CHECKING:
    from pylog import PartitionListing

SOUND = 0
FINDINGS = 1
UNUSABLE = 2
INTERRUPTED = 130
"""128 + SIGINT, what a shell reports of a program that the signal ended."""
BROKEN_PIPE = 141
"""128 + SIGPIPE."""

_FINDINGS = (
    CorruptCheckpointError,
    CorruptIndexError,
    CorruptRecordError,
    CorruptSnapshotError,
    InvalidRecordError,
    UnexpectedFileError,
)


def status_of(error: Exception) -> int:
    """Return the status that a command ends with after ``error``."""
    return FINDINGS if isinstance(error, _FINDINGS) else UNUSABLE


def status_of_listing(listing: PartitionListing) -> int:
    """Return the status that ``ls`` ends with: that of the worst partition."""
    statuses = [status_of(error) for each in listing.partitions for error in each.errors]
    statuses += [FINDINGS for each in listing.partitions if each.warnings]
    return max(statuses, default=SOUND)

"""Exit statuses, the same for every command.

====  ============================================================================================
0     what was asked was done, and everything read is intact
1     findings: something that was read is damaged; ``ls``: a partition cannot be read;
      ``transactions``: one is overdue; ``first-aid``, ``adopt``, ``restore-groups``, ``merge``:
      done, and something is lost or left out; ``diff``: the logs differ
2     wrong usage, or a path that cannot be read or written, is locked, or holds no log; a line of
      input that is no record, or a record that a topic refuses
130   stopped with Ctrl-C
141   the reader of the output went away, as in ``pylog cat … | head``
====  ============================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog import errors

if TYPE_CHECKING:
    from pylog.results import PartitionListing

SOUND = 0
FINDINGS = 1
UNUSABLE = 2
INTERRUPTED = 130
"""128 + SIGINT, what a shell reports of a program that the signal ended."""
BROKEN_PIPE = 141
"""128 + SIGPIPE."""

_FINDINGS = (
    errors.CorruptCheckpointError,
    errors.CorruptIndexError,
    errors.CorruptRecordError,
    errors.CorruptSnapshotError,
    errors.InvalidRecordError,
    errors.RecoveryRefusedError,
    errors.UndecodableValueError,
    errors.UnexpectedFileError,
)


def status_of(error: Exception) -> int:
    """Return the status that a command ends with after ``error``."""
    return FINDINGS if isinstance(error, _FINDINGS) else UNUSABLE


def status_of_listing(listing: PartitionListing) -> int:
    """Return the status that ``ls`` ends with: an operator's other partitions can still be read."""
    if listing.partitions and not any(each.is_readable for each in listing.partitions):
        return UNUSABLE
    return FINDINGS if any(each.findings for each in listing.partitions) else SOUND

"""Which records of a tiered topic are not on this disk.

Of a topic with ``remote.storage.enable`` a broker deletes segments from its disk that it has
uploaded, and leaves the log start offset below them. So ``log-start-offset-checkpoint`` then names
an offset below the first local segment; where that has no line for the partition (a directory that
was copied alone), the first entry of ``leader-epoch-checkpoint`` begins there. Of other topics both
are raised when segments are deleted: only a broker that crashed right after that leaves the same
picture. What remote storage holds is not read.

Source: LogManager.checkpointLogStartOffsets, UnifiedLog.maybeIncrementLogStartOffset (KIP-405;
Kafka 3.9 and 4.3).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptCheckpointError, LogDirectoryError

if TYPE_CHECKING:
    from pylog.reading.log_view import LogView


class RemoteOffsets(NamedTuple):
    """Offsets ``start_offset <= offset < end_offset`` of a log that are not on this disk."""

    start_offset: int
    end_offset: int


def find_remote_offsets(view: LogView) -> RemoteOffsets | None:
    """Return the offsets from the log's start to its first local segment, None if there are none.

    Side files that cannot be read count as naming none.

    Raises
    ------
    LogDirectoryError
        The directory could not be listed.
    """
    end = view.local_log_start_offset
    if end == 0:
        return None
    start = None
    with suppress(CorruptCheckpointError, LogDirectoryError):
        start = view.checkpointed_log_start_offset
    with suppress(CorruptCheckpointError, LogDirectoryError):
        if start is None and view.leader_epochs:
            start = view.leader_epochs[0].start_offset
    if start is None or not 0 <= start < end:
        return None
    return RemoteOffsets(start, end)


def remote_offsets_note(remote: RemoteOffsets) -> str:
    """Return what to say of such offsets, in one line."""
    return (
        f"offsets {remote.start_offset} to {remote.end_offset} (exclusive) are only in remote "
        "storage, which is not read (or side files are older than the last retention)"
    )

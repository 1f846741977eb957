"""What a cleaning would write, counted and not written."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.cleaner.cleanable_log import CleanableLog
    from pylog.files.transaction_index import TransactionIndexEntry
    from pylog.log.log_segment import LogSegment


class CountedSegments:
    """Takes the place of `pylog.cleaner.cleaned_segments.CleanedSegments` in a dry run.

    The one segment that a group becomes; it is not split where it would have no room.
    """

    segment_count = 1

    def __init__(self, log: CleanableLog, base_offset: int) -> None:
        pass

    def append(self, data: list[memoryview]) -> int:
        """Return how many bytes the batches have."""
        return sum(len(piece) for piece in data)

    def add_aborted(self, entry: TransactionIndexEntry) -> None:
        """Do nothing."""

    def finish(self, modified_ms: int) -> None:
        """Do nothing."""

    def discard(self) -> None:
        """Do nothing."""

    def replace(self, old: Sequence[LogSegment]) -> None:
        """Do nothing."""

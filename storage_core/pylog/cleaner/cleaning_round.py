"""One round of cleaning: its bounds, its map, its counts, and whom it asks and tells.

Source: Cleaner.doClean (Kafka 4.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pylog.cleaner.cleaner_stats import CleanerProgress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pylog.cleaner.cleanable_log import CleanableLog
    from pylog.cleaner.cleaner_stats import CleanerStats
    from pylog.cleaner.keyed_records import KeyedRecordReader
    from pylog.cleaner.record_retention import LatestRecords
    from pylog.files.transaction_index import TransactionIndexEntry
    from pylog.log.log_segment import LogSegment
    from pylog.model import TopicPartition


class Destination(Protocol):
    """Where what stays of a group goes: `pylog.cleaner.cleaned_segments`, or a count."""

    @property
    def segment_count(self) -> int:
        """How many segments there are."""
        ...

    def append(self, data: list[memoryview]) -> int:
        """Append whole batches, which lie in pieces; return how many bytes they have."""
        ...

    def add_aborted(self, entry: TransactionIndexEntry) -> None:
        """Have an aborted transaction indexed in the segment that its marker will be in."""
        ...

    def finish(self, modified_ms: int) -> None:
        """Force everything to disk, with the time of the last old segment."""
        ...

    def discard(self) -> None:
        """Remove everything."""
        ...

    def replace(self, old: Sequence[LogSegment]) -> None:
        """Take the place of the old segments."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningRound:
    """What the parts of one round share.

    Attributes
    ----------
    log
        Which is cleaned.
    first_dirty_offset, end_offset
        Keys of records from the one to the other, exclusive, go into the map; what lies below the
        second is cleaned, as far as the map comes.
    now_ms
        When the round began.
    latest
        The last record of each key.
    reader
        Of records.
    window_bytes
        How much is read at once.
    stats
        Counts, which grow.
    check_done
        Raises if the round is to be aborted.
    throttle
        Waits until so many bytes more may be read or written.
    progress
        Told after each window how far the round is.
    begin_segments
        Makes the destination of a group, which begins at an offset.
    """

    log: CleanableLog
    first_dirty_offset: int
    end_offset: int
    now_ms: int
    latest: LatestRecords
    reader: KeyedRecordReader
    window_bytes: int
    stats: CleanerStats
    check_done: Callable[[TopicPartition], object]
    throttle: Callable[[int], object]
    progress: Callable[[CleanerProgress], object] | None
    begin_segments: Callable[[CleanableLog, int], Destination]

    def check(self) -> None:
        """Raise if the round is to be aborted."""
        self.check_done(self.log.topic_partition)

    def before_window(self, size_bytes: int) -> None:
        """Raise if the round is to be aborted; wait if it reads too fast."""
        self.check()
        self.throttle(size_bytes)

    def report(self, phase: str, bytes_done: int, bytes_total: int) -> None:
        """Tell how far a phase is."""
        if self.progress is not None:
            self.progress(CleanerProgress(phase, bytes_done, bytes_total))

"""What a cleaning has read and written, and how long it took.

Source: CleanerStats (Kafka 4.3), where records are called messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(slots=True, kw_only=True)
class CleanerStats:
    """Counts of one cleaning; they grow while it runs.

    Attributes
    ----------
    map_bytes_read, map_records_read
        What was read to build the offset map.
    bytes_read, records_read
        What was read to copy it; records of batches that go as a whole count, other than in Kafka.
    bytes_written, records_written
        What stayed.
    invalid_records
        Records without a key, which a compacted topic should not have; they were dropped.
    segments_read, segments_written
        How many took the place of how many.
    buffer_utilization
        Which share of the offset map's slots was used, 0 to 1.
    map_milliseconds, copy_milliseconds
        How long each took.
    """

    map_bytes_read: int = 0
    map_records_read: int = 0
    bytes_read: int = 0
    records_read: int = 0
    bytes_written: int = 0
    records_written: int = 0
    invalid_records: int = 0
    segments_read: int = 0
    segments_written: int = 0
    buffer_utilization: float = 0.0
    map_milliseconds: int = 0
    copy_milliseconds: int = 0

    def add(self, other: CleanerStats) -> None:
        """Add what another part of the cleaning has read and written."""
        for name in (
            "bytes_read",
            "records_read",
            "bytes_written",
            "records_written",
            "invalid_records",
            "segments_read",
            "segments_written",
            "copy_milliseconds",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))


class CleanerProgress(NamedTuple):
    """How far a cleaning is: of two phases, first the map is built and then segments are copied.

    Attributes
    ----------
    phase
        ``map`` or ``copy``.
    bytes_done, bytes_total
        Of the ``.log`` files that the phase reads.
    """

    phase: str
    bytes_done: int
    bytes_total: int

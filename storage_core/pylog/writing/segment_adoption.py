"""Which staged files become segments by being renamed; the batches of the others are appended.

A rename costs the same whatever the file's size. An append reads and writes all of its bytes once
more, and is cheaper for small files alone. But a segment also costs whoever opens the log: three
files, of which a broker may hold two in memory. So the size from which a file becomes a segment
depends on how many segments the partition has already:

============================================= =======================================
the partition has                             a file becomes a segment from
============================================= =======================================
fewer than 32 segments, and one for each      8 MiB, or half of ``segment.bytes`` if
64 MiB                                        that is smaller
more                                          64 MiB, or half of ``segment.bytes``
============================================= =======================================

However many jobs write to a partition, it gets no more than about 16 segments for each gigabyte,
and 32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pylog.config import LogConfig
    from pylog.log.unified_log import UnifiedLog


LARGE_FILE_BYTES = 64 << 20
"""A file of this size becomes a segment whatever the partition has."""
SMALL_FILE_BYTES = 8 << 20
"""A smaller one costs more as a segment than it does to append it."""
SMALL_SEGMENTS = 32
"""That a partition may have, beside one for each `LARGE_FILE_BYTES`."""


@dataclass(slots=True)
class SegmentAdoption:
    """Decides for the staged files of one partition, one after the other."""

    segment_bytes: int
    segments: int = 0
    size_bytes: int = 0

    @classmethod
    def into(cls, log: UnifiedLog | None, config: LogConfig) -> SegmentAdoption:
        """Return what decides for a log; None for one that is to be made."""
        if log is None:
            return cls(config.segment_bytes)
        return cls(config.segment_bytes, len(log.segments), log.size_bytes)

    def adopt(self, file_bytes: int) -> bool:
        """Return whether the next file becomes a segment, and count it."""
        has_few = self.segments < SMALL_SEGMENTS + self.size_bytes // LARGE_FILE_BYTES
        least = min(self.segment_bytes // 2, SMALL_FILE_BYTES if has_few else LARGE_FILE_BYTES)
        is_adopted = file_bytes >= least
        self.segments += is_adopted
        self.size_bytes += file_bytes
        return is_adopted

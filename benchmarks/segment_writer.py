"""One segment on disk as a broker leaves it after a roll: ``.log``, ``.index``, ``.timeindex``.

An index entry is due when more than 4096 bytes of log were appended since the last one, and names
the batch being appended (``LogSegment.append``): 4 bytes relative offset of its last record, 4
bytes position; the time index gets 8 bytes of largest timestamp so far and the relative offset
of its batch, and one such entry more at the end (``onBecomeInactiveSegment``).
"""

import struct
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.batches import BatchSpan

_INDEX_INTERVAL_BYTES = 4096
_INDEX_ENTRY = struct.Struct(">ii")
_TIME_INDEX_ENTRY = struct.Struct(">qi")


class SegmentWriter:
    """Appends sound batches in order, from offset 0; one writer, no fsync: it is scrap data."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        self._stem = directory / f"{0:020d}"
        self._log = self._stem.with_suffix(".log").open("wb")
        self._index = bytearray()
        self._time_index = bytearray()
        self._max_timestamp_ms = -1
        self._offset_of_max_timestamp = 0
        self._bytes_since_index_entry = 0
        self.size_bytes = 0
        self.end_offset = 0
        self.batches = 0

    def append(self, batch: bytes, span: BatchSpan) -> None:
        """Write `batch`, which `span` describes; its own start and end are not looked at."""
        if span.max_timestamp_ms > self._max_timestamp_ms:
            self._max_timestamp_ms = span.max_timestamp_ms
            self._offset_of_max_timestamp = span.last_offset
        if self._bytes_since_index_entry > _INDEX_INTERVAL_BYTES:
            self._index += _INDEX_ENTRY.pack(span.last_offset, self.size_bytes)
            self._append_time_index_entry()
            self._bytes_since_index_entry = 0
        self._log.write(batch)
        self._bytes_since_index_entry += len(batch)
        self.size_bytes += len(batch)
        self.end_offset = span.last_offset + 1
        self.batches += 1

    def _append_time_index_entry(self) -> None:
        entry = _TIME_INDEX_ENTRY.pack(self._max_timestamp_ms, self._offset_of_max_timestamp)
        if self._time_index[-_TIME_INDEX_ENTRY.size :] != entry:
            self._time_index += entry

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._log.close()
        if error is None:
            self._append_time_index_entry()
            self._stem.with_suffix(".index").write_bytes(self._index)
            self._stem.with_suffix(".timeindex").write_bytes(self._time_index)

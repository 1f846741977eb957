"""A topic of many megabytes in several segments, for measuring how much of it is read.

Batches of 16 KB, as a producer's default ``batch.size`` makes them; one a second. Each has its own
offsets and timestamps and the same records otherwise, so that it is made by patching a header.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastcrc.crc32 import iscsi as crc32c

from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import offset_index_bytes, segment_path, time_index_bytes

if TYPE_CHECKING:
    from pathlib import Path

BATCH_RECORDS = 16
TOPIC = "events"
FIRST_TIMESTAMP_MS = 1_700_000_000_000
STEP_MS = 1_000
_BASE_OFFSET = struct.Struct(">q")
_CRC = struct.Struct(">I")
_CRC_AT, _CRC_START, _TIMESTAMPS_AT = 17, 21, 27


@dataclass(frozen=True)
class LargeTopic:
    """One partition on disk.

    Attributes
    ----------
    directory
        The partition directory.
    batch_bytes
        Length of every batch.
    segment_batches, segments
        How many batches a segment has, and how many segments there are.
    batch_records
        How many records a batch has.
    """

    directory: Path
    batch_bytes: int
    segment_batches: int
    segments: int
    batch_records: int = BATCH_RECORDS

    @property
    def end_offset(self) -> int:
        """The offset after the last record."""
        return self.segments * self.segment_batches * self.batch_records

    @property
    def log_bytes(self) -> int:
        """Bytes of all ``.log`` files."""
        return self.segments * self.segment_batches * self.batch_bytes

    def bytes_of(self, start_offset: int, end_offset: int) -> int:
        """Return the bytes of the batches that hold offsets of a range."""
        first, last = start_offset // self.batch_records, (end_offset - 1) // self.batch_records
        return (last - first + 1) * self.batch_bytes

    def timestamp_of(self, offset: int) -> int:
        """Return the time of the batch that holds an offset; all its records have it."""
        return FIRST_TIMESTAMP_MS + offset // self.batch_records * STEP_MS

    def side_bytes(self, *suffixes: str) -> int:
        """Return the bytes of all files of some kinds."""
        files = (path for path in self.directory.iterdir() if path.suffix in suffixes)
        return sum(path.stat().st_size for path in files)


def write_large_topic(
    log_directory: Path,
    *,
    segments: int,
    segment_bytes: int,
    batch_bytes: int = 16 << 10,
    batch_records: int = BATCH_RECORDS,
) -> LargeTopic:
    """Write a topic whose segments have about that many bytes each."""
    directory = log_directory / f"{TOPIC}-0"
    directory.mkdir(parents=True)
    template = bytearray(_template(batch_bytes // batch_records, batch_records))
    segment_batches = segment_bytes // len(template)
    for number in range(segments):
        first = number * segment_batches
        _write_segment(directory, template, batch_records, range(first, first + segment_batches))
    return LargeTopic(directory, len(template), segment_batches, segments, batch_records)


def _template(value_size: int, batch_records: int) -> bytes:
    records = [
        record._replace(timestamp=FIRST_TIMESTAMP_MS)
        for record in plain_records(0, batch_records, value_size=value_size)
    ]
    return batch_v2(records).data


def _write_segment(
    directory: Path, template: bytearray, batch_records: int, batches: range
) -> None:
    base_offset = batches.start * batch_records
    offsets, times = [], []
    with segment_path(directory, base_offset).open("wb") as log:
        for place, number in enumerate(batches):
            offset = number * batch_records
            stamp = FIRST_TIMESTAMP_MS + number * STEP_MS
            _BASE_OFFSET.pack_into(template, 0, offset)
            struct.pack_into(">qq", template, _TIMESTAMPS_AT, stamp, stamp)
            _CRC.pack_into(template, _CRC_AT, crc32c(memoryview(template)[_CRC_START:]))
            log.write(template)
            if place:
                offsets.append((offset + batch_records - 1, place * len(template)))
                times.append((stamp, offset))
    index = offset_index_bytes(offsets, base_offset)
    segment_path(directory, base_offset, ".index").write_bytes(index)
    time_index = time_index_bytes(times, base_offset)
    segment_path(directory, base_offset, ".timeindex").write_bytes(time_index)

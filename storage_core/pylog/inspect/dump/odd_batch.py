"""A batch whose magic no format has: the tool takes it for v2, whose checksum leaves it out."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.log_file.segment_windows import SegmentWindow
from pylog.record.batch_layout import (
    HEADER_SIZE_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_VALUE_V2,
    RECORD_BATCH_OVERHEAD,
)
from pylog.record.batch_scan import find_batches

if TYPE_CHECKING:
    from pylog.files.byte_source import ByteSource

MOST_BYTES = 1 << 26
"""A larger one is left to the error about its header."""

_SIZE_AND_MAGIC = struct.Struct(">8xi4xb")


class OddBatch(NamedTuple):
    """A batch with the magic of v2 in the place of its own."""

    window: SegmentWindow
    magic: int


def find_odd_batch(source: ByteSource, position: int, end: int) -> OddBatch | None:
    """Return the batch at ``position`` if it is whole and its magic is above that of v2."""
    head = source.read_at(position, HEADER_SIZE_UP_TO_MAGIC)
    if len(head) < HEADER_SIZE_UP_TO_MAGIC:
        return None
    size, magic = _SIZE_AND_MAGIC.unpack(head)
    size += LOG_OVERHEAD
    is_whole = RECORD_BATCH_OVERHEAD <= size <= min(end - position, MOST_BYTES)
    if magic <= MAGIC_VALUE_V2 or not is_whole:
        return None
    data = bytearray(source.read_at(position, size))
    if len(data) < size:
        return None
    data[MAGIC_OFFSET] = MAGIC_VALUE_V2
    scan = find_batches(np.frombuffer(memoryview(data).toreadonly(), dtype=np.uint8))
    return OddBatch(SegmentWindow(position, scan), magic)

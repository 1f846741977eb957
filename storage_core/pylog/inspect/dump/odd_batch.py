"""Batches that no reader takes, and that the tool prints: of a later magic, or shorter than theirs.

The tool looks at a batch's fields before anything checks them. It takes a magic above that of v2
for v2, whose checksum leaves it out. Where a batch is shorter than its header, it reads the
header's last fields from the bytes that follow; it ends at the records of such a batch, and goes on
after it where none are asked for.

Source: FileLogInputStream.nextBatch, DefaultRecordBatch.isValid, LegacyRecord (Kafka 3.9, 4.3).
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.record.batch_layout import (
    HEADER_SIZE_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_VALUE_V1,
    MAGIC_VALUE_V2,
    MIN_ENTRY_SIZE_V1,
    RECORD_BATCH_OVERHEAD,
    RECORD_OVERHEAD_V0,
    SIZE_OFFSET,
)
from pylog.record.batch_scan import find_batches
from pylog.record.window import Window

if TYPE_CHECKING:
    from pylog.files.byte_source import ByteSource

MOST_BYTES = 1 << 26
"""A larger one is left to the error about its header."""

_SIZE_AND_MAGIC = struct.Struct(">8xi4xb")
_CRC = struct.Struct(">12xI")


class OddBatch(NamedTuple):
    """Such a batch, and what its header does not say.

    Attributes
    ----------
    window
        The batch with a magic and a size that can be read; without records where it has no room for
        a header.
    magic, size_bytes
        Its own.
    is_valid
        Whether its checksum is right; None where that of ``window`` says it.
    fault
        Why its records cannot be read; None where they may be.
    """

    window: Window
    magic: int
    size_bytes: int
    is_valid: bool | None = None
    fault: str | None = None

    @property
    def end_position(self) -> int:
        """Byte of the file after it."""
        return self.window.file_position + self.size_bytes


def find_odd_batch(source: ByteSource, position: int, end: int) -> OddBatch | None:
    """Return the batch at ``position`` if it is whole, and one that only the tool reads."""
    head = source.read_at(position, HEADER_SIZE_UP_TO_MAGIC)
    if len(head) < HEADER_SIZE_UP_TO_MAGIC:
        return None
    size, magic = _SIZE_AND_MAGIC.unpack(head)
    size_bytes = LOG_OVERHEAD + size
    if size < RECORD_OVERHEAD_V0 or size_bytes > min(end - position, MOST_BYTES):
        return None
    is_v1 = magic == MAGIC_VALUE_V1
    least = MIN_ENTRY_SIZE_V1 if is_v1 else RECORD_BATCH_OVERHEAD
    is_short = size_bytes < least
    if magic < MAGIC_VALUE_V1 or (magic <= MAGIC_VALUE_V2 and not is_short):
        return None
    # Of a header of v1, the tool reads less than the smallest message has.
    wanted = size_bytes if is_v1 else max(size_bytes, least)
    data = bytearray(source.read_at(position, wanted))
    if len(data) < wanted:
        return None
    is_valid = fault = None
    if is_short:
        is_valid = is_v1 and _CRC.unpack_from(data)[0] == zlib.crc32(data[MAGIC_OFFSET:])
        fault = f"batch has {size_bytes} bytes, expected at least {least}"
        data = data[:least] + bytes(least - len(data))
        struct.pack_into(">i", data, SIZE_OFFSET, least - LOG_OVERHEAD)
    data[MAGIC_OFFSET] = min(magic, MAGIC_VALUE_V2)
    scan = find_batches(np.frombuffer(memoryview(data).toreadonly(), dtype=np.uint8))
    return OddBatch(Window.of(scan, source.path, position), magic, size_bytes, is_valid, fault)

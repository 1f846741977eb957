"""The header of one batch (v2) or message (v0, v1), decoded without touching its records.

The layouts stand below. For v0 and v1 an uncompressed message is its own batch, a compressed
wrapper is a batch whose base offset and record count are known only after decompression.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from pylog.errors import CorruptRecordError, UnsupportedCodecError
from pylog.model import (
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    CompressionType,
    TimestampType,
)

if TYPE_CHECKING:
    import os


# Where the fields of batches and messages lie.
#
# Every entry of a ``.log`` file begins alike, whatever its format, all integers big-endian::
#
#     position  width  field
#            0      8  offset      v0/v1: of the message, for a compressed wrapper of its LAST
#                                  inner message; v2: base offset = FIRST offset of the batch
#            8      4  size        bytes that follow this field
#           12      4  v0/v1: CRC  v2: partition leader epoch
#           16      1  magic       0, 1 or 2
#
# A segment is a concatenation of entries; there is no file header, footer or padding, and formats
# may be mixed in one file. A v0/v1 message goes on::
#
#           17      1  attributes  bits 0-2 codec, bit 3 timestamp type (v1)
#           18      8  timestamp   v1 only
#        18/26      4  key length  negative: null
#        22/30      K  key
#      22/30+K      4  value length, negative: null
#      26/34+K      V  value       for a wrapper: the compressed message set
#
# and its CRC-32 (IEEE) covers byte 16 to the end. A v2 batch goes on::
#
#           17      4  CRC-32C over byte 21 to the end
#           21      2  attributes  see below
#           23      4  last offset delta
#           27      8  base timestamp (or delete horizon)
#           35      8  max timestamp
#           43      8  producer id
#           51      2  producer epoch
#           53      4  base sequence
#           57      4  records count
#           61      …  records; one compressed stream if a codec is set
#
# Base offset, size, leader epoch, magic and the CRC itself lie outside the checksum.
#
# Source: DefaultRecordBatch, LegacyRecord, Records (Kafka 3.9 and 4.3); KIP-98, KIP-32.


OFFSET_OFFSET = 0
OFFSET_LENGTH = 8
SIZE_OFFSET = OFFSET_OFFSET + OFFSET_LENGTH
SIZE_LENGTH = 4
LOG_OVERHEAD = SIZE_OFFSET + SIZE_LENGTH
MAGIC_OFFSET = 16
MAGIC_LENGTH = 1
HEADER_SIZE_UP_TO_MAGIC = MAGIC_OFFSET + MAGIC_LENGTH

# v2
PARTITION_LEADER_EPOCH_OFFSET = LOG_OVERHEAD
PARTITION_LEADER_EPOCH_LENGTH = 4
CRC_OFFSET = MAGIC_OFFSET + MAGIC_LENGTH
CRC_LENGTH = 4
ATTRIBUTES_OFFSET = CRC_OFFSET + CRC_LENGTH
ATTRIBUTES_LENGTH = 2
LAST_OFFSET_DELTA_OFFSET = ATTRIBUTES_OFFSET + ATTRIBUTES_LENGTH
LAST_OFFSET_DELTA_LENGTH = 4
BASE_TIMESTAMP_OFFSET = LAST_OFFSET_DELTA_OFFSET + LAST_OFFSET_DELTA_LENGTH
BASE_TIMESTAMP_LENGTH = 8
MAX_TIMESTAMP_OFFSET = BASE_TIMESTAMP_OFFSET + BASE_TIMESTAMP_LENGTH
MAX_TIMESTAMP_LENGTH = 8
PRODUCER_ID_OFFSET = MAX_TIMESTAMP_OFFSET + MAX_TIMESTAMP_LENGTH
PRODUCER_ID_LENGTH = 8
PRODUCER_EPOCH_OFFSET = PRODUCER_ID_OFFSET + PRODUCER_ID_LENGTH
PRODUCER_EPOCH_LENGTH = 2
BASE_SEQUENCE_OFFSET = PRODUCER_EPOCH_OFFSET + PRODUCER_EPOCH_LENGTH
BASE_SEQUENCE_LENGTH = 4
RECORDS_COUNT_OFFSET = BASE_SEQUENCE_OFFSET + BASE_SEQUENCE_LENGTH
RECORDS_COUNT_LENGTH = 4
RECORDS_OFFSET = RECORDS_COUNT_OFFSET + RECORDS_COUNT_LENGTH
RECORD_BATCH_OVERHEAD = RECORDS_OFFSET

# v0 and v1
LEGACY_CRC_OFFSET = LOG_OVERHEAD
LEGACY_CRC_LENGTH = 4
LEGACY_ATTRIBUTES_OFFSET = MAGIC_OFFSET + MAGIC_LENGTH
LEGACY_ATTRIBUTES_LENGTH = 1
LEGACY_TIMESTAMP_OFFSET = LEGACY_ATTRIBUTES_OFFSET + LEGACY_ATTRIBUTES_LENGTH
LEGACY_TIMESTAMP_LENGTH = 8
KEY_SIZE_OFFSET_V0 = LEGACY_TIMESTAMP_OFFSET
KEY_SIZE_OFFSET_V1 = LEGACY_TIMESTAMP_OFFSET + LEGACY_TIMESTAMP_LENGTH
KEY_SIZE_LENGTH = 4
VALUE_SIZE_LENGTH = 4
RECORD_OVERHEAD_V0 = 14
RECORD_OVERHEAD_V1 = 22
MIN_ENTRY_SIZE_V0 = LOG_OVERHEAD + RECORD_OVERHEAD_V0
MIN_ENTRY_SIZE_V1 = LOG_OVERHEAD + RECORD_OVERHEAD_V1
MIN_ENTRY_SIZES = (MIN_ENTRY_SIZE_V0, MIN_ENTRY_SIZE_V1, RECORD_BATCH_OVERHEAD)
"""By magic: what the smallest batch or message takes, and bytes enough to parse a header."""

# attributes
COMPRESSION_CODEC_MASK = 0x07
TIMESTAMP_TYPE_MASK = 0x08
TRANSACTIONAL_FLAG_MASK = 0x10
CONTROL_FLAG_MASK = 0x20
DELETE_HORIZON_FLAG_MASK = 0x40

MIN_RECORD_SIZE_V2 = 7
"""Bytes of the smallest v2 record: one each for length, attributes, timestamp delta, offset
delta, key length, value length and header count. Bounds a batch's record count by its bytes."""

MAGIC_VALUE_V0 = 0
MAGIC_VALUE_V1 = 1
MAGIC_VALUE_V2 = 2


UNKNOWN_RECORD_COUNT = -1

LEAST_SIZES = tuple(each - LOG_OVERHEAD for each in MIN_ENTRY_SIZES)
"""By magic: the smallest value of the field ``size``."""

ENTRY_START = struct.Struct(">qi4xB")
"""Offset, size and magic: what every entry begins with, its first 17 bytes."""
ENTRY_START_OF_KAFKA = struct.Struct(">qi4xb")
"""The same as Java has it: a magic of 128 or more is a negative number, below v0."""
V2_SPAN = struct.Struct(">qi11xi")
"""Offset, size and last offset delta of a v2 batch, its first 27 bytes."""
V2_START = struct.Struct(">qii")
"""Offset, size and leader epoch of a v2 batch: what a leader assigns, its first 16 bytes."""
_V2 = struct.Struct(">qiibIhiqqqhii")
_LEGACY_V0 = struct.Struct(">qiIbB")
_LEGACY_V1 = struct.Struct(">qiIbBq")


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """Every header field of one batch; fields a format lacks hold their ``NO_*`` sentinel."""

    offset: int
    size_bytes: int
    magic: int
    crc: int
    attributes: int
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH
    last_offset_delta: int = 0
    base_timestamp: int = NO_TIMESTAMP
    max_timestamp: int = NO_TIMESTAMP
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE
    record_count: int = UNKNOWN_RECORD_COUNT

    @property
    def last_offset(self) -> int:
        """The offset of the last record the batch was written with."""
        return self.offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after `last_offset`."""
        return self.last_offset + 1

    @property
    def base_offset(self) -> int | None:
        """The first offset the batch was written with; None for a compressed v0/v1 wrapper."""
        if self.magic < MAGIC_VALUE_V2 and self.is_compressed:
            return None
        return self.offset

    @property
    def codec_id(self) -> int:
        """The three codec bits, 0 to 7, as stored."""
        return self.attributes & COMPRESSION_CODEC_MASK

    @property
    def is_compressed(self) -> bool:
        """Whether the records are compressed."""
        return self.codec_id != 0

    @property
    def compression(self) -> CompressionType:
        """The codec."""
        return codec_of(self.codec_id, self.magic)

    @property
    def timestamp_type(self) -> TimestampType:
        """Whether the producer or the broker stamped the records."""
        if self.magic == 0:
            return TimestampType.NO_TIMESTAMP_TYPE
        return TimestampType(int(bool(self.attributes & TIMESTAMP_TYPE_MASK)))

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return self.magic >= MAGIC_VALUE_V2 and bool(self.attributes & TRANSACTIONAL_FLAG_MASK)

    @property
    def is_control_batch(self) -> bool:
        """Whether the batch holds control records, which no application ever sees."""
        return self.magic >= MAGIC_VALUE_V2 and bool(self.attributes & CONTROL_FLAG_MASK)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the tombstones in the batch may go; None where no horizon was set."""
        if self.magic < MAGIC_VALUE_V2 or not self.attributes & DELETE_HORIZON_FLAG_MASK:
            return None
        return self.base_timestamp

    @property
    def first_timestamp(self) -> int | None:
        """The first record's timestamp in ms, or the largest where the header does not have it."""
        is_first_record_s = (
            self.timestamp_type is TimestampType.CREATE_TIME
            and self.delete_horizon_ms is None
            and self.base_timestamp != NO_TIMESTAMP
        )
        stamp = self.base_timestamp if is_first_record_s else self.max_timestamp
        return None if stamp == NO_TIMESTAMP else stamp


@cache
def codec_of(codec_id: int, magic: int) -> CompressionType:
    """Return the codec that ``codec_id`` means in format ``magic``."""
    if not CompressionType.is_known(codec_id):
        highest = max(CompressionType)
        reason = f"compression codec id {codec_id} does not exist (known: 0 to {highest:d})"
        raise UnsupportedCodecError(reason)
    codec = CompressionType(codec_id)
    if magic < codec.first_magic:
        reason = f"{codec.label} is not allowed in message format v{magic}"
        raise UnsupportedCodecError(reason)
    return codec


def peek_entry_size(
    buffer: bytes | memoryview,
    at: int = 0,
    *,
    path: str | os.PathLike[str] | None = None,
    position: int | None = None,
) -> int:
    """Return how many bytes the entry at ``buffer[at:]`` takes, from its first 17 bytes."""
    _, size, magic = ENTRY_START.unpack_from(buffer, at)
    if magic > MAGIC_VALUE_V2:
        reason = f"record format (magic) is {magic}, expected 0, 1 or 2"
        raise CorruptRecordError(reason, path, position)
    smallest = LEAST_SIZES[magic]
    if size < smallest:
        reason = f"batch size is {size}, expected at least {smallest} in format v{magic}"
        raise CorruptRecordError(reason, path, position)
    return LOG_OVERHEAD + int(size)


def parse_batch_header(
    buffer: bytes | memoryview,
    at: int = 0,
    *,
    path: str | os.PathLike[str] | None = None,
    position: int | None = None,
) -> BatchHeader:
    """Return the header of the entry at ``buffer[at:]``; its records are not looked at."""
    if len(buffer) - at < HEADER_SIZE_UP_TO_MAGIC:
        reason = f"only {len(buffer) - at} bytes where a batch header should be"
        raise CorruptRecordError(reason, path, position)
    size_bytes = peek_entry_size(buffer, at, path=path, position=position)
    magic = buffer[at + MAGIC_OFFSET]
    needed = MIN_ENTRY_SIZES[magic]
    if len(buffer) - at < needed:
        reason = f"only {len(buffer) - at} bytes where a v{magic} header of {needed} should be"
        raise CorruptRecordError(reason, path, position)
    if magic == MAGIC_VALUE_V2:
        return _parse_v2(buffer, at, size_bytes)
    if magic == MAGIC_VALUE_V1:
        offset, _, crc, _, attributes, timestamp = _LEGACY_V1.unpack_from(buffer, at)
    else:
        offset, _, crc, _, attributes = _LEGACY_V0.unpack_from(buffer, at)
        timestamp = NO_TIMESTAMP
    compressed = attributes & COMPRESSION_CODEC_MASK
    return BatchHeader(
        offset=offset,
        size_bytes=size_bytes,
        magic=magic,
        crc=crc,
        attributes=attributes,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        record_count=UNKNOWN_RECORD_COUNT if compressed else 1,
    )


def _parse_v2(buffer: bytes | memoryview, at: int, size_bytes: int) -> BatchHeader:
    (
        offset,
        _,
        leader_epoch,
        magic,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    ) = _V2.unpack_from(buffer, at)
    return BatchHeader(
        offset=offset,
        size_bytes=size_bytes,
        magic=magic,
        crc=crc,
        attributes=attributes & 0xFF,
        partition_leader_epoch=leader_epoch,
        last_offset_delta=last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=record_count,
    )

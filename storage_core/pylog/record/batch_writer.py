"""Write the header of a v2 batch, and change fields of batches that are already written.

Layouts are in `pylog.record.batch_header`. What a broker changes in a batch that somebody else
wrote, and what that does to the checksum::

    field                    v2                     v1                  v0
    base/last offset         outside the CRC        outside the CRC     outside the CRC
    partition leader epoch   outside the CRC        -                   -
    timestamp type and max   CRC recomputed         CRC recomputed      -

``-``: the format has no such field, and `ValueError` is raised. A header that is rewritten
keeps none of the attribute bits that have no meaning (bit 7 and the high byte), as in Kafka.

All functions take a writable, one-dimensional buffer of bytes that begins with the batch; what
lies after the batch is not touched. They do not verify the checksum they replace: a batch from
elsewhere is to be verified before its timestamp is set, or the new CRC hides the damage.

Source: DefaultRecordBatch.writeHeader, writeEmptyHeader, setLastOffset, setMaxTimestamp,
setPartitionLeaderEpoch; AbstractLegacyRecordBatch.ByteBufferLegacyRecordBatch (Kafka 4.3).
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

from pylog.lazy_modules import LazyModule
from pylog.model import NO_TIMESTAMP, CompressionType, TimestampType
from pylog.native.checksum import crc32c
from pylog.record.batch_header import (
    ATTRIBUTES_OFFSET,
    COMPRESSION_CODEC_MASK,
    CONTROL_FLAG_MASK,
    CRC_OFFSET,
    DELETE_HORIZON_FLAG_MASK,
    LAST_OFFSET_DELTA_OFFSET,
    LEGACY_ATTRIBUTES_OFFSET,
    LEGACY_CRC_OFFSET,
    LEGACY_TIMESTAMP_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_VALUE_V0,
    MAGIC_VALUE_V2,
    MAX_TIMESTAMP_OFFSET,
    OFFSET_OFFSET,
    PARTITION_LEADER_EPOCH_OFFSET,
    RECORD_BATCH_OVERHEAD,
    SIZE_OFFSET,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_FLAG_MASK,
    BatchHeader,
    parse_batch_header,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Int64Array = npt.NDArray[np.int64]
else:
    np = LazyModule("numpy")


# What every builder of batches demands of a record's offset and timestamp.
#
# Source: MemoryRecordsBuilder.appendWithOffset, recordWritten (Kafka 4.3).


MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1


def ensure_offset_rises(offset: int, next_offset: int, base_offset: int) -> None:
    """Raise ``ValueError`` unless the batch may go on with ``offset``."""
    if offset < next_offset:
        msg = f"offset is {offset}, expected {next_offset} or more: offsets in a batch rise"
        raise ValueError(msg)
    if offset - base_offset > MAX_INT32:
        msg = f"offset {offset} is more than {MAX_INT32} above base offset {base_offset}"
        raise ValueError(msg)
    if offset > MAX_INT64:
        msg = f"offset is {offset}, expected {MAX_INT64} or less"
        raise ValueError(msg)


def ensure_timestamp(timestamp: int) -> None:
    """Raise ``ValueError`` unless it is an int64, and `NO_TIMESTAMP` where it is negative."""
    if not NO_TIMESTAMP <= timestamp <= MAX_INT64:
        msg = f"timestamp is {timestamp}, expected {NO_TIMESTAMP} to {MAX_INT64}"
        raise ValueError(msg)


_UNCOVERED = struct.Struct(">qiibI")
_COVERED = struct.Struct(">hiqqqhii")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_INT64 = struct.Struct(">q")
_MEANINGFUL_ATTRIBUTES = (
    COMPRESSION_CODEC_MASK
    | TIMESTAMP_TYPE_MASK
    | TRANSACTIONAL_FLAG_MASK
    | CONTROL_FLAG_MASK
    | DELETE_HORIZON_FLAG_MASK
)


def batch_attributes(
    compression: CompressionType,
    timestamp_type: TimestampType,
    *,
    is_transactional: bool = False,
    is_control_batch: bool = False,
    has_delete_horizon: bool = False,
) -> int:
    """Return the attributes of a v2 batch."""
    if timestamp_type is TimestampType.NO_TIMESTAMP_TYPE:
        msg = "a v2 batch has a timestamp type: CREATE_TIME or LOG_APPEND_TIME"
        raise ValueError(msg)
    attributes = int(compression)
    attributes |= TIMESTAMP_TYPE_MASK if timestamp_type is TimestampType.LOG_APPEND_TIME else 0
    attributes |= TRANSACTIONAL_FLAG_MASK if is_transactional else 0
    attributes |= CONTROL_FLAG_MASK if is_control_batch else 0
    attributes |= DELETE_HORIZON_FLAG_MASK if has_delete_horizon else 0
    return attributes


def write_batch_header(view: bytearray | memoryview, header: BatchHeader) -> None:
    """Write the 61 header bytes of a v2 batch in front of its records, with their checksum."""
    size_bytes = header.size_bytes
    _ensure_writable_header(header, len(view))
    batch = memoryview(view)[:size_bytes]
    try:
        _COVERED.pack_into(
            batch,
            ATTRIBUTES_OFFSET,
            header.attributes & _MEANINGFUL_ATTRIBUTES,
            header.last_offset_delta,
            header.base_timestamp,
            header.max_timestamp,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.record_count,
        )
        _UNCOVERED.pack_into(
            batch,
            OFFSET_OFFSET,
            header.offset,
            size_bytes - LOG_OVERHEAD,
            header.partition_leader_epoch,
            header.magic,
            crc32c(batch[ATTRIBUTES_OFFSET:]),
        )
    except struct.error as error:
        msg = f"a field of {header} does not fit its width: {error}"
        raise ValueError(msg) from error


def _ensure_writable_header(header: BatchHeader, room: int) -> None:
    if header.magic != MAGIC_VALUE_V2:
        msg = f"batch header has format v{header.magic}, expected v{MAGIC_VALUE_V2}"
        raise ValueError(msg)
    if not RECORD_BATCH_OVERHEAD <= header.size_bytes <= LOG_OVERHEAD + MAX_INT32:
        msg = (
            f"batch size is {header.size_bytes} bytes, expected {RECORD_BATCH_OVERHEAD} "
            f"to {LOG_OVERHEAD + MAX_INT32}"
        )
        raise ValueError(msg)
    if header.size_bytes > room:
        msg = f"batch of {header.size_bytes} bytes in a buffer of {room}"
        raise ValueError(msg)
    if header.base_timestamp < NO_TIMESTAMP:
        msg = f"base timestamp is {header.base_timestamp}, expected {NO_TIMESTAMP} or more"
        raise ValueError(msg)


def seal_batch(view: memoryview, start: int, end: int) -> int:
    """Give the v2 batch ``view[start:end]`` the checksum of its bytes; return it."""
    crc = crc32c(view[start + ATTRIBUTES_OFFSET : end])
    _UINT32.pack_into(view, start + CRC_OFFSET, crc)
    return crc


def set_size(view: bytearray | memoryview) -> None:
    """Give the batch that fills ``view`` its size."""
    _INT32.pack_into(view, SIZE_OFFSET, len(view) - LOG_OVERHEAD)


def _magic(view: bytearray | memoryview) -> int:
    return view[MAGIC_OFFSET]


def set_last_offset(view: bytearray | memoryview, offset: int) -> None:
    """Move the batch so that ``offset`` is its last one; its checksum stays right."""
    if _magic(view) == MAGIC_VALUE_V2:
        offset -= _INT32.unpack_from(view, LAST_OFFSET_DELTA_OFFSET)[0]
    _INT64.pack_into(view, OFFSET_OFFSET, offset)


def set_partition_leader_epoch(view: bytearray | memoryview, epoch: int) -> None:
    """Give the v2 batch at the head of ``view`` this leader epoch; its checksum stays right."""
    if _magic(view) != MAGIC_VALUE_V2:
        msg = f"a v{_magic(view)} message has no partition leader epoch"
        raise ValueError(msg)
    _INT32.pack_into(view, PARTITION_LEADER_EPOCH_OFFSET, epoch)


def set_max_timestamp(
    view: bytearray | memoryview, timestamp_type: TimestampType, timestamp: int
) -> None:
    """Give the batch this timestamp type and max timestamp, and the checksum that follows."""
    batch = memoryview(view)
    header = parse_batch_header(batch)
    if header.magic == MAGIC_VALUE_V0:
        msg = "a v0 message has no timestamp to set"
        raise ValueError(msg)
    if timestamp_type is TimestampType.NO_TIMESTAMP_TYPE:
        msg = "a timestamp to set is of type CREATE_TIME or LOG_APPEND_TIME"
        raise ValueError(msg)
    if header.timestamp_type is timestamp_type and header.max_timestamp == timestamp:
        return
    attributes = header.attributes & _MEANINGFUL_ATTRIBUTES & ~TIMESTAMP_TYPE_MASK
    if timestamp_type is TimestampType.LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_MASK
    entry = batch[: header.size_bytes]
    if header.magic == MAGIC_VALUE_V2:
        _INT16.pack_into(entry, ATTRIBUTES_OFFSET, attributes)
        _INT64.pack_into(entry, MAX_TIMESTAMP_OFFSET, timestamp)
        seal_batch(entry, 0, len(entry))
        return
    entry[LEGACY_ATTRIBUTES_OFFSET] = attributes & (COMPRESSION_CODEC_MASK | TIMESTAMP_TYPE_MASK)
    _INT64.pack_into(entry, LEGACY_TIMESTAMP_OFFSET, timestamp)
    _UINT32.pack_into(entry, LEGACY_CRC_OFFSET, zlib.crc32(entry[MAGIC_OFFSET:]))

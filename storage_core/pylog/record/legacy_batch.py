"""Messages of formats v0 and v1, plain and wrapped, in plain Python.

Layout in `pylog.record.batch_header`. A compressed *wrapper* has a null key, the codec in its
attributes, and as value a compressed set of ordinary messages.

Inner offsets
    v0 wrappers hold absolute offsets. v1 wrappers hold relative ones:
    ``absolute(i) = wrapper offset - inner offset(last) + inner offset(i)``; there may be gaps
    after compaction. A v1 wrapper at offset 0 counts from 0 (old librdkafka).
Inner format
    The wrapper's magic decides the offset rule, the inner magic whether a record has a timestamp
    (KAFKA-4298: old cleaners put v1 wrappers around v0 messages).
Timestamps
    A LogAppendTime wrapper's timestamp is every inner record's; else the inner ones count. Inner
    records report the wrapper's timestamp type.
Refused
    A null value, zero inner messages, an inner message that is itself compressed, and a wrapper
    whose offset, which lies outside its checksum, is below the last inner one (Kafka: only of v1).
    A trailing inner entry cut short is dropped.

Source: AbstractLegacyRecordBatch.DeepRecordsIterator, LegacyRecord (Kafka 4.3); KIP-31, KIP-32.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.model import NO_TIMESTAMP, TimestampType
from pylog.native.checksum import wrong_checksum
from pylog.record.batch_header import (
    KEY_SIZE_OFFSET_V0,
    KEY_SIZE_OFFSET_V1,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_VALUE_V1,
    RECORD_OVERHEAD_V0,
    SIZE_OFFSET,
    BatchHeader,
    parse_batch_header,
)
from pylog.record.compression import Decompressor
from pylog.record.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator


_INT32 = struct.Struct(">i")


class StoredMessage(NamedTuple):
    """A message as a record, and the checksum that it stores."""

    record: Record
    crc: int
    computed_crc: int

    @property
    def is_valid(self) -> bool:
        """Whether the checksum is right."""
        return self.crc == self.computed_crc


def computed_crc(entry: memoryview) -> int:
    """Return the CRC-32 that the message should store."""
    return zlib.crc32(entry[MAGIC_OFFSET:])


def ensure_valid_crc(entry: memoryview, header: BatchHeader) -> None:
    """Raise `CorruptRecordError` unless the stored CRC is the computed one."""
    computed = computed_crc(entry)
    if computed != header.crc:
        reason = wrong_checksum("message", header.crc, computed)
        raise CorruptRecordError(reason)


def _field_bounds(entry: memoryview, at: int) -> tuple[int, int]:
    """Return start and end of the field whose length lies at ``at``; start -1 for null."""
    if at + _INT32.size > len(entry):
        reason = f"message of {len(entry)} bytes ends before the length at its byte {at}"
        raise CorruptRecordError(reason)
    (length,) = _INT32.unpack_from(entry, at)
    at += _INT32.size
    if length < 0:
        return -1, at
    if length > len(entry) - at:
        reason = f"field of {length} bytes in a message with {len(entry) - at} bytes left"
        raise CorruptRecordError(reason)
    return at, at + length


def _key_and_value(entry: memoryview, magic: int) -> tuple[bytes | None, bytes | None]:
    at = KEY_SIZE_OFFSET_V1 if magic == MAGIC_VALUE_V1 else KEY_SIZE_OFFSET_V0
    key_start, key_end = _field_bounds(entry, at)
    value_start, value_end = _field_bounds(entry, key_end)
    key = None if key_start < 0 else bytes(entry[key_start:key_end])
    value = None if value_start < 0 else bytes(entry[value_start:value_end])
    return key, value


def wrapped_stream(entry: memoryview, magic: int) -> memoryview:
    """Return the compressed stream in a wrapper: a view of its value."""
    at = KEY_SIZE_OFFSET_V1 if magic == MAGIC_VALUE_V1 else KEY_SIZE_OFFSET_V0
    start, after_key = _field_bounds(entry, at)
    start, end = _field_bounds(entry, after_key)
    if start < 0:
        reason = "compressed message has a null value"
        raise InvalidRecordError(reason)
    return entry[start:end]


def _inner_entries(payload: memoryview) -> Iterator[memoryview]:
    position = 0
    while len(payload) - position >= LOG_OVERHEAD:
        (size,) = _INT32.unpack_from(payload, position + SIZE_OFFSET)
        if size < RECORD_OVERHEAD_V0:
            reason = f"inner message size is {size}, expected at least {RECORD_OVERHEAD_V0}"
            raise CorruptRecordError(reason)
        end = position + LOG_OVERHEAD + size
        if end > len(payload):
            return
        yield payload[position:end]
        position = end


def iter_legacy_records(entry: memoryview, decompressor: Decompressor) -> Iterator[Record]:
    """Yield the records of one whole v0 or v1 entry, checking every CRC in it."""
    header = parse_batch_header(entry)
    if header.is_compressed:
        ensure_valid_crc(entry, header)
    for message in iter_stored_messages(entry, decompressor):
        if not message.is_valid:
            reason = wrong_checksum("message", message.crc, message.computed_crc)
            raise CorruptRecordError(reason)
        yield message.record


def iter_stored_messages(entry: memoryview, decompressor: Decompressor) -> Iterator[StoredMessage]:
    """Yield the messages of one whole v0 or v1 entry, whether or not their checksums are right."""
    header = parse_batch_header(entry)
    if not header.is_compressed:
        key, value = _key_and_value(entry, header.magic)
        record = Record(header.offset, header.max_timestamp, header.timestamp_type, key, value)
        yield StoredMessage(record, header.crc, computed_crc(entry))
        return
    stream = wrapped_stream(entry, header.magic)
    decompressor.buffer.clear()
    start, end = decompressor.append(header.compression, stream, header.magic)
    payload = decompressor.buffer.view(start, end)
    last = None
    for last in _inner_entries(payload):  # noqa: B007 - there may be millions, so none is kept
        pass
    if last is None:
        reason = "compressed message holds no inner message"
        raise InvalidRecordError(reason)
    base = _absolute_base(header, parse_batch_header(last).offset)
    for message in _inner_entries(payload):
        yield _inner_message(message, header, base)


def _absolute_base(wrapper: BatchHeader, last_inner_offset: int) -> int:
    if wrapper.offset == 0:
        return 0
    if wrapper.offset < last_inner_offset:
        reason = (
            f"wrapper offset is {wrapper.offset}, below its last inner offset {last_inner_offset}"
        )
        raise InvalidRecordError(reason)
    return wrapper.offset - last_inner_offset if wrapper.magic == MAGIC_VALUE_V1 else 0


def _inner_message(message: memoryview, wrapper: BatchHeader, base: int) -> StoredMessage:
    header = parse_batch_header(message)
    if header.magic > MAGIC_VALUE_V1:
        reason = f"inner message has format v{header.magic}"
        raise InvalidRecordError(reason)
    if header.is_compressed:
        reason = "inner message is itself compressed"
        raise InvalidRecordError(reason)
    key, value = _key_and_value(message, header.magic)
    timestamp = header.max_timestamp
    if header.magic == 0:
        timestamp = NO_TIMESTAMP
    elif wrapper.timestamp_type is TimestampType.LOG_APPEND_TIME:
        timestamp = wrapper.max_timestamp
    record = Record(base + header.offset, timestamp, wrapper.timestamp_type, key, value)
    return StoredMessage(record, header.crc, computed_crc(message))


class BatchOffsets(NamedTuple):
    """The offsets ``[first, following)``; a log can be cut at either, and nowhere in between."""

    first: int
    following: int

    def are_cut_at(self, offset: int) -> bool:
        """Whether a cut at ``offset`` would go through the batch."""
        return self.first < offset < self.following


def batch_offsets(batch: memoryview) -> BatchOffsets:
    """Return the offsets of the batch that ``batch`` begins with."""
    header = parse_batch_header(batch, 0)
    first = header.base_offset
    if first is None:
        records = iter_legacy_records(batch[: header.size_bytes], Decompressor())
        first = next(records).offset
    return BatchOffsets(first, header.next_offset)

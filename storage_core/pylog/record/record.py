"""One record of format v2, and the value type for records of every format.

A v2 record, all numbers varints or varlongs::

    length            bytes after this field
    attributes        1 byte, always 0, ignored
    timestamp delta   varlong, added to the batch's base timestamp
    offset delta      added to the batch's base offset
    key length        negative: null
    key
    value length      negative: null
    value
    header count      then per header: key length (never negative), UTF-8 key,
                      value length (negative: null), value

Header keys may repeat and keep their order. Source: DefaultRecord (Kafka 4.3); KIP-82, KIP-98.
"""

from __future__ import annotations

from typing import NamedTuple

from pylog.errors import InvalidRecordError
from pylog.model import NO_SEQUENCE, TimestampType
from pylog.record.java_utf8 import decode_utf8
from pylog.record.varint import INT64_MASK, INT64_SIGN, decode_varint, decode_varlong


class RecordHeader(NamedTuple):
    """A header: its key decoded as Java decodes UTF-8, and its value or None."""

    key: str
    value: bytes | None


class Record(NamedTuple):
    """A record as a consumer sees it; ``timestamp`` in ms, `NO_TIMESTAMP` where there is none."""

    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: tuple[RecordHeader, ...] = ()
    sequence: int = NO_SEQUENCE


def wrap_int64(value: int) -> int:
    """Return ``value`` as two's complement addition in 64 bits leaves it."""
    return ((value + INT64_SIGN) & INT64_MASK) - INT64_SIGN


def _decode_bytes(
    buffer: memoryview, position: int, end: int, what: str
) -> tuple[bytes | None, int]:
    length, position = decode_varint(buffer, position, end)
    if length < 0:
        return None, position
    if length > end - position:
        reason = f"{what} of {length} bytes in a record with {end - position} bytes left"
        raise InvalidRecordError(reason)
    return bytes(buffer[position : position + length]), position + length


def _decode_headers(
    buffer: memoryview, position: int, end: int
) -> tuple[tuple[RecordHeader, ...], int]:
    count, position = decode_varint(buffer, position, end)
    if not 0 <= count <= end - position:
        reason = f"header count is {count} in a record with {end - position} bytes left"
        raise InvalidRecordError(reason)
    headers = []
    for _ in range(count):
        key, position = _decode_bytes(buffer, position, end, "header key")
        if key is None:
            reason = "header key length is negative"
            raise InvalidRecordError(reason)
        value, position = _decode_bytes(buffer, position, end, "header value")
        headers.append(RecordHeader(decode_utf8(key), value))
    return tuple(headers), position


class RecordDeltas(NamedTuple):
    """A v2 record before its batch's base offset and timestamp are added."""

    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    value: bytes | None
    headers: tuple[RecordHeader, ...]


def decode_record(buffer: memoryview, position: int, end: int) -> tuple[RecordDeltas, int]:
    """Return the record at ``position`` and the position after it."""
    length, start = decode_varint(buffer, position, end)
    if not 0 <= length <= end - start:
        reason = f"record length is {length}, with {end - start} bytes left in the batch"
        raise InvalidRecordError(reason)
    record_end = start + length
    if length == 0:
        reason = "record length is 0"
        raise InvalidRecordError(reason)
    timestamp_delta, at = decode_varlong(buffer, start + 1, record_end)
    offset_delta, at = decode_varint(buffer, at, record_end)
    key, at = _decode_bytes(buffer, at, record_end, "key")
    value, at = _decode_bytes(buffer, at, record_end, "value")
    headers, at = _decode_headers(buffer, at, record_end)
    if at != record_end:
        reason = f"record length is {length}, but its fields take {at - start} bytes"
        raise InvalidRecordError(reason)
    return RecordDeltas(timestamp_delta, offset_delta, key, value, headers), record_end

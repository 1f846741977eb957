"""Variable-length integers of record format v2.

Protobuf's base-128 groups, least significant first, top bit = "more follows", over zig-zag
values: ``zz(n) = (n << 1) ^ (n >> 31 or 63)``. A varint has at most 5 bytes, a varlong 10;
surplus bits of the last byte are dropped, over-long encodings are accepted, a last byte with its
top bit set is not.

Source: ByteUtils.readVarint, readVarlong (Kafka 4.3).
"""

from __future__ import annotations

from pylog.errors import InvalidRecordError


def _decode_unsigned(
    buffer: memoryview | bytes, position: int, end: int, max_bytes: int
) -> tuple[int, int]:
    value = 0
    for group in range(max_bytes):
        if position + group >= end:
            reason = "a variable-length integer runs past the end of its record"
            raise InvalidRecordError(reason)
        byte = buffer[position + group]
        value |= (byte & 0x7F) << (7 * group)
        if byte < 0x80:
            return value, position + group + 1
    reason = f"a variable-length integer has more than {max_bytes} bytes"
    raise InvalidRecordError(reason)


def decode_varint(buffer: memoryview | bytes, position: int, end: int) -> tuple[int, int]:
    """Return the zig-zag int32 at ``position`` and the position after it.

    Raises
    ------
    InvalidRecordError
        It has more than 5 bytes or reaches ``end``.
    """
    raw, after = _decode_unsigned(buffer, position, end, 5)
    raw &= 0xFFFFFFFF
    return (raw >> 1) ^ -(raw & 1), after


def decode_varlong(buffer: memoryview | bytes, position: int, end: int) -> tuple[int, int]:
    """Return the zig-zag int64 at ``position`` and the position after it.

    Raises
    ------
    InvalidRecordError
        It has more than 10 bytes or reaches ``end``.
    """
    raw, after = _decode_unsigned(buffer, position, end, 10)
    raw &= 0xFFFFFFFFFFFFFFFF
    return (raw >> 1) ^ -(raw & 1), after

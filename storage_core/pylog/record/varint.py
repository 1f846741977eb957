"""Variable-length integers of record format v2.

Protobuf's base-128 groups, least significant first, top bit = "more follows", over zig-zag
values: ``zz(n) = (n << 1) ^ (n >> 31 or 63)``. A varint has at most 5 bytes, a varlong 10;
surplus bits of the last byte are dropped, over-long encodings are accepted, a last byte with its
top bit set is not.

The writers give the shortest encoding. Unsigned varints, without zig-zag, stand in Kafka's
flexible message schemas.

Source: ByteUtils.readVarint, readVarlong, writeVarint, writeVarlong, writeUnsignedVarint,
sizeOfVarint, sizeOfVarlong (Kafka 4.3).
"""

from __future__ import annotations

from pylog.errors import InvalidRecordError

_INT32_BOUND = 1 << 31
_INT64_BOUND = 1 << 63
_ONE_BYTE = tuple(bytes([value]) for value in range(0x80))


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


def decode_unsigned_varint(buffer: memoryview | bytes, position: int, end: int) -> tuple[int, int]:
    """Return the varint without zig-zag at ``position``, and the position after it."""
    return _decode_unsigned(buffer, position, end, 5)


def decode_varint(buffer: memoryview | bytes, position: int, end: int) -> tuple[int, int]:
    """Return the zig-zag int32 at ``position`` and the position after it."""
    raw, after = _decode_unsigned(buffer, position, end, 5)
    raw &= 0xFFFFFFFF
    return (raw >> 1) ^ -(raw & 1), after


def decode_varlong(buffer: memoryview | bytes, position: int, end: int) -> tuple[int, int]:
    """Return the zig-zag int64 at ``position`` and the position after it."""
    raw, after = _decode_unsigned(buffer, position, end, 10)
    raw &= 0xFFFFFFFFFFFFFFFF
    return (raw >> 1) ^ -(raw & 1), after


def _encode_groups(value: int) -> bytes:
    if value < 0x80:
        return _ONE_BYTE[value]
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def _size_of_groups(value: int) -> int:
    return (max(value.bit_length(), 1) + 6) // 7


def _zig_zag(value: int, bound: int) -> int:
    if not -bound <= value < bound:
        msg = f"{value} does not fit into {bound.bit_length()} bits"
        raise ValueError(msg)
    return 2 * value if value >= 0 else -2 * value - 1


def encode_varint(value: int) -> bytes:
    """Return the zig-zag varint of an int32; ``ValueError`` for anything larger."""
    return _encode_groups(_zig_zag(value, _INT32_BOUND))


def encode_varlong(value: int) -> bytes:
    """Return the zig-zag varlong of an int64; ``ValueError`` for anything larger."""
    return _encode_groups(_zig_zag(value, _INT64_BOUND))


def encode_unsigned_varint(value: int) -> bytes:
    """Return the varint of an int32 without zig-zag; a negative one takes its 5-byte form."""
    if not -_INT32_BOUND <= value < _INT32_BOUND:
        msg = f"{value} does not fit into {_INT32_BOUND.bit_length()} bits"
        raise ValueError(msg)
    return _encode_groups(value & 0xFFFFFFFF)


def size_of_varint(value: int) -> int:
    """Return how many bytes `encode_varint` gives, 1 to 5."""
    return _size_of_groups(_zig_zag(value, _INT32_BOUND))


def size_of_varlong(value: int) -> int:
    """Return how many bytes `encode_varlong` gives, 1 to 10."""
    return _size_of_groups(_zig_zag(value, _INT64_BOUND))


INT64_MASK = 0xFFFFFFFFFFFFFFFF
INT64_SIGN = 1 << 63

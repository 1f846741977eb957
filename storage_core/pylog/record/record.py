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

import codecs
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import InvalidRecordError
from pylog.model import NO_SEQUENCE, TimestampType

if TYPE_CHECKING:
    from collections.abc import Sequence


# Text as Java's ``new String(bytes, UTF_8)`` decodes it: a malformed sequence becomes one U+FFFD.
#
# A malformed sequence is the longest part of the input that begins as a character does: a lead byte
# and those bytes after it that may follow there; a byte that begins nothing is one by itself. Three
# bytes that would be a surrogate (U+D800 to U+DFFF) are one malformed sequence as well, also where
# the third of them is missing; there Java differs from what Python's ``errors="replace"`` does.
#
# Source: String.decodeUTF8_UTF16 (OpenJDK 17), which Kafka's Utils.utf8 calls.


_REPLACEMENT = "\ufffd"
_CONTINUATION = range(0x80, 0xC0)
_TWO_BYTES = range(0xC2, 0xE0)
_THREE_BYTES = range(0xE0, 0xF0)
_FOUR_BYTES = range(0xF0, 0xF5)
# Where the second byte has a range of its own: what is shorter or larger than UTF-8 allows.
_SECOND_BYTES = {0xE0: range(0xA0, 0xC0), 0xF0: range(0x90, 0xC0), 0xF4: range(0x80, 0x90)}


def malformed_length(data: bytes, at: int) -> int:
    """Return how many bytes from ``at`` on, where no character stands, one U+FFFD replaces."""
    lead = data[at]
    if lead in _TWO_BYTES:
        longest = 2
    elif lead in _THREE_BYTES:
        longest = 3
    elif lead in _FOUR_BYTES:
        longest = 4
    else:
        return 1
    allowed = _SECOND_BYTES.get(lead, _CONTINUATION)
    length = 1
    for byte in data[at + 1 : at + longest]:
        if byte not in allowed:
            break
        allowed = _CONTINUATION
        length += 1
    return length


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return _REPLACEMENT, error.start + malformed_length(error.object, error.start)


_ERRORS = "pylog-java-utf8"
codecs.register_error(_ERRORS, _replace)


def decode_utf8(data: bytes | memoryview) -> str:
    """Return the text of ``data``; never fails."""
    return bytes(data).decode("utf-8", errors=_ERRORS)


# Variable-length integers of record format v2.
#
# Protobuf's base-128 groups, least significant first, top bit = "more follows", over zig-zag
# values: ``zz(n) = (n << 1) ^ (n >> 31 or 63)``. A varint has at most 5 bytes, a varlong 10;
# surplus bits of the last byte are dropped, over-long encodings are accepted, a last byte with its
# top bit set is not.
#
# The writers give the shortest encoding. Unsigned varints, without zig-zag, stand in Kafka's
# flexible message schemas.
#
# Source: ByteUtils.readVarint, readVarlong, writeVarint, writeVarlong, writeUnsignedVarint,
# sizeOfVarint, sizeOfVarlong (Kafka 4.3).


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


_INT64_MASK = 0xFFFFFFFFFFFFFFFF
_INT64_SIGN = 1 << 63


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
    return ((value + _INT64_SIGN) & _INT64_MASK) - _INT64_SIGN


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


# Encode one record of format v2; its layout stands at the top.
#
# Source: DefaultRecord.writeTo, sizeInBytes, sizeOfBodyInBytes (Kafka 4.3).


Bytes = bytes | bytearray | memoryview
HeaderPair = tuple[str, bytes | None]

_ATTRIBUTES = b"\x00"
_NULL_LENGTH = encode_varint(-1)
_NULL_SIZE = len(_NULL_LENGTH)


def encode_record(
    timestamp_delta: int,
    offset_delta: int,
    key: Bytes | None,
    value: Bytes | None,
    headers: Sequence[HeaderPair] = (),
) -> bytes:
    """Return the record, its length in front."""
    parts: list[Bytes] = [_ATTRIBUTES, encode_varlong(timestamp_delta), encode_varint(offset_delta)]
    _add_bytes(parts, key)
    _add_bytes(parts, value)
    parts.append(encode_varint(len(headers)))
    for name, content in headers:
        _add_bytes(parts, _header_key_bytes(name))
        _add_bytes(parts, content)
    body = b"".join(parts)
    return encode_varint(len(body)) + body


def _add_bytes(parts: list[Bytes], data: Bytes | None) -> None:
    if data is None:
        parts.append(_NULL_LENGTH)
        return
    parts.append(encode_varint(len(data)))
    parts.append(data)


def _header_key_bytes(name: str | None) -> bytes:
    if name is None:
        msg = "a header key must not be null"
        raise ValueError(msg)
    return name.encode()


def _size_of_bytes(data: Bytes | None) -> int:
    return _NULL_SIZE if data is None else size_of_varint(len(data)) + len(data)


def size_of_record(
    timestamp_delta: int,
    offset_delta: int,
    key: Bytes | None,
    value: Bytes | None,
    headers: Sequence[HeaderPair] = (),
) -> int:
    """Return how many bytes `encode_record` gives, without encoding."""
    body = len(_ATTRIBUTES) + size_of_varlong(timestamp_delta) + size_of_varint(offset_delta)
    body += _size_of_bytes(key) + _size_of_bytes(value) + size_of_varint(len(headers))
    for name, content in headers:
        body += _size_of_bytes(_header_key_bytes(name)) + _size_of_bytes(content)
    return size_of_varint(body) + body

"""Protobuf's wire format: numbers of fields, and their values, in plain Python.

Source: protobuf.dev, "Encoding".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

VARINT, FIXED64, DELIMITED, START_GROUP, END_GROUP, FIXED32 = range(6)
NAMES = ("a varint", "8 bytes", "a length and bytes", "a group", "a group's end", "4 bytes")
_MOST_DEPTH = 100


class WireError(ValueError):
    """Bytes that are no message."""


def varint_at(content: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned number of 64 bits, and where it ends."""
    value = shift = 0
    while True:
        if at >= len(content):
            raise WireError(f"a number is cut at byte {at}")
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                raise WireError(f"a number of more than 64 bits ends at byte {at}")
            return value, at
        shift += 7
        if shift > 63:
            raise WireError(f"a number has more than 10 bytes at byte {at}")


def varint(value: int) -> bytes:
    """Return a number as `varint_at` reads it; of a negative one the two's complement."""
    value &= (1 << 64) - 1
    parts = []
    while value > 0x7F:
        parts.append((value & 0x7F) | 0x80)
        value >>= 7
    return bytes([*parts, value])


def sized(content: bytes) -> bytes:
    """Return bytes behind their length."""
    return varint(len(content)) + content


def wire_fields(content: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Yield number, wire type and value of each field: numbers as they lie there, unsigned.

    Groups are passed over.
    """
    at = 0
    groups: list[int] = []
    while at < len(content):
        tag, after = varint_at(content, at)
        number, kind = tag >> 3, tag & 7
        if not number or tag >> 32:
            raise WireError(f"{tag} at byte {at} is no field's number")
        if kind == START_GROUP:
            groups.append(number)
            if len(groups) > _MOST_DEPTH:
                raise WireError(f"groups are nested deeper than {_MOST_DEPTH} at byte {at}")
        elif kind == END_GROUP:
            if not groups or groups.pop() != number:
                raise WireError(f"a group {number} ends at byte {at} that has not begun")
        else:
            value, after = _value_at(content, after, number, kind)
            if not groups:
                yield number, kind, value
        at = after
    if groups:
        raise WireError(f"group {groups[-1]} has no end")


def _value_at(content: bytes, at: int, number: int, kind: int) -> tuple[int | bytes, int]:
    if kind == VARINT:
        return varint_at(content, at)
    left = len(content) - at
    if kind in {FIXED64, FIXED32}:
        length = 8 if kind == FIXED64 else 4
    elif kind == DELIMITED:
        length, at = varint_at(content, at)
        left = len(content) - at
    else:
        raise WireError(f"{kind} at byte {at} is no wire type")
    if length > left:
        raise WireError(f"field {number} has {length} bytes at byte {at}, and {left} are left")
    value = content[at : at + length]
    return value if kind == DELIMITED else int.from_bytes(value, "little"), at + length

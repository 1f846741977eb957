"""Bytes of random messages of a schema: every version, nulls, tagged fields known and unknown.

The writer is this file's own, and what Kafka's tools say of the bytes decides whether the schema is
right: see `tests.unit.internal_topics.dumped_records`.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tests.support.batches import unsigned_varint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

    from pylog.internal_topics.schema import Field, Message

_WIDTHS = {"int8": ">b", "int16": ">h", "int32": ">i", "int64": ">q"}
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_TEXTS = ("", "a", "orders-eu", "ünï", 'quo"ted\\', "tab\tnew\nline\x01", "\U0001f600 x")
_DOUBLES = (0.0, 1.0, -2.5, 1e7, 1e-4, 123456789.125, 1e300, float("nan"), float("inf"), 0.1)
_UNKNOWN_TAG = 99


class MessageBytes:
    """Writes random messages.

    Parameters
    ----------
    random
        Where chance comes from.
    chosen
        What makes the values of fields of some names, where not every value will do.
    nulls
        The share of nulls among values that may be null.
    """

    def __init__(
        self,
        random: Random,
        chosen: Mapping[str, Callable[[], int | str | bytes]] | None = None,
        *,
        nulls: float = 0.3,
    ) -> None:
        self._random = random
        self._chosen = chosen or {}
        self._nulls = nulls

    def message(self, message: Message, version: int) -> bytes:
        is_flexible = version in message.flexible_versions
        return self._struct(message.fields, version, is_flexible=is_flexible)

    def _struct(self, fields: tuple[Field, ...], version: int, *, is_flexible: bool) -> bytes:
        present = [field for field in fields if version in field.versions]
        body = b"".join(
            self._field(field, version, is_flexible=is_flexible)
            for field in present
            if field.tag is None
        )
        return body + (self._tagged(present, version) if is_flexible else b"")

    def _tagged(self, present: list[Field], version: int) -> bytes:
        sections = {
            field.tag: self._field(field, version, is_flexible=True)
            for field in present
            if field.tag is not None and self._random.random() < 0.6
        }
        if self._random.random() < 0.1:
            sections[_UNKNOWN_TAG] = self._random.randbytes(self._random.randrange(4))
        out = unsigned_varint(len(sections))
        for tag in sorted(sections):
            out += unsigned_varint(tag) + unsigned_varint(len(sections[tag])) + sections[tag]
        return out

    def _field(self, field: Field, version: int, *, is_flexible: bool) -> bytes:
        is_nullable = version in field.nullable_versions
        is_null = is_nullable and self._random.random() < self._nulls
        if field.is_array:
            if is_null:
                return self._length(None, ">i", is_flexible=is_flexible)
            count = self._random.choice((0, 1, 1, 2, 3))
            values = [self._value(field, version, is_flexible=is_flexible) for _ in range(count)]
            return self._length(count, ">i", is_flexible=is_flexible) + b"".join(values)
        if field.type == "struct" and is_nullable:
            flag = b"\x00" if field.tag is not None else b"\xff"
            if is_null:
                return flag
            return b"\x01" + self._value(field, version, is_flexible=is_flexible)
        if is_null:
            width = ">h" if field.type == "string" else ">i"
            return self._length(None, width, is_flexible=is_flexible)
        return self._value(field, version, is_flexible=is_flexible)

    def _value(self, field: Field, version: int, *, is_flexible: bool) -> bytes:
        random = self._random
        chosen = self._chosen[field.name]() if field.name in self._chosen else None
        match field.type:
            case "struct":
                return self._struct(field.fields, version, is_flexible=is_flexible)
            case "string":
                text = chosen if isinstance(chosen, str) else random.choice(_TEXTS)
                data = text.encode()
                return self._length(len(data), ">h", is_flexible=is_flexible) + data
            case "bytes" | "records":
                data = (
                    chosen if isinstance(chosen, bytes) else random.randbytes(random.randrange(6))
                )
                return self._length(len(data), ">i", is_flexible=is_flexible) + data
            case "uuid":
                return random.choice((bytes(16), random.randbytes(16)))
            case "bool":
                return bytes([random.choice((0, 1, 2))])
            case "float64":
                return struct.pack(">d", random.choice(_DOUBLES))
            case "uint16":
                return struct.pack(">H", random.randrange(1 << 16))
        half = 1 << _BITS[field.type] - 1
        number = random.choice((0, -1, 1, 2, 7, half - 1, -half, random.randrange(-half, half)))
        return struct.pack(_WIDTHS[field.type], number if chosen is None else chosen)

    @staticmethod
    def _length(length: int | None, width: str, *, is_flexible: bool) -> bytes:
        if is_flexible:
            return unsigned_varint(0 if length is None else length + 1)
        return struct.pack(width, -1 if length is None else length)


def damaged(random: Random, data: bytes) -> bytes:
    """Return the bytes cut, lengthened, or with a few others in their place."""
    kind = random.randrange(3)
    if kind == 0:
        return data[: random.randrange(len(data) + 1)]
    if kind == 1:
        return data + random.randbytes(random.randrange(1, 4))
    changed = bytearray(data)
    for _ in range(random.randrange(1, 4)):
        if changed:
            changed[random.randrange(len(changed))] = random.choice((0, 1, 0x7F, 0x80, 0xFF))
    return bytes(changed)

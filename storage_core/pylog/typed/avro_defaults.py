"""Defaults of fields, from JSON to Avro's binary form: then they are decoded as any other value."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from pylog.errors import InvalidSchemaError
from pylog.typed.avro_schema import MISSING

if TYPE_CHECKING:
    from pylog.typed.avro_schema import AvroType

_RANGES = {"int": 1 << 31, "long": 1 << 63}


def encoded_default(kind: AvroType, value: object, name: str) -> bytes:
    """Return the bytes of a field's default; `InvalidSchemaError` if it is not of the type.

    That of a union may be of any of its types, as newer versions of Avro allow.
    """
    try:
        return _encoded(kind, value)
    except _MismatchError:
        raise InvalidSchemaError(f"the default of field {name} is no {kind}") from None


class _MismatchError(Exception):
    pass


def _encoded(kind: AvroType, value: object) -> bytes:
    if kind.kind == "union":
        return _of_union(kind, value)
    if kind.kind == "null" and value is None:
        return b""
    if kind.kind == "boolean" and isinstance(value, bool):
        return bytes([value])
    if kind.kind in _RANGES and isinstance(value, int) and not isinstance(value, bool):
        if not -_RANGES[kind.kind] <= value < _RANGES[kind.kind]:
            raise _MismatchError
        return encoded_long(value)
    if kind.kind in ("float", "double"):
        return _of_float(kind, value)
    if kind.kind == "record" and isinstance(value, dict):
        return _of_record(kind, value)
    if kind.kind in ("array", "map"):
        return _of_items(kind, value)
    if isinstance(value, str):
        return _of_text(kind, value)
    raise _MismatchError


def _of_union(kind: AvroType, value: object) -> bytes:
    for number, branch in enumerate(kind.branches):
        try:
            return encoded_long(number) + _encoded(branch, value)
        except _MismatchError:
            continue
    raise _MismatchError


_SPECIAL = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}


def _of_float(kind: AvroType, value: object) -> bytes:
    if isinstance(value, str) and value in _SPECIAL:
        value = float(_SPECIAL[value])
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise _MismatchError
    try:
        return struct.pack("<f" if kind.kind == "float" else "<d", value)
    except (OverflowError, struct.error):
        raise _MismatchError from None


def _of_record(kind: AvroType, value: dict[object, object]) -> bytes:
    parts = []
    for each in kind.fields:
        given = value.get(each.name, each.default)
        if given is MISSING:
            raise _MismatchError
        parts.append(_encoded(each.type, given))
    return b"".join(parts)


def _of_items(kind: AvroType, value: object) -> bytes:
    assert kind.items is not None  # noqa: S101 - of every array and map
    if kind.kind == "array" and isinstance(value, list):
        items = [_encoded(kind.items, each) for each in value]
    elif kind.kind == "map" and isinstance(value, dict):
        items = [_text(str(key)) + _encoded(kind.items, each) for key, each in value.items()]
    else:
        raise _MismatchError
    return b"".join([encoded_long(len(items)), *items, b"\0"]) if items else b"\0"


def _of_text(kind: AvroType, value: str) -> bytes:
    if kind.kind == "string":
        return _text(value)
    if kind.kind == "enum" and value in kind.symbols:
        return encoded_long(kind.symbols.index(value))
    if kind.kind in ("bytes", "fixed"):
        try:
            content = value.encode("latin-1")  # each character is a byte
        except UnicodeEncodeError:
            raise _MismatchError from None
        if kind.kind == "bytes":
            return encoded_long(len(content)) + content
        if len(content) == kind.size:
            return content
    raise _MismatchError


def _text(value: str) -> bytes:
    try:
        content = value.encode()
    except UnicodeEncodeError:
        raise _MismatchError from None
    return encoded_long(len(content)) + content


def encoded_long(value: int) -> bytes:
    """Return a number as int and long have it: by zigzag, seven bits a byte."""
    raw = (value << 1) ^ (value >> 63)
    parts = []
    while raw > 0x7F:
        parts.append((raw & 0x7F) | 0x80)
        raw >>= 7
    return bytes([*parts, raw])

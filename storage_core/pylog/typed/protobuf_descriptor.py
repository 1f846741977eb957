"""A ``FileDescriptorProto``, which some registries keep instead of text, as what it says.

Source: google/protobuf/descriptor.proto.
"""

from __future__ import annotations

from typing import NamedTuple

from pylog.typed.protobuf_schema import (
    SCALARS,
    ProtoEnum,
    ProtoField,
    ProtoFile,
    ProtoMessage,
    unescaped,
)
from pylog.typed.protobuf_wire import DELIMITED, VARINT, WireError, wire_fields

_TYPES = (
    *("", "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string"),
    *("group", "message", "bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64"),
)
_REPEATED, _REQUIRED = 3, 2
_MESSAGE, _GROUPS = 11, 2  # a type of fields, an encoding of messages
_EDITION_PROTO2, _EDITION_PROTO3 = 998, 999
_MOST_DEPTH = 60


class _Syntax(NamedTuple):
    is_proto3: bool
    is_implicit: bool
    is_closed: bool
    has_groups: bool


class _Fields(dict[int, list[int | bytes]]):
    """The fields of a message on the wire."""

    def bytes(self, number: int) -> list[bytes]:
        return [each for each in self.get(number, []) if isinstance(each, bytes)]

    def text(self, number: int) -> str:
        return (self.bytes(number) or [b""])[-1].decode()

    def integer(self, number: int) -> int:
        found = [each for each in self.get(number, []) if isinstance(each, int)]
        value = (found[-1] if found else 0) & 0xFFFF_FFFF  # all are of 32 bits
        return value - (1 << 32) if value >> 31 else value

    def messages(self, number: int) -> list[_Fields]:
        return [_fields(each) for each in self.bytes(number)]


def _fields(content: bytes) -> _Fields:
    found = _Fields()
    for number, kind, value in wire_fields(content):
        if kind in {VARINT, DELIMITED}:  # others are no fields of a descriptor
            found.setdefault(number, []).append(value)
    return found


def read_descriptor(content: bytes) -> ProtoFile:
    """Return what a descriptor says.

    Raises
    ------
    ValueError
        It is none, or has groups.
    """
    try:
        file = _fields(content)
        package, syntax = file.text(2), _syntax(file)
        return ProtoFile(
            package,
            [each.decode() for each in file.bytes(3)],
            [_message(each, package, syntax, 0) for each in file.messages(4)],
            [_enum(each, package, syntax) for each in file.messages(5)],
        )
    except (WireError, UnicodeDecodeError) as error:
        raise ValueError(f"the schema is no descriptor of a file: {error}") from None


def _syntax(file: _Fields) -> _Syntax:
    edition = file.integer(14)
    is_proto3 = file.text(12) == "proto3" or edition == _EDITION_PROTO3
    is_proto2 = not is_proto3 and edition in {0, _EDITION_PROTO2}
    features = [each for options in file.messages(8) for each in options.messages(50)]
    is_implicit = any(each.integer(1) == 2 for each in features)
    is_closed = any(each.integer(2) == 2 for each in features)
    has_groups = any(each.integer(5) == _GROUPS for each in features)
    return _Syntax(is_proto3, is_proto3 or is_implicit, is_proto2 or is_closed, has_groups)


def _message(entry: _Fields, scope: str, syntax: _Syntax, depth: int) -> ProtoMessage:
    name = f"{scope}.{entry.text(1)}".removeprefix(".")
    if depth > _MOST_DEPTH:
        raise ValueError(f"the schema has messages deeper than {_MOST_DEPTH} in each other")
    oneofs = [each.text(1) for each in entry.messages(8)]
    nested = [_message(each, name, syntax, depth + 1) for each in entry.messages(3)]
    is_map_entry = any(options.integer(7) for options in entry.messages(7))
    # Maps and what they hold are never groups.
    plain = syntax._replace(has_groups=False)
    maps = {f".{each.name}" for each in nested if each.is_map_entry}
    fields = [
        _field(each, oneofs, plain if is_map_entry or each.text(6) in maps else syntax)
        for each in entry.messages(2)
    ]
    enums = [_enum(each, name, syntax) for each in entry.messages(4)]
    return ProtoMessage(name, fields, nested, enums, is_map_entry=is_map_entry)


def _field(entry: _Fields, oneofs: list[str], syntax: _Syntax) -> ProtoField:
    name, number, kind = entry.text(1), entry.integer(3), _type(entry)
    found = ProtoField(name, number, kind, entry.integer(4) == _REPEATED)
    is_synthetic = bool(entry.integer(17))
    if 9 in entry and not is_synthetic and 0 <= entry.integer(9) < len(oneofs):
        found.oneof = oneofs[entry.integer(9)]
    found.presence = _presence(entry, found, syntax, is_synthetic=is_synthetic)
    if 7 in entry:
        found.default = unescaped(entry.text(7)) if kind == "bytes" else entry.text(7)
    return found


def _presence(entry: _Fields, field: ProtoField, syntax: _Syntax, *, is_synthetic: bool) -> str:
    features = [each for options in entry.messages(8) for each in options.messages(21)]
    encodings = [each.integer(5) for each in features if 5 in each]
    is_group = encodings[-1] == _GROUPS if encodings else syntax.has_groups
    if is_group and entry.integer(5) == _MESSAGE:
        raise ValueError(f"the schema's field {field.name!r} is a group, which is not read")
    if field.is_repeated:
        return ""
    given = max((each.integer(1) for each in features), default=0)
    if entry.integer(4) == _REQUIRED or given == 3:
        return "required"
    if field.oneof or is_synthetic or given == 1:
        return "explicit"
    return "implicit" if syntax.is_implicit or given == 2 else "explicit"


def _type(entry: _Fields) -> str:
    number = entry.integer(5)
    kind = _TYPES[number] if 0 <= number < len(_TYPES) else ""
    if kind == "group":
        raise ValueError(f"the schema's field {entry.text(1)!r} is a group, which is not read")
    if kind in SCALARS:
        return kind
    if not entry.text(6):
        raise ValueError(f"the schema's field {entry.text(1)!r} has no type")
    return entry.text(6)


def _enum(entry: _Fields, scope: str, syntax: _Syntax) -> ProtoEnum:
    names: dict[int, str] = {}
    values = entry.messages(2)
    for each in values:
        names.setdefault(each.integer(2), each.text(1))
    features = [each for options in entry.messages(3) for each in options.messages(7)]
    given = max((each.integer(2) for each in features), default=0)
    is_closed = given == 2 or (syntax.is_closed and given != 1)
    first = values[0].integer(2) if values else 0
    return ProtoEnum(f"{scope}.{entry.text(1)}".removeprefix("."), names, first, is_closed)

"""Writes messages of Kafka's schemas: the other half of `message_reader`.

A value is a dictionary like the one that is read; a field that it lacks is written with its
default, and one that the version does not have is left out. Of a field of type ``records`` the
value may be a `FileRange`: the message then comes in pieces, and the bytes of the file are never in
memory.

Source: MessageDataGenerator, ByteBufferAccessor, ByteUtils (Kafka 4.4); KIP-482.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.record.record import encode_unsigned_varint

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Mapping

    from pylog.internal_topics.schema import Field, Message

    WriteValue = Callable[["Writable", Any], None]


class FileRange(NamedTuple):
    """Bytes ``[position, position + size_bytes)`` of a file that the caller keeps open."""

    file: Any
    position: int
    size_bytes: int


class Writable:
    """A message in pieces (Kafka: Writable, SendBuilder)."""

    __slots__ = ("buffer", "pieces")

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.pieces: list[bytearray | FileRange] = []

    def add(self, file_range: FileRange) -> None:
        """Append the bytes of a file."""
        self.pieces += [self.buffer, file_range]
        self.buffer = bytearray()

    def finished(self) -> list[bytearray | FileRange]:
        """Return all pieces, without empty ones."""
        return [piece for piece in (*self.pieces, self.buffer) if piece]


def size_of(pieces: list[bytearray | FileRange]) -> int:
    """Return how many bytes the pieces of a message have."""
    return sum(piece.size_bytes if isinstance(piece, FileRange) else len(piece) for piece in pieces)


def write_message(message: Message, value: Mapping[str, Any], version: int) -> bytes:
    """Return a message without file ranges as bytes."""
    writable = Writable()
    write_message_to(writable, message, value, version)
    return bytes(writable.buffer)


def write_message_to(
    writable: Writable, message: Message, value: Mapping[str, Any], version: int
) -> None:
    """Append a message to what has been written."""
    _message_writer(message, version)(writable, value)


_KEPT_WRITERS = 512
_FORMATS = {"int8": ">b", "int16": ">h", "int32": ">i", "int64": ">q", "uint16": ">H"}
_PACK = {kind: struct.Struct(text).pack for kind, text in {**_FORMATS, "float64": ">d"}.items()}
_PACK_INT16, _PACK_INT32 = _PACK["int16"], _PACK["int32"]
_MAX_STRING_BYTES = 0x7FFF
_NULL_STRUCT, _STRUCT = b"\xff", b"\x01"
_NULL_TAGGED_STRUCT = b"\x00"


@lru_cache(maxsize=_KEPT_WRITERS)
def _message_writer(message: Message, version: int) -> WriteValue:
    if version not in message.versions:
        msg = f"{message.name} has no version {version}"
        raise ValueError(msg)
    return _struct_writer(message.fields, version, is_flexible=version in message.flexible_versions)


def _struct_writer(fields: tuple[Field, ...], version: int, *, is_flexible: bool) -> WriteValue:
    present = [field for field in fields if version in field.versions]
    untagged = [
        (field.name, field.default, _field_writer(field, version, is_flexible=is_flexible))
        for field in present
        if field.tag is None
    ]
    tagged = sorted(
        (field.tag, field.name, field.default, _field_writer(field, version, is_flexible=True))
        for field in present
        if field.tag is not None
    )

    def write(writable: Writable, value: Mapping[str, Any]) -> None:
        for name, default, write_field in untagged:
            write_field(writable, value.get(name, default))
        if is_flexible:
            _write_tagged(writable, value, tagged)

    return write


def _write_tagged(
    writable: Writable,
    value: Mapping[str, Any],
    tagged: list[tuple[int, str, Any, WriteValue]],
) -> None:
    """Write the tagged fields that are not at their default."""
    sections = []
    for tag, name, default, write_field in tagged:
        if name in value and value[name] != default:
            section = Writable()
            write_field(section, value[name])
            sections.append((tag, section.buffer))
    buffer = writable.buffer
    buffer += encode_unsigned_varint(len(sections))
    for tag, section_bytes in sections:
        buffer += encode_unsigned_varint(tag)
        buffer += encode_unsigned_varint(len(section_bytes))
        buffer += section_bytes


def _field_writer(field: Field, version: int, *, is_flexible: bool) -> WriteValue:
    write_value = _value_writer(field, version, is_flexible=is_flexible)
    if not field.is_array:
        if field.type == "struct" and version in field.nullable_versions:
            return _nullable_struct_writer(write_value, is_tagged=field.tag is not None)
        return write_value
    write_length = _write_compact_length if is_flexible else _write_int32

    def write_array(writable: Writable, values: list[Any] | None) -> None:
        if values is None:
            _ensure_nullable(field, version)
            write_length(writable, -1)
            return
        write_length(writable, len(values))
        for value in values:
            write_value(writable, value)

    return write_array


def _value_writer(field: Field, version: int, *, is_flexible: bool) -> WriteValue:
    """Return what writes one value of a field's type."""
    match field.type:
        case "struct":
            return _struct_writer(field.fields, version, is_flexible=is_flexible)
        case "bool":
            return _write_bool
        case "uuid":
            return _write_uuid
        case "string":
            return _string_writer(field, version, is_flexible=is_flexible)
        case "bytes" | "records":
            return _bytes_writer(field, version, is_flexible=is_flexible)
        case _:
            pack = _PACK[field.type]

            def write(writable: Writable, value: float) -> None:
                writable.buffer += pack(value)

            return write


def _string_writer(field: Field, version: int, *, is_flexible: bool) -> WriteValue:
    write_length = _write_compact_length if is_flexible else _write_int16

    def write(writable: Writable, text: str | None) -> None:
        if text is None:
            _ensure_nullable(field, version)
            write_length(writable, -1)
            return
        data = text.encode()
        if len(data) > _MAX_STRING_BYTES:
            msg = f"{field.name} has {len(data)} bytes, at most {_MAX_STRING_BYTES} can be written"
            raise ValueError(msg)
        write_length(writable, len(data))
        writable.buffer += data

    return write


def _bytes_writer(field: Field, version: int, *, is_flexible: bool) -> WriteValue:
    write_length = _write_compact_length if is_flexible else _write_int32

    def write(writable: Writable, data: bytes | FileRange | None) -> None:
        if data is None:
            _ensure_nullable(field, version)
            write_length(writable, -1)
        elif isinstance(data, FileRange):
            write_length(writable, data.size_bytes)
            writable.add(data)
        else:
            write_length(writable, len(data))
            writable.buffer += data

    return write


def _nullable_struct_writer(write_struct: WriteValue, *, is_tagged: bool) -> WriteValue:
    null = _NULL_TAGGED_STRUCT if is_tagged else _NULL_STRUCT

    def write(writable: Writable, value: Mapping[str, Any] | None) -> None:
        writable.buffer += null if value is None else _STRUCT
        if value is not None:
            write_struct(writable, value)

    return write


def _write_bool(writable: Writable, value: bool) -> None:  # noqa: FBT001 - a value of a field
    writable.buffer.append(1 if value else 0)


def _write_uuid(writable: Writable, value: uuid.UUID) -> None:
    writable.buffer += value.bytes


def _write_int16(writable: Writable, value: int) -> None:
    writable.buffer += _PACK_INT16(value)


def _write_int32(writable: Writable, value: int) -> None:
    writable.buffer += _PACK_INT32(value)


def _write_compact_length(writable: Writable, length: int) -> None:
    writable.buffer += encode_unsigned_varint(length + 1)


def _ensure_nullable(field: Field, version: int) -> None:
    if version not in field.nullable_versions:
        msg = f"{field.name} is null, which version {version} does not allow"
        raise ValueError(msg)

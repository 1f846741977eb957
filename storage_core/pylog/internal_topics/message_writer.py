"""Writes messages of Kafka's schemas: the other half of `message_reader`.

A value is a dictionary like the one that is read; a field that it lacks is written with its
default, and one that the version does not have is left out. Of a field of type ``records`` the
value may be a `FileRange`: the message then comes in pieces, and the bytes of the file are never in
memory.

Source: MessageDataGenerator, ByteBufferAccessor, ByteUtils (Kafka 4.4); KIP-482.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.internal_topics.schema import FIXED_CODES, runs
from pylog.record.varint import encode_unsigned_varint

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Iterator, Mapping

    from pylog.internal_topics.schema import Field, Message

    WriteValue = Callable[["Writable", Any], None]

SLICE_ELEMENTS = 250
"""After how many elements a message that is written in slices pauses."""


class FileRange(NamedTuple):
    """Bytes ``[position, position + size_bytes)`` of a file that the caller keeps open."""

    file: Any
    position: int
    size_bytes: int


class EachOf(Sequence[Any]):
    """What a function makes of each of some values: when it is asked for, and not kept.

    An array of a large message is never in memory as a whole, and is made piece by piece.
    """

    def __init__(self, function: Callable[[Any], Any], values: Sequence[Any]) -> None:
        self._function = function
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - a value of a message
        return self._function(self._values[index])

    def __iter__(self) -> Iterator[Any]:
        return map(self._function, self._values)


class Writable:
    """A message in pieces (Kafka: Writable, SendBuilder)."""

    __slots__ = ("_next_pause", "buffer", "elements", "pieces")

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.pieces: list[bytearray | FileRange] = []
        self.elements = 0
        self._next_pause = SLICE_ELEMENTS

    def add(self, file_range: FileRange) -> None:
        """Append the bytes of a file."""
        self.pieces += [self.buffer, file_range]
        self.buffer = bytearray()

    def is_pause_due(self) -> bool:
        """Count an element; return whether others should have their turn after it."""
        self.elements += 1
        is_due = self.elements >= self._next_pause
        if is_due:
            self._next_pause = self.elements + SLICE_ELEMENTS
        return is_due

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


def write_message_in_slices(
    writable: Writable, message: Message, value: Mapping[str, Any], version: int
) -> Iterator[None]:
    """Append a message; yield again and again, after not more than `SLICE_ELEMENTS` elements."""
    return _message_writer(message, version).slices(writable, value)


_KEPT_WRITERS = 512
_PACK = {kind: struct.Struct(f">{code}").pack for kind, code in FIXED_CODES.items()}
_PACK_INT16, _PACK_INT32 = _PACK["int16"], _PACK["int32"]
_MAX_STRING_BYTES = 0x7FFF
_NULL_STRUCT, _STRUCT = b"\xff", b"\x01"
_NULL_TAGGED_STRUCT = b"\x00"


@lru_cache(maxsize=_KEPT_WRITERS)
def _message_writer(message: Message, version: int) -> _StructWriter:
    if version not in message.versions:
        msg = f"{message.name} has no version {version}"
        raise ValueError(msg)
    is_flexible = version in message.flexible_versions
    return _StructWriter(message.fields, version, is_flexible=is_flexible)


class _StructWriter:
    """Writes a struct's fields, at once or in slices."""

    def __init__(self, fields: tuple[Field, ...], version: int, *, is_flexible: bool) -> None:
        present = [field for field in fields if version in field.versions]
        self._is_flexible = is_flexible
        self._steps = [
            (
                [(each.name, each.default) for each in run],
                layout,
                _field_writer(run[0], version, is_flexible=is_flexible),
            )
            for run, layout in runs([field for field in present if field.tag is None])
        ]
        self._tagged = sorted(
            (field.tag, field.name, field.default, _field_writer(field, version, is_flexible=True))
            for field in present
            if field.tag is not None
        )

    def __call__(self, writable: Writable, value: Mapping[str, Any]) -> None:
        for _ in self.slices(writable, value):
            pass

    def slices(self, writable: Writable, value: Mapping[str, Any]) -> Iterator[None]:
        for fields, layout, write_field in self._steps:
            if layout is not None:
                writable.buffer += layout.pack(*[value.get(*each) for each in fields])
                continue
            ((name, default),) = fields
            if isinstance(write_field, _StructWriter | _ArrayWriter):
                yield from write_field.slices(writable, value.get(name, default))
            else:
                write_field(writable, value.get(name, default))
        if self._is_flexible:
            _write_tagged(writable, value, self._tagged)


class _ArrayWriter:
    """Writes an array, at once or in slices."""

    def __init__(self, field: Field, version: int, *, is_flexible: bool) -> None:
        self._field = field
        self._version = version
        self._write_length = _write_compact_length if is_flexible else _write_int32
        self._write_value = _value_writer(field, version, is_flexible=is_flexible)

    def _begin(self, writable: Writable, values: Sequence[Any] | None) -> Sequence[Any]:
        if values is None:
            _ensure_nullable(self._field, self._version)
            self._write_length(writable, -1)
            return ()
        self._write_length(writable, len(values))
        return values

    def __call__(self, writable: Writable, values: Sequence[Any] | None) -> None:
        for value in self._begin(writable, values):
            self._write_value(writable, value)

    def slices(self, writable: Writable, values: Sequence[Any] | None) -> Iterator[None]:
        write_value = self._write_value
        for value in self._begin(writable, values):
            if isinstance(write_value, _StructWriter):
                yield from write_value.slices(writable, value)
            else:
                write_value(writable, value)
            if writable.is_pause_due():
                yield


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
    if field.is_array:
        return _ArrayWriter(field, version, is_flexible=is_flexible)
    write_value = _value_writer(field, version, is_flexible=is_flexible)
    if field.type == "struct" and version in field.nullable_versions:
        return _nullable_struct_writer(write_value, is_tagged=field.tag is not None)
    return write_value


def _value_writer(field: Field, version: int, *, is_flexible: bool) -> WriteValue:
    """Return the function that writes one value of a field's type."""
    match field.type:
        case "struct":
            return _StructWriter(field.fields, version, is_flexible=is_flexible)
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

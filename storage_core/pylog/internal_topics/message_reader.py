"""Reads messages of Kafka's schemas: non-flexible and flexible versions, tagged fields, nulls.

What comes out is a dictionary with exactly the fields that Kafka's JSON converters print, in their
order: fields of that version, and of the tagged ones those that are not at their default. Strings
are text, bytes are bytes, ids are `uuid.UUID`.

What the bytes cannot be is an `InvalidRecordError` in the words of Kafka's exception, since its
tools print them. Kafka has none where a message ends too early: `ENDS_EARLY`.

Memory is bounded by the bytes that are there: an array of n elements needs n bytes at least. But
each element takes some hundred bytes, so that the server limits their number (`Readable`).

Source: MessageDataGenerator, ByteBufferAccessor, ByteUtils (Kafka 4.3); KIP-482.
"""

from __future__ import annotations

import struct
import sys
import uuid
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from pylog.errors import InvalidRecordError
from pylog.internal_topics.schema import FIXED_CODES, runs
from pylog.record.java_utf8 import decode_utf8
from pylog.record.varint import decode_unsigned_varint

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.internal_topics.schema import Field, Message
    from pylog.internal_topics.versions import KafkaVersion

    ReadValue = Callable[["Readable"], Any]

ENDS_EARLY = "the message ends before its last field"
"""Why a message that is too short is refused; Kafka's exception has no text."""
_MAX_STRING_BYTES = 0x7FFF
_VARINT_BYTES = 5
_CONTINUED = 0x80
_FIXED = {kind: struct.Struct(f">{code}") for kind, code in FIXED_CODES.items()}
_INT8, _INT16, _INT32 = _FIXED["int8"], _FIXED["int16"], _FIXED["int32"]
_UUID_BYTES = 16
_KEPT_READERS = 512  # of messages in versions: more than exist, and what damage makes up is dropped


class TooManyElementsError(InvalidRecordError):
    """A message has more elements of arrays, and tagged fields, than its reader takes."""


class Readable:
    """Bytes, and how many of them have been read (Kafka: Readable).

    A message may have ``max_elements`` elements of arrays, and tagged fields, in all.
    """

    __slots__ = ("_data", "_max_elements", "_position", "elements")

    def __init__(self, data: bytes, max_elements: int = sys.maxsize) -> None:
        self._data = data
        self._position = 0
        self._max_elements = max_elements
        self.elements = 0

    def count(self, elements: int) -> None:
        """Have elements count that come next; `TooManyElementsError` before they are read."""
        self.elements += elements
        if self.elements > self._max_elements:
            reason = f"more than {self._max_elements} elements in its arrays"
            raise TooManyElementsError(reason)

    @property
    def remaining(self) -> int:
        """How many bytes are left."""
        return len(self._data) - self._position

    def fixed(self, layout: struct.Struct) -> Any:  # noqa: ANN401 - an integer or a float
        """Return the one value of ``layout`` that comes next."""
        try:
            (value,) = layout.unpack_from(self._data, self._position)
        except struct.error:
            raise InvalidRecordError(ENDS_EARLY) from None
        self._position += layout.size
        return value

    def fixed_ones(self, layout: struct.Struct) -> tuple[Any, ...]:
        """Return all values of ``layout``."""
        try:
            values = layout.unpack_from(self._data, self._position)
        except struct.error:
            raise InvalidRecordError(ENDS_EARLY) from None
        self._position += layout.size
        return values

    def int16(self) -> int:
        """Return the int16 that comes next, such as the version before a message."""
        return int(self.fixed(_INT16))

    def array(self, size: int) -> bytes:
        """Return the next ``size`` bytes."""
        if size > self.remaining:
            reason = (
                f"Error reading byte array of {size} byte(s): only {self.remaining} byte(s) "
                "available"
            )
            raise InvalidRecordError(reason)
        if size < 0:
            raise InvalidRecordError(str(size))
        start = self._position
        self._position += size
        return self._data[start : self._position]

    def unsigned_varint(self) -> int:
        """Return the next int32 of that form; a negative one takes 5 bytes."""
        if self._position < len(self._data) and self._data[self._position] < _CONTINUED:
            self._position += 1
            return self._data[self._position - 1]
        try:
            value, self._position = decode_unsigned_varint(
                self._data, self._position, len(self._data)
            )
        except InvalidRecordError:
            groups = self._data[self._position : self._position + _VARINT_BYTES]
            raise InvalidRecordError(_varint_reason(groups)) from None
        return _as_int32(value)

    def compact_length(self) -> int:
        """Return a length of a flexible version, -1 for null."""
        return _as_int32(self.unsigned_varint() - 1)


def _as_int32(value: int) -> int:
    return (value + 0x8000_0000) % 0x1_0000_0000 - 0x8000_0000


def _varint_reason(groups: bytes) -> str:
    if len(groups) < _VARINT_BYTES:
        return ENDS_EARLY
    value = groups[4] << 28 | sum((group & 0x7F) << 7 * i for i, group in enumerate(groups[:4]))
    return (
        "Varint is too long, the most significant bit in the 5th byte is set, converted value: "
        f"{value & 0xFFFFFFFF:x}"
    )


def read_message(
    message: Message,
    readable: Readable,
    version: int,
    kafka_version: KafkaVersion,
    *,
    fills_defaults: bool = False,
) -> dict[str, Any]:
    """Return the fields of the message that comes next.

    With ``fills_defaults`` these are all fields of the schema, as in Kafka's message classes.
    """
    return _message_reader(message, version, kafka_version, fills_defaults)(readable)


@lru_cache(maxsize=_KEPT_READERS)
def _message_reader(
    message: Message,
    version: int,
    kafka_version: KafkaVersion,
    fills_defaults: bool,  # noqa: FBT001 - a key of the cache
) -> _StructReader:
    versions = message.versions_of(kafka_version)
    # Kafka's generated code compares a version with those in which something changed.
    nearest = min(max(version, versions.start), versions.stop - 1)
    form = _Form(
        nearest,
        is_flexible=nearest in message.flexible_versions,
        kafka_version=kafka_version,
        unknown_version=version if version >= versions.stop else None,
        fills_defaults=fills_defaults,
    )
    return _StructReader(message.fields, form)


class _Form(NamedTuple):
    """What decides how a message's fields stand there."""

    version: int
    is_flexible: bool
    kafka_version: KafkaVersion
    unknown_version: int | None
    fills_defaults: bool


class _StructReader:
    """Reads a struct's fields, in one version of its message."""

    def __init__(self, fields: tuple[Field, ...], form: _Form) -> None:
        known = [field for field in fields if field.since <= form.kafka_version]
        self._form = form
        self._names = [field.name for field in known]
        untagged = [
            field for field in known if field.tag is None and form.version in field.versions
        ]
        self._steps = [
            (tuple(each.name for each in run), layout, _field_reader(run[0], form))
            for run, layout in runs(untagged)
        ]
        self._tagged = {
            field.tag: (field, _field_reader(field, form))
            for field in known
            if field.tag is not None
        }
        read = {field.name for field in untagged}
        self._absent = {
            field.name: field.default
            for field in known
            if form.fills_defaults and field.name not in read
        }

    def __call__(self, readable: Readable) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for names, layout, read in self._steps:
            if layout is None:
                values[names[0]] = read(readable)
            else:
                values.update(zip(names, readable.fixed_ones(layout), strict=True))
        values |= self._absent
        if not self._form.is_flexible:
            return values
        count = readable.unsigned_varint()
        if count <= 0:
            return values
        readable.count(count)
        for _ in range(count):
            self._read_tagged(readable, values)
        return {name: values[name] for name in self._names if name in values}

    def _read_tagged(self, readable: Readable, values: dict[str, Any]) -> None:
        """Read one tagged field into ``values``, unless it has its default or is not known."""
        tag = readable.unsigned_varint()
        size = readable.unsigned_varint()
        if tag not in self._tagged:
            readable.array(size)
            return
        field, read = self._tagged[tag]
        if self._form.version not in field.versions:
            reason = f"Tag {tag} is not valid for version {self._form.version}"
            raise InvalidRecordError(reason)
        value = read(readable)
        if value == field.default and not self._form.fills_defaults:
            values.pop(field.name, None)
        else:
            values[field.name] = value


def _field_reader(field: Field, form: _Form) -> ReadValue:
    is_nullable = form.version in field.nullable_versions
    if not field.is_array:
        if field.type == "struct" and is_nullable:
            return _nullable_struct_reader(field, form)
        return _value_reader(field, form, field.name, is_nullable=is_nullable)
    read_length = _length_reader(_INT32, is_flexible=form.is_flexible)
    read_element = _value_reader(field, form, f"{field.name} element", is_nullable=False)

    def read_array(readable: Readable) -> list[Any] | None:
        length = read_length(readable)
        if length < 0:
            _ensure_nullable(field.name, is_nullable=is_nullable)
            return None
        if length > readable.remaining:
            reason = (
                f"Tried to allocate a collection of size {length}, but there are only "
                f"{readable.remaining} bytes remaining."
            )
            raise InvalidRecordError(reason)
        readable.count(length)
        return [read_element(readable) for _ in range(length)]

    return read_array


def _value_reader(field: Field, form: _Form, name: str, *, is_nullable: bool) -> ReadValue:
    """Return what reads one value of a field's type, ``name`` in Kafka's errors."""
    match field.type:
        case "struct":
            return _struct_reader(field, form)
        case "bool":
            return lambda readable: readable.fixed(_INT8) != 0
        case "uuid":
            return _read_uuid
        case "string" | "bytes" | "records":
            return _text_reader(field.type, form, name, is_nullable=is_nullable)
        case _:
            layout = _FIXED[field.type]
            return lambda readable: readable.fixed(layout)


def _text_reader(kind: str, form: _Form, name: str, *, is_nullable: bool) -> ReadValue:
    """Return the function that reads a string or bytes."""
    is_string = kind == "string"
    read_length = _length_reader(_INT16 if is_string else _INT32, is_flexible=form.is_flexible)

    def read(readable: Readable) -> str | bytes | None:
        length = read_length(readable)
        if length < 0:
            _ensure_nullable(name, is_nullable=is_nullable)
            return None
        if not is_string:
            return readable.array(length)
        if length > _MAX_STRING_BYTES:
            reason = f"string field {name} had invalid length {length}"
            raise InvalidRecordError(reason)
        return decode_utf8(readable.array(length))

    return read


def _struct_reader(field: Field, form: _Form) -> ReadValue:
    if form.unknown_version is None or field.is_common:
        return _StructReader(field.fields, form)

    def refuse(_readable: Readable) -> NoReturn:
        reason = f"Can't read version {form.unknown_version} of {field.struct}"
        raise InvalidRecordError(reason)

    return refuse


def _nullable_struct_reader(field: Field, form: _Form) -> ReadValue:
    read_struct = _struct_reader(field, form)

    def read(readable: Readable) -> dict[str, Any] | None:
        if field.tag is None:
            is_null = readable.fixed(_INT8) < 0
        else:
            is_null = readable.unsigned_varint() <= 0
        return None if is_null else read_struct(readable)

    return read


def _length_reader(layout: struct.Struct, *, is_flexible: bool) -> Callable[[Readable], int]:
    if is_flexible:
        return Readable.compact_length
    return lambda readable: int(readable.fixed(layout))


def _ensure_nullable(name: str, *, is_nullable: bool) -> None:
    if not is_nullable:
        reason = f"non-nullable field {name} was serialized as null"
        raise InvalidRecordError(reason)


def _read_uuid(readable: Readable) -> uuid.UUID:
    if readable.remaining < _UUID_BYTES:
        raise InvalidRecordError(ENDS_EARLY)
    return uuid.UUID(bytes=readable.array(_UUID_BYTES))

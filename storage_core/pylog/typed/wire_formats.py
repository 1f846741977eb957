"""How values refer to the schema that they are written with, and where their payloads are.

==================  ===============================================================================
Confluent           ``00`` and an int32, or ``01`` and the 16 bytes of a GUID, before the payload;
                    or these in the header ``__value_schema_id`` (``__key_schema_id``), of which
                    the last one counts, and no prefix; Protobuf's message indexes are behind them
Apicurio            ``00`` and an int32, or in older versions an int64; or an int64 in the header
                    ``apicurio.value.contentId`` or ``.globalId`` (``apicurio.key.…``), and no
                    prefix
AWS Glue            ``03``, a byte that says how the payload is compressed (``00`` not, ``05`` by
                    zlib), and the 16 bytes of a UUID
==================  ===============================================================================

By headers, Apicurio names Protobuf's message in ``apicurio.protobuf.type`` (keys: ``….type.key``);
version 3 has it before the payload, too, as with a prefix. A header
``apicurio.value.encoding`` may say that Avro is JSON text, which is not read.

Numbers are big-endian. What has neither a header nor a prefix with an id that is known belongs to
no schema: the look of bytes decides nothing.

Source: SchemaId, HeaderSchemaIdSerializer, DualSchemaIdDeserializer (Confluent 8.2);
Default4ByteIdHandler, Legacy8ByteIdHandler, KafkaSerdeHeaders, AvroSerdeHeaders,
ProtobufSerdeHeaders (Apicurio Registry 3.1), ProtobufKafkaSerializer (2.6 and 3.1);
AWSSchemaRegistryConstants (Glue Schema Registry 1.1).
"""

from __future__ import annotations

import uuid
import zlib
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.columnar.arrow_buffers import present_rows
from pylog.typed.protobuf_indexes import reference_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy.typing as npt
    import pyarrow as pa

    from pylog.typed.known_schemas import KnownSchema, KnownSchemas

    Int64Array = npt.NDArray[np.int64]

_PREFIX_BYTES = 5
_LONG_PREFIX_BYTES = 9
_UUID_BYTES = 16
_GUID_PREFIX_BYTES = 1 + _UUID_BYTES
_GLUE_PREFIX_BYTES = 2 + _UUID_BYTES
_GLUE_ZLIB = 5
_NUMBER, _GUID, _GLUE = 0, 1, 3
_ID_BYTES = {bytes([_NUMBER]): _PREFIX_BYTES, bytes([_GUID]): _GUID_PREFIX_BYTES}
"""Of a header's content; behind them are Protobuf's message indexes."""


_ENCODINGS = {"key": "apicurio.key.encoding", "value": "apicurio.value.encoding"}
_MESSAGES = {"key": "apicurio.protobuf.type.key", "value": "apicurio.protobuf.type"}
"""Of keys and values, the headers beside Apicurio's ids."""


class Framing(Enum):
    """Whose way of referring to schemas it is: formats have prefixes of their own in some."""

    CONFLUENT = "Confluent's"
    APICURIO = "Apicurio's"
    GLUE = "AWS Glue's"
    NONE = "none"


class SchemaGroup(NamedTuple):
    """The values of a column that one schema has written."""

    schema: KnownSchema
    framing: Framing
    rows: Int64Array
    starts: Int64Array
    ends: Int64Array


class FramedColumn(NamedTuple):
    """What a column's values refer to.

    Attributes
    ----------
    data
        The bytes that all payloads lie in.
    groups
        The values whose schema is known.
    failures
        Why it is not, by row; nulls are in neither.
    """

    data: npt.NDArray[np.uint8]
    groups: list[SchemaGroup]
    failures: dict[int, str]


class _Headers:
    """The headers of a column's rows, by name the last one."""

    def __init__(self, headers: pa.Array) -> None:
        ends = np.frombuffer(headers.buffers()[1], np.int32)
        self._ends = ends[headers.offset : headers.offset + len(headers) + 1]
        self._names = headers.values.field("key")
        self._values = headers.values.field("value")

    def last(self, name: str) -> dict[int, bytes]:
        """Return the content of the rows' last header of that name."""
        places = np.flatnonzero(_equal(self._names, name))
        rows = np.searchsorted(self._ends, places, side="right") - 1
        last = dict(zip(rows.tolist(), places.tolist(), strict=True))
        return {
            row: self._values[place].as_py() or b""
            for row, place in last.items()
            if 0 <= row < self._ends.size - 1
        }


def schema_headers(field: str) -> tuple[str, str, str]:
    """Return the headers that say what schema keys, or values, have; Confluent's comes first."""
    apicurio = f"apicurio.{field}"
    return f"__{field}_schema_id", f"{apicurio}.contentId", f"{apicurio}.globalId"


def whole_values(column: pa.Array, schema: KnownSchema) -> FramedColumn:
    """Return the values of a column as payloads without a prefix, all of one schema."""
    data, starts, ends = _bounds(column)
    rows = np.flatnonzero(present_rows(column))
    group = SchemaGroup(schema, Framing.NONE, rows, starts[rows], ends[rows])
    return FramedColumn(data, [group] if rows.size else [], {})


def framed_values(
    column: pa.Array,
    headers: pa.Array | None,
    field: str,
    known: KnownSchemas,
    *,
    says_why: bool = True,
) -> FramedColumn:
    """Return what the values of a column, the keys or the values of records, refer to.

    ``says_why``: whether values without a prefix and a header are failures.
    """
    return _Framing(column, field, known).framed(headers, says_why=says_why)


def _bounds(column: pa.Array) -> tuple[npt.NDArray[np.uint8], Int64Array, Int64Array]:
    _, offsets_buffer, data_buffer = column.buffers()
    narrow = np.frombuffer(offsets_buffer or bytes(4), dtype=np.int32)
    offsets = narrow[column.offset : column.offset + len(column) + 1].astype(np.int64)
    data = np.frombuffer(data_buffer or b"", dtype=np.uint8)
    return data, offsets[:-1], offsets[1:]


class _Framing:
    def __init__(self, column: pa.Array, field: str, known: KnownSchemas) -> None:
        self._data, self._starts, self._ends = _bounds(column)
        self._field, self._known = field, known
        self._open = present_rows(column).copy()  # the rows whose schema is still unknown
        self._groups: list[SchemaGroup] = []
        self._failures: dict[int, str] = {}

    def framed(self, headers: pa.Array | None, *, says_why: bool) -> FramedColumn:
        if headers is not None and headers.null_count < len(headers):
            self._by_headers(headers)
        rows = np.flatnonzero(self._open & (self._ends > self._starts))
        if rows.size:
            kinds = self._data[self._starts[rows]]
            self._by_number(rows[kinds == _NUMBER])
            self._by_guid(rows[kinds == _GUID], 1, Framing.CONFLUENT)
            self._by_guid(rows[kinds == _GLUE], 2, Framing.GLUE)
        for row in np.flatnonzero(self._open).tolist() if says_why else ():
            self._failures.setdefault(row, self._no_prefix(row))
        return FramedColumn(self._data, self._groups, self._failures)

    def _no_prefix(self, row: int) -> str:
        start = int(self._starts[row])
        size = int(self._ends[row]) - start
        if not size:
            return "it is empty: no schema id, and no header with one"
        first = self._data[start : start + min(size, _PREFIX_BYTES)].tobytes().hex(" ")
        return f"it starts with {first}, which is no schema id, and no header has one"

    def _take(
        self, rows: Int64Array, schema: KnownSchema, framing: Framing, prefix_bytes: int
    ) -> None:
        starts, ends = self._starts[rows] + prefix_bytes, self._ends[rows]
        self._groups.append(SchemaGroup(schema, framing, rows, starts, ends))
        self._open[rows] = False

    def _refuse(self, rows: Int64Array, reason: str) -> None:
        self._failures.update(dict.fromkeys(rows.tolist(), reason))
        self._open[rows] = False

    # By the bytes before the payload.

    def _by_number(self, rows: Int64Array) -> None:
        sizes = self._ends[rows] - self._starts[rows]
        rows = rows[sizes >= _PREFIX_BYTES]
        numbers = self._numbers(rows, 4)
        for number, some in _each(rows, numbers):
            schema = self._known.by_id.get(number)
            if schema is not None:
                self._take(some, schema, Framing.CONFLUENT, _PREFIX_BYTES)
            elif number:
                self._refuse(some, f"no schema has the id {number}")
            else:
                self._by_long(some)

    def _by_long(self, rows: Int64Array) -> None:
        """Take ids of 8 bytes; no registry gives the id 0, which the first half would be."""
        sizes = self._ends[rows] - self._starts[rows]
        rows = rows[sizes >= _LONG_PREFIX_BYTES]
        for number, some in _each(rows, self._numbers(rows, 8)):
            schema = self._known.by_id.get(number)
            if schema is not None:
                self._take(some, schema, Framing.APICURIO, _LONG_PREFIX_BYTES)

    def _numbers(self, rows: Int64Array, width: int) -> Int64Array:
        # A number at every byte: those that are wanted need not be put together byte by byte.
        places = max(0, self._data.size - width + 1)
        at_any_byte = np.ndarray(places, f">i{width}", self._data, strides=(1,))
        numbers: Int64Array = at_any_byte[self._starts[rows] + 1].astype(np.int64)
        return numbers

    def _by_guid(self, rows: Int64Array, at: int, framing: Framing) -> None:
        sizes = self._ends[rows] - self._starts[rows]
        rows = rows[sizes >= at + _UUID_BYTES]
        if not rows.size:
            return
        digits = self._data[self._starts[rows][:, None] + np.arange(at, at + _UUID_BYTES)]
        found, which = np.unique(digits, axis=0, return_inverse=True)
        for number, content in enumerate(found):
            some = rows[which.reshape(-1) == number]
            name = str(uuid.UUID(bytes=content.tobytes()))
            schema = self._known.by_uuid.get(name)
            if schema is None:
                self._refuse(some, f"no schema has the UUID {name}")
            elif framing is Framing.GLUE:
                self._glue(some, schema)
            else:
                self._take(some, schema, framing, _GUID_PREFIX_BYTES)

    def _glue(self, rows: Int64Array, schema: KnownSchema) -> None:
        ways = self._data[self._starts[rows] + 1]
        self._take(rows[ways == 0], schema, Framing.GLUE, _GLUE_PREFIX_BYTES)
        packed = rows[ways == _GLUE_ZLIB]
        if packed.size:
            self._unpack(packed, schema)
        for row in rows[(ways != 0) & (ways != _GLUE_ZLIB)].tolist():
            way = int(self._data[self._starts[row] + 1])
            self._refuse(np.array([row]), f"compression is {way}, expected 0 or 5")

    def _unpack(self, rows: Int64Array, schema: KnownSchema) -> None:
        payloads = {}
        for row in rows.tolist():
            start = int(self._starts[row]) + _GLUE_PREFIX_BYTES
            payload = _decompressed(self._data[start : self._ends[row]].tobytes())
            if payload is None:
                self._refuse(np.array([row]), "the payload is not one zlib stream of up to 64 MiB")
            else:
                payloads[row] = payload
        self._take_made(payloads, schema, Framing.GLUE)

    def _take_made(
        self, payloads: Mapping[int, bytes], schema: KnownSchema, framing: Framing
    ) -> None:
        """Take payloads that do not lie in the column as they are."""
        rows = np.array([*payloads], dtype=np.int64)
        bounds = self._data.size + np.cumsum([0, *map(len, payloads.values())], dtype=np.int64)
        made = np.frombuffer(b"".join(payloads.values()), np.uint8)
        self._data = np.concatenate([self._data, made])
        self._groups.append(SchemaGroup(schema, framing, rows, bounds[:-1], bounds[1:]))
        self._open[rows] = False

    # By headers.

    def _by_headers(self, column: pa.Array) -> None:
        headers = _Headers(column)
        for name, framing, find in self._headers():
            by_content: dict[bytes, list[int]] = {}
            for row, content in headers.last(name).items():
                if self._open[row]:
                    by_content.setdefault(content, []).append(row)
            for content, some in by_content.items():
                group_rows = np.array(some, dtype=np.int64)
                schema = find(content)
                indexes = content[_ID_BYTES.get(content[:1], len(content)) :]
                if schema is None:
                    reason = f"no schema has the id {content.hex() or '(none)'} of header {name}"
                    self._refuse(group_rows, reason)
                elif framing is Framing.APICURIO:
                    self._by_apicurio(headers, group_rows, schema)
                elif indexes:
                    behind = {row: indexes + self._value(row) for row in some}
                    self._take_made(behind, schema, framing)
                else:
                    self._take(group_rows, schema, framing, 0)

    def _by_apicurio(self, headers: _Headers, rows: Int64Array, schema: KnownSchema) -> None:
        """Take values of one of Apicurio's schemas, as far as other headers allow it."""
        if schema.type == "AVRO":
            encodings = headers.last(_ENCODINGS[self._field])
            as_text = [row for row in rows.tolist() if encodings.get(row) == b"JSON"]
            self._refuse(np.array(as_text, np.int64), "it is Avro as JSON text, which is not read")
            rows = rows[self._open[rows]]
        elif schema.type == "PROTOBUF":
            named = headers.last(_MESSAGES[self._field])
            behind = {}
            for row in rows.tolist():
                reference, value = reference_to(named.get(row, b"")), self._value(row)
                if row in named and not value.startswith(reference):
                    behind[row] = reference + value
            if behind:
                self._take_made(behind, schema, Framing.APICURIO)
            rows = rows[self._open[rows]]
        if rows.size:
            self._take(rows, schema, Framing.APICURIO, 0)

    def _value(self, row: int) -> bytes:
        return self._data[self._starts[row] : self._ends[row]].tobytes()

    def _headers(
        self,
    ) -> Iterator[tuple[str, Framing, Callable[[bytes], KnownSchema | None]]]:
        confluent, *apicurio = schema_headers(self._field)
        yield confluent, Framing.CONFLUENT, self._of_schema_id
        for name in apicurio:
            yield name, Framing.APICURIO, self._of_long

    def _of_schema_id(self, content: bytes) -> KnownSchema | None:
        size = _ID_BYTES.get(content[:1], len(content) + 1)
        if len(content) < size:
            return None
        found = (
            self._known.by_uuid.get(str(uuid.UUID(bytes=content[1:size])))
            if content[0] == _GUID
            else self._known.by_id.get(int.from_bytes(content[1:size], "big"))
        )
        has_indexes = len(content) > size
        return None if found is None or (has_indexes and found.type != "PROTOBUF") else found

    def _of_long(self, content: bytes) -> KnownSchema | None:
        return self._known.by_id.get(int.from_bytes(content, "big", signed=True))


def _each(rows: Int64Array, numbers: Int64Array) -> Iterator[tuple[int, Int64Array]]:
    """Yield each number, and its rows."""
    if not rows.size:
        return
    if (numbers == numbers[0]).all():  # as a rule
        yield int(numbers[0]), rows
        return
    for number in np.unique(numbers).tolist():
        yield number, rows[numbers == number]


def _equal(names: pa.Array, name: str) -> npt.NDArray[np.bool_]:
    """Return which texts are ``name``, as they are in the buffers that headers have."""
    ends = np.frombuffer(names.buffers()[1] or bytes(4), np.int32)
    ends = ends[names.offset : names.offset + len(names) + 1]
    data = np.frombuffer(names.buffers()[2] or b"", np.uint8)
    wanted = np.frombuffer(name.encode(), np.uint8)
    is_equal: npt.NDArray[np.bool_] = np.diff(ends) == wanted.size
    places = np.flatnonzero(is_equal)
    if places.size:
        texts = data[ends[places].astype(np.int64)[:, None] + np.arange(wanted.size)]
        is_equal[places] = (texts == wanted).all(axis=1)
    return is_equal


_MOST_DECOMPRESSED = 1 << 26


def _decompressed(content: bytes) -> bytes | None:
    stream = zlib.decompressobj()
    try:
        payload = stream.decompress(content, _MOST_DECOMPRESSED)
    except zlib.error:
        return None
    return payload if stream.eof and not stream.unused_data else None

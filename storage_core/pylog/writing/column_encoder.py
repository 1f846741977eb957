"""Keys or values of records to bytes that refer to a schema, as Confluent's serializers write them.

======  ===========================================================================================
prefix  ``00``, the id as an int32, [Protobuf's message indexes], the payload
header  ``__value_schema_id`` (``__key_schema_id``): ``01``, the GUID, [the indexes]; the value is
        the payload
======  ===========================================================================================

Other headers that say what schema a value has are left out: they were those of another value.

Source: SchemaId, PrefixSchemaIdSerializer, HeaderSchemaIdSerializer (Schema Registry 8.2).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from pylog.columnar.arrow_schema import HEADERS_TYPE
from pylog.record_lines.typed_json import json_texts
from pylog.typed.encoder import JSON_VALUES, UnencodableError, ValueEncoder
from pylog.typed.schema_formats import reader_of
from pylog.typed.wire_formats import schema_headers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pylog.typed.known_schemas import KnownSchema

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class ColumnEncoder:
    """Encodes keys, or values; may be sent to other processes.

    Attributes
    ----------
    name
        ``key`` or ``value``.
    schema
        The schema, with its id.
    guid
        Its GUID, if a header is to have it; None for a prefix.
    """

    name: str
    schema: KnownSchema
    guid: str | None = None
    _encoders: dict[bool, ValueEncoder] = field(default_factory=dict, compare=False)

    def __reduce__(self) -> tuple[object, ...]:
        """Leave encoders behind: they are made where they are used."""
        return ColumnEncoder, (self.name, self.schema, self.guid)

    def encode(self, value: object, *, is_json: bool) -> bytes | None:
        """Return the bytes of a value, null for null; `ValueError` if the schema does not take it.

        ``is_json``: text stands for bytes, in base64, where the schema has bytes.
        """
        if value is None:
            return None
        encoder = self._encoder(is_json=is_json)
        try:
            payload = encoder.encode(value)
        except UnencodableError as error:
            raise ValueError(
                f"the {self.name} cannot be encoded by schema {self.schema.id}: {error}"
            ) from None
        if self.guid is not None:
            return payload
        return b"\0" + int(self.schema.id or 0).to_bytes(4, "big") + encoder.indexes + payload

    def _encoder(self, *, is_json: bool) -> ValueEncoder:
        encoder = self._encoders.get(is_json)
        if encoder is None:
            encoder = self._encoders[is_json] = reader_of(self.schema).encoder(is_json=is_json)
        return encoder

    def headers(self, headers: Headers, value: bytes | None) -> Headers:
        """Return the headers of a record whose key, or value, was encoded."""
        stale = schema_headers(self.name)
        kept = tuple(each for each in headers if each[0] not in stale)
        if self.guid is None or value is None:
            return kept
        indexes = self._encoder(is_json=True).indexes
        return (*kept, (stale[0], b"\1" + uuid.UUID(self.guid).bytes + indexes))


def encode_columns(
    batch: pa.RecordBatch, encoders: Mapping[str, ColumnEncoder], first_row: int = 0
) -> pa.RecordBatch:
    """Return records whose typed keys and values are bytes.

    Raises
    ------
    ValueError
        A schema does not take a value: names the row, which is counted from ``first_row``, and the
        path into the value.
    """
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for name, encoder in encoders.items():
        if name not in columns:
            continue
        encoded = _encoded(columns[name], encoder, first_row)
        columns[name] = pa.array(encoded, pa.binary())
        headers = _with_headers(columns.get("headers"), encoder, encoded)
        if headers is not None:
            columns["headers"] = headers
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _encoded(column: pa.Array, encoder: ColumnEncoder, first_row: int) -> list[bytes | None]:
    """Return the values of a column as bytes: by way of JSON, which has all their digits."""
    encoded = []
    try:
        texts = json_texts(_plain(column), names_members=True).to_pylist()
    except TypeError:
        raise ValueError(f"a column of type {column.type} cannot be encoded: cast it") from None
    for row, text in enumerate(texts, first_row):
        try:
            encoded.append(encoder.encode(JSON_VALUES.decode(text), is_json=True))
        except ValueError as error:
            raise ValueError(f"row {row}: {error}") from None
    return encoded


def _with_headers(
    column: pa.Array | None, encoder: ColumnEncoder, encoded: list[bytes | None]
) -> pa.Array | None:
    if column is None:
        if encoder.guid is None:
            return None
        column = pa.nulls(len(encoded), HEADERS_TYPE)
    rows = []
    for each, value in zip(column.to_pylist(), encoded, strict=True):
        given = tuple((header["key"], header["value"]) for header in each or ())
        rows.append([*encoder.headers(given, value)] or None)
    made = [
        None if each is None else [{"key": name, "value": content} for name, content in each]
        for each in rows
    ]
    return pa.array(made, HEADERS_TYPE)


def _plain(column: pa.Array) -> pa.Array:
    """Return a column of the types that scans have: those of other engines are cast."""
    kind = _plain_type(column.type)
    if kind == column.type:
        return column
    try:
        return column.cast(kind)
    except pa.ArrowNotImplementedError:
        raise ValueError(f"a column of type {column.type} cannot be encoded: cast it") from None


_CAST = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
    pa.float16(): pa.float32(),
}


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if kind in _CAST:
        return _CAST[kind]
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _plain_type(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_type(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    return kind

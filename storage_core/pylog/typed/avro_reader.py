"""Reads Avro values as one schema has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import InvalidSchemaError
from pylog.typed.avro_columns import Layout
from pylog.typed.avro_compatibility import incompatibilities
from pylog.typed.avro_decoder import AvroDecoder
from pylog.typed.avro_encoder import AvroEncoder
from pylog.typed.avro_merging import merged_type
from pylog.typed.avro_schema import parse_schema
from pylog.typed.wire_formats import Framing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from pylog.typed.avro_schema import AvroType
    from pylog.typed.known_schemas import KnownSchema


class AvroReader:
    """The reader of a schema; see `SchemaReader`."""

    def __init__(self, schema: KnownSchema) -> None:
        versions = [_parsed(each) for each in (schema, *schema.others)]
        for each in versions:
            Layout(each)  # which refuses what is too large to be compared
        self._reader = merged_type(versions)
        self._type = Layout(self._reader).root.type

    @property
    def type(self) -> pa.DataType:
        """The type of the values."""
        return self._type

    def decoder(self, writer: KnownSchema, framing: Framing) -> AvroDecoder:
        """Return the decoder of what a schema wrote; `InvalidSchemaError` if there is none."""
        is_raw = framing is Framing.CONFLUENT
        return AvroDecoder(_parsed(writer), self._reader, is_raw_bytes=is_raw)

    def encoder(self, *, is_json: bool) -> AvroEncoder:
        """Return what encodes values as the schema has them."""
        return AvroEncoder(self._reader, is_json=is_json, is_raw_bytes=True)


def incompatible_versions(
    level: str, new: KnownSchema, previous: Sequence[KnownSchema]
) -> list[str]:
    """Return why a schema cannot follow the versions of its subject; see `incompatibilities`."""
    return incompatibilities(level, _parsed(new), [_parsed(each) for each in previous])


def _parsed(schema: KnownSchema) -> AvroType:
    try:
        return parse_schema(schema.text, [text for _, text in schema.references])
    except InvalidSchemaError as error:
        raise InvalidSchemaError(f"{schema}: {error.reason}") from None

"""Reads JSON values as a JSON Schema, or a type in Spark's words, has them.

JSON says itself what its values are, so whichever schema a value was written with, it is read as
the reader's schema has it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pylog.errors import InvalidSchemaError
from pylog.typed.json_encoder import JsonEncoder
from pylog.typed.json_schema import field_of_json_schema
from pylog.typed.json_types import node_of
from pylog.typed.json_values import JsonDecoder
from pylog.typed.spark_ddl import field_of_ddl

if TYPE_CHECKING:
    import pyarrow as pa

    from pylog.typed.known_schemas import KnownSchema
    from pylog.typed.wire_formats import Framing

_IS_JSON = re.compile(r"\s*(?:\{|true\b|false\b|\[|\Z)")


class JsonReader:
    """The reader of a schema; see `SchemaReader`."""

    def __init__(self, schema: KnownSchema) -> None:
        try:
            if _IS_JSON.match(schema.text):
                self._field = field_of_json_schema(schema.text, dict(schema.references))
            else:
                self._field = field_of_ddl(schema.text)
            self._type = node_of(self._field).type
        except ValueError as error:
            raise InvalidSchemaError(f"{schema}: {error}") from None

    @property
    def type(self) -> pa.DataType:
        """The type of the values."""
        return self._type

    def decoder(self, writer: KnownSchema, framing: Framing) -> JsonDecoder:
        """Return the decoder of what a schema wrote; `InvalidSchemaError` if there is none."""
        if writer.type != "JSON":
            raise InvalidSchemaError(f"{writer} is of the type {writer.type}, expected JSON")
        del framing  # says nothing of JSON
        return JsonDecoder(self._field)

    def encoder(self, *, is_json: bool) -> JsonEncoder:
        """Return what encodes values as the schema has them."""
        del is_json  # text is text in either case
        return JsonEncoder(self._field)

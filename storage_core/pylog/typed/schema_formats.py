"""The formats of values: what makes decoders for the schemas of each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

from pylog.errors import InvalidSchemaError
from pylog.text.jackson import jackson_text
from pylog.typed.avro_reader import AvroReader, incompatible_versions
from pylog.typed.avro_text import canonical_text
from pylog.typed.json_format import JsonReader
from pylog.typed.protobuf_format import ProtobufReader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from pylog.typed.decoder import Decoder
    from pylog.typed.encoder import ValueEncoder
    from pylog.typed.known_schemas import KnownSchema
    from pylog.typed.wire_formats import Framing


class SchemaReader(Protocol):
    """Reads values as one schema has them, whichever schema of the same format wrote them."""

    @property
    def type(self) -> pa.DataType:
        """The type of the values."""

    def decoder(self, writer: KnownSchema, framing: Framing) -> Decoder:
        """Return the decoder of what a schema wrote; `InvalidSchemaError` if there is none."""

    def encoder(self, *, is_json: bool) -> ValueEncoder:
        """Return what encodes values by the schema; ``is_json``: text may stand for bytes."""


FORMATS: Mapping[str, Callable[[KnownSchema], SchemaReader]] = {
    "AVRO": AvroReader,
    "JSON": JsonReader,
    "PROTOBUF": ProtobufReader,
}
"""What makes the reader of a schema, by the type that registries call it."""
_MERGED = ("AVRO",)


def reader_of(schema: KnownSchema) -> SchemaReader:
    """Return what reads values as ``schema`` has them.

    Raises
    ------
    InvalidSchemaError
        The schema is wrong, or of a format that has no columns yet.
    """
    make = FORMATS.get(schema.type)
    if make is None:
        known = ", ".join(FORMATS)
        raise InvalidSchemaError(f"{schema} is of the type {schema.type}, expected {known}")
    if schema.others and schema.type not in _MERGED:
        msg = f"{schema} is of the type {schema.type}: all versions together are for Avro alone"
        raise InvalidSchemaError(msg)
    return make(schema)


def registered_text(schema: KnownSchema) -> str:
    """Return the text by which a registry keeps a schema; `InvalidSchemaError` if it is wrong.

    Of Protobuf it is the text as it was given: a registry has a form of its own, so that it may
    take the same schema for a new one.
    """
    reader_of(schema)
    if schema.type == "AVRO":
        return canonical_text(schema.text, [text for _, text in schema.references])
    if schema.type == "PROTOBUF":
        return schema.text
    try:
        return jackson_text(json.loads(schema.text))
    except ValueError:
        raise InvalidSchemaError("a registry keeps JSON Schemas, not Spark's types") from None


def ensure_compatible(level: str, new: KnownSchema, previous: Sequence[KnownSchema]) -> None:
    """Raise `InvalidSchemaError` if a schema may not follow others, from the oldest on."""
    if level == "NONE" or not previous:
        return
    if any(each.type != new.type for each in previous):
        reasons = [f"it is of the type {new.type}, the versions before are {previous[-1].type}"]
    elif new.type == "AVRO":
        reasons = incompatible_versions(level, new, previous)
    else:
        reasons = [f"only NONE is known here for the type {new.type}, the others for AVRO"]
    if reasons:
        more = f"; and {len(reasons) - 3} more" if len(reasons) > 3 else ""
        raise InvalidSchemaError(
            f"the schema is not compatible ({level}) with the versions before: "
            f"{'; '.join(reasons[:3])}{more}",
        )

"""Reads Protobuf values as one schema has them."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.errors import InvalidSchemaError
from pylog.record_lines.arrow_functions import take
from pylog.typed.decoder import Decoded, Payloads
from pylog.typed.protobuf_descriptor import read_descriptor
from pylog.typed.protobuf_encoder import ProtobufEncoder, indexes_of
from pylog.typed.protobuf_indexes import MessageIndexes
from pylog.typed.protobuf_schema import ProtoSchema
from pylog.typed.protobuf_text import parse_proto
from pylog.typed.protobuf_types import node_of_message
from pylog.typed.protobuf_values import ProtobufDecoder
from pylog.typed.protobuf_well_known import TEXTS
from pylog.typed.wire_formats import Framing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pylog.typed.known_schemas import KnownSchema
    from pylog.typed.protobuf_schema import ProtoFile, ProtoMessage
    from pylog.typed.protobuf_types import ProtoNode

_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+=*\s*")


class ProtobufReader:
    """The reader of a schema; see `SchemaReader`.

    Values are read by the numbers of their fields, as all readers of Protobuf do, so that a field
    that was renamed keeps its values. Columns are those of one message: the first of the file,
    unless the schema names another; of which message a value is, its writer's schema says.

    Parameters
    ----------
    schema
        Whose fields columns have, and of which message.
    """

    def __init__(self, schema: KnownSchema) -> None:
        self._indexes = schema.message_indexes
        parsed = _parsed(schema)
        if not parsed.file.messages:
            raise InvalidSchemaError(f"{schema}: it has no message")
        self._messages = parsed.file.messages
        self._message = schema.message or parsed.file.messages[0].name
        try:
            self._root: ProtoNode = node_of_message(parsed, self._message)
        except ValueError as error:
            raise InvalidSchemaError(f"{schema}: {error}") from None

    @property
    def type(self) -> pa.DataType:
        """The type of the values."""
        return self._root.type

    def decoder(self, writer: KnownSchema, framing: Framing) -> MessageDecoder:
        """Return the decoder of what a schema wrote; `InvalidSchemaError` if there is none."""
        if writer.type != "PROTOBUF":
            raise InvalidSchemaError(f"{writer} is of the type {writer.type}, expected PROTOBUF")
        if framing is Framing.NONE:
            return MessageDecoder(self._root, self._message, None)
        indexes = _indexes(writer, framing, self._indexes)
        return MessageDecoder(self._root, self._message, indexes)

    def encoder(self, *, is_json: bool) -> ProtobufEncoder:
        """Return what encodes messages as the schema has them."""
        path = _path_of(self._messages, self._message)
        if path is None:
            raise InvalidSchemaError(f"message {self._message} is not of the schema's own file")
        return ProtobufEncoder(self._root, indexes_of(path), is_json=is_json)


def _path_of(messages: Sequence[ProtoMessage], name: str) -> list[int] | None:
    """Return the place of a message in its file, the outermost one first."""
    for place, each in enumerate(messages):
        if each.name == name:
            return [place]
        inner = _path_of(each.messages, name)
        if inner is not None:
            return [place, *inner]
    return None


class MessageDecoder:
    """Decodes payloads of one message, before which stands of which they are."""

    def __init__(self, root: ProtoNode, message: str, indexes: MessageIndexes | None) -> None:
        self._decoder = ProtobufDecoder(root)
        self._message = message
        self._indexes = indexes

    @property
    def type(self) -> pa.DataType:
        """The type of the values."""
        return self._decoder.type

    def decode(self, payloads: Payloads) -> Decoded:
        """Return a value for each payload; damage in one does not touch the others."""
        if self._indexes is None:
            return self._decoder.decode(payloads)
        failures: dict[int, str] = {}
        parts: list[pa.Array] = []
        places = np.full(len(payloads), -1, dtype=np.int64)
        count = 0
        for group in self._indexes.split(payloads):
            if group.name != self._message:
                reason = (
                    group.reason
                    if group.name is None
                    else (f"it is a {group.name}, and the columns are of {self._message}")
                )
                failures.update(dict.fromkeys(group.rows.tolist(), reason))
                continue
            ends = payloads.ends[group.rows]
            decoded = self._decoder.decode(Payloads(payloads.data, group.starts, ends))
            for place, reason in decoded.failures.items():
                failures[int(group.rows[place])] = reason
            places[group.rows] = np.arange(count, count + group.rows.size)
            count += group.rows.size
            parts.append(decoded.values)
        if len(parts) == 1 and count == len(payloads):
            return Decoded(parts[0], failures)
        together = pa.concat_arrays([*parts, pa.nulls(0, self.type)])
        return Decoded(take(together, pa.array(places, mask=places < 0)), failures)


def messages_met(
    writer: KnownSchema, framing: Framing, payloads: Payloads, encoding: str = "spec"
) -> set[str]:
    """Return the names of the messages that payloads are of."""
    groups = _indexes(writer, framing, encoding).split(payloads)
    return {group.name for group in groups if group.name is not None and group.rows.size}


def _indexes(writer: KnownSchema, framing: Framing, encoding: str) -> MessageIndexes:
    ways = {Framing.GLUE: "glue", Framing.NONE: "none", Framing.APICURIO: "ref"}
    return MessageIndexes(_parsed(writer).file, ways.get(framing, encoding))


def _parsed(schema: KnownSchema) -> ProtoSchema:
    try:
        return _with_imports(schema.text, dict(schema.references))
    except ValueError as error:
        raise InvalidSchemaError(f"{schema}: {error}") from None


def _with_imports(text: str, given: Mapping[str, str]) -> ProtoSchema:
    file = _file(text)
    files: dict[str, ProtoFile] = {}
    waiting = list(file.imports)
    while waiting:
        name = waiting.pop()
        if name in files:
            continue
        imported = given.get(name, TEXTS.get(name))
        if imported is None:
            raise ValueError(f"it imports {name!r}, which is not there")
        files[name] = _file(imported)
        waiting += files[name].imports
    return ProtoSchema(file, files.values())


def _file(text: str) -> ProtoFile:
    """Return what a schema says: its text, or its descriptor in base64."""
    if _BASE64.fullmatch(text):
        try:
            return read_descriptor(base64.b64decode(text, validate=False))
        except binascii.Error:
            pass
    return parse_proto(text)

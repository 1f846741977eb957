"""A column of bytes as a column of values: each by the schema that it refers to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from pylog.columnar.arrow_buffers import fixed_width_array
from pylog.columnar.nested_casts import cast_leaves
from pylog.errors import InvalidSchemaError
from pylog.record_lines.arrow_functions import take
from pylog.typed.decoder import Decoded, DecodedTooLargeError, Payloads
from pylog.typed.schema_formats import reader_of
from pylog.typed.wire_formats import FramedColumn, Framing, framed_values, whole_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from pylog.typed.decoder import Decoder
    from pylog.typed.known_schemas import KnownSchema, KnownSchemas
    from pylog.typed.schema_formats import SchemaReader

_MOST_DECODERS = 1000
_TOO_LARGE = "it decodes to more than 512 MiB"


class DecodedColumn(NamedTuple):
    """What a column's values are.

    Attributes
    ----------
    values
        Of the column's type; null where a value is null, or cannot be decoded.
    failures
        Why it cannot, by row, with the schema's id if it has one.
    schemas
        The schemas that values refer to, each with the rows.
    """

    values: pa.Array
    failures: dict[int, tuple[int | str | None, str]]
    schemas: list[tuple[KnownSchema, npt.NDArray[np.int64]]]


@dataclass(slots=True)
class TypedColumn:
    """Decodes keys, or values, of records; made once, and sent to whatever reads a part of them.

    Attributes
    ----------
    name
        ``key`` or ``value``.
    type
        The type of the values, whatever the topic; null where topics have different ones.
    readers
        For each topic, the schema whose fields the values have.
    known
        The schemas that values may refer to.
    unframed
        The schema of values that have no prefix; None if prefixes and headers decide.
    only_type
        The only type of schemas that is read; None for any.
    subjects
        For each topic, whose schemas alone may be met there, and what it is called; other ids are
        failures. A topic that is not in it takes any.
    types
        For each topic, the type of its values, where topics have different ones.
    as_bytes
        The topics that have no schema: their values stay bytes.
    newer
        Returns the schemas that there are now: for reads that go on while schemas are registered.
        It is asked once, at the first value whose schema is not known.
    """

    name: str
    type: pa.DataType
    readers: Mapping[str, KnownSchema]
    known: KnownSchemas
    unframed: KnownSchema | None = None
    only_type: str | None = None
    subjects: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    as_bytes: frozenset[str] = frozenset()
    newer: Callable[[], KnownSchemas] | None = None
    _has_asked: bool = field(default=False, compare=False)
    _readers: dict[str, SchemaReader] = field(default_factory=dict, compare=False)
    _decoders: dict[tuple[str, str, Framing], Decoder | str] = field(
        default_factory=dict, compare=False
    )

    def __reduce__(self) -> tuple[object, ...]:
        """Leave decoders behind: they are made where they are used."""
        return TypedColumn, self._whole()

    def _whole(self) -> tuple[Any, ...]:
        schemas = self.readers, self.known, self.unframed
        topics = self.subjects, self.types, self.as_bytes
        return (self.name, self.type, *schemas, self.only_type, *topics, self.newer)

    def type_of(self, topic: str) -> pa.DataType:
        """Return the type of a topic's values."""
        return pa.binary() if topic in self.as_bytes else self.types.get(topic, self.type)

    def copy(self) -> TypedColumn:
        """Return one with decoders of its own."""
        return TypedColumn(*self._whole())

    def following(self, newer: Callable[[], KnownSchemas]) -> TypedColumn:
        """Return one that asks for newer schemas."""
        found = self.copy()
        found.newer = newer
        return found

    @property
    def needs_headers(self) -> bool:
        """Whether headers may say which schema it is."""
        return self.unframed is None

    def decode(self, column: pa.Array, headers: pa.Array | None, topic: str) -> DecodedColumn:
        """Return the values of a column of bytes."""
        if topic in self.as_bytes:
            found = framed_values(column, headers, self.name, self.known, says_why=False)
            groups = [(group.schema, group.rows) for group in found.groups if group.rows.size]
            return DecodedColumn(column, {}, groups)
        framed = self._framed(column, headers)
        failures: dict[int, tuple[int | str | None, str]] = {
            row: (None, reason) for row, reason in framed.failures.items()
        }
        parts: list[pa.Array] = []
        places = np.full(len(column), -1, dtype=np.int64)
        count = 0
        for group in framed.groups:
            payloads = Payloads(framed.data, group.starts, group.ends)
            decoder = self._decoder(topic, group.schema, group.framing)
            if isinstance(decoder, str):
                failures.update(dict.fromkeys(group.rows.tolist(), (group.schema.id, decoder)))
                continue
            for first, decoded in _decoded(decoder, payloads):
                parts.append(decoded.values)
                rows = group.rows[first : first + len(decoded.values)]
                places[rows] = np.arange(count, count + rows.size)
                count += rows.size
                for place, reason in decoded.failures.items():
                    failures[int(rows[place])] = group.schema.id, reason
        schemas = [(group.schema, group.rows) for group in framed.groups]
        return DecodedColumn(_together(parts, places, self.type_of(topic)), failures, schemas)

    def _framed(self, column: pa.Array, headers: pa.Array | None) -> FramedColumn:
        if self.unframed is not None:
            return whole_values(column, self.unframed)
        framed = framed_values(column, headers, self.name, self.known)
        if framed.failures and self.newer is not None and not self._has_asked:
            self._has_asked = True
            self.known = self.newer()
            self._decoders.clear()
            framed = framed_values(column, headers, self.name, self.known)
        return framed

    def _decoder(self, topic: str, schema: KnownSchema, framing: Framing) -> Decoder | str:
        """Return a decoder, or why there is none."""
        key = (topic, f"{schema.id}", framing)
        found = self._decoders.get(key)
        if found is None:
            try:
                self._ensure_expected(topic, schema)
                reader = self._readers.get(topic) or reader_of(self.readers[topic])
                self._readers[topic] = reader
                found = reader.decoder(schema, framing)
            except InvalidSchemaError as error:
                found = error.reason
            if len(self._decoders) == _MOST_DECODERS:
                self._decoders.clear()
            self._decoders[key] = found
        return found

    def _ensure_expected(self, topic: str, schema: KnownSchema) -> None:
        """Refuse schemas that are not of the topic's subject, unless one was chosen."""
        if topic not in self.readers:
            msg = "its topic was not there when the read began: start the read again"
            raise InvalidSchemaError(msg)
        if self.only_type not in (None, schema.type):
            raise InvalidSchemaError(f"the schema is of the type {schema.type}")
        expected = self.subjects.get(topic)
        subjects = self.known.subjects_of(schema)
        if expected is not None and subjects and expected not in subjects:
            raise InvalidSchemaError(
                f"the schema is of subject {', '.join(subjects)}, and the columns are of "
                f"{expected}: choose one of them, as subject or with --subject"
            )


def _together(parts: list[pa.Array], places: npt.NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    """Return the parts as one column of a type, in the order of the rows."""
    if not parts:
        return pa.nulls(places.size, kind)
    together = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
    if together.type != kind:
        together = cast_leaves(together, kind)
    if places.size == len(together) and (np.diff(places) == 1).all() and places[0] == 0:
        return together
    return take(together, fixed_width_array(places, null=-1))


def _decoded(decoder: Decoder, payloads: Payloads) -> list[tuple[int, Decoded]]:
    """Return what payloads decode to, in parts that are not too large, each with its first."""
    waiting = [(0, payloads)]
    done = []
    while waiting:
        first, some = waiting.pop()
        try:
            done.append((first, decoder.decode(some)))
        except DecodedTooLargeError:
            half = len(some) // 2
            if not half:
                done.append((first, Decoded(pa.nulls(1, decoder.type), {0: _TOO_LARGE})))
                continue
            data, starts, ends = some
            waiting.append((first + half, Payloads(data, starts[half:], ends[half:])))
            waiting.append((first, Payloads(data, starts[:half], ends[:half])))
    return done

"""Record batches with keys and values as bytes to such with typed ones, and what cannot be decoded.

Beside the columns of records, ``value_raw`` are the bytes of typed values, ``value_schema_id`` the
number by which they refer to a schema, and ``value_subject`` the subject of that schema; the same
for keys. They are there if they are named.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.columnar.arrow_buffers import bytes_array, fixed_width_array, int64_values
from pylog.columnar.arrow_schema import (
    CORRUPT_RECORD,
    TYPED,
    column_names,
    record_schema,
    schema_like,
)
from pylog.errors import UndecodableValueError
from pylog.reading.damage import ReadMode
from pylog.record_lines.arrow_functions import take
from pylog.typed.known_schemas import KnownSchemas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pylog.model import TopicPartition
    from pylog.typed.typed_column import DecodedColumn, TypedColumn

_LOGGER = logging.getLogger(__name__)
_RAW, _SCHEMA_ID, _SUBJECT = "_raw", "_schema_id", "_subject"
_MORE_COLUMNS = {_RAW: pa.binary(), _SCHEMA_ID: pa.int64(), _SUBJECT: pa.string()}
_MOST_LISTED = 100


@dataclass(slots=True)
class UndecodableReport:
    """Counts the keys and values that could not be decoded; the first hundred are kept.

    Attributes
    ----------
    errors
        What is wrong with the first of them.
    counts
        How many there are, by topic and column.
    """

    errors: list[UndecodableValueError] = field(default_factory=list)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __len__(self) -> int:
        return self.counts.total()

    def add(self, topic: str, errors: Sequence[UndecodableValueError]) -> None:
        """Note what was left out, or is null; the first few are logged as warnings."""
        for each in errors[: max(0, _MOST_LISTED - len(self.errors))]:
            self.errors.append(each)
            _LOGGER.warning("%s", each)
        for each in errors:
            self.counts[topic, each.column] += 1


@dataclass(frozen=True, slots=True)
class TypedRecords:
    """Decodes the keys and values of the batches that a scan reads.

    Attributes
    ----------
    columns
        What is decoded, by the name of the column.
    undecodable
        What could not be, by any reader of the scan in this process.
    """

    columns: dict[str, TypedColumn]
    undecodable: UndecodableReport = field(default_factory=UndecodableReport)

    def for_one_thread(self) -> TypedRecords:
        """Return a copy with decoders of its own; the report is shared."""
        return replace(self, columns={each: self.columns[each].copy() for each in self.columns})

    def following(self, again: Callable[[], TypedRecords | None]) -> TypedRecords:
        """Return the same for a read that goes on while schemas are registered.

        What meets a value whose schema is not known calls ``again`` once, which chooses anew; what
        is known then is taken from there, and columns stay as they are.
        """
        columns = {
            name: each.following(partial(_known_now, again, name))
            for name, each in self.columns.items()
        }
        return replace(self, columns=columns)

    def schema(
        self,
        columns: str | Iterable[str] | None = None,
        *,
        include_headers: bool = False,
        include_batch_metadata: bool = False,
        timestamp_unit: str = "us",
    ) -> pa.Schema:
        """Return the schema of a scan; see `record_schema`."""
        if columns is None:
            names = column_names(
                include_headers=include_headers, include_batch_metadata=include_batch_metadata
            )
        else:
            names = [columns] if isinstance(columns, str) else list(columns)
        others = [each for each in names if each not in self._more_columns]
        plain = record_schema(others, timestamp_unit=timestamp_unit)
        return pa.schema([self._field(name, plain) for name in names])

    def _field(self, name: str, plain: pa.Schema) -> pa.Field:
        if name in self.columns:
            return pa.field(name, self.columns[name].type, metadata=TYPED)
        more = self._more_columns
        return pa.field(name, more[name]) if name in more else plain.field(name)

    @property
    def _more_columns(self) -> dict[str, pa.DataType]:
        return {
            f"{name}{end}": kind for name in self.columns for end, kind in _MORE_COLUMNS.items()
        }

    def schema_like(self, schema: pa.Schema, columns: Iterable[str]) -> pa.Schema:
        """Return the schema of other columns, with the timestamp unit of ``schema``."""
        at = schema.get_field_index("timestamp")
        unit = "us" if at < 0 else schema.field(at).type.unit
        return self.schema(columns, timestamp_unit=unit)

    def is_wanted(self, schema: pa.Schema) -> bool:
        """Whether a column of the schema is typed, or tells of one that is."""
        more = self._more_columns
        return any(schema.field(name).metadata == TYPED or name in more for name in schema.names)

    def _decodes(self, name: str, schema: pa.Schema) -> bool:
        """Whether more than the bytes of keys or values is wanted."""
        return any(f"{name}{end}" in schema.names for end in ("", _SCHEMA_ID, _SUBJECT))

    def raw_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the batches that columns of ``schema`` are made of."""
        more = self._more_columns
        names = [name for name in schema.names if name not in more]
        for name, column in self.columns.items():
            if any(f"{name}{end}" in schema.names for end in _MORE_COLUMNS):
                names.append(name)
            if column.needs_headers and self._decodes(name, schema):
                names.append("headers")
        names.append("offset")
        return schema_like(schema, dict.fromkeys(names))

    def decoded(
        self,
        batches: Iterable[pa.RecordBatch],
        schema: pa.Schema,
        partition: TopicPartition,
        mode: ReadMode,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches with typed columns; what cannot be decoded is handled by the mode."""
        for batch in batches:
            typed, errors = self._decode(batch, schema, partition)
            if errors and mode is ReadMode.FAILFAST:
                first = min(errors)
                if first:
                    yield typed.slice(0, first)
                raise errors[first]
            if errors:
                in_order = [errors[row] for row in sorted(errors)]
                self.undecodable.add(partition.topic, in_order)
            if errors and mode is ReadMode.DROPMALFORMED:
                kept = np.ones(batch.num_rows, dtype=np.bool_)
                kept[list(errors)] = False
                typed = typed.take(fixed_width_array(np.flatnonzero(kept)))
            if typed.num_rows:
                yield typed

    def _decode(
        self, batch: pa.RecordBatch, schema: pa.Schema, partition: TopicPartition
    ) -> tuple[pa.RecordBatch, dict[int, UndecodableValueError]]:
        headers = batch.column("headers") if "headers" in batch.schema.names else None
        made: dict[str, pa.Array] = {}
        errors: dict[int, UndecodableValueError] = {}
        for name, column in self.columns.items():
            if f"{name}{_RAW}" in schema.names:
                made[f"{name}{_RAW}"] = batch.column(name)
            if not self._decodes(name, schema):
                continue
            found = column.decode(batch.column(name), headers, partition.topic)
            made[name] = found.values
            made |= _described(found, batch.num_rows, column, partition.topic, schema)
            if found.failures:
                offsets = int64_values(batch.column("offset"))
                for row, (schema_id, reason) in found.failures.items():
                    errors.setdefault(
                        row,
                        UndecodableValueError(
                            reason, str(partition), int(offsets[row]), name, schema_id
                        ),
                    )
        arrays = []
        for each in schema:
            array = made.get(each.name)
            if array is None:
                array = batch.column(each.name)
            if each.name == CORRUPT_RECORD and errors:
                array = _with_reasons(array, errors)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=schema), errors


def _known_now(again: Callable[[], TypedRecords | None], name: str) -> KnownSchemas:
    found = again()
    return KnownSchemas() if found is None else found.columns[name].known


def _described(
    found: DecodedColumn, rows: int, column: TypedColumn, topic: str, schema: pa.Schema
) -> dict[str, pa.Array]:
    """Return the columns that say which schemas values refer to, those that are wanted."""
    made = {}
    if (name := f"{column.name}{_SCHEMA_ID}") in schema.names:
        made[name] = _ids(found, rows)
    if (name := f"{column.name}{_SUBJECT}") in schema.names:
        made[name] = _subjects(found, rows, column, topic)
    return made


def _ids(found: DecodedColumn, rows: int) -> pa.Array:
    ids = np.full(rows, -1, dtype=np.int64)
    for schema, places in found.schemas:
        if isinstance(schema.id, int):
            ids[places] = schema.id
    return fixed_width_array(ids, null=-1)


def _subjects(found: DecodedColumn, rows: int, column: TypedColumn, topic: str) -> pa.Array:
    """Return the subject of each value's schema; the one of the topic if it has several."""
    places = np.full(rows, -1, dtype=np.int64)
    names: list[bytes] = []
    for schema, own_rows in found.schemas:
        subjects = column.known.subjects_of(schema)
        if subjects:
            expected = column.subjects.get(topic)
            chosen = expected if expected in subjects else subjects[0]
            places[own_rows] = len(names)
            names.append(chosen.encode())
    return take(bytes_array(names, pa.string()), fixed_width_array(places, null=-1))


def _with_reasons(array: pa.Array, errors: dict[int, UndecodableValueError]) -> pa.Array:
    """Return what is wrong with each row: in a column that has only nulls, as records have it."""
    rows = sorted(errors)
    places = np.full(len(array), -1, dtype=np.int64)
    places[rows] = np.arange(len(rows))
    texts = bytes_array([str(errors[row]).encode() for row in rows], pa.string())
    return take(texts, fixed_width_array(places, null=-1))

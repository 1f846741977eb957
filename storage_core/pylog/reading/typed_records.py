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
from pylog.reading.field_filter import FieldFilter
from pylog.record_lines.arrow_functions import take
from pylog.typed.known_schemas import KnownSchemas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

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
    _told: set[tuple[str, str]] = field(default_factory=set, repr=False)

    def __len__(self) -> int:
        return self.counts.total()

    def add(self, topic: str, errors: Sequence[UndecodableValueError]) -> None:
        """Note what was left out, or is null; the first few are logged as warnings."""
        for each in errors[: max(0, _MOST_LISTED - len(self.errors))]:
            self.errors.append(each)
            _LOGGER.warning("%s", each)
        for each in errors:
            self.counts[topic, each.column] += 1

    def tell_of_schema(self, partition: TopicPartition, offset: int, column: str) -> None:
        """Warn once of a key or value that refers to a schema, where they all stay bytes."""
        topic = partition.topic
        if (topic, column) not in self._told:
            self._told.add((topic, column))
            _LOGGER.warning(
                "%s, offset %d: the %s refers to a schema, and the first and last ones of %s do "
                "not, so that all stay bytes: read that topic alone, and name its subject",
                *(partition, offset, column, topic),
            )


@dataclass(frozen=True, slots=True)
class TypedRecords:
    """Decodes the keys and values of the batches that a scan reads.

    Attributes
    ----------
    columns
        What is decoded, by the name of the column.
    undecodable
        What could not be, by any reader of the scan in this process.
    where
        What rows have to pass, by what is decoded; all of them.
    bare
        Topics whose keys or values have no schema: why, by name. They stay bytes, or are not read.
    """

    columns: dict[str, TypedColumn]
    undecodable: UndecodableReport = field(default_factory=UndecodableReport)
    where: tuple[FieldFilter, ...] = ()
    bare: Mapping[str, str] = field(default_factory=dict)

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

    def passing(self, condition: str) -> TypedRecords:
        """Return a copy that gives only rows for which a condition is true; as `tested_by`.

        Raises
        ------
        ValueError
            It does not fit the columns.
        """
        return self.tested_by(FieldFilter.of(condition, self.types))

    def tested_by(self, where: FieldFilter) -> TypedRecords:
        """Return a copy that gives only rows that pass a further filter; the report is shared."""
        return replace(self, where=(*self.where, where))

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The types of what is decoded, by column."""
        return {name: column.type for name, column in self.columns.items()}

    def types_of(self, topics: Iterable[str]) -> dict[str, dict[str, pa.DataType]]:
        """Return the types of what is decoded, by topic and column."""
        return {
            topic: {
                name: column.type_of(topic)
                for name, column in self.columns.items()
                if topic not in column.as_bytes
            }
            for topic in topics
        }

    def reads(self, topic: str) -> bool:
        """Return whether a topic is read: decoded, or as bytes."""
        return topic not in self.bare or all(
            topic in each.as_bytes or topic in each.readers for each in self.columns.values()
        )

    @property
    def has_one_schema(self) -> bool:
        """Whether the batches of all topics have the same schema."""
        return not any(each.types or each.as_bytes for each in self.columns.values())

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

    def of_topic(self, schema: pa.Schema, topic: str) -> pa.Schema:
        """Return a schema with the types that the keys and values of a topic have."""
        for place, each in enumerate(schema):
            column = self.columns.get(each.name)
            if column is not None and each.metadata == TYPED:
                own = each if topic not in column.as_bytes else each.remove_metadata()
                schema = schema.set(place, own.with_type(column.type_of(topic)))
        return schema

    def schema_like(self, schema: pa.Schema, columns: Iterable[str]) -> pa.Schema:
        """Return the schema of other columns, with the timestamp unit of ``schema``."""
        at = schema.get_field_index("timestamp")
        unit = "us" if at < 0 else schema.field(at).type.unit
        return self.schema(columns, timestamp_unit=unit)

    def is_wanted(self, schema: pa.Schema) -> bool:
        """Whether a column of the schema is typed, or tells of one that is, or rows are tested."""
        more = self._more_columns
        return bool(self.where) or any(
            schema.field(name).metadata == TYPED or name in more or name == CORRUPT_RECORD
            for name in schema.names
        )

    def _decodes(self, name: str, schema: pa.Schema) -> bool:
        """Whether more than the bytes of keys or values is wanted; reasons are of all of them."""
        if CORRUPT_RECORD in schema.names:
            return True
        if name in schema.names and schema.field(name).metadata == TYPED:
            return True
        return any(f"{name}{end}" in schema.names for end in (_SCHEMA_ID, _SUBJECT))

    def _tests(self, name: str) -> bool:
        """Whether rows are tested by what keys or values are decoded to."""
        columns = {f"{name}{end}" for end in ("", _SCHEMA_ID, _SUBJECT)}
        return any(not columns.isdisjoint(each.test.columns) for each in self.where)

    def raw_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the batches that columns of ``schema`` are made of."""
        wanted = [*schema.names, *(name for each in self.where for name in each.test.columns)]
        names = [name for name in wanted if name not in self._more_columns]
        names += [name for each in self.where for name in each.byte_columns]
        for name, column in self.columns.items():
            if CORRUPT_RECORD in wanted or any(f"{name}{end}" in wanted for end in _MORE_COLUMNS):
                names.append(name)
            if column.needs_headers and (self._decodes(name, schema) or self._tests(name)):
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
        """Yield the batches with typed columns; what cannot be decoded is handled by the mode.

        Columns that rows are tested by are decoded first, the others only of rows that pass.
        """
        tested = [each for name, each in self.columns.items() if self._tests(name)]
        others = [each for name, each in self.columns.items() if self._decodes(name, schema)]
        own_schema = self.of_topic(schema, partition.topic)
        steps = (tested, self.where), ([each for each in others if each not in tested], ())
        for batch in batches:
            rows = _Rows(batch, partition, self.undecodable)
            error = None
            for columns, tests in steps:
                failed = rows.decode(columns, schema)
                if failed and mode is ReadMode.FAILFAST:
                    first = min(failed)
                    error = failed[first]
                    rows = rows.taken(np.arange(first))
                elif failed:
                    in_order = [failed[row] for row in sorted(failed)]
                    self.undecodable.add(partition.topic, in_order)
                if failed and mode is ReadMode.DROPMALFORMED:
                    kept = np.ones(len(rows), dtype=np.bool_)
                    kept[list(failed)] = False
                    rows = rows.taken(np.flatnonzero(kept))
                for each in tests:
                    rows = rows.taken(np.flatnonzero(rows.passing(each)))
            if len(rows):
                yield rows.typed(own_schema)
            if error is not None:
                raise error


class _Rows:
    """Rows of a record batch, with what has been decoded of them so far."""

    def __init__(
        self, batch: pa.RecordBatch, partition: TopicPartition, report: UndecodableReport
    ) -> None:
        self._batch, self._partition, self._report = batch, partition, report
        self._made: dict[str, pa.Array] = {}
        self._errors: dict[int, UndecodableValueError] = {}

    def __len__(self) -> int:
        count: int = self._batch.num_rows
        return count

    def decode(
        self, columns: Iterable[TypedColumn], schema: pa.Schema
    ) -> dict[int, UndecodableValueError]:
        """Decode columns; return what is wrong with rows of which nothing was so far."""
        batch, topic = self._batch, self._partition.topic
        headers = batch.column("headers") if "headers" in batch.schema.names else None
        failed: dict[int, UndecodableValueError] = {}
        for column in columns:
            found = column.decode(batch.column(column.name), headers, topic)
            if topic in column.as_bytes and found.schemas:
                first = min(int(rows[0]) for _, rows in found.schemas)
                offset = int(int64_values(batch.column("offset"))[first])
                self._report.tell_of_schema(self._partition, offset, column.name)
            self._made[column.name] = found.values
            self._made |= _described(found, len(self), column, topic, schema)
            if found.failures:
                offsets = int64_values(batch.column("offset"))
                for row, (schema_id, reason) in found.failures.items():
                    place = str(self._partition), int(offsets[row])
                    if row not in self._errors:
                        error = UndecodableValueError(reason, *place, column.name, schema_id)
                        failed.setdefault(row, error)
        self._errors |= failed
        return failed

    def passing(self, where: FieldFilter) -> npt.NDArray[np.bool_]:
        """Mask the rows that pass."""
        names = where.test.columns
        columns = [self._made[name] if name in self._made else self._raw(name) for name in names]
        return where.passing(pa.RecordBatch.from_arrays(columns, [*names]), self._batch)

    def taken(self, rows: npt.NDArray[np.int64]) -> _Rows:
        """Return some of the rows, in order."""
        if rows.size == len(self):
            return self
        some = _Rows(self._batch.take(fixed_width_array(rows)), self._partition, self._report)
        places = fixed_width_array(rows)
        some._made = {name: take(each, places) for name, each in self._made.items()}
        if self._errors:
            some._errors = {
                place: self._errors[row]
                for place, row in enumerate(rows.tolist())
                if row in self._errors
            }
        return some

    def typed(self, schema: pa.Schema) -> pa.RecordBatch:
        """Return the columns of a schema; those of the other fields are bytes."""
        arrays = []
        for each in schema:
            is_bytes = each.name in self._batch.schema.names and each.metadata != TYPED
            if each.name in self._made and not is_bytes:
                arrays.append(self._made[each.name])
            elif each.name == CORRUPT_RECORD and self._errors:
                arrays.append(_with_reasons(self._raw(each.name), self._errors))
            else:
                arrays.append(self._raw(each.name))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _raw(self, name: str) -> pa.Array:
        """Return a column as it lies in the log."""
        is_there = name in self._batch.schema.names
        return self._batch.column(name if is_there else name.removesuffix(_RAW))


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

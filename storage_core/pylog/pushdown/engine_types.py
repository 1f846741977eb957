"""What Polars and DuckDB have no type for is text to them: decimals of more than 38 digits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pylog.columnar.nested_casts import cast_leaves

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MOST_DIGITS = 38


def engine_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema in types that the engines have."""
    for place, field in enumerate(schema):
        schema = schema.set(place, _engine_field(field))
    return schema


def in_engine_types(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield batches with the columns, and the types, of an `engine_schema`."""
    for batch in batches:
        if batch.schema == schema:  # one without columns would lose its rows
            yield batch
        else:
            columns = [cast_leaves(batch.column(field.name), field.type) for field in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _engine_field(field: pa.Field) -> pa.Field:
    return field.with_type(_engine_type(field.type))


def _engine_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_engine_field(each) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(_engine_field(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field, _engine_field(kind.item_field))
    is_large = pa.types.is_decimal(kind) and kind.precision > _MOST_DIGITS
    return pa.string() if is_large else kind

"""The Spark schemas of the metadata tables: names and types of the library's, all nullable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pylog.inspect.tables.metadata_table import metadata_table
from pyspark_pylog.spark_schema import check_schema, selection

if TYPE_CHECKING:
    from collections.abc import Sequence

_TIMESTAMP = pa.timestamp("us", tz="UTC")
_NEVER_NULL = frozenset({"topic", "partition"})
_SIMPLE: dict[pa.DataType, DataType] = {
    pa.string(): StringType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.bool_(): BooleanType(),
}


def table_schema(table: str, columns: Sequence[str] | None = None) -> StructType:
    """Return the Spark schema of a table, or of the columns of it that are named.

    Raises
    ------
    ValueError
        A column does not exist, or is named twice.
    """
    known = _columns(table)
    return selection(tuple(known) if columns is None else columns, known)


def check_table_schema(table: str, schema: StructType) -> None:
    """Raise `ValueError` unless ``schema`` is a selection of the table's columns, in any order."""
    known = _columns(table)
    check_schema(schema, known, known.keys() - _NEVER_NULL)


def arrow_table_schema(table: str, schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark demands of the batches for a checked ``schema``."""
    whole = metadata_table(table).schema
    return pa.schema(
        [
            pa.field(field.name, _arrow_type(whole.field(field.name).type), field.nullable)
            for field in schema
        ]
    )


def _columns(table: str) -> dict[str, DataType]:
    return {field.name: _spark_type(field.type) for field in metadata_table(table).schema}


def _spark_type(kind: pa.DataType) -> DataType:
    if pa.types.is_timestamp(kind):
        return TimestampType()
    if pa.types.is_list(kind):
        return ArrayType(_spark_type(kind.value_type))
    if pa.types.is_struct(kind):
        return StructType([StructField(each.name, _spark_type(each.type)) for each in kind])
    return _SIMPLE[kind]


def _arrow_type(kind: pa.DataType) -> pa.DataType:
    return _TIMESTAMP if pa.types.is_timestamp(kind) else kind

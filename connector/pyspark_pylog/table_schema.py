"""The Spark schemas of the metadata tables: names and types of the library's, all nullable.

Arrow is imported by the functions that need it: Spark imports this module in every process that
looks for any Python data source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

import pylog
from pyspark_pylog.spark_schema import check_schema, selection

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

_NEVER_NULL = frozenset({"topic", "partition"})
"""In tables that have no rows about log directories."""
_SIMPLE: dict[str, DataType] = {
    "string": StringType(),
    "int32": IntegerType(),
    "int64": LongType(),
    "bool": BooleanType(),
    "double": DoubleType(),
}
"""By the name that Arrow prints of its type."""


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
    never_null = frozenset() if pylog.metadata_table(table).has_directory_rows else _NEVER_NULL
    check_schema(schema, known, known.keys() - never_null)


def arrow_table_schema(table: str, schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark demands of the batches for a checked ``schema``."""
    import pyarrow as pa  # noqa: PLC0415

    microseconds = pa.timestamp("us", tz="UTC")
    whole = pylog.metadata_table(table).schema
    fields = []
    for field in schema:
        kind = whole.field(field.name).type
        demanded = microseconds if pa.types.is_timestamp(kind) else kind
        fields.append(pa.field(field.name, demanded, field.nullable))
    return pa.schema(fields)


def _columns(table: str) -> dict[str, DataType]:
    return {field.name: _spark_type(field.type) for field in pylog.metadata_table(table).schema}


def _spark_type(kind: pa.DataType) -> DataType:
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_timestamp(kind):
        return TimestampType()
    if pa.types.is_list(kind):
        return ArrayType(_spark_type(kind.value_type))
    if pa.types.is_struct(kind):
        return StructType([StructField(each.name, _spark_type(each.type)) for each in kind])
    return _SIMPLE[str(kind)]

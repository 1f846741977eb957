"""Typed keys and values in Spark's types: what options ``valueFormat`` and ``keyFormat`` make.

============================== ==================================== ==============================
Arrow                          Spark                                note
============================== ==================================== ==============================
timestamp with a zone          TIMESTAMP                            microseconds; what is finer is
timestamp without a zone       TIMESTAMP_NTZ                        cut off
duration                       INTERVAL DAY TO SECOND               likewise
time of day                    INT of milliseconds, BIGINT          as `spark-avro` has it
decimal                        DECIMAL, STRING beyond 38 digits
uint8 to uint32, uint64        the next larger INT, DECIMAL(20, 0)
fixed-size binary              BINARY
null                           STRING
============================== ==================================== ==============================
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

import pylog
from pylog.errors import NoSchemaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pylog.results import TypedRecords
    from pyspark_pylog.options import LoadOptions

_MOST_DIGITS = 38
_SIMPLE: dict[str, tuple[str, DataType]] = {
    "bool": ("bool_", BooleanType()),
    "int8": ("int8", ByteType()),
    "int16": ("int16", ShortType()),
    "int32": ("int32", IntegerType()),
    "int64": ("int64", LongType()),
    "uint8": ("int16", ShortType()),
    "uint16": ("int32", IntegerType()),
    "uint32": ("int64", LongType()),
    "float": ("float32", FloatType()),
    "double": ("float64", DoubleType()),
    "string": ("string", StringType()),
    "binary": ("binary", BinaryType()),
    "date32[day]": ("date32", DateType()),
    "time32[ms]": ("int32", IntegerType()),
    "time64[us]": ("int64", LongType()),
    "null": ("string", StringType()),
}
"""By the name that Arrow prints: the Arrow type that Spark reads, and Spark's own."""


class SparkType(NamedTuple):
    """A type of Spark, and the Arrow type of the batches that it reads it from."""

    arrow: pa.DataType
    spark: DataType


def typed_records(options: LoadOptions) -> TypedRecords | None:
    """Return what decodes the keys and values of a load; None where both stay bytes."""
    if not options.formats:
        return None
    arguments: dict[str, Any] = {**options.choice, **options.formats}
    typed = pylog.scan(options.directory(), **arguments).typed
    if typed is not None and options.field_condition is not None:
        with suppress(ValueError):  # of other columns than there were when it was made
            typed = typed.passing(options.field_condition)
    return typed


def ensure_all_typed(typed: TypedRecords) -> None:
    """Raise `NoSchemaError` for a stream with topics without a schema: none of it is passed over.

    Their offsets would count as read, also where a schema is registered later.
    """
    if typed.bare:
        raise NoSchemaError(
            f"no schema is known for {', '.join(sorted(typed.bare))}: subscribe to the other topics"
        )


def spark_columns(typed: TypedRecords) -> dict[str, DataType]:
    """Return the types of typed columns, and of the columns with their bytes, ids and subjects."""
    columns = {name: spark_type(each.type).spark for name, each in typed.columns.items()}
    for name in typed.columns:
        columns[f"{name}_raw"] = BinaryType()
        columns[f"{name}_schema_id"] = LongType()
        columns[f"{name}_subject"] = StringType()
    return columns


def spark_type(kind: pa.DataType) -> SparkType:
    """Return what a type of Arrow becomes; `ValueError` if Spark has none for it."""
    import pyarrow as pa  # noqa: PLC0415 - looking for the data source does not need it

    if pa.types.is_map(kind):
        key, item = spark_type(kind.key_type), spark_type(kind.item_type)
        return SparkType(pa.map_(key.arrow, item.arrow), MapType(key.spark, item.spark))
    if pa.types.is_list(kind):
        element = spark_type(kind.value_type)
        return SparkType(pa.list_(pa.field("element", element.arrow)), ArrayType(element.spark))
    if pa.types.is_struct(kind):
        made = [(field.name, spark_type(field.type)) for field in kind]
        fields = [StructField(name, each.spark) for name, each in made]
        arrow = pa.struct([pa.field(name, each.arrow) for name, each in made])
        return SparkType(arrow, StructType(fields))
    return _of_single_values(kind)


def _of_single_values(kind: pa.DataType) -> SparkType:
    import pyarrow as pa  # noqa: PLC0415

    if simple := _SIMPLE.get(str(kind)):
        return SparkType(getattr(pa, simple[0])(), simple[1])
    if pa.types.is_timestamp(kind):
        spark = TimestampType() if kind.tz else TimestampNTZType()
        return SparkType(pa.timestamp("us", "UTC" if kind.tz else None), spark)
    if pa.types.is_duration(kind):
        return SparkType(pa.duration("us"), DayTimeIntervalType())
    if pa.types.is_uint64(kind):
        kind = pa.decimal128(20, 0)
    if pa.types.is_decimal(kind) and kind.precision <= _MOST_DIGITS:
        digits = kind.precision, kind.scale
        return SparkType(pa.decimal128(*digits), DecimalType(*digits))
    if pa.types.is_decimal(kind):
        return SparkType(pa.string(), StringType())
    if pa.types.is_fixed_size_binary(kind):
        return SparkType(pa.binary(), BinaryType())
    raise ValueError(f"Spark has no type for {kind}")


def as_decoded(schema: pa.Schema, typed: TypedRecords) -> pa.Schema:
    """Return the schema that a task decodes to, for batches of ``schema``."""
    fields = typed.schema(schema.names)
    for place, field in enumerate(schema):
        if field.name not in typed.columns:
            fields = fields.set(place, field)
    return fields


def in_sparks_types(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, typed: TypedRecords
) -> Iterator[pa.RecordBatch]:
    """Yield batches with typed columns as ``schema`` has them."""
    import pyarrow as pa  # noqa: PLC0415

    kinds = {place: field.type for place, field in enumerate(schema) if field.name in typed.columns}
    for batch in batches:
        arrays = list(batch.columns)
        for place, kind in kinds.items():
            arrays[place] = pylog.jobs.cast_leaves(arrays[place], kind)
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)

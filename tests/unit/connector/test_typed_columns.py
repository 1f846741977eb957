"""What Arrow's types of decoded values become in Spark, by Spark's own table of types."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_type

import pylog
from pyspark_pylog.typed_columns import as_decoded, in_sparks_types, spark_columns, spark_type
from tests.unit.reading.typed_logs import write_orders

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.int32(), "int"),
        (pa.uint8(), "smallint"),
        (pa.uint16(), "int"),
        (pa.uint32(), "bigint"),
        (pa.uint64(), "decimal(20,0)"),
        (pa.float32(), "float"),
        (pa.bool_(), "boolean"),
        (pa.string(), "string"),
        (pa.binary(16), "binary"),
        (pa.date32(), "date"),
        (pa.time32("ms"), "int"),
        (pa.time64("us"), "bigint"),
        (pa.timestamp("ms", "UTC"), "timestamp"),
        (pa.timestamp("ns", "UTC"), "timestamp"),
        (pa.timestamp("us"), "timestamp_ntz"),
        (pa.duration("ns"), "interval day to second"),
        (pa.decimal128(38, 10), "decimal(38,10)"),
        (pa.decimal256(50, 2), "string"),
        (pa.null(), "string"),
        (pa.list_(pa.uint64()), "array<decimal(20,0)>"),
        (pa.map_(pa.string(), pa.binary(2)), "map<string,binary>"),
        (pa.struct([("a", pa.list_(pa.time32("ms"))), ("b", pa.struct([]))]), None),
    ],
)
def test_a_type_is_one_that_spark_reads_from_arrow(kind: pa.DataType, expected: str | None) -> None:
    found = spark_type(kind)
    assert found.spark.simpleString() == (expected or "struct<a:array<int>,b:struct<>>")
    # What Spark itself makes of the Arrow type that it is given.
    assert from_arrow_type(found.arrow, prefer_timestamp_ntz=True) == found.spark


def test_a_type_that_spark_has_not_is_an_error() -> None:
    with pytest.raises(ValueError, match="Spark has no type for month_day_nano_interval"):
        spark_type(pa.month_day_nano_interval())


VALUES = [
    (pa.array([1_500, -1], pa.timestamp("ns", "UTC")), [1, -1]),
    (pa.array([1_500], pa.duration("ns")), [1]),
    (pa.array([[2**64 - 1], None], pa.list_(pa.uint64())), [[Decimal(2**64 - 1)], None]),
    (pa.array([{"a": 5}, None], pa.struct([("a", pa.time32("ms"))])), [{"a": 5}, None]),
    (pa.array([[("k", b"ab")]], pa.map_(pa.string(), pa.binary(2))), [[("k", b"ab")]]),
    (pa.array([Decimal("1.50")], pa.decimal256(50, 2)), ["1.50"]),
]


class Typed:
    """Stands for what decodes a column ``value``."""

    columns = ("value",)


@pytest.mark.parametrize(("array", "expected"), VALUES)
def test_values_are_cast(array: pa.Array, expected: list[object]) -> None:
    kind = spark_type(array.type).arrow
    schema = pa.schema([("value", kind)])
    batch = pa.record_batch([array], names=["value"])
    (found,) = in_sparks_types(iter([batch]), schema, Typed())  # type: ignore[arg-type]
    column = found.column("value")
    if pa.types.is_temporal(kind):
        column = column.view(pa.int64())
    assert column.to_pylist() == expected


def test_columns_tell_of_typed_ones(tmp_path: Path) -> None:
    typed = pylog.scan(write_orders(tmp_path), topics="orders", value_format="auto").typed
    assert typed is not None
    names = {name: kind.simpleString() for name, kind in spark_columns(typed).items()}
    assert names == {
        "value": "struct<id:bigint,note:string>",
        "value_raw": "binary",
        "value_schema_id": "bigint",
        "value_subject": "string",
    }
    wanted = pa.schema([("offset", pa.int64()), ("value", pa.null())])
    decoded = as_decoded(wanted, typed)
    assert decoded.field("value").type == pa.struct([("id", pa.int64()), ("note", pa.string())])
    assert decoded.field("offset") == wanted.field("offset")

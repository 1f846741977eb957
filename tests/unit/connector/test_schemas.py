"""The schema of a read, and what a user's schema may be; no Spark is running."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_pylog.batch_reader import PylogBatchReader, arrow_schema
from pyspark_pylog.options import LoadOptions
from pyspark_pylog.schemas import check_schema, read_schema


def schema_of(**given: str) -> StructType:
    return read_schema(LoadOptions.parse({"path": "/logs", **given}))


def refusal(schema: StructType) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        check_schema(schema)
    return str(caught.value)


def test_the_columns_are_those_of_the_kafka_source_in_its_order() -> None:
    assert schema_of() == StructType(
        [
            StructField("key", BinaryType()),
            StructField("value", BinaryType()),
            StructField("topic", StringType()),
            StructField("partition", IntegerType()),
            StructField("offset", LongType()),
            StructField("timestamp", TimestampType()),
            StructField("timestampType", IntegerType()),
        ]
    )


def test_headers_and_batch_metadata_come_last_where_asked_for() -> None:
    names = schema_of(includeHeaders="true", includeBatchMetadata="true").fieldNames()
    assert names[-2:] == ["headers", "batch"]
    headers = schema_of(includeHeaders="true")["headers"]
    assert headers.dataType.simpleString() == "array<struct<key:string,value:binary>>"


def test_columns_are_taken_in_the_order_given() -> None:
    names = ["batch", "offset", "headers", "key"]
    assert schema_of(columns=",".join(names)).fieldNames() == names


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            "ofset",
            "option columns names 'ofset', which is not a column; did you mean 'offset'? The col",
        ),
        ("KEY", "did you mean 'key'?"),
        ("timestamptype", "did you mean 'timestampType'?"),
        (
            "zzzz",
            "names 'zzzz', which is not a column. The columns are: key, value, topic, partition",
        ),
        ("key,offset,key", "option columns names 'key' twice"),
    ],
)
def test_columns_that_do_not_exist_or_come_twice_are_refused(columns: str, message: str) -> None:
    with pytest.raises(ValueError, match="columns names") as caught:
        schema_of(columns=columns)
    assert message in str(caught.value)


@pytest.mark.parametrize("given", [{}, {"includeHeaders": "true", "includeBatchMetadata": "true"}])
def test_what_is_read_has_exactly_the_arrow_schema_that_spark_demands(
    given: dict[str, str],
) -> None:
    schema = schema_of(**given)
    assert arrow_schema(schema).equals(to_arrow_schema(schema, timezone="UTC"))


def test_any_selection_in_any_order_is_a_schema() -> None:
    full = schema_of(includeHeaders="true", includeBatchMetadata="true")
    for names in (["batch"], ["offset", "key"], list(reversed(full.fieldNames()))):
        chosen = StructType([full[name] for name in names])
        check_schema(chosen)
        assert arrow_schema(chosen).equals(to_arrow_schema(chosen, timezone="UTC"))


def test_columns_that_are_never_null_may_be_declared_so() -> None:
    schema = StructType(
        [StructField(field.name, field.dataType, nullable=False) for field in schema_of()]
    )
    schema = StructType([field for field in schema if field.name not in ("key", "value")])
    check_schema(schema)
    assert arrow_schema(schema).equals(to_arrow_schema(schema, timezone="UTC"))
    assert not any(field.nullable for field in arrow_schema(schema))


@pytest.mark.parametrize("name", ["key", "value", "headers"])
def test_columns_that_may_be_null_may_not_be_declared_otherwise(name: str) -> None:
    column = schema_of(includeHeaders="true")[name]
    message = refusal(StructType([StructField(name, column.dataType, nullable=False)]))
    assert message == f"the schema declares {name!r} NOT NULL, but records may have none"


def test_not_null_inside_a_column_is_refused_before_spark_fails_over_it() -> None:
    fields = [StructField("key", StringType(), nullable=False), StructField("value", BinaryType())]
    for headers in (
        ArrayType(StructType(fields)),
        ArrayType(StructType([StructField("key", StringType()), fields[1]]), containsNull=False),
    ):
        message = refusal(StructType([StructField("headers", headers)]))
        assert (
            message
            == "the schema declares something inside column 'headers' NOT NULL; leave it out"
        )


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (StructType(), "the schema has no column"),
        (
            StructType().add("Offset", LongType()),
            "the schema names 'Offset', which is not a column; did",
        ),
        (StructType().add("key", BinaryType()).add("key", BinaryType()), "names 'key' twice"),
        (
            StructType().add("value", StringType()),
            "the schema gives column 'value' the type string, it is binary",
        ),
        (StructType().add("offset", IntegerType()), "'offset' the type int, it is bigint"),
    ],
)
def test_other_schemas_are_refused(schema: StructType, message: str) -> None:
    assert message in refusal(schema)


def test_option_columns_and_a_schema_that_disagree_are_refused() -> None:
    options = LoadOptions.parse({"path": "/logs", "columns": "key,offset"})
    PylogBatchReader(options, read_schema(options))
    with pytest.raises(ValueError, match="option columns says key, offset and the schema offset; "):
        PylogBatchReader(options, StructType().add("offset", LongType()))


def test_comments_on_columns_change_nothing() -> None:
    schema = StructType().add("offset", LongType(), metadata={"comment": "of the record"})
    check_schema(schema)
    assert arrow_schema(schema).equals(pa.schema([("offset", pa.int64())]))

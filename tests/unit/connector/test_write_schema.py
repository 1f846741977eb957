"""Which columns of a DataFrame make up a record, and what is said of those that cannot."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_pylog.schemas import columns_to_write

TEXT = StringType()
BYTES = BinaryType()


def headers(
    key: DataType = TEXT, value: DataType = BYTES, *, names: str = "key value"
) -> ArrayType:
    fields = zip(names.split(), (key, value), strict=True)
    struct = StructType([StructField(*each, nullable=False) for each in fields])
    return ArrayType(struct, containsNull=False)


def schema(**columns: DataType) -> StructType:
    return StructType([StructField(*each) for each in columns.items()])


def refusal(columns: StructType, *, has_topic: bool = True) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        columns_to_write(columns, has_topic=has_topic)
    return str(caught.value)


def test_keys_and_values_are_text_or_bytes() -> None:
    for kind in (TEXT, BYTES):
        assert columns_to_write(schema(value=kind, key=kind), has_topic=True) == ("value", "key")


def test_every_column_of_a_record_is_taken_and_no_other() -> None:
    whole = schema(
        key=BYTES,
        value=BYTES,
        topic=TEXT,
        partition=IntegerType(),
        offset=LongType(),
        timestamp=TimestampType(),
        timestampType=IntegerType(),
        headers=headers(),
        id=LongType(),
    )
    of_a_record = ("key", "value", "topic", "partition", "timestamp", "headers")
    assert columns_to_write(whole, has_topic=False) == of_a_record


def test_the_option_topic_replaces_the_column_whatever_its_type() -> None:
    columns = schema(topic=IntegerType(), value=TEXT)
    assert columns_to_write(columns, has_topic=True) == ("value",)


def test_a_row_needs_a_value() -> None:
    assert refusal(schema(key=TEXT, id=LongType())) == (
        "the DataFrame has no column 'value'. Select one, for example to_json(struct(*)) AS value"
    )
    assert refusal(schema(Value=TEXT)).startswith(
        "the DataFrame has no column 'value'; did you mean 'Value'? Select one"
    )


def test_a_row_needs_a_topic() -> None:
    assert refusal(schema(value=TEXT), has_topic=False) == (
        "nothing says which topic the rows go to: give option topic, for example "
        '.option("topic", "orders"), or a column named topic'
    )


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("key", LongType(), "is of type bigint, expected string or binary: write CAST(key AS STRI"),
        ("value", schema(a=TEXT), "is of type struct<a:string>, expected string or binary: write "),
        ("topic", BYTES, "is of type binary, expected string: write CAST(topic AS STRING)"),
        ("partition", LongType(), "is of type bigint, expected int: write CAST(partition AS INT)"),
        (
            "timestamp",
            LongType(),
            "is of type bigint, expected timestamp: write CAST(timestamp AS ",
        ),
        (
            "timestamp",
            TimestampNTZType(),
            "is of type timestamp_ntz, expected timestamp: write CAS",
        ),
        (
            "headers",
            headers(TEXT, TEXT),
            "is of type array<struct<key:string,value:string>>, expected array<struct<key:string,v",
        ),
        ("headers", headers(names="name value"), "is of type array<struct<name:string,value:bina"),
        ("headers", TEXT, "is of type string, expected array<struct<key:string,value:binary>>"),
    ],
)
def test_a_column_of_another_type_is_refused_with_what_to_write(
    name: str, kind: DataType, reason: str
) -> None:
    columns = schema(**{"value": TEXT, "topic": TEXT, name: kind})
    assert refusal(columns, has_topic=False).startswith(f"column {name!r} {reason}")


def test_a_column_that_is_there_twice_is_refused() -> None:
    twice = StructType([*schema(value=TEXT), *schema(value=TEXT)])
    assert refusal(twice) == (
        "the DataFrame has more than one column 'value': select or rename one"
    )

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest

from pylog.columnar.arrow_schema import HEADERS_TYPE
from pylog.typed.known_schemas import KnownSchema
from pylog.writing.column_encoder import ColumnEncoder, encode_columns

RECORD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
GUID = "01020304-0506-0708-090a-0b0c0d0e0f10"
SCHEMA_ID = "__value_schema_id"
PLAIN = ColumnEncoder("value", KnownSchema(7, "AVRO", RECORD))
BY_HEADER = ColumnEncoder("value", KnownSchema(7, "AVRO", RECORD), GUID)


def test_a_prefix_has_the_id() -> None:
    assert PLAIN.encode({"a": 1}, is_json=True) == b"\0\0\0\0\7\2"


def test_null_stays_null() -> None:
    assert PLAIN.encode(None, is_json=True) is None
    assert BY_HEADER.headers((), None) == ()


def test_a_header_has_the_guid() -> None:
    assert BY_HEADER.encode({"a": 1}, is_json=True) == b"\2"
    assert BY_HEADER.headers((), b"\2") == ((SCHEMA_ID, b"\1" + bytes(range(1, 17))),)


def test_indexes_of_messages_are_behind_the_id_or_in_the_header() -> None:
    text = 'syntax = "proto3"; message A { int32 x = 1; } message B { int32 x = 1; }'
    schema = KnownSchema(7, "PROTOBUF", text, message="B")

    by_header = ColumnEncoder("value", schema, GUID)

    assert ColumnEncoder("value", schema).encode({"x": 1}, is_json=True) == (
        b"\0\0\0\0\7" + b"\2\2" + b"\x08\1"
    )
    assert by_header.encode({"x": 1}, is_json=True) == b"\x08\1"
    assert by_header.headers((), b"x") == ((SCHEMA_ID, b"\1" + bytes(range(1, 17)) + b"\2\2"),)


def test_headers_of_another_schema_are_left_out() -> None:
    given = (("a", b"1"), (SCHEMA_ID, b"old"), ("apicurio.value.globalId", b"old"), ("b", None))

    assert PLAIN.headers(given, b"x") == (("a", b"1"), ("b", None))
    assert [name for name, _ in BY_HEADER.headers(given, b"x")] == ["a", "b", SCHEMA_ID]


def test_an_error_names_schema_and_path() -> None:
    with pytest.raises(
        ValueError, match="the value cannot be encoded by schema 7: a: 'x' is not int"
    ):
        PLAIN.encode({"a": "x"}, is_json=True)


def test_an_encoder_is_sent_to_other_processes() -> None:
    PLAIN.encode({"a": 1}, is_json=True)

    assert pickle.loads(pickle.dumps(PLAIN)).encode({"a": 1}, is_json=True) == b"\0\0\0\0\7\2"  # noqa: S301 - our own


def test_columns_are_encoded_row_by_row() -> None:
    batch = pa.record_batch({"key": [b"k", None], "value": [{"a": 1}, None]})

    made = encode_columns(batch, {"value": PLAIN})

    assert made.column("value").to_pylist() == [b"\0\0\0\0\7\2", None]
    assert made.column("key").to_pylist() == [b"k", None]
    assert made.schema.names == ["key", "value"]


def test_headers_become_a_column() -> None:
    batch = pa.record_batch({"value": [{"a": 1}, None]})

    made = encode_columns(batch, {"value": BY_HEADER})

    first, second = made.column("headers").to_pylist()
    assert made.column("headers").type == HEADERS_TYPE
    assert [each["key"] for each in first] == [SCHEMA_ID]
    assert second is None


def test_the_row_is_named() -> None:
    batch = pa.record_batch({"value": [{"a": 1}, {"a": None}]})

    with pytest.raises(
        ValueError, match=r"row 11: the value cannot be encoded .*: a: null is not int"
    ):
        encode_columns(batch, {"value": PLAIN}, first_row=10)


def test_columns_of_other_engines_are_taken() -> None:
    fields = (
        '{"name":"t","type":"string"},{"name":"l","type":{"type":"array","items":"string"}},'
        '{"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},'
        '{"name":"at","type":{"type":"long","logicalType":"timestamp-micros"}},'
        '{"name":"c","type":{"type":"enum","name":"E","symbols":["x","y"]}}'
    )
    schema = KnownSchema(1, "AVRO", f'{{"type":"record","name":"R","fields":[{fields}]}}')
    frame = pl.DataFrame(
        {
            "t": ["é"],
            "l": [["a", "b"]],
            "d": [Decimal("1.50")],
            "at": [dt.datetime(1970, 1, 1, 0, 0, 0, 5, tzinfo=dt.UTC)],
            "c": ["y"],
        },
    ).select(pl.struct(pl.all()).alias("value"))
    reader = pa.RecordBatchReader.from_stream(frame)

    (batch,) = (encode_columns(each, {"value": ColumnEncoder("value", schema)}) for each in reader)

    content = batch.column("value")[0].as_py()
    assert content == b"\0\0\0\0\1" + b"\4\xc3\xa9" + b"\4\2a\2b\0" + b"\4\0\x96" + b"\n" + b"\2"


def test_a_type_that_arrow_cannot_cast_is_refused() -> None:
    words = pa.DictionaryArray.from_arrays(
        pa.array([0], pa.uint32()), pa.array(["y"], pa.string_view())
    )

    with pytest.raises(ValueError, match="cannot be encoded: cast it"):
        encode_columns(pa.record_batch({"value": words}), {"value": PLAIN})

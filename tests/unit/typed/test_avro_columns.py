from __future__ import annotations

import json

import pyarrow as pa
import pytest

from pylog.errors import InvalidSchemaError
from pylog.typed.avro_columns import Layout
from pylog.typed.avro_schema import parse_schema


def type_of(text: str) -> pa.DataType:
    return Layout(parse_schema(text)).root.type


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("null", pa.null()),
        ("boolean", pa.bool_()),
        ("int", pa.int32()),
        ("long", pa.int64()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("bytes", pa.binary()),
        ("string", pa.string()),
        (["null", "int"], pa.int32()),
        (["string", "null"], pa.string()),
        (["null"], pa.null()),
        (["int", "long", "null"], pa.int64()),
        (["int", "float"], pa.float64()),
        (["float", "double"], pa.float64()),
        (["long", "double"], pa.struct([("member0", pa.int64()), ("member1", pa.float64())])),
        (
            ["null", "string", "int"],
            pa.struct([("member0", pa.string()), ("member1", pa.int32())]),
        ),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.string()),
        ({"type": "fixed", "name": "F", "size": 3}, pa.binary(3)),
        ({"type": "fixed", "name": "F", "size": 0}, pa.binary()),
        ({"type": "array", "items": "int"}, pa.list_(pa.int32())),
        ({"type": "map", "values": "int"}, pa.map_(pa.string(), pa.int32())),
        ({"type": "record", "name": "R", "fields": []}, pa.struct([])),
        ({"type": "int", "logicalType": "date"}, pa.date32()),
        ({"type": "int", "logicalType": "time-millis"}, pa.time32("ms")),
        ({"type": "long", "logicalType": "time-micros"}, pa.time64("us")),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("ms", "UTC")),
        ({"type": "long", "logicalType": "timestamp-micros"}, pa.timestamp("us", "UTC")),
        ({"type": "long", "logicalType": "timestamp-nanos"}, pa.timestamp("ns", "UTC")),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, pa.timestamp("ms")),
        ({"type": "long", "logicalType": "local-timestamp-nanos"}, pa.timestamp("ns")),
        ({"type": "string", "logicalType": "uuid"}, pa.string()),
        ({"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"}, pa.string()),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2},
            pa.decimal128(38, 2),
        ),
        ({"type": "bytes", "logicalType": "decimal", "precision": 39}, pa.decimal256(39, 0)),
        (
            {"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"},
            pa.struct([("months", pa.int64()), ("days", pa.int64()), ("milliseconds", pa.int64())]),
        ),
    ],
)
def test_types_of_columns(schema: object, expected: pa.DataType) -> None:
    assert type_of(json.dumps(schema)) == expected


def test_schemas_that_use_types_twice_over_and_over_are_refused() -> None:
    names = [{"type": "record", "name": "R0", "fields": [{"name": "a", "type": "int"}]}]
    names += [
        {
            "type": "record",
            "name": f"R{i}",
            "fields": [{"name": each, "type": f"R{i - 1}"} for each in "ab"],
        }
        for i in range(1, 40)
    ]
    *references, last = [json.dumps(each) for each in names]
    with pytest.raises(InvalidSchemaError, match="more than 20000 columns"):
        Layout(parse_schema(last, references))

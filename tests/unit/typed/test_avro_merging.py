from __future__ import annotations

import json
from typing import Any

import pytest

from pylog.typed.avro_columns import Layout
from pylog.typed.avro_decoder import AvroDecoder
from pylog.typed.avro_merging import merged_type
from pylog.typed.avro_schema import parse_schema
from tests.unit.typed.decoded import payloads, plain_values


def record(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - of JSON
    made = [{"name": name, "type": kind} for name, kind in fields.items()]
    return {"type": "record", "name": "R", "fields": made}


ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
DATE = {"type": "int", "logicalType": "date"}


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("int", "int", "int32"),
        ("int", "long", "int64"),
        ("float", "int", "double"),
        ("string", ["null", "string"], "string"),
        ("null", "int", "int32"),
        (["null", "int"], ["string", "long"], "struct<member0: int64, member1: string>"),
        ("long", "double", "struct<member0: int64, member1: double>"),
        (DATE, "int", "struct<member0: date32[day], member1: int32>"),
        (DECIMAL, {**DECIMAL, "precision": 9}, "decimal128(9, 2)"),
        (
            {"type": "array", "items": "int"},
            {"type": "array", "items": "long"},
            "list<item: int64>",
        ),
        (
            record(a="int", b="string"),
            record(b="string", c="long"),
            "struct<a: int32, b: string, c: int64>",
        ),
    ],
)
def test_types_that_hold_the_values_of_both(first: object, second: object, expected: str) -> None:
    both = merged_type([parse_schema(json.dumps(each)) for each in (first, second)])
    assert str(Layout(both).root.type) == expected


def test_all_versions_are_read_into_one_record() -> None:
    versions = [
        record(id="long", size={**ENUM, "symbols": ["C"]}, sub=record(x="int")),
        record(id="int", gone="string", size=ENUM, sub=record(x="long", y="boolean")),
    ]
    versions[1]["fields"][3]["type"]["name"] = versions[0]["fields"][2]["type"]["name"] = "Sub"
    kinds = [parse_schema(json.dumps(each)) for each in versions]
    reader = merged_type(kinds)
    values = [b"\x02\x00\x04", b"\x02\x02g\x02\x06\x01"]
    found = [
        plain_values(AvroDecoder(kind, reader).decode(payloads([value])).values)[0]
        for kind, value in zip(kinds, values, strict=True)
    ]
    assert found == [
        {"id": 1, "size": "C", "sub": {"x": 2, "y": None}, "gone": None},
        {"id": 1, "size": "B", "sub": {"x": 3, "y": True}, "gone": "g"},
    ]

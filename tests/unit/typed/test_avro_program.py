from __future__ import annotations

import datetime as dt
import json
import struct
from typing import Any

import pytest

from pylog.errors import InvalidSchemaError
from pylog.typed.avro_program import AvroProgram
from pylog.typed.avro_schema import parse_schema
from tests.support.avro_schemas import zigzag
from tests.unit.typed.decoded import decoded, plain_values


def record(*fields: Any, name: str = "R") -> dict[str, Any]:  # noqa: ANN401 - of JSON
    made = [
        each if isinstance(each, dict) else {"name": each[0], "type": each[1]} for each in fields
    ]
    return {"type": "record", "name": name, "fields": made}


def read(writer: object, value: bytes, reader: object) -> Any:  # noqa: ANN401 - any value
    result = decoded(json.dumps(writer), [value], json.dumps(reader))
    return result.failures[0] if result.failures else plain_values(result.values)[0]


FIXED = {"type": "fixed", "name": "F", "size": 2}
AB = {"type": "enum", "name": "E", "symbols": ["A", "B"]}


@pytest.mark.parametrize(
    ("writer", "value", "reader", "expected"),
    [
        ("int", zigzag(-5), "long", -5),
        ("int", zigzag(3), "float", 3.0),
        ("int", zigzag(3), "double", 3.0),
        ("long", zigzag(1 << 40), "float", float(1 << 40)),
        ("long", zigzag(1 << 40), "double", float(1 << 40)),
        ("float", struct.pack("<f", 1.5), "double", 1.5),
        ("string", b"\x04\xc3\xa9", "bytes", "é".encode()),
        ("bytes", b"\x04\xc3\xa9", "string", "é"),
        ("bytes", b"\x02\xff", "string", "the text is not UTF-8"),
        ("long", zigzag(1), "int", "the writer's long cannot be read as int"),
        ("string", b"\x02x", "int", "the writer's string cannot be read as int"),
        ("int", zigzag(1), ["null", "int"], 1),
        (["null", "int"], b"\x02\x02", "int", 1),
        (["null", "int"], b"\0", "int", "the writer's null cannot be read as int"),
        ("null", b"", ["int", "null"], None),
        ("int", zigzag(1), ["string", "long"], 1),
        ("int", zigzag(1), ["null", "string"], "the writer's int is none of the reader's a union "),
        (["int", "string"], b"\x02\x02x", ["string", "int"], "x"),
        (["int", "string"], b"\0\x02", ["string", "int"], 1),
        (["int", "float"], b"\x02" + struct.pack("<f", 0.5), ["int", "float"], 0.5),
        (AB, zigzag(1), {**AB, "symbols": ["B"]}, "B"),
        (AB, zigzag(0), {**AB, "symbols": ["B"]}, "the enum has no symbol 0, or the reader"),
        (AB, zigzag(0), {**AB, "symbols": ["B"], "default": "B"}, "B"),
        (AB, zigzag(0), {**AB, "name": "ns.E"}, "A"),
        (AB, zigzag(0), {**AB, "name": "X"}, "the writer's enum E cannot be read as enum X"),
        (AB, zigzag(0), {**AB, "name": "X", "aliases": ["E"]}, "A"),
        (FIXED, b"ab", {**FIXED, "size": 3}, "the writer's fixed F cannot be read as fixed F"),
        ({"type": "fixed", "name": "F", "size": 0}, b"", {**FIXED, "size": 0}, b""),
        ({"type": "array", "items": "int"}, b"\x02\x02\0", {"type": "array", "items": "long"}, [1]),
    ],
)
def test_a_value_is_read_as_the_reader_has_it(
    writer: object, value: bytes, reader: object, expected: object
) -> None:
    found = read(writer, value, reader)
    assert found == expected or str(found).startswith(str(expected))


def test_fields_are_found_by_name_and_by_alias_in_any_order() -> None:
    writer = record(("a", "int"), ("b", "string"), ("gone", {"type": "array", "items": "string"}))
    reader = record(
        ("b", "string"),
        {"name": "x", "type": "long", "aliases": ["nothing", "a"]},
        {"name": "new", "type": ["null", "int"], "default": None},
        {"name": "list", "type": {"type": "array", "items": "int"}, "default": [7, 8]},
    )
    value = zigzag(5) + b"\x02y" + b"\x02\x02z\x01\x04\x02z\0"
    assert read(writer, value, reader) == {"b": "y", "x": 5, "new": None, "list": [7, 8]}


def test_a_field_without_a_default_that_is_missing_is_named() -> None:
    reader = record(("a", record(("b", "int"), ("c", "int"), name="In")))
    writer = record(("a", record(("b", "int"), name="In")))
    reason = "a.c: the writer's schema has no such field, and it has no default"
    assert read(writer, b"\x02", reader) == reason


def test_an_impossible_type_is_an_error_of_the_values_that_have_it() -> None:
    writer, reader = ({"type": "array", "items": each} for each in ("string", "int"))
    result = decoded(json.dumps(writer), [b"\0", b"\x02\x02x\0"], json.dumps(reader))
    assert result.values.to_pylist() == [[], None]
    assert result.failures == {1: "[0]: the writer's string cannot be read as int"}


def logical(kind: str, name: str, **more: object) -> dict[str, object]:
    return {"type": kind, "logicalType": name, **more}


SECOND = dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("writer", "value", "reader", "expected"),
    [
        (
            logical("long", "timestamp-millis"),
            zigzag(1000),
            logical("long", "timestamp-micros"),
            SECOND,
        ),
        (
            logical("long", "timestamp-micros"),
            zigzag(1000),
            logical("long", "timestamp-millis"),
            "the writer's timestamp-micros cannot be read as timestamp-millis",
        ),
        (
            logical("long", "timestamp-millis"),
            zigzag(1 << 62),
            logical("long", "timestamp-micros"),
            f"the number {1 << 62} is out of range",
        ),
        (
            logical("long", "timestamp-millis"),
            zigzag(1000),
            logical("long", "local-timestamp-millis"),
            "the writer's timestamp-millis cannot be read as local-timestamp-millis",
        ),
        (
            logical("int", "time-millis"),
            zigzag(1000),
            logical("long", "time-micros"),
            dt.time(0, 0, 1),
        ),
        (logical("int", "date"), zigzag(1), "int", 1),
        ("int", zigzag(1), logical("int", "date"), dt.date(1970, 1, 2)),
        (
            logical("int", "date"),
            zigzag(1),
            logical("long", "timestamp-millis"),
            "the writer's date cannot be read as timestamp-millis",
        ),
        (
            logical("bytes", "decimal", precision=4, scale=1),
            b"\x02\x0a",
            logical("bytes", "decimal", precision=9, scale=2),
            "the writer's decimals have 1 digits after the point, the reader's have 2",
        ),
    ],
)
def test_logical_types_keep_their_meaning(
    writer: object, value: bytes, reader: object, expected: object
) -> None:
    assert read(writer, value, reader) == expected


def test_nanoseconds_uuids_and_durations() -> None:
    nanos = decoded(json.dumps(logical("long", "timestamp-nanos")), [zigzag(1_000_000_001)])
    assert nanos.values.cast("int64").to_pylist() == [1_000_000_001]
    uuid = {**FIXED, "size": 16, "logicalType": "uuid"}
    content = bytes.fromhex("123e4567e89b12d3a456426614174000")
    found = decoded(json.dumps(["null", uuid]), [b"\x02" + content, b"\0"])
    assert found.values.to_pylist() == ["123e4567-e89b-12d3-a456-426614174000", None]
    duration = {**FIXED, "size": 12, "logicalType": "duration"}
    parts = struct.pack("<3I", 1, 2, 0xFFFF_FFFF)
    assert read(duration, parts, duration) == {"months": 1, "days": 2, "milliseconds": 0xFFFF_FFFF}


def test_what_nobody_reads_is_passed_over() -> None:
    parts = [
        ("a", "boolean", b"\x01"),
        ("b", "double", bytes(8)),
        ("c", {"type": "map", "values": {"type": "array", "items": FIXED}}, b"\x02\x02k\x02ab\0\0"),
        ("d", ["null", AB], b"\x02\x02"),
        ("e", {**FIXED, "name": "G"}, b"xy"),
        ("f", "null", b""),
        ("g", {"type": "array", "items": "null"}, b"\x06\0"),
    ]
    writer = record(*[(name, kind) for name, kind, _ in parts], ("last", "int"))
    value = b"".join(each for _, _, each in parts) + b"\x0e"
    assert read(writer, value, record(("last", "int"))) == {"last": 7}
    cut = read(writer, value[:12], record(("last", "int")))
    assert cut == "c[0]: the payload ends within the value"


def test_a_schema_that_takes_too_many_steps_is_refused() -> None:
    union = [{**FIXED, "name": f"F{i}"} for i in range(500)]
    kind = parse_schema(json.dumps(union))
    with pytest.raises(InvalidSchemaError, match="more than 100000 steps"):
        AvroProgram(kind, kind)

from __future__ import annotations

import datetime as dt
import io
import json
import math
import random
import uuid
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from pylog.record_lines.typed_json import json_texts
from pylog.typed.avro_encoder import AvroEncoder
from pylog.typed.avro_schema import parse_schema
from pylog.typed.encoder import JSON_VALUES, UnencodableError
from tests.support.avro_schemas import AvroMaker
from tests.unit.typed.decoded import decoded

ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "F", "size": 2}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-micros"}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
DURATION = {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}
UUID = "9f1b1e4c-0d5a-4b7e-8a44-0d9f3f6f7a10"
RECORD = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "string", "default": "x"}],
}


def encoded(schema: Any, value: object, *, is_json: bool = True) -> bytes:  # noqa: ANN401 - any value
    return AvroEncoder(parse_schema(json.dumps(schema)), is_json=is_json).encode(value)


def read(schema: Any, content: bytes) -> Any:  # noqa: ANN401 - any value
    stream = io.BytesIO(content)
    value = fastavro.schemaless_reader(stream, fastavro.parse_schema(schema))
    assert not stream.read()
    return value


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ("null", None, None),
        ("boolean", True, True),
        ("int", -(1 << 31), -(1 << 31)),
        ("long", (1 << 63) - 1, (1 << 63) - 1),
        ("float", Decimal("0.1"), 0.10000000149011612),
        ("double", "-Infinity", -math.inf),
        ("float", 209209940, 209209936.0),
        ("string", "naïve", "naïve"),
        ("bytes", "AP8=", b"\x00\xff"),
        ("bytes", b"\x00\xff", b"\x00\xff"),
        (FIXED, "AP8=", b"\x00\xff"),
        (ENUM, "B", "B"),
        (RECORD, {"a": 1}, {"a": 1, "b": "x"}),
        ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
        ({"type": "array", "items": "int"}, [], []),
        ({"type": "map", "values": "int"}, {"k": 1}, {"k": 1}),
        (["null", "string"], None, None),
        (["null", "string"], "x", "x"),
        (["double", "long"], 5, 5),
        (["long", "double"], Decimal("0.5"), 0.5),
        (["string", ENUM], {"E": "A"}, "A"),
        (["string", "bytes"], {"string": "AP8="}, "AP8="),
        (["null", "string", ENUM], {"member0": None, "member1": "A"}, "A"),
        (["null", "string", ENUM], {"member0": None, "member1": None}, None),
        (
            [{"type": "map", "values": "string"}, "string"],
            {"map": {"string": "x"}},
            {"string": "x"},
        ),
        (MONEY, Decimal("-12.5"), Decimal("-12.50")),
        (MONEY, 7, Decimal("7.00")),
        ({"type": "int", "logicalType": "date"}, "2026-11-30", dt.date(2026, 11, 30)),
        ({"type": "int", "logicalType": "date"}, dt.date(2026, 11, 30), dt.date(2026, 11, 30)),
        ({"type": "int", "logicalType": "time-millis"}, "09:15:00.5", dt.time(9, 15, 0, 500_000)),
        (
            MILLIS,
            "2026-11-30T10:15:00.5+01:00",
            dt.datetime(2026, 11, 30, 9, 15, 0, 500_000, dt.UTC),
        ),
        (MILLIS, 0, dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
        (LOCAL, dt.datetime(2026, 11, 30, 9), dt.datetime(2026, 11, 30, 9)),  # noqa: DTZ001 - without a zone
        ({"type": "string", "logicalType": "uuid"}, UUID, uuid.UUID(UUID)),
        ({"type": "string", "logicalType": "uuid"}, uuid.UUID(UUID), uuid.UUID(UUID)),
        (DURATION, {"months": 1, "days": 2, "milliseconds": 3}, b"\1\0\0\0\2\0\0\0\3\0\0\0"),
    ],
)
def test_fastavro_reads_what_is_written(schema: Any, value: object, expected: object) -> None:  # noqa: ANN401 - any value
    content = encoded(schema, value)

    assert read(schema, content) == expected


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        ("int", 1 << 31, "2147483648 is not int"),
        ("int", True, "True is not int"),
        ("long", Decimal("1.0"), "1.0 is not long"),
        ("float", Decimal("1e39"), "1E+39 is not float"),
        ("double", 10**400, "1" + "0" * 39 + "… is not double"),
        ("string", None, "null is not text"),
        ("string", "\ud800", "half of a surrogate pair is no character"),
        ("bytes", "a", "'a' is not base64"),
        (FIXED, "AP8A", "it has 3 bytes, fixed F has 2"),
        (ENUM, "C", "'C' is no symbol of enum E"),
        (RECORD, {"b": "x"}, "a: it is missing, and has no default"),
        (RECORD, {"a": 1, "c": 2}, "c: the schema has no such field"),
        (RECORD, {"a": "x"}, "a: 'x' is not int"),
        ({"type": "array", "items": RECORD}, [{"a": 1}, {"a": None}], "[1].a: null is not int"),
        ({"type": "map", "values": "int"}, {"k": "x"}, "k: 'x' is not int"),
        (["null", RECORD], {"a": "x"}, "a: 'x' is not int"),
        (["int", "string"], [1], "[1] is not a union of int, string"),
        (
            ["int", "string"],
            {"member0": 1, "member1": "x"},
            "{'member0': 1, 'member1': 'x'} is not a union of int, string",
        ),
        (MONEY, Decimal("1.005"), "1.005 is not a decimal of 4 digits, 2 after the point"),
        (MONEY, 100, "100 is not a decimal of 4 digits, 2 after the point"),
        (
            MILLIS,
            "2026-11-30T09:15:00.0005Z",
            "'2026-11-30T09:15:00.0005Z' is not timestamp-millis",
        ),
        (MILLIS, "2026-11-30T09:15:00", "'2026-11-30T09:15:00' is not timestamp-millis"),
        (LOCAL, "2026-11-30T09:15:00Z", "'2026-11-30T09:15:00Z' is not local-timestamp-micros"),
        ({"type": "int", "logicalType": "time-millis"}, 86_400_000, "86400000 is not time-millis"),
        ({"type": "string", "logicalType": "uuid"}, "x", "'x' is not uuid"),
        (DURATION, {"months": 1}, "{'months': 1} is not duration"),
    ],
)
def test_what_the_schema_does_not_take_is_an_error(
    schema: Any,  # noqa: ANN401 - any value
    value: object,
    reason: str,
) -> None:
    with pytest.raises(UnencodableError) as caught:
        encoded(schema, value)

    assert str(caught.value) == reason


def test_a_value_that_several_types_take_is_an_error_that_says_how_to_choose() -> None:
    with pytest.raises(UnencodableError) as caught:
        encoded(["null", "string", ENUM], "A")

    assert str(caught.value) == ('\'A\' may be any of string, E: write {"string": …} or {"E": …}')


def test_text_stands_for_bytes_in_json_alone() -> None:
    with pytest.raises(UnencodableError, match="'AP8=' is not bytes"):
        encoded("bytes", "AP8=", is_json=False)


def test_bytes_that_are_the_whole_value_have_no_length() -> None:
    encoder = AvroEncoder(parse_schema('"bytes"'), is_raw_bytes=True)

    assert encoder.encode(b"\1\2") == b"\1\2"
    decimal = '{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}'
    assert (
        AvroEncoder(parse_schema(decimal), is_raw_bytes=True).encode(Decimal("6.12")) == b"\x02\x64"
    )


def test_zero_keeps_its_sign() -> None:
    assert encoded("double", JSON_VALUES.decode("-0")) == bytes(7) + b"\x80"


def test_random_values_come_back_as_they_were() -> None:
    chance = random.Random(11)
    for _ in range(100):
        maker = AvroMaker(chance)
        schema = maker.record(2)
        values = [maker.value(schema) for _ in range(3)]
        columns = decoded(json.dumps(schema), values).values
        texts = json_texts(columns, names_members=True).to_pylist()
        for text, value in zip(texts, values, strict=True):
            content = encoded(schema, JSON_VALUES.decode(text))
            assert _plain(read(schema, content)) == _plain(read(schema, value))


def _plain(value: object) -> str:
    """Return a value as text; a column of int and double does not know which of them it was."""
    return repr(value).replace(".0", "")

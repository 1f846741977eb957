from __future__ import annotations

import json

import pytest

from pylog.errors import InvalidSchemaError
from pylog.typed.avro_defaults import encoded_default
from pylog.typed.avro_schema import parse_schema

ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
RECORD = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "string", "default": "x"}],
}


@pytest.mark.parametrize(
    ("schema", "default", "expected"),
    [
        ("null", None, ""),
        ("boolean", True, "01"),
        ("int", -1, "01"),
        ("long", 1 << 40, "808080808040"),
        ("float", 1, "0000803f"),
        ("double", "NaN", "000000000000f87f"),
        ("string", "é", "04c3a9"),
        ("bytes", "\u00ff\u0000", "04ff00"),
        ({"type": "fixed", "name": "F", "size": 1}, "\u00ff", "ff"),
        (ENUM, "B", "02"),
        (RECORD, {"a": 1}, "020278"),
        ({"type": "array", "items": "int"}, [], "00"),
        ({"type": "array", "items": "int"}, [1, 2], "04020400"),
        ({"type": "map", "values": "int"}, {"k": 1}, "02026b0200"),
        (["null", "string"], None, "00"),
        (["string", "null"], "x", "000278"),
        (["null", "string"], "x", "020278"),
    ],
)
def test_defaults_are_written_as_values_are(schema: object, default: object, expected: str) -> None:
    kind = parse_schema(json.dumps(schema))
    assert encoded_default(kind, default, "f").hex() == expected


@pytest.mark.parametrize(
    ("schema", "default"),
    [
        ("int", 1 << 31),
        ("int", True),
        ("int", 1.5),
        ("long", 1 << 63),
        ("string", 1),
        ("string", "\ud800"),
        ("bytes", "\u0100"),
        ("float", 1e300),
        ("null", 0),
        ("boolean", 1),
        (ENUM, "C"),
        (RECORD, {}),
        ({"type": "fixed", "name": "F", "size": 2}, "a"),
        ({"type": "array", "items": "int"}, {}),
        (["null", "int"], "x"),
    ],
)
def test_a_default_of_another_type_is_refused(schema: object, default: object) -> None:
    with pytest.raises(InvalidSchemaError, match="the default of field f is no "):
        encoded_default(parse_schema(json.dumps(schema)), default, "f")

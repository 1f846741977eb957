"""JSON Schemas of several drafts become types; what cannot be typed is text."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest

from pylog.typed.json_schema import field_of_json_schema
from pylog.typed.json_types import as_text, is_text, node_of


def type_of(schema: Any, **references: Any) -> pa.DataType | None:  # noqa: ANN401
    """Return the type that a schema allows; None for texts."""
    others = {name.replace("_", "."): json.dumps(each) for name, each in references.items()}
    field = field_of_json_schema(json.dumps(schema), others)
    node_of(field)
    return None if is_text(field) else field.type


ORDER = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "integer", "minimum": 0},
        "name": {"type": ["string", "null"], "maxLength": 10},
        "price": {"oneOf": [{"type": "null"}, {"type": "number"}]},
        "at": {"type": "string", "format": "date-time"},
        "day": {"format": "date", "type": "string"},
        "state": {"enum": ["NEW", "PAID", None]},
        "ok": {"const": True},
        "tags": {"type": "array", "items": {"type": "string"}},
        "lines": {"type": "array", "items": {"$ref": "#/definitions/line"}},
        "by": {"type": "object", "additionalProperties": {"type": "integer"}},
        "any": {},
        "mixed": {"type": ["string", "integer"]},
    },
    "definitions": {"line": {"properties": {"sku": {"type": "string"}}}},
}


def test_an_order_is_typed() -> None:
    assert type_of(ORDER) == pa.struct(
        [
            ("id", pa.int64()),
            ("name", pa.string()),
            ("price", pa.float64()),
            ("at", pa.timestamp("us", "UTC")),
            ("day", pa.date32()),
            ("state", pa.string()),
            ("ok", pa.bool_()),
            ("tags", pa.list_(pa.string())),
            ("lines", pa.list_(pa.struct([("sku", pa.string())]))),
            ("by", pa.map_(pa.string(), pa.int64())),
            ("any", pa.string()),
            ("mixed", pa.string()),
        ]
    )
    field = field_of_json_schema(json.dumps(ORDER)).type
    assert [each.name for each in field if is_text(each)] == ["any", "mixed"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (True, None),
        ({}, None),
        ({"type": "null"}, None),
        ({"type": "object"}, None),
        ({"type": ["integer", "number"]}, pa.float64()),
        ({"type": "integer", "maximum": 2**64}, pa.decimal128(38, 0)),
        ({"anyOf": [{"type": "string"}, {"type": "string", "maxLength": 3}]}, pa.string()),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, None),
        ({"oneOf": [{"type": "null"}]}, None),
        ({"enum": [1, 2]}, pa.int64()),
        ({"enum": [1, "a"]}, None),
        ({"enum": [{"a": 1}]}, None),
        ({"type": "array"}, None),
        ({"type": "array", "items": True}, pa.list_(as_text("item"))),
        ({"items": [{"type": "string"}, {"type": "string"}]}, pa.list_(pa.string())),
        ({"prefixItems": [{"type": "string"}, {"type": "integer"}]}, None),
        ({"type": "object", "additionalProperties": {}}, pa.map_(pa.string(), as_text("value"))),
        (
            {"type": "object", "patternProperties": {"^a": {"type": "boolean"}}},
            pa.map_(pa.string(), pa.bool_()),
        ),
        ({"properties": {"n": {"type": "null"}}}, pa.struct([as_text("n")])),
        (
            {
                "allOf": [{"properties": {"a": {"type": "integer"}}}, {"$ref": "#/$defs/b"}],
                "$defs": {"b": {"type": "object", "properties": {"b": {"type": "string"}}}},
            },
            pa.struct([("a", pa.int64()), ("b", pa.string())]),
        ),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, None),
        (
            {
                "$ref": "#/$defs/a~1b%25",
                "$defs": {"a/b%": {"type": "integer"}},
            },
            pa.int64(),
        ),
        ({"$ref": "#x", "$defs": {"y": {"$anchor": "x", "type": "string"}}}, pa.string()),
        ({"$ref": "#x", "definitions": {"y": {"id": "#x", "type": "string"}}}, pa.string()),
        (
            {
                "$id": "http://a/b",
                "properties": {"x": {"$ref": "c#/$defs/d"}},
                "$defs": {"c": {"$id": "c", "$defs": {"d": {"type": "boolean"}}}},
            },
            pa.struct([("x", pa.bool_())]),
        ),
    ],
)
def test_parts_of_schemas(schema: object, expected: pa.DataType | None) -> None:
    found = type_of(schema)
    assert found == expected or (found is not None and found.equals(expected))


def test_a_schema_may_refer_to_others() -> None:
    line = {"type": "object", "properties": {"sku": {"$ref": "#/$defs/sku"}}}
    line["$defs"] = {"sku": {"type": "string"}}
    order = {"type": "array", "items": {"$ref": "line.json"}}
    assert type_of(order, line_json=line) == pa.list_(pa.struct([("sku", pa.string())]))
    with pytest.raises(ValueError, match=r"refers to 'other\.json'"):
        type_of({"$ref": "other.json"})


def test_a_schema_that_refers_to_itself_ends_in_text() -> None:
    node = {"properties": {"v": {"type": "integer"}, "next": {"$ref": "#"}}}
    assert type_of(node) == pa.struct([("v", pa.int64()), as_text("next")])
    assert type_of({"$ref": "#"}) is None


@pytest.mark.parametrize("text", ["", "[1]", "12", "{", "[" * 100_000])
def test_what_is_no_schema_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="the schema is"):
        field_of_json_schema(text)


def test_a_schema_that_unfolds_without_end_is_an_error() -> None:
    definitions = {
        f"d{depth}": {
            "properties": {name: {"$ref": f"#/$defs/d{depth + 1}"} for name in "abcdefgh"}
        }
        for depth in range(20)
    }
    definitions["d20"] = {"type": "string"}  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="more than 20000 places"):
        type_of({"$ref": "#/$defs/d0", "$defs": definitions})


def changed(rnd: random.Random, value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return JSON in which some parts are others."""
    if rnd.random() < 0.03:
        return rnd.choice((None, True, [], {}, "x", 2**70, {"$ref": "#"}, {"$ref": 1}, ["string"]))
    if isinstance(value, dict):
        names = ("type", "items", "$ref", "allOf", "properties", "$id", "\ud800")
        return {
            rnd.choice(names) if rnd.random() < 0.02 else name: changed(rnd, each)
            for name, each in value.items()
        }
    return [changed(rnd, each) for each in value] if isinstance(value, list) else value


def test_random_changes_of_a_schema_are_errors_or_types() -> None:
    rnd = random.Random(56_33)
    failed = 0
    for _ in range(2_000):
        try:
            type_of(changed(rnd, ORDER))
        except ValueError:
            failed += 1
    assert 100 < failed < 1_500

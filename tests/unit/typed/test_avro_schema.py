from __future__ import annotations

import json

import pytest

from pylog.errors import InvalidSchemaError
from pylog.typed.avro_schema import MISSING, MOST_NESTED, parse_schema


def test_names_are_resolved_in_their_namespace() -> None:
    text = """{"type": "record", "name": "org.shop.Order", "aliases": ["Old", "x.Y"], "fields": [
        {"name": "first", "type": {"type": "enum", "name": "Size", "symbols": ["S", "L"]}},
        {"name": "second", "type": "Size"},
        {"name": "third", "type": {"type": "fixed", "name": "F", "namespace": "b", "size": 2}},
        {"name": "fourth", "type": "b.F", "default": "ab", "aliases": ["old"]}]}"""
    order = parse_schema(text)
    assert (order.name, order.short_name) == ("org.shop.Order", "Order")
    assert order.aliases == ("org.shop.Old", "x.Y")
    first, second, third, fourth = order.fields
    assert first.type is second.type
    assert first.type.name == "org.shop.Size"
    assert third.type is fourth.type
    assert (first.default, fourth.default, fourth.aliases) == (MISSING, "ab", ("old",))


def test_references_are_declared_before() -> None:
    size = '{"type":"enum","name":"org.Size","symbols":["S"]}'
    order = '{"type":"record","name":"org.O","fields":[{"name":"size","type":"Size"}]}'
    assert parse_schema(order, [size]).fields[0].type.name == "org.Size"
    with pytest.raises(InvalidSchemaError, match="type Size is not declared"):
        parse_schema(order)


def test_a_bare_word_is_a_type() -> None:
    assert parse_schema("string").kind == parse_schema('"string"').kind == "string"
    assert parse_schema('{"type":{"type":"long"}}').kind == "long"


@pytest.mark.parametrize(
    ("schema", "logical"),
    [
        ({"type": "int", "logicalType": "date"}, "date"),
        ({"type": "long", "logicalType": "date"}, ""),
        ({"type": "int", "logicalType": "colour"}, ""),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "decimal"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, "decimal"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 5}, ""),
        ({"type": "bytes", "logicalType": "decimal", "precision": 0}, ""),
        ({"type": "bytes", "logicalType": "decimal", "precision": 77}, ""),
        ({"type": "bytes", "logicalType": "decimal"}, ""),
        (
            {"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 4},
            "decimal",
        ),
        ({"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 5}, ""),
        ({"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"}, "uuid"),
        ({"type": "fixed", "name": "F", "size": 15, "logicalType": "uuid"}, ""),
        ({"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"}, "duration"),
    ],
)
def test_logical_types_that_are_wrong_are_passed_over(
    schema: dict[str, object], logical: str
) -> None:
    assert parse_schema(json.dumps(schema)).logical == logical


FIELD = '{"name":"a","type":"int"}'


def nested(depth: int) -> str:
    return '{"type":"array","items":' * depth + '"int"' + "}" * depth


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "the schema is no JSON"),
        ("[" * 100_000, "nested too deeply"),
        (nested(MOST_NESTED + 2), "nested more than 64 levels deep"),
        ("[]", "a union has no types"),
        ('["int",["string"]]', "a union is directly in a union"),
        ('["int","int"]', "a union has int twice"),
        ("7", "7 is no type"),
        ('{"type":7}', "type is 7, expected the name of a type"),
        ('{"type":"array"}', "array has no items"),
        ('{"type":"record","fields":[]}', "a record has no name"),
        ('{"type":"record","name":"R"}', "record R has no fields"),
        ('{"type":"record","name":"R","fields":[{"name":"a"}]}', "without a name or a type"),
        (
            f'{{"type":"record","name":"R","fields":[{FIELD},{FIELD}]}}',
            "record R has the field a twice",
        ),
        ('{"type":"enum","name":"E","symbols":["A","A"]}', "enum E has a symbol twice"),
        ('{"type":"enum","name":"E","symbols":"A"}', 'symbols is "A", expected a list of texts'),
        ('{"type":"fixed","name":"F","size":-1}', "fixed F has the size -1"),
        ('{"type":"fixed","name":"F","size":true}', "fixed F has the size true"),
        (
            '[{"type":"fixed","name":"F","size":1},{"type":"fixed","name":"F","size":1}]',
            "type F is declared twice",
        ),
        (
            '{"type":"record","name":"R","fields":[{"name":"next","type":["null","R"]}]}',
            "type R contains itself",
        ),
    ],
)
def test_what_is_wrong_with_a_schema_is_said(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchemaError, match=reason):
        parse_schema(text)


def test_types_that_use_each_other_by_name_are_nested_too() -> None:
    chain = ['{"type":"record","name":"R0","fields":[]}']
    chain += [
        f'{{"type":"record","name":"R{i}","fields":[{{"name":"a","type":"R{i - 1}"}}]}}'
        for i in range(1, 5_000)
    ]
    assert parse_schema(f"[{','.join(chain[:60])}]").depth == 61
    with pytest.raises(InvalidSchemaError, match="nested more than 64 levels deep"):
        parse_schema(f"[{','.join(chain)}]")


def test_half_a_surrogate_pair_is_replaced() -> None:
    enum = parse_schema('{"type":"enum","name":"E","symbols":["\\ud800x","\\ud83d\\ude00"]}')
    assert enum.symbols == ("\ufffdx", "\U0001f600")

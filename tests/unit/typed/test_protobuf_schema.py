"""Names in a schema mean what stands nearest."""

from __future__ import annotations

import pytest

from pylog.typed.protobuf_schema import ProtoSchema, all_messages
from pylog.typed.protobuf_text import parse_proto


def test_a_name_is_looked_for_from_the_inside_out() -> None:
    text = """
    package a.b;
    message M { message X { optional M m = 1; } optional X x = 1; optional .a.b.X y = 2;
                optional b.X z = 3; }
    message X {}
    """
    schema = ProtoSchema(parse_proto(text))
    assert [field.type for field in schema.messages["a.b.M"].fields] == [
        ".a.b.M.X", ".a.b.X", ".a.b.X",
    ]  # fmt: skip
    assert schema.messages["a.b.M.X"].fields[0].type == ".a.b.M"


def test_a_name_that_means_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"no '\.X', which a field of M is of"):
        ProtoSchema(parse_proto("message M { optional .X x = 1; }"))


def test_messages_come_before_those_within_them() -> None:
    file = parse_proto("message A { message B { message C {} } message D {} } message E {}")
    assert [each.name for each in all_messages(file.messages)] == ["A", "A.B", "A.B.C", "A.D", "E"]


@pytest.mark.parametrize(
    ("text", "twice"),
    [
        ("message M { int32 a = 1; string a = 2; }", "message M has a twice"),
        ("message M { int32 a = 1; string b = 1; }", "message M has 1 twice"),
        ("message M { oneof o { int32 a = 1; } message N { int32 b = 1; int32 b = 2; } }", "M.N"),
        ("message M { int32 a = 1; } message M { int32 b = 1; }", "the schema has M twice"),
        ("message M { int32 a = 1; } enum M { A = 0; }", "the schema has M twice"),
    ],
)
def test_what_is_defined_twice_is_refused_as_by_protoc(text: str, twice: str) -> None:
    with pytest.raises(ValueError, match=twice):
        ProtoSchema(parse_proto(f'syntax = "proto3"; {text}'))

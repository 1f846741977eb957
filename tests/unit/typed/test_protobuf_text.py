"""Texts of schemas say what ``protoc`` makes of them."""

from __future__ import annotations

import base64
import random

import pytest

from pylog.typed.protobuf_descriptor import read_descriptor
from pylog.typed.protobuf_schema import ProtoFile, ProtoSchema, all_messages
from pylog.typed.protobuf_text import parse_proto
from pylog.typed.protobuf_well_known import TEXTS
from tests.support.protobuf_schemas import RandomSchema
from tests.unit.typed.confluent_values import CONFLUENT


def resolved(file: ProtoFile, *others: ProtoFile) -> ProtoFile:
    """Return a file with absolute names, and numbers spelled in one way."""
    ProtoSchema(file, [*(parse_proto(text) for text in TEXTS.values()), *others])
    for message in all_messages(file.messages):
        for field in message.fields:
            if field.type in {"double", "float"} and field.default is not None:
                field.default = repr(float(field.default))
    return file


@pytest.mark.parametrize("name", list(CONFLUENT["protoc"]))
def test_a_text_is_what_protoc_compiles(name: str) -> None:
    common = parse_proto(CONFLUENT["protoc"]["common.proto"]["text"])
    compiled = read_descriptor(base64.b64decode(CONFLUENT["protoc"][name]["descriptor"]))
    parsed = parse_proto(CONFLUENT["protoc"][name]["text"])
    assert resolved(parsed, common) == resolved(compiled, common)


def test_random_texts_are_their_descriptors() -> None:
    rnd = random.Random(56_30)
    for _ in range(300):
        made = RandomSchema(rnd, rnd.choice(("proto2", "proto3")))
        compiled = read_descriptor(made.file.SerializeToString())
        assert resolved(parse_proto(made.text)) == resolved(compiled), made.text


GROUPS = "[features.message_encoding = DELIMITED]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("message A {\n  int32 x = ;\n}", "line 2 of the schema: expected a number, found ';"),
        ("message A { int32 x = 0; }", "expected a number of a field"),
        ("message A { int32 x = 1 }", "expected ';', found '}'"),
        ("message A { int32 x = 1", "expected ';', found the end"),
        ("message A { map<double, int32> x = 1; }", "keys of integers, booleans or strings"),
        ("message A { \x01 }", "expected a name, a number or a sign"),
        ("foo", "expected a message, an enum or another definition"),
        ('syntax = "proto3', "a name, a number or a sign"),
        ("service S {", "expected the end of a block"),
        ("message A {" * 100, "at most 60 messages"),
        ("message A { int32 x = 1 [a = {b: 1; }", "expected"),
        (f"message A {{ A x = 1 {GROUPS}; }}", "groups are not read"),
        (f"message A {{ repeated A x = 1 {GROUPS}; }}", "groups are not read"),
    ],
)
def test_what_is_no_schema_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        parse_proto(text)
    assert message in str(caught.value)


def test_random_changes_of_a_text_are_errors_or_schemas() -> None:
    rnd = random.Random(56_31)
    text = CONFLUENT["protoc"]["old.proto"]["text"]
    failed = 0
    for _ in range(2_000):
        start = rnd.randrange(len(text))
        changed = text[:start] + rnd.choice("{}[]=;\"'/<>,. 1a") + text[start + rnd.randrange(9) :]
        try:
            parse_proto(changed)
        except ValueError:
            failed += 1
    assert failed > 500


def test_an_option_of_a_message_is_no_field() -> None:
    file = parse_proto("message A { option deprecated = true; int32 option = 1; option b = 2; }")
    assert [(each.type, each.name) for each in file.messages[0].fields] == [
        ("int32", "option"),
        ("option", "b"),
    ]

"""Values of Confluent's own Protobuf serializer, and what stands before them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pylog.errors import InvalidSchemaError
from pylog.record_lines.typed_json import json_texts
from pylog.typed.known_schemas import KnownSchema
from pylog.typed.protobuf_format import ProtobufReader, messages_met
from pylog.typed.wire_formats import Framing
from tests.support.payloads import payloads_of
from tests.unit.typed.confluent_values import CONFLUENT, payloads_behind_ids, stored_schema

VALUES = CONFLUENT["protobuf"]
TEXT = KnownSchema(
    1,
    "PROTOBUF",
    CONFLUENT["protoc"]["order.proto"]["text"],
    (("common.proto", CONFLUENT["protoc"]["common.proto"]["text"]),),
)


def as_json(values: Any) -> list[Any]:  # noqa: ANN401 - an array
    return [json.loads(text) for text in json_texts(values).to_pylist()]


def as_google_prints(value: dict[str, Any]) -> dict[str, Any]:
    """Return a value as Google's JSON has it: what is null is left out, int64 is a string."""
    printed = {name: each for name, each in value.items() if each is not None}
    printed["id"] = str(printed["id"])
    if "total" in printed:
        printed["total"]["units"] = str(printed["total"]["units"])
    return printed


@pytest.mark.parametrize("schema", [stored_schema("orders"), TEXT])
def test_orders_of_confluents_serializer(schema: KnownSchema) -> None:
    reader = ProtobufReader(schema)
    decoder = reader.decoder(stored_schema("orders"), Framing.CONFLUENT)
    result = decoder.decode(payloads_behind_ids([each["hex"] for each in VALUES["orders"]]))
    assert result.failures == {}
    assert result.values.type == reader.type == decoder.type
    found = [as_google_prints(each) for each in as_json(result.values)]
    expected = [each["json"] for each in VALUES["orders"]]
    for one, other in zip(found, expected, strict=True):
        # Google's JSON leaves out zeros of fractions of a second, three at a time.
        one["at"], other["at"] = one["at"][:19], other["at"][:19]
        assert one == other


def test_a_value_in_header_mode_has_indexes_too() -> None:
    by_header = VALUES["order by header"]
    assert by_header["headers"][0][0] == "__value_schema_id"
    content = bytes.fromhex(by_header["hex"])
    decoder = ProtobufReader(TEXT).decoder(TEXT, Framing.CONFLUENT)
    result = decoder.decode(payloads_of([content, b"\0" + content]))
    assert result.values[1].as_py()["id"] == 2**62 + 2


@pytest.mark.parametrize(
    ("name", "message", "expected"),
    [
        ("detail", "shop.Event.Detail", {"raw": b"\0\xff", "number": 7}),
        ("event", "shop.Event", {"detail": {"raw": b"\0\xff", "number": 7}}),
        ("other", "shop.Event.Other", {"x": 5}),
    ],
)
def test_messages_within_others_are_found(name: str, message: str, expected: Any) -> None:  # noqa: ANN401
    decoder = ProtobufReader(replace(TEXT, message=message)).decoder(TEXT, Framing.CONFLUENT)
    result = decoder.decode(payloads_behind_ids([VALUES[name]] * 3))
    assert result.values.to_pylist() == [expected] * 3


def test_a_value_of_another_message_is_a_failure() -> None:
    decoder = ProtobufReader(TEXT).decoder(TEXT, Framing.CONFLUENT)
    orders = [each["hex"] for each in VALUES["orders"]]
    result = decoder.decode(payloads_behind_ids([orders[0], VALUES["event"], orders[1]]))
    assert result.failures == {1: "it is a shop.Event, and the columns are of shop.Order"}
    assert [value is None for value in result.values.to_pylist()] == [False, True, False]


def test_the_messages_of_values_are_named() -> None:
    values = [VALUES["event"], VALUES["detail"], VALUES["orders"][0]["hex"]]
    met = messages_met(TEXT, Framing.CONFLUENT, payloads_behind_ids(values))
    assert met == {"shop.Event", "shop.Event.Detail", "shop.Order"}


def test_a_value_without_a_prefix_is_of_the_message_that_was_named() -> None:
    chosen = replace(TEXT, message="shop.Event.Other")
    result = ProtobufReader(chosen).decoder(TEXT, Framing.NONE).decode(payloads_of([b"\x08\x05"]))
    assert result.values.to_pylist() == [{"x": 5}]


def test_indexes_may_be_written_in_another_way() -> None:
    chosen = replace(TEXT, message="shop.Event.Other", message_indexes="plain")
    decoder = ProtobufReader(chosen).decoder(TEXT, Framing.CONFLUENT)
    result = decoder.decode(payloads_of([b"\x02\x01\x01\x08\x05"]))
    assert result.values.to_pylist() == [{"x": 5}]


def test_fields_are_read_by_number_whatever_the_writer_calls_them() -> None:
    old = KnownSchema(1, "PROTOBUF", 'syntax="proto3"; message A { int64 n = 1; int32 x = 2; }')
    new = KnownSchema(2, "PROTOBUF", 'syntax="proto3"; message A { int64 number = 1; bool b = 7; }')
    result = (
        ProtobufReader(new)
        .decoder(old, Framing.CONFLUENT)
        .decode(payloads_of([b"\0\x08\x05\x10\x07"]))
    )
    assert result.values.to_pylist() == [{"number": 5, "b": False}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("message A {", "expected '}'|a name"),
        ("enum A { B = 0; }", "it has no message"),
        ("message A { B b = 1; }", "no 'B', which a field of A is of"),
        ('import "x.proto"; message A {}', "it imports 'x.proto', which is not there"),
        ("message A { group G = 1 {} }", "groups are not read"),
        ("AAAA", "no descriptor of a file"),
    ],
)
def test_a_schema_that_is_wrong_is_named(text: str, message: str) -> None:
    with pytest.raises(InvalidSchemaError, match=message):
        ProtobufReader(KnownSchema(3, "PROTOBUF", text))


def test_a_message_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(InvalidSchemaError, match="no message 'B'; it has A"):
        ProtobufReader(KnownSchema(3, "PROTOBUF", "message A {}", message="B"))
    with pytest.raises(InvalidSchemaError, match="of the type AVRO, expected PROTOBUF"):
        ProtobufReader(TEXT).decoder(KnownSchema(1, "AVRO", '"int"'), Framing.CONFLUENT)

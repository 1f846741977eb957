from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf import message_factory

from pylog.errors import InvalidSchemaError
from pylog.record_lines.typed_json import json_texts
from pylog.typed.encoder import JSON_VALUES, UnencodableError
from pylog.typed.known_schemas import KnownSchema
from pylog.typed.protobuf_encoder import indexes_of
from pylog.typed.protobuf_format import ProtobufReader
from pylog.typed.wire_formats import Framing
from tests.support.payloads import payloads_of
from tests.support.protobuf_schemas import RandomSchema, fill

if TYPE_CHECKING:
    from pylog.typed.protobuf_encoder import ProtobufEncoder

TEXT = """syntax = "proto3"; package shop;
import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto"; import "google/protobuf/struct.proto";
import "confluent/type/decimal.proto";
enum Color { RED = 0; BLUE = 5; }
message Order {
  int64 id = 1; string note = 2; optional int32 count = 3; Color color = 4; sint32 delta = 5;
  repeated uint32 numbers = 6; map<int32, bool> flags = 7; bytes raw = 8; double price = 9;
  google.protobuf.Timestamp at = 10; google.protobuf.Duration took = 11;
  google.protobuf.Int64Value wrapped = 12; google.protobuf.Struct more = 13;
  confluent.type.Decimal total = 14; Item item = 15; fixed32 fix = 16;
  oneof which { string word = 17; int32 number = 18; }
  message Item { string name = 1; }
}
message Other { int32 x = 1; message Inner { int32 y = 1; } }
"""


def encoder(message: str = "shop.Order", *, is_json: bool = True) -> ProtobufEncoder:
    reader = ProtobufReader(KnownSchema(1, "PROTOBUF", TEXT, message=message))
    return reader.encoder(is_json=is_json)


def read(payload: bytes) -> dict[str, Any]:
    reader = ProtobufReader(KnownSchema(1, "PROTOBUF", TEXT))
    decoder = reader.decoder(KnownSchema(1, "PROTOBUF", TEXT), Framing.NONE)
    result = decoder.decode(payloads_of([payload]))
    assert result.failures == {}
    value: dict[str, Any] = result.values[0].as_py()
    return value


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("id", -(1 << 63), -(1 << 63)),
        ("note", "naïve", "naïve"),
        ("count", 0, 0),
        ("color", "BLUE", "BLUE"),
        ("color", "7", "7"),
        ("delta", -5, -5),
        ("numbers", [0, (1 << 32) - 1], [0, (1 << 32) - 1]),
        ("flags", {"-1": True, "2": False}, [(-1, True), (2, False)]),
        ("raw", "AP8=", b"\x00\xff"),
        ("raw", b"\x00\xff", b"\x00\xff"),
        ("price", "-Infinity", float("-inf")),
        ("at", "2026-11-30T10:15:00.000000005+01:00", 1_796_030_100_000_000_005),
        ("at", "1969-12-31T23:59:59.5Z", -500_000_000),
        ("took", "-1.5s", -1_500_000_000),
        ("took", dt.timedelta(seconds=-0.5), -500_000_000),
        ("wrapped", 0, 0),
        ("wrapped", 5, 5),
        ("more", '{"a":[1,null,"x",true,{}]}', '{"a":[1.0,null,"x",true,{}]}'),
        ("total", Decimal("-12.50"), "-12.50"),
        ("total", "3", "3"),
        ("item", {"name": "x"}, {"name": "x"}),
        ("item", {}, {"name": ""}),
        ("fix", 7, 7),
        ("word", "", ""),
    ],
)
def test_a_field_is_read_as_it_was_given(name: str, given: object, expected: object) -> None:
    found = read(encoder().encode({name: given}))[name]

    assert getattr(found, "value", found) == expected


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("0", "0a0100 1001"),
        ("127", "0a017f 1003"),
        ("128", "0a020080 1003"),
        ("-128", "0a0180 1003"),
        ("-12.50", "0a02fb1e 1004 1802"),
    ],
)
def test_a_decimal_has_the_bytes_that_javas_integers_have(given: str, made: str) -> None:
    expected = bytes.fromhex(made)
    assert encoder().encode({"total": given}) == bytes([0x72, len(expected)]) + expected


def test_defaults_without_presence_take_no_bytes() -> None:
    assert encoder().encode({"id": 0, "note": "", "color": "RED", "numbers": [], "raw": ""}) == b""
    assert encoder().encode({"price": JSON_VALUES.decode("-0")}) != b""


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"id": 1 << 63}, "id: 9223372036854775808 is not int64"),
        ({"id": "1"}, "id: '1' is not int64"),
        ({"id": None}, "id: it cannot be null: leave it out for its default"),
        ({"numbers": [1, -1]}, "numbers[1]: -1 is not uint32"),
        ({"flags": {"x": True}}, "flags.x: 'x' is not int32"),
        ({"color": "GREEN"}, "color: 'GREEN' is not a name of the enum: RED, BLUE"),
        ({"nothing": 1}, "nothing: the message has no such field"),
        ({"item": {"other": "x"}}, "item.other: the message has no such field"),
        ({"item": "x"}, "item: 'x' is not an object"),
        ({"word": "x", "number": 1}, "number: of oneof which there is word, too"),
        ({"at": "2026-11-30"}, "at: '2026-11-30' is not a time such as 2026-11-30T09:15:00Z"),
        ({"took": "1"}, "took: '1' is not a time such as 1.5s"),
        ({"raw": "a"}, "raw: 'a' is not base64"),
        ({"total": "x"}, "total: 'x' is not a decimal"),
        ({"more": "[1]"}, "more: [1] is not an object"),
        ({"note": "\ud800"}, "note: half of a surrogate pair is no character"),
    ],
)
def test_what_the_message_does_not_take_is_an_error(value: object, reason: str) -> None:
    with pytest.raises(UnencodableError) as caught:
        encoder().encode(value)

    assert str(caught.value) == reason


def test_text_stands_for_bytes_in_json_alone() -> None:
    with pytest.raises(UnencodableError, match="raw: 'AP8=' is not bytes"):
        encoder(is_json=False).encode({"raw": "AP8="})


def test_required_fields_have_to_be_there() -> None:
    text = (
        'syntax = "proto2"; message M { required int32 a = 1; optional int32 b = 2 [default = 5]; }'
    )
    made = ProtobufReader(KnownSchema(1, "PROTOBUF", text)).encoder(is_json=True)

    assert made.encode({"a": 0, "b": 5}) == b"\x08\0\x10\5"
    with pytest.raises(UnencodableError, match="a: it is missing, and required"):
        made.encode({})


@pytest.mark.parametrize(
    ("message", "indexes"),
    [("shop.Order", "00"), ("shop.Other", "0202"), ("shop.Other.Inner", "040200")],
)
def test_indexes_say_which_message_it_is(message: str, indexes: str) -> None:
    assert encoder(message).indexes.hex() == indexes


def test_indexes_are_zigzag() -> None:
    assert indexes_of([0]) == b"\0"
    assert indexes_of([0, 1]) == bytes.fromhex("040002")


def test_a_message_of_another_file_is_refused() -> None:
    with pytest.raises(InvalidSchemaError, match="is not of the schema's own file"):
        encoder("google.protobuf.Timestamp")


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_google_reads_random_messages_as_they_were(syntax: str) -> None:
    chance = random.Random(5)
    for _ in range(20):
        schema = RandomSchema(chance, syntax)
        google = message_factory.GetMessageClass(schema.pool().FindMessageTypeByName("a.b.Root"))
        given = KnownSchema(1, "PROTOBUF", schema.text, message="a.b.Root")
        reader = ProtobufReader(given)
        messages = []
        for _ in range(3):
            message = google()
            fill(chance, message)
            messages.append(message)
        payloads = [each.SerializeToString() for each in messages]
        values = reader.decoder(given, Framing.NONE).decode(payloads_of(payloads)).values
        made = [
            reader.encoder(is_json=True).encode(JSON_VALUES.decode(text))
            for text in json_texts(values).to_pylist()
        ]
        again = reader.decoder(given, Framing.NONE).decode(payloads_of(made)).values
        assert repr(again.to_pylist()) == repr(values.to_pylist())
        if syntax == "proto3":  # of proto2, what is absent becomes its default
            for message, payload in zip(messages, made, strict=True):
                message.DiscardUnknownFields()
                assert repr(google.FromString(payload)) == repr(message)

"""Columns of Protobuf messages are what Google's own library reads."""

from __future__ import annotations

import json
import random
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.message import DecodeError

from pylog.typed.kernel_runs import UnreadablePayloadError
from pylog.typed.protobuf_descriptor import read_descriptor
from pylog.typed.protobuf_reader import read_protobuf
from pylog.typed.protobuf_schema import ProtoSchema
from pylog.typed.protobuf_text import parse_proto
from pylog.typed.protobuf_types import JSON, MAP, RAW, ProtoNode, node_of_message
from pylog.typed.protobuf_values import ProtobufDecoder
from pylog.typed.protobuf_well_known import TEXTS
from tests.support.payloads import payloads_of
from tests.support.protobuf_schemas import RandomSchema, fill

SEED = 56_20
WELL_KNOWN = [parse_proto(text) for text in TEXTS.values()]
NANOS = 10**9


def decoder_of(text: str, message: str) -> ProtobufDecoder:
    known = [parse_proto(each) for each in TEXTS.values()]
    return ProtobufDecoder(node_of_message(ProtoSchema(parse_proto(text), known), message))


def decoded(text: str, message: str, *contents: bytes) -> list[Any]:
    result = decoder_of(text, message).decode(payloads_of(contents))
    result.values.validate(full=True)
    assert result.failures == {}
    values: list[Any] = result.values.to_pylist()
    return values


def failure(text: str, message: str, content: bytes) -> str:
    result = decoder_of(text, message).decode(payloads_of([content]))
    assert result.values.to_pylist() == [None]
    return result.failures[0]


def python_value(message: Any, within: tuple[str, ...] = ()) -> Any:  # noqa: ANN401
    """Return what the columns of a message have to hold, as Arrow takes it."""
    name = message.DESCRIPTOR.full_name
    if name in {"google.protobuf.Timestamp", "google.protobuf.Duration"}:
        return message.seconds * NANOS + message.nanos
    if (
        name.startswith("google.protobuf.")
        and name[16:-5] not in {"", "List"}
        and name[-5:] == "Value"
    ):
        return message.value
    if name in {f"google.protobuf.{each}" for each in ("Struct", "Value", "ListValue")}:
        is_unset = name.endswith(".Value") and message.WhichOneof("kind") is None
        return None if is_unset else json_format.MessageToDict(message)
    if name in within:
        return message
    within = (*within, name)
    return {field.name: _field(message, field, within) for field in message.DESCRIPTOR.fields}


def _field(message: Any, field: Any, within: tuple[str, ...]) -> Any:  # noqa: ANN401
    value = getattr(message, field.name)
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        of = entry.fields_by_name["value"]
        return {key: _one(each, of, within) for key, each in value.items()}
    if field.is_repeated:
        return [_one(each, field, within) for each in value]
    if field.has_presence and not message.HasField(field.name) and not field.has_default_value:
        return None
    return _one(value, field, within)


def _one(value: Any, field: Any, within: tuple[str, ...]) -> Any:  # noqa: ANN401
    if field.message_type is not None:
        return python_value(value, within)
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return str(value) if named is None else named.name
    return value


def ensure_same(found: Any, expected: Any, path: str = "") -> None:  # noqa: ANN401
    """Compare values out of Arrow with Google's."""
    if hasattr(expected, "SerializeToString"):  # a message within itself: its bytes
        parsed = type(expected).FromString(found)
        assert parsed == expected, path
    elif isinstance(expected, dict) and isinstance(found, str):
        assert json.loads(found) == expected, path
    elif isinstance(expected, dict) and isinstance(found, dict):
        assert list(found) == list(expected), path
        for name, each in expected.items():
            ensure_same(found[name], each, f"{path}.{name}")
    elif isinstance(expected, dict):
        assert len(found) == len(expected), path
        for key, each in found:
            ensure_same(each, expected[key], f"{path}[{key}]")
    elif isinstance(expected, list) and not isinstance(found, str):
        assert len(found) == len(expected), path
        for place, each in enumerate(expected):
            ensure_same(found[place], each, f"{path}[{place}]")
    elif isinstance(found, str) and not isinstance(expected, str):
        assert json.loads(found) == expected, path
    else:
        assert found == expected, path


def plain(array: pa.Array) -> list[Any]:
    """Return an array's values with times as numbers of nanoseconds."""
    values: list[Any] = pa.array(array).cast(_with_numbers(array.type)).to_pylist()
    return values


def _with_numbers(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_numbers(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _with_numbers(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_numbers(kind.value_type)))
    return kind


def schema_of(random_schema: RandomSchema, *, by_text: bool) -> ProtoSchema:
    known = [parse_proto(each) for each in TEXTS.values()]
    if by_text:
        return ProtoSchema(parse_proto(random_schema.text), known)
    return ProtoSchema(read_descriptor(random_schema.file.SerializeToString()), known)


@pytest.mark.parametrize("part", range(10))
def test_random_messages_of_random_schemas_are_read_as_they_were(part: int) -> None:
    rnd = random.Random(SEED + part)
    for number in range(35):
        made = RandomSchema(rnd, rnd.choice(("proto2", "proto3")))
        root = made.message_class()
        messages = [root() for _ in range(20)]
        for message in messages:
            fill(rnd, message)
        node = node_of_message(schema_of(made, by_text=number % 2 == 0), "a.b.Root")
        contents = [message.SerializeToString(deterministic=True) for message in messages]
        result = ProtobufDecoder(node).decode(payloads_of(contents, between=b"\0\xff"))
        result.values.validate(full=True)
        assert result.failures == {}, made.text
        for content, found, message in zip(contents, plain(result.values), messages, strict=True):
            ensure_same(found, python_value(message))
            one = pa.array([read_protobuf(content, node)], node.type)
            assert plain(one) == [found]


@pytest.mark.parametrize("part", range(4))
def test_a_changed_message_is_an_error_or_what_is_read_of_it(part: int) -> None:
    rnd = random.Random(SEED + 100 + part)
    readable = 0
    for _ in range(40):
        made = RandomSchema(rnd, rnd.choice(("proto2", "proto3")))
        root = made.message_class()
        node = node_of_message(schema_of(made, by_text=True), "a.b.Root")
        contents = [_changed(rnd, root) for _ in range(40)]
        result = ProtobufDecoder(node).decode(payloads_of(contents, behind=b"\x08" * 100))
        result.values.validate(full=True)
        values = plain(result.values)
        for place, content in enumerate(contents):
            value, reason = _read_alone(content, node)
            assert result.failures.get(place) == reason
            assert repr(values[place]) == repr(plain(pa.array([value], node.type))[0])
            if reason is None:
                readable += 1
                # Bytes are not looked into, and Google's library (upb) passes over a map's entry
                # that has fields of other numbers.
                if (
                    not has_shape(node, RAW)
                    and not has_shape(node, MAP)
                    and not has_shape(node, JSON)
                ):
                    _ensure_as_google(root, content, values[place])
    assert readable > 100


def has_shape(node: ProtoNode, shape: int) -> bool:
    return node.shape == shape or any(has_shape(each, shape) for each in node.children)


def _changed(rnd: random.Random, root: Any) -> bytes:  # noqa: ANN401
    message = root()
    fill(rnd, message)
    content = bytearray(message.SerializeToString(deterministic=True))
    for _ in range(rnd.randrange(1, 4)):
        place = rnd.randrange(len(content) + 1)
        kind = rnd.randrange(4)
        if kind == 0 or place == len(content):
            content.insert(place, rnd.randrange(256))
        elif kind == 1:
            content[place] = rnd.randrange(256)
        elif kind == 2:
            del content[place]
        else:
            content[place:place] = content[: rnd.randrange(len(content))]
    return bytes(content)


def _read_alone(content: bytes, node: Any) -> tuple[Any, str | None]:  # noqa: ANN401
    try:
        return read_protobuf(content, node), None
    except UnreadablePayloadError as error:
        return None, str(error)


def _ensure_as_google(root: Any, content: bytes, value: Any) -> None:  # noqa: ANN401
    try:
        message = root.FromString(content)
        expected = python_value(message)
    except (DecodeError, UnicodeDecodeError) as error:
        pytest.fail(f"Google's library says {error} of {content!r}")
    except (ValueError, json_format.SerializeToJsonError):
        return  # infinities in JSON
    if "nan" not in repr(value):
        ensure_same(value, expected)


FLAT = """
syntax = "proto3";
package shop;
message Order {
  int64 id = 1;
  string name = 2;
  optional double price = 3;
  repeated int32 sizes = 4;
  map<string, int64> by = 5;
  oneof payment { string card = 6; int32 cash = 7; }
  Order parent = 8;
  enum State { NEW = 0; PAID = 1; }
  State state = 9;
}
"""


def test_what_is_absent_is_null_or_the_default() -> None:
    (value,) = decoded(FLAT, "shop.Order", b"")
    assert value == {
        "id": 0,
        "name": "",
        "price": None,
        "sizes": [],
        "by": [],
        "card": None,
        "cash": None,
        "parent": None,
        "state": "NEW",
    }


def test_the_last_value_counts_and_messages_are_merged() -> None:
    text = """
    message A { optional int32 x = 1; repeated int32 y = 2; optional B b = 3; optional string s = 4;
                map<int32, string> m = 5; oneof o { B c = 6; int32 d = 7; } }
    message B { optional int32 u = 1; repeated string v = 2; }
    """
    contents = [
        b"\x08\x01\x08\x02",
        b"\x10\x01\x08\x05\x12\x02\x02\x03\x10\x04",
        b"\x1a\x02\x08\x01\x08\x09\x1a\x03\x12\x01x\x1a\x03\x12\x01y",
        b"\x22\x03abc\x22\x01z",
        b"\x2a\x05\x08\x01\x12\x01a\x2a\x05\x08\x01\x12\x01b\x2a\x00",
        b"\x32\x02\x08\x01\x38\x05\x32\x00",
    ]
    empty: dict[str, Any] = {
        "x": None,
        "y": [],
        "b": None,
        "s": None,
        "m": [],
        "c": None,
        "d": None,
    }
    assert decoded(text, "A", *contents) == [
        empty | {"x": 2},
        empty | {"x": 5, "y": [1, 2, 3, 4]},
        empty | {"x": 9, "b": {"u": 1, "v": ["x", "y"]}},
        empty | {"s": "z"},
        empty | {"m": [(1, "b"), (0, "")]},
        empty | {"c": {"u": None, "v": []}},
    ]


def test_a_closed_enum_passes_over_other_numbers_and_an_open_one_says_them() -> None:
    body = "enum E { A = 0; B = 2; D = 5; } message M { %s E e = 1; repeated E r = 2; }"
    contents = [b"\x08\x01", b"\x12\x03\x00\x07\x05", b"\x08\x05"]
    assert decoded(body % "optional", "M", *contents) == [
        {"e": None, "r": []},
        {"e": None, "r": ["A", "D"]},
        {"e": "D", "r": []},
    ]
    assert decoded('syntax = "proto3"; ' + body % "", "M", *contents) == [
        {"e": "1", "r": []},
        {"e": "A", "r": ["A", "7", "D"]},
        {"e": "D", "r": []},
    ]


def test_a_field_of_another_wire_type_is_an_error() -> None:
    assert failure(FLAT, "shop.Order", b"\x0a\x01x") == (
        "id: expected a varint, found a length and bytes"
    )
    assert "price: expected 8 bytes, found 4 bytes" in failure(
        FLAT, "shop.Order", b"\x1d" + bytes(4)
    )
    assert "name: expected a length" in failure(FLAT, "shop.Order", b"\x10\x01")


def test_unknown_fields_are_passed_over() -> None:
    unknown = b"\xa0\x06\x01\xa1\x06" + bytes(8) + b"\xa2\x06\x01x\xa5\x06" + bytes(4)
    group = b"\xa3\x06\x08\x01\xa4\x06"
    values = decoded(FLAT, "shop.Order", unknown + b"\x08\x05", group + b"\x08\x05")
    assert [value["id"] for value in values] == [5, 5]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\x08", "cut"),
        (b"\x08" + b"\xff" * 10, "more than 10 bytes"),
        (b"\x12\x05abc", "field 2 has 5 bytes at byte 2, and 3 are left"),
        (b"\x12\x01\xff", "name: it is not UTF-8"),
        (b"\x00\x00", "no field's number"),
        (b"\x0b", "group 1 has no end"),
        (b"\x0c", "that has not begun"),
        (b"\x0e", "no wire type"),
        (b"\x1a\x08" + bytes(8), "price: expected 8 bytes"),
        (b"\x2a\x03\x0a\x01\xff", "by[0].key: it is not UTF-8"),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "no field's number"),
    ],
)
def test_bytes_that_are_no_message_are_an_error(content: bytes, expected: str) -> None:
    assert expected in failure(FLAT, "shop.Order", content)


@pytest.mark.parametrize(
    "content",
    [
        b"\x12\x01\xff\x12\x01x",  # a text that another one replaces
        b"\x32\x01\xff\x38\x05",  # a text of a oneof whose other member is set
        b"\x42\x02\x08\x80\x42\x01\x01",  # parts of a message that are one only together
        b"\x22\x02\x08\x80\x22\x01\x01",
    ],
)
def test_what_is_not_kept_has_to_be_right_as_google_says(content: bytes) -> None:
    text = FLAT.replace("Order parent = 8;", "Inner parent = 8; message Inner { int32 x = 1; }")
    json = """
    syntax = "proto3"; import "google/protobuf/struct.proto";
    message M { google.protobuf.Value v = 4; }
    """
    is_json = content.startswith(b"\x22")
    assert failure(json if is_json else text, "M" if is_json else "shop.Order", content)
    pool = descriptor_pool.DescriptorPool()
    inner = descriptor_pb2.DescriptorProto(name="Inner")
    inner.field.add(name="x", number=1, label=1, type=5)
    message = descriptor_pb2.DescriptorProto(name="Order", nested_type=[inner])
    message.oneof_decl.add(name="o")
    message.field.add(name="name", number=2, label=1, type=9)
    message.field.add(name="v", number=4, label=1, type=11, type_name=".Order.Inner")
    message.field.add(name="card", number=6, label=1, type=9, oneof_index=0)
    message.field.add(name="cash", number=7, label=1, type=5, oneof_index=0)
    message.field.add(name="parent", number=8, label=1, type=11, type_name=".Order.Inner")
    pool.Add(descriptor_pb2.FileDescriptorProto(name="o", syntax="proto3", message_type=[message]))
    google = message_factory.GetMessageClass(pool.FindMessageTypeByName("Order"))
    with pytest.raises((DecodeError, UnicodeDecodeError)):
        google.FromString(content)


def test_defaults_of_proto2_stand_where_a_field_is_absent() -> None:
    text = """
    message M {
      optional int32 a = 1 [default = -5]; optional string s = 2 [default = 'x"y'];
      optional double d = 3 [default = -inf]; optional E e = 4 [default = B];
      optional bool b = 5 [default = true]; optional float f = 6 [default = 1.5e3];
      optional uint64 u = 7 [default = 0xffffffffffffffff]; required int32 r = 8;
      optional bytes y = 9 [default = "\\001\\xff"]; enum E { A = 1; B = 2; }
    }
    """
    (value, other) = decoded(text, "M", b"\x40\x01", b"\x40\x01\x08\x00\x12\x00\x20\x01\x28\x00")
    assert value == {
        "a": -5,
        "s": 'x"y',
        "d": float("-inf"),
        "e": "B",
        "b": True,
        "f": 1500.0,
        "u": 2**64 - 1,
        "r": 1,
        "y": b"\x01\xff",
    }
    assert (other["a"], other["s"], other["e"], other["b"]) == (0, "", "A", False)
    assert failure(text, "M", b"\x08\x01") == "r: it is missing, and required"


def test_times_that_an_int64_of_nanoseconds_does_not_hold_are_errors() -> None:
    text = """
    syntax = "proto3"; import "google/protobuf/timestamp.proto";
    import "google/protobuf/duration.proto";
    message M { repeated google.protobuf.Timestamp t = 1; google.protobuf.Duration d = 2; }
    """
    good = b"\x0a\x03\x10\xe8\x07"
    assert plain(decoder_of(text, "M").decode(payloads_of([good])).values) == [
        {"t": [1000], "d": None}
    ]
    late = b"\x0a\x07\x08" + bytes.fromhex("80daaecfd401")
    assert "t[1]: " in failure(text, "M", good + late)
    assert "t[0]: 0 s and -1 ns" in failure(text, "M", b"\x0a\x0b\x10" + b"\xff" * 9 + b"\x01")


def test_a_decimal_of_confluents_has_the_scale_of_its_field() -> None:
    text = """
    syntax = "proto3"; import "confluent/meta.proto"; import "confluent/type/decimal.proto";
    message M {
      confluent.type.Decimal a = 1 [(confluent.field_meta) = { params: [
        { value: "8", key: "x" }, { key: "precision", value: "8" }, { key: "scale", value: "3" }]}];
      confluent.type.Decimal b = 2;
    }
    """
    number = b"\x0a\x02\xcf\xc7\x10\x08\x18\x02"  # -12345, 8 digits, scale 2
    content = b"\x0a\x08" + number + b"\x12\x08" + number
    assert decoded(text, "M", content) == [{"a": Decimal("-123.450"), "b": "-123.45"}]
    small = b"\x0a\x02\xcf\xc7\x18\x04"
    assert failure(text, "M", b"\x0a\x06" + small) == "a: -1.2345 is no decimal128(8, 3)"


def test_floats_keep_their_bits() -> None:
    text = "message M { optional float f = 1; optional double d = 2; }"
    content = b"\x0d" + struct.pack("<f", -0.0) + b"\x11" + struct.pack("<d", 5e-324)
    (value,) = decoded(text, "M", content)
    assert np.signbit(value["f"])
    assert value["d"] == 5e-324


def test_many_elements_take_as_much_room_as_they_need() -> None:
    text = 'syntax = "proto3"; message M { repeated int32 x = 1; }'
    length = b"\xa0\x8d\x06"  # 100,000
    contents = [b""] * 10 + [b"\x0a" + length + b"\x01" * 100_000] + [b"\x08\x02"] * 10
    values = decoded(text, "M", *contents)
    assert [len(value["x"]) for value in values] == [0] * 10 + [100_000] + [1] * 10

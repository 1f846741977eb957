"""What the reader says of JSON values within Protobuf; all else is held against the kernel."""

from __future__ import annotations

import json

import pytest
from google.protobuf import json_format, struct_pb2

from pylog.typed.kernel_runs import UnreadablePayloadError
from pylog.typed.protobuf_reader import read_protobuf
from pylog.typed.protobuf_schema import ProtoSchema
from pylog.typed.protobuf_text import parse_proto
from pylog.typed.protobuf_types import node_of_message
from pylog.typed.protobuf_well_known import TEXTS

KNOWN = [parse_proto(text) for text in TEXTS.values()]
TEXT = 'syntax = "proto3"; message M { google.protobuf.Value v = 1; }'
NODE = node_of_message(ProtoSchema(parse_proto(TEXT), KNOWN), "M")


def delimited(content: bytes) -> bytes:
    return b"\x0a" + bytes([len(content)]) + content


@pytest.mark.parametrize("value", [None, True, 1.5, "ä", [], {}, [[1.0], {"a": None, "b": "x"}]])
def test_a_json_value_is_what_google_prints(value: object) -> None:
    message = struct_pb2.Value()
    json_format.ParseDict(value, message)
    found = read_protobuf(delimited(message.SerializeToString()), NODE)
    assert json.loads(found["v"]) == value


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x08\x01" + b"\x12\x00", "v: field 2 of a JSON value is a length and bytes"),
        (b"\x1a\x01\xff", "v: "),
        (b"\x2a\x02\x08\x01", "v: field 1 of a JSON value is no message"),
        (b"\x1a\x05x", "v: field 3 has 5 bytes at byte 2, and 1 are left"),
    ],
)
def test_a_json_value_that_is_not_sound_is_an_error(content: bytes, message: str) -> None:
    with pytest.raises(UnreadablePayloadError) as caught:
        read_protobuf(delimited(content), NODE)
    assert str(caught.value).startswith(message)


def test_a_json_value_that_is_nested_too_deep_is_an_error() -> None:
    message = struct_pb2.Value()
    inner = message
    for _ in range(90):
        inner = inner.list_value.values.add()
    content = message.SerializeToString()
    for _ in range(30):  # a list of one value around it
        inner_list = struct_pb2.ListValue.FromString(b"")
        del inner_list
        value = b"\x0a" + _varint(len(content)) + content
        content = b"\x32" + _varint(len(value)) + value
    with pytest.raises(UnreadablePayloadError, match="nested deeper than 100"):
        read_protobuf(b"\x0a" + _varint(len(content)) + content, NODE)


def _varint(number: int) -> bytes:
    digits = []
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*digits, number])

"""Which columns messages have."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pylog.typed.protobuf_schema import ProtoSchema
from pylog.typed.protobuf_text import parse_proto
from pylog.typed.protobuf_types import node_of_message, program_of
from pylog.typed.protobuf_well_known import TEXTS


def type_of(text: str, message: str = "M") -> pa.DataType:
    known = [parse_proto(each) for each in TEXTS.values()]
    return node_of_message(ProtoSchema(parse_proto(text), known), message).type


def test_every_type_has_a_column() -> None:
    text = """
    syntax = "proto3"; enum E { Z = 0; }
    message M {
      double a = 1; float b = 2; int32 c = 3; int64 d = 4; uint32 e = 5; uint64 f = 6; sint32 g = 7;
      sint64 h = 8; fixed32 i = 9; fixed64 j = 10; sfixed32 k = 11; sfixed64 l = 12; bool m = 13;
      string n = 14; bytes o = 15; E p = 16; repeated E q = 17; map<bool, bytes> r = 18;
      google.protobuf.Timestamp s = 19; google.protobuf.Duration t = 20; M u = 21;
      google.protobuf.UInt32Value v = 22; google.protobuf.Struct w = 23;
      confluent.type.Decimal x = 24; google.protobuf.Any y = 25; google.protobuf.Empty z = 26;
    }
    """
    kinds = [
        *(pa.float64(), pa.float32(), pa.int32(), pa.int64(), pa.uint32(), pa.uint64()),
        *(pa.int32(), pa.int64(), pa.uint32(), pa.uint64(), pa.int32(), pa.int64(), pa.bool_()),
        *(pa.string(), pa.binary(), pa.string(), pa.list_(pa.field("element", pa.string()))),
        *(pa.map_(pa.bool_(), pa.binary()), pa.timestamp("ns", "UTC"), pa.duration("ns")),
        *(pa.binary(), pa.uint32(), pa.string(), pa.string()),
        pa.struct([("type_url", pa.string()), ("value", pa.binary())]),
        pa.struct([]),
    ]
    assert type_of(text) == pa.struct(list(zip("abcdefghijklmnopqrstuvwxyz", kinds, strict=True)))


def test_fields_of_a_message_stand_side_by_side_after_their_parent() -> None:
    text = (
        "message M { optional A a = 1; repeated int32 r = 2; } message A { optional int32 x = 1; }"
    )
    node = node_of_message(ProtoSchema(parse_proto(text)), "M")
    program = program_of(node)
    assert [each.name for each in program.nodes] == ["", "a", "r", "x", "r"]
    assert program.domains == 2


def test_a_message_that_is_too_wide_is_an_error() -> None:
    fields = " ".join(f"optional A{{0}} f{number} = {number + 1};" for number in range(10))
    messages = [
        f"message A{depth} {{ {fields.replace('{0}', str(depth + 1))} }}" for depth in range(6)
    ]
    text = "".join(messages).replace("optional A6", "optional int32")
    with pytest.raises(ValueError, match="more than 20000 fields"):
        type_of(text, "A0")


def test_a_default_that_is_no_value_is_an_error() -> None:
    with pytest.raises(ValueError, match="field 'a' has the default 'x'"):
        type_of("message M { optional int32 a = 1 [default = x]; }")

"""What the kernel reads of Protobuf is what the reader in plain Python reads; the rest is left."""

from __future__ import annotations

import random

import pyarrow as pa

from pylog.kernels import protobuf_values as kernel
from pylog.typed import kernel_runs
from pylog.typed.kernel_runs import UnreadablePayloadError
from pylog.typed.protobuf_reader import read_protobuf
from pylog.typed.protobuf_schema import ProtoSchema
from pylog.typed.protobuf_text import parse_proto
from pylog.typed.protobuf_types import node_of_message
from pylog.typed.protobuf_values import ProtobufDecoder
from pylog.typed.protobuf_well_known import TEXTS
from tests.support.payloads import payloads_of
from tests.support.protobuf_schemas import RandomSchema, fill


def ensure_as_read_one_by_one(text: str, message: str, contents: list[bytes]) -> None:
    known = [parse_proto(each) for each in TEXTS.values()]
    node = node_of_message(ProtoSchema(parse_proto(text), known), message)
    result = ProtobufDecoder(node).decode(payloads_of(contents))
    result.values.validate(full=True)
    for place, content in enumerate(contents):
        try:
            expected = pa.array([read_protobuf(content, node)], node.type)
        except UnreadablePayloadError:
            assert place in result.failures
        else:
            found = result.values.slice(place, 1)
            assert repr(found.to_pylist()) == repr(expected.to_pylist()), content


def test_random_messages_some_of_them_damaged() -> None:
    rnd = random.Random(56_40)
    for _ in range(12):
        made = RandomSchema(rnd, rnd.choice(("proto2", "proto3")))
        root = made.message_class()
        contents = []
        for _ in range(10):
            message = root()
            fill(rnd, message)
            content = bytearray(message.SerializeToString(deterministic=True))
            if content and rnd.random() < 0.4:
                content[rnd.randrange(len(content))] = rnd.randrange(256)
            contents.append(bytes(content))
        ensure_as_read_one_by_one(made.text.replace("Duration", "Empty"), "a.b.Root", contents)


def test_every_cut_of_a_message() -> None:
    text = """
    syntax = "proto3";
    message M { int32 a = 1; sint64 b = 2; fixed32 c = 3; double d = 4; string e = 5; M2 f = 6;
                repeated sint32 g = 7; map<string, int32> h = 8; bool i = 9; }
    message M2 { sfixed32 x = 1; repeated string y = 2; }
    """
    content = (
        b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x07\x1d\1\2\3\4\x21" + bytes(range(8))
        + b"\x2a\x03\xe2\x82\xac\x32\x09\x0d\xff\xff\xff\xff\x12\x02ab\x3a\x03\1\2\3\x38\5"
        + b"\x42\x05\x0a\x01k\x10\5\x42\x03\x0a\x01l\x48\2"
    )  # fmt: skip
    ensure_as_read_one_by_one(text, "M", [content[:end] for end in range(len(content) + 1)])


def test_constants_fit_each_other() -> None:
    assert 1 << kernel.LOG_COLUMNS == kernel.COLUMNS
    assert kernel.MARGIN <= kernel_runs.MARGIN

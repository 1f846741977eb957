"""Files that schemas import are those that Google's library brings."""

from __future__ import annotations

import importlib

import pytest
from google.protobuf import descriptor_pb2

from pylog.typed.protobuf_descriptor import read_descriptor
from pylog.typed.protobuf_schema import ProtoSchema
from pylog.typed.protobuf_text import parse_proto
from pylog.typed.protobuf_well_known import TEXTS

_OF_GOOGLE = [
    name for name in TEXTS if name.startswith("google/") and not name.endswith("descriptor.proto")
]


@pytest.mark.parametrize("name", _OF_GOOGLE)
def test_a_file_is_googles(name: str) -> None:
    module = importlib.import_module(f"{name.removesuffix('.proto').replace('/', '.')}_pb2")
    file = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)
    ours, theirs = parse_proto(TEXTS[name]), read_descriptor(file.SerializeToString())
    ProtoSchema(ours)
    ProtoSchema(theirs)
    assert ours == theirs


def test_confluents_decimal_is_there() -> None:
    file = parse_proto(TEXTS["confluent/type/decimal.proto"])
    assert [field.name for field in file.messages[0].fields] == ["value", "precision", "scale"]

"""Descriptors that are damaged are errors; what sound ones say is in ``test_protobuf_text.py``."""

from __future__ import annotations

import base64
import random

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from pylog.typed.protobuf_descriptor import read_descriptor
from tests.unit.typed.confluent_values import CONFLUENT


def test_a_descriptor_is_read() -> None:
    file = read_descriptor(base64.b64decode(CONFLUENT["protoc"]["common.proto"]["descriptor"]))
    (message,) = file.messages
    assert (file.package, message.name) == ("shop.common", "shop.common.Money")
    assert [(field.name, field.type) for field in message.fields] == [
        ("currency", "string"),
        ("units", "int64"),
    ]


def test_a_group_is_refused() -> None:
    field = b"\x0a\x01g\x18\x01\x20\x01\x28\x0a"
    message = b"\x0a\x01M\x12" + bytes([len(field)]) + field
    with pytest.raises(ValueError, match="'g' is a group"):
        read_descriptor(b"\x22" + bytes([len(message)]) + message)


@pytest.mark.parametrize("is_repeated", [False, True])
@pytest.mark.parametrize(
    ("of_file", "of_field", "is_group"),
    [
        ("DELIMITED", None, True),
        (None, "DELIMITED", True),
        ("DELIMITED", "LENGTH_PREFIXED", False),
        ("LENGTH_PREFIXED", "DELIMITED", True),
    ],
)
def test_a_message_that_an_edition_encodes_as_a_group_is_refused(
    of_file: str | None, of_field: str | None, *, is_group: bool, is_repeated: bool
) -> None:
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(syntax="editions", edition=1000)
    if of_file is not None:
        file.options.features.message_encoding = of_file
    message = file.message_type.add(name="M")
    message.field.add(name="number", number=1, type=kinds.TYPE_INT32)
    field = message.field.add(name="g", number=2, type=kinds.TYPE_MESSAGE, type_name=".M")
    field.label = kinds.LABEL_REPEATED if is_repeated else kinds.LABEL_OPTIONAL
    if of_field is not None:
        field.options.features.message_encoding = of_field
    if is_group:
        with pytest.raises(ValueError, match="'g' is a group"):
            read_descriptor(file.SerializeToString())
    else:
        assert len(read_descriptor(file.SerializeToString()).messages[0].fields) == 2


def test_a_map_is_never_a_group_nor_what_it_holds() -> None:
    """So does Google's library encode it, which has the lengths of both in these bytes."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", syntax="editions", edition=1000)
    file.options.features.message_encoding = "DELIMITED"
    file.message_type.add(name="V").field.add(name="x", number=1, type=kinds.TYPE_INT32)
    message = file.message_type.add(name="M")
    entry = message.nested_type.add(name="MapEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kinds.TYPE_STRING)
    entry.field.add(name="value", number=2, type=kinds.TYPE_MESSAGE, type_name=".V")
    field = message.field.add(name="map", number=1, type=kinds.TYPE_MESSAGE)
    field.type_name, field.label = ".M.MapEntry", kinds.LABEL_REPEATED
    for each in (*entry.field, file.message_type[0].field[0]):
        each.label = kinds.LABEL_OPTIONAL
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("M"))()
    made.map["k"].x = 7
    assert made.SerializeToString() == b"\x0a\x07\x0a\x01k\x12\x02\x08\x07"
    assert read_descriptor(file.SerializeToString()).messages[1].messages[0].is_map_entry


def test_a_number_has_the_32_bits_that_googles_library_takes_of_it() -> None:
    value = b"\x0a\x01A\x10\xff\xff\xff\xff\x0f\x11" + bytes(8)
    enum = b"\x0a\x01E\x12" + bytes([len(value)]) + value
    content = b"\x2a" + bytes([len(enum)]) + enum
    google = descriptor_pb2.FileDescriptorProto.FromString(content)
    assert google.enum_type[0].value[0].number == -1
    assert read_descriptor(content).enums[0].names == {-1: "A"}


def test_random_changes_of_a_descriptor_are_errors_or_descriptors() -> None:
    rnd = random.Random(56_32)
    sound = base64.b64decode(CONFLUENT["protoc"]["old.proto"]["descriptor"])
    failed = 0
    for _ in range(3_000):
        changed = bytearray(sound)
        for _ in range(rnd.randrange(1, 4)):
            changed[rnd.randrange(len(changed))] = rnd.randrange(256)
        try:
            read_descriptor(bytes(changed))
        except ValueError:
            failed += 1
    assert failed > 500

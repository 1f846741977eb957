"""Fields on the wire, one after the other."""

from __future__ import annotations

import pytest

from pylog.typed.protobuf_wire import WireError, sized, varint, varint_at, wire_fields


def test_fields_of_every_wire_type() -> None:
    content = b"\x08\x96\x01\x11" + bytes(range(8)) + b"\x1a\x02ab\x25\1\0\0\0\x2b\x08\1\x2c\x30\5"
    assert list(wire_fields(content)) == [
        (1, 0, 150),
        (2, 1, int.from_bytes(bytes(range(8)), "little")),
        (3, 2, b"ab"),
        (4, 5, 1),
        (6, 0, 5),
    ]


@pytest.mark.parametrize(
    "content",
    [
        b"\x08",
        b"\x11\0",
        b"\x1a\x03ab",
        b"\x25\0",
        b"\x00",
        b"\x0f\0",
        b"\x0b",
        b"\x0b\x14",
        b"\x0c",
    ],
)
def test_bytes_that_are_no_fields_are_an_error(content: bytes) -> None:
    with pytest.raises(WireError):
        list(wire_fields(content))


def test_groups_are_passed_over_up_to_a_depth() -> None:
    assert list(wire_fields(b"\x0b" * 100 + b"\x0c" * 100)) == []
    with pytest.raises(WireError, match="deeper than 100"):
        list(wire_fields(b"\x0b" * 101 + b"\x0c" * 101))


def test_a_number_has_64_bits() -> None:
    assert varint_at(b"\xff" * 9 + b"\x01", 0) == (2**64 - 1, 10)
    with pytest.raises(WireError, match="more than 64 bits"):
        varint_at(b"\xff" * 9 + b"\x02", 0)


@pytest.mark.parametrize("value", [0, 127, 128, 300, (1 << 64) - 1])
def test_numbers_are_written_as_they_are_read(value: int) -> None:
    assert varint_at(varint(value), 0) == (value, len(varint(value)))
    assert varint(-1) == b"\xff" * 9 + b"\x01"
    assert sized(b"ab") == b"\x02ab"

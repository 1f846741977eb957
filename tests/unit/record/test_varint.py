from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.errors import InvalidRecordError
from pylog.record.varint import decode_varint, decode_varlong
from tests.support.batches import varint

VECTORS = {
    0: "00",
    -1: "01",
    1: "02",
    63: "7e",
    -64: "7f",
    64: "8001",
    -65: "8101",
    8191: "fe7f",
    -8192: "ff7f",
    8192: "808001",
    134217728: "8080808001",
    2**31 - 1: "feffffff0f",
    -(2**31): "ffffffff0f",
}
LONG_VECTORS = {
    17179869184: "808080808001",
    2**63 - 1: "feffffffffffffffff01",
    -(2**63): "ffffffffffffffffff01",
}


@pytest.mark.parametrize(("value", "encoded"), VECTORS.items())
def test_varint_has_kafkas_vectors(value: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert decode_varint(data, 0, len(data)) == (value, len(data))
    assert varint(value) == data


@pytest.mark.parametrize(("value", "encoded"), [*VECTORS.items(), *LONG_VECTORS.items()])
def test_varlong_has_kafkas_vectors(value: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert decode_varlong(data, 0, len(data)) == (value, len(data))
    assert varint(value) == data


@given(st.integers(-(2**31), 2**31 - 1), st.binary(max_size=3))
def test_any_int32_comes_back_and_what_follows_is_not_read(value: int, behind: bytes) -> None:
    data = varint(value)
    assert decode_varint(data + behind, 0, len(data + behind)) == (value, len(data))


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=3))
def test_any_int64_comes_back_wherever_it_lies(value: int, before: bytes) -> None:
    data = before + varint(value)
    assert decode_varlong(data, len(before), len(data)) == (value, len(data))


def test_an_over_long_encoding_is_accepted() -> None:
    assert decode_varint(bytes.fromhex("8280808000"), 0, 5) == (1, 5)
    assert decode_varlong(bytes.fromhex("82808080808080808000"), 0, 10) == (1, 10)


def test_surplus_bits_of_the_fifth_byte_are_lost() -> None:
    assert decode_varint(bytes.fromhex("feffffff7f"), 0, 5) == (2**31 - 1, 5)


def test_surplus_bits_of_the_tenth_byte_are_lost() -> None:
    assert decode_varlong(bytes.fromhex("feffffffffffffffff7f"), 0, 10) == (2**63 - 1, 10)


def test_a_varint_whose_fifth_byte_says_more_is_invalid() -> None:
    with pytest.raises(InvalidRecordError, match="more than 5 bytes"):
        decode_varint(b"\x80" * 5 + b"\x00", 0, 6)


def test_a_varlong_whose_tenth_byte_says_more_is_invalid() -> None:
    with pytest.raises(InvalidRecordError, match="more than 10 bytes"):
        decode_varlong(b"\x80" * 10 + b"\x00", 0, 11)


@pytest.mark.parametrize("end", [0, 1])
def test_a_varint_that_reaches_the_end_is_invalid(end: int) -> None:
    with pytest.raises(InvalidRecordError, match="runs past the end"):
        decode_varint(b"\x80\x01", 0, end)
    with pytest.raises(InvalidRecordError, match="runs past the end"):
        decode_varlong(b"\x80\x01", 0, end)

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.errors import InvalidRecordError
from pylog.record.varint import (
    decode_unsigned_varint,
    decode_varint,
    decode_varlong,
    encode_unsigned_varint,
    encode_varint,
    encode_varlong,
    size_of_varint,
    size_of_varlong,
)
from tests.support.batches import unsigned_varint, varint

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
UNSIGNED_VECTORS = {
    0: "00",
    1: "01",
    63: "3f",
    127: "7f",
    128: "8001",
    8191: "ff3f",
    8192: "8040",
    -8192: "80c0ffff0f",
    2**31 - 1: "ffffffff07",
    -(2**31): "8080808008",
    -1: "ffffffff0f",
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
def test_any_int32_comes_back_and_what_follows_is_not_read(value: int, following: bytes) -> None:
    data = varint(value)
    assert decode_varint(data + following, 0, len(data + following)) == (value, len(data))


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


@pytest.mark.parametrize(("value", "encoded"), VECTORS.items())
def test_a_varint_is_written_as_in_kafkas_vectors(value: int, encoded: str) -> None:
    assert encode_varint(value).hex() == encoded
    assert size_of_varint(value) == len(encoded) // 2


@pytest.mark.parametrize(("value", "encoded"), [*VECTORS.items(), *LONG_VECTORS.items()])
def test_a_varlong_is_written_as_in_kafkas_vectors(value: int, encoded: str) -> None:
    assert encode_varlong(value).hex() == encoded
    assert size_of_varlong(value) == len(encoded) // 2


@pytest.mark.parametrize(("value", "encoded"), UNSIGNED_VECTORS.items())
def test_an_unsigned_varint_is_written_as_in_kafkas_vectors(value: int, encoded: str) -> None:
    assert encode_unsigned_varint(value).hex() == encoded


BOUNDARIES = [
    sign * (1 << bits) + step for sign in (1, -1) for bits in range(64) for step in (-1, 0)
]


@pytest.mark.parametrize("value", [each for each in BOUNDARIES if -(2**63) <= each < 2**63])
def test_sizes_are_right_around_every_power_of_two(value: int) -> None:
    encoded = varint(value)
    assert encode_varlong(value) == encoded
    assert size_of_varlong(value) == len(encoded)
    if -(2**31) <= value < 2**31:
        assert encode_varint(value) == encoded
        assert size_of_varint(value) == len(encoded)


@given(st.integers(-(2**63), 2**63 - 1))
def test_any_int64_is_written_in_its_shortest_form(value: int) -> None:
    assert encode_varlong(value) == varint(value)
    assert size_of_varlong(value) == len(varint(value))


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1])
def test_what_is_not_an_int32_is_not_a_varint(value: int) -> None:
    for function in (encode_varint, size_of_varint, encode_unsigned_varint):
        with pytest.raises(ValueError, match=f"^{value} does not fit into 32 bits$"):
            function(value)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_what_is_not_an_int64_is_not_a_varlong(value: int) -> None:
    for function in (encode_varlong, size_of_varlong):
        with pytest.raises(ValueError, match=f"^{value} does not fit into 64 bits$"):
            function(value)


@given(st.integers(0, 2**31 - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_an_unsigned_varint_is_read_where_it_stands(
    value: int, before: bytes, after: bytes
) -> None:
    data = before + unsigned_varint(value) + after
    found = decode_unsigned_varint(data, len(before), len(data))
    assert found == (value, len(data) - len(after))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff\xff\xff\xff\x00"])
def test_an_unsigned_varint_that_does_not_end_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRecordError):
        decode_unsigned_varint(data, 0, len(data))

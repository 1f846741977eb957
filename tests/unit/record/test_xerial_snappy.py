"""xerial's snappy streams and raw blocks, rule by rule."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.errors import InvalidRecordError
from pylog.record.byte_buffer import ByteBuffer
from pylog.record.xerial_snappy import decompress_snappy
from tests.support.codecs import XERIAL_HEADER, snappy_raw, xerial, xerial_block

DATA = b"to be or not to be, " * 20


def decompress(stream: bytes, limit: int = 1 << 24) -> bytes:
    out = ByteBuffer(limit)
    decompress_snappy(memoryview(stream), out)
    return bytes(out.view(0, out.length))


def refusal(stream: bytes) -> str:
    with pytest.raises(InvalidRecordError) as caught:
        decompress(stream)
    return str(caught.value)


@given(st.binary(max_size=300), st.integers(1, 100))
def test_any_xerial_stream_comes_back(data: bytes, block_size: int) -> None:
    assert decompress(xerial(data, block_size)) == data


@given(st.binary(max_size=300))
def test_any_raw_block_comes_back(data: bytes) -> None:
    assert decompress(snappy_raw(data)) == data


def test_a_payload_below_16_bytes_is_one_raw_block() -> None:
    block = snappy_raw(b"tiny")
    assert len(block) < 16
    assert decompress(block) == b"tiny"
    # Even one that begins like a stream, and so is not a block.
    assert "block of 15 bytes" in refusal(XERIAL_HEADER[:15])


def test_a_stream_without_blocks_is_empty() -> None:
    assert decompress(XERIAL_HEADER) == b""


def test_an_empty_payload_is_refused() -> None:
    assert refusal(b"") == "snappy stream: is empty"


@pytest.mark.parametrize("versions", [struct.pack("<ii", 1, 1), bytes(8), b"\xff" * 8])
def test_the_versions_of_the_first_header_are_not_looked_at(versions: bytes) -> None:
    assert decompress(xerial(DATA, header=XERIAL_HEADER[:8] + versions)) == DATA


def test_concatenated_streams_are_read_through() -> None:
    assert decompress(xerial(DATA) + xerial(b"more") + XERIAL_HEADER) == DATA + b"more"


@pytest.mark.parametrize("version", [0, -1])
def test_a_later_header_of_version_0_is_refused(version: int) -> None:
    later = XERIAL_HEADER[:8] + struct.pack(">ii", version, 1)
    assert f"has version {version}, expected at least 1" in refusal(xerial(DATA) + later)


@pytest.mark.parametrize("length", range(4, 16))
def test_a_later_header_cut_short_is_refused(length: int) -> None:
    assert "broken header" in refusal(xerial(DATA) + XERIAL_HEADER[:length])


@pytest.mark.parametrize("rest", [b"", b"\x00", b"\x00\x00\x00"])
def test_fewer_than_four_bytes_left_are_a_clean_end(rest: bytes) -> None:
    assert decompress(xerial(DATA) + rest) == DATA


@pytest.mark.parametrize("length", [-1, -(2**31), 512 * 1024 * 1024 + 1])
def test_an_impossible_block_length_is_refused(length: int) -> None:
    assert f"block length is {length}" in refusal(XERIAL_HEADER + struct.pack(">i", length))


@pytest.mark.parametrize("zeros", [4, 7, 8, 29])
def test_zeros_after_the_last_block_are_a_block_without_bytes_and_refused(zeros: int) -> None:
    assert "block length is 0, expected 1 to 536870912" in refusal(xerial(DATA) + bytes(zeros))


def test_a_block_cut_short_is_refused() -> None:
    stream = xerial(DATA)
    assert f"is cut short after {len(stream) - 1 - 20}" in refusal(stream[:-1])


def test_a_block_that_is_not_snappy_is_refused() -> None:
    stream = XERIAL_HEADER + struct.pack(">i", 3) + b"\x09\xff\xff"
    assert "block cannot be decompressed" in refusal(stream)
    assert "block cannot be decompressed" in refusal(b"no snappy at all, and no stream")


def test_a_block_that_claims_more_than_it_can_hold_is_refused_before_memory_is_made() -> None:
    claim = b"\xff\xff\xff\xff\x0f" + b"\x00" * 20
    assert "claims to hold 4294967295" in refusal(claim)


def test_the_limit_is_respected_over_all_blocks() -> None:
    stream = xerial(DATA, block_size=100)
    assert decompress(stream, limit=len(DATA)) == DATA
    with pytest.raises(InvalidRecordError, match=f"limit of {len(DATA) - 1} bytes"):
        decompress(stream, limit=len(DATA) - 1)


def test_blocks_of_very_different_content_come_back_in_order() -> None:
    stream = XERIAL_HEADER + xerial_block(b"a" * 60_000) + xerial_block(b"") + xerial_block(b"b")
    assert decompress(stream) == b"a" * 60_000 + b"b"

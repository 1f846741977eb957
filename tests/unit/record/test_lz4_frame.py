"""Kafka's subset of LZ4 frames, rule by rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.errors import InvalidRecordError
from pylog.record.byte_buffer import ByteBuffer
from pylog.record.lz4_frame import decompress_lz4
from tests.support.codecs import LZ4_END_MARK, lz4_block, lz4_frame, lz4_header

DATA = b"to be or not to be, " * 20


def decompress(stream: bytes, magic: int = 2, limit: int = 1 << 24) -> bytes:
    out = ByteBuffer(limit)
    decompress_lz4(memoryview(stream), magic, out)
    return bytes(out.view(0, out.length))


def refusal(stream: bytes, magic: int = 2) -> str:
    with pytest.raises(InvalidRecordError) as caught:
        decompress(stream, magic)
    return str(caught.value)


@given(
    data=st.binary(max_size=3_000).map(lambda data: data * 100),
    magic=st.integers(0, 2),
    block_checksums=st.booleans(),
    content_size=st.booleans(),
    content_checksum=st.none() | st.integers(0, 2**32 - 1),
)
def test_any_frame_kafka_accepts_comes_back(
    *,
    data: bytes,
    magic: int,
    block_checksums: bool,
    content_size: bool,
    content_checksum: int | None,
) -> None:
    stream = lz4_frame(
        data,
        magic=magic,
        block_checksums=block_checksums,
        content_size=content_size,
        content_checksum=content_checksum,
    )
    assert decompress(stream, magic) == data


def test_headers_are_byte_for_byte_kafkas() -> None:
    assert lz4_header(magic=2).hex() == "04224d18604082"
    assert lz4_header(magic=0).hex() == "04224d1860401a"


def test_v0_frames_carry_a_wrong_header_checksum_which_only_v0_accepts() -> None:
    stream = lz4_frame(DATA, magic=0)
    assert decompress(stream, magic=0) == DATA
    for magic in (1, 2):
        assert "header checksum stored 0x1a, computed 0x82" in refusal(stream, magic)


@pytest.mark.parametrize("checksum", [0x00, 0x1A, 0x82, 0xFF])
def test_v0_does_not_look_at_the_header_checksum(checksum: int) -> None:
    stream = lz4_header(checksum=checksum) + lz4_block(DATA) + LZ4_END_MARK
    assert decompress(stream, magic=0) == DATA


def test_a_content_size_is_skipped_and_not_compared() -> None:
    stream = lz4_header(content_size=12345) + lz4_block(DATA) + LZ4_END_MARK
    assert decompress(stream) == DATA


def test_the_header_checksum_covers_the_content_size() -> None:
    stream = bytearray(lz4_frame(DATA, content_size=True))
    stream[8] ^= 1
    assert "header checksum" in refusal(bytes(stream))


def test_a_wrong_content_checksum_is_never_noticed() -> None:
    assert decompress(lz4_frame(DATA, content_checksum=0xDEADBEEF)) == DATA


def test_a_wrong_block_checksum_is_refused() -> None:
    stream = bytearray(lz4_frame(DATA, block_checksums=True))
    stream[-5] ^= 1  # the last byte before the end mark
    assert "block checksum stored" in refusal(bytes(stream))


def test_the_block_checksum_covers_the_stored_bytes_of_a_raw_block() -> None:
    stream = lz4_frame(b"abc", block_checksums=True)
    assert decompress(stream) == b"abc"
    changed = stream.replace(b"abc", b"abd")
    assert "block checksum stored" in refusal(changed)


@pytest.mark.parametrize("flags", [0x61, 0x62, 0x63, 0x40, 0x20, 0xA0, 0xE0])
def test_reserved_bits_dependent_blocks_and_other_versions_are_refused(flags: int) -> None:
    stream = lz4_header(flags=flags) + lz4_block(DATA) + LZ4_END_MARK
    assert f"flags {flags:#04x} are not version 1 with independent blocks" in refusal(stream)


@pytest.mark.parametrize("descriptor", [0x00, 0x10, 0x20, 0x30, 0x41, 0x48, 0xC0])
def test_reserved_bits_of_the_descriptor_and_small_block_sizes_are_refused(descriptor: int) -> None:
    stream = lz4_header(descriptor=descriptor) + lz4_block(DATA) + LZ4_END_MARK
    assert f"block descriptor {descriptor:#04x}" in refusal(stream)


@pytest.mark.parametrize(
    ("descriptor", "size"), [(0x40, 1 << 16), (0x50, 1 << 18), (0x60, 1 << 20)]
)
def test_a_block_may_be_as_large_as_the_descriptor_says(descriptor: int, size: int) -> None:
    head = lz4_header(descriptor=descriptor)
    assert decompress(head + lz4_block(bytes(size)) + LZ4_END_MARK) == bytes(size)
    too_large = head + lz4_block(bytes(size + 1)) + LZ4_END_MARK
    assert "block cannot be decompressed" in refusal(too_large)
    stored = head + (size + 1 | 0x80000000).to_bytes(4, "little") + bytes(size + 1) + LZ4_END_MARK
    assert f"block of {size + 1} bytes exceeds the frame's maximum of {size}" in refusal(stored)


def test_what_follows_the_end_mark_is_ignored_even_another_frame() -> None:
    assert decompress(lz4_frame(DATA) + lz4_frame(b"more")) == DATA
    assert decompress(lz4_frame(DATA) + b"garbage") == DATA


def test_a_size_of_zero_ends_the_frame_also_with_the_bit_for_stored_blocks() -> None:
    stream = lz4_header() + lz4_block(DATA) + (0x80000000).to_bytes(4, "little")
    assert decompress(stream) == DATA


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("missing", [1, 2, 3, 4])
def test_a_frame_that_ends_before_the_content_checksum_it_announces_is_refused(
    magic: int, missing: int
) -> None:
    stream = lz4_frame(DATA, magic=magic, content_checksum=0xDEADBEEF)
    assert "stream ended prematurely (inside the content checksum)" in refusal(
        stream[:-missing], magic
    )


def test_a_missing_end_mark_is_refused() -> None:
    assert "stream ended prematurely (no end mark)" in refusal(lz4_frame(DATA)[:-4])


def test_every_cut_before_the_end_of_the_end_mark_is_refused() -> None:
    stream = lz4_frame(DATA, block_checksums=True, content_size=True)
    for length in range(len(stream)):
        assert "LZ4 frame: " in refusal(stream[:length])


def test_other_first_bytes_are_refused() -> None:
    assert "begins with 0x184d2205, expected 0x184d2204" in refusal(b"\x05" + lz4_frame(DATA)[1:])


def test_a_block_that_is_not_lz4_is_refused() -> None:
    stream = lz4_header() + (5).to_bytes(4, "little") + b"\xff" * 5 + LZ4_END_MARK
    assert "block cannot be decompressed" in refusal(stream)


def test_the_limit_is_respected() -> None:
    stream = lz4_frame(bytes(200_000))
    assert len(decompress(stream, limit=200_000)) == 200_000
    with pytest.raises(InvalidRecordError, match="more than the limit of 199999 bytes"):
        decompress(stream, limit=199_999)


def test_damage_close_to_the_limit_is_told_from_too_many_bytes() -> None:
    damaged = lz4_header() + (5).to_bytes(4, "little") + b"\xff" * 5 + LZ4_END_MARK
    with pytest.raises(InvalidRecordError, match="block cannot be decompressed"):
        decompress(damaged, limit=10)
    assert decompress(lz4_frame(DATA), limit=len(DATA)) == DATA
    with pytest.raises(InvalidRecordError, match=f"batch has at least {len(DATA)} bytes"):
        decompress(lz4_frame(DATA), limit=len(DATA) - 1)

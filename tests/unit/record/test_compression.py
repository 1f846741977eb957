from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.errors import InvalidRecordError
from pylog.model import CompressionType
from pylog.record.compression import Decompressor
from tests.support.codecs import CODEC_IDS, CODECS, compress, gzip_member, zstd_frame

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = b"to be or not to be, " * 50


def decompress(
    stream: bytes, codec: CompressionType, magic: int = 2, limit: int = 1 << 24
) -> bytes:
    decompressor = Decompressor(limit)
    start, end = decompressor.append(codec, memoryview(stream), magic)
    return bytes(decompressor.buffer.view(start, end))


def gunzip(stream: bytes, limit: int = 1 << 24) -> bytes:
    return decompress(stream, CompressionType.GZIP, limit=limit)


def unzstd(stream: bytes, limit: int = 1 << 24) -> bytes:
    return decompress(stream, CompressionType.ZSTD, limit=limit)


@given(st.binary(max_size=2_000), st.integers(1, 200), st.sampled_from(CODECS), st.integers(0, 2))
def test_whatever_a_producer_compresses_comes_back(
    data: bytes, times: int, codec: str, magic: int
) -> None:
    stream = compress(codec, data * times, magic)
    assert decompress(stream, CompressionType(CODEC_IDS[codec]), magic) == data * times


def test_batches_are_appended_one_after_the_other() -> None:
    decompressor = Decompressor()
    places = [
        decompressor.append(
            CompressionType(CODEC_IDS[codec]), memoryview(compress(codec, codec.encode() * 9)), 2
        )
        for codec in CODECS
    ]
    assert [end for _, end in places[:-1]] == [start for start, _ in places[1:]]
    views = [bytes(decompressor.buffer.view(*place)) for place in places]
    assert views == [codec.encode() * 9 for codec in CODECS]


def test_concatenated_gzip_members_are_read_through() -> None:
    assert gunzip(gzip_member(DATA) + gzip_member(b"") + gzip_member(b"more")) == DATA + b"more"


@pytest.mark.parametrize(
    "garbage",
    [b"\x00", b"garbage", b"\x1f\x8b", b"\x1f\x8c\x08", gzip_member(DATA)[:9], bytes(400)],
)
def test_garbage_after_the_last_gzip_member_is_ignored(garbage: bytes) -> None:
    assert gunzip(gzip_member(DATA) + garbage) == DATA


@pytest.mark.parametrize("from_end", [1, 4, 5, 8])
def test_a_wrong_gzip_trailer_is_refused(from_end: int) -> None:
    # The four last bytes are the length, those before them the CRC-32.
    stream = bytearray(gzip_member(DATA))
    stream[-from_end] ^= 0x01
    with pytest.raises(InvalidRecordError, match="gzip stream cannot be decompressed"):
        gunzip(bytes(stream))


def test_a_wrong_trailer_of_an_inner_gzip_member_is_refused() -> None:
    first = bytearray(gzip_member(DATA))
    first[-8] ^= 0x01
    with pytest.raises(InvalidRecordError, match="gzip stream cannot be decompressed"):
        gunzip(bytes(first) + gzip_member(DATA))


def test_every_cut_of_a_gzip_stream_is_refused() -> None:
    stream = gzip_member(DATA)
    for length in range(len(stream)):
        with pytest.raises(InvalidRecordError, match="gzip stream"):
            gunzip(stream[:length])


@pytest.mark.parametrize("length", [10, len(gzip_member(DATA)) - 1])
def test_a_second_gzip_member_cut_short_is_refused(length: int) -> None:
    with pytest.raises(InvalidRecordError, match="cut short"):
        gunzip(gzip_member(DATA) + gzip_member(DATA)[:length])


def test_bytes_that_are_not_gzip_are_refused() -> None:
    with pytest.raises(InvalidRecordError, match="gzip stream"):
        gunzip(b"no gzip at all")


def test_gzip_with_a_name_a_comment_and_a_time_comes_back() -> None:
    plain = gzip.compress(DATA)
    flagged = plain[:3] + b"\x18" + plain[4:10] + b"name\x00comment\x00" + plain[10:]
    assert gunzip(flagged) == DATA


def test_zstd_frames_carry_no_content_size_and_come_back() -> None:
    frame = zstd_frame(DATA)
    assert frame[4] & 0xE0 == 0  # neither content size nor single segment
    assert unzstd(frame) == DATA


def test_several_zstd_frames_are_read_through() -> None:
    assert unzstd(zstd_frame(DATA) + zstd_frame(b"") + zstd_frame(b"more")) == DATA + b"more"


def test_a_zstd_frame_with_a_wrong_checksum_is_refused() -> None:
    frame = bytearray(zstd_frame(DATA, checksum=True))
    assert unzstd(bytes(frame)) == DATA
    frame[-1] ^= 1
    with pytest.raises(InvalidRecordError, match="zstd stream cannot be decompressed"):
        unzstd(bytes(frame))


@pytest.mark.parametrize("stream", [b"no zstd", zstd_frame(DATA) + b"garbage"])
def test_bytes_that_are_not_a_zstd_frame_are_refused(stream: bytes) -> None:
    with pytest.raises(InvalidRecordError, match="zstd stream cannot be decompressed"):
        unzstd(stream)


def test_a_zstd_stream_cut_short_gives_fewer_bytes_for_the_record_count_to_notice() -> None:
    data = bytes(range(256)) * 4_000
    whole = zstd_frame(data)
    for length in range(0, len(whole), 997):
        got = unzstd(whole[:length])
        assert len(got) < len(data)
        assert data.startswith(got)


@pytest.mark.parametrize("pack", [gzip_member, zstd_frame, lambda data: compress("snappy", data)])
@pytest.mark.parametrize("size", [1, 65_535, 65_536, 65_537, 1_000_000])
def test_a_batch_may_be_as_large_as_the_limit_and_no_larger(
    pack: Callable[[bytes], bytes], size: int
) -> None:
    codec = {"gzip_member": 1, "zstd_frame": 4}.get(pack.__name__, 2)
    stream = pack(bytes(size))
    assert decompress(stream, CompressionType(codec), limit=size) == bytes(size)
    with pytest.raises(InvalidRecordError, match=f"more than the limit of {size - 1} bytes"):
        decompress(stream, CompressionType(codec), limit=size - 1)


def test_the_limit_holds_for_all_members_together() -> None:
    stream = gzip_member(bytes(100)) + gzip_member(bytes(100))
    assert gunzip(stream, limit=200) == bytes(200)
    with pytest.raises(InvalidRecordError, match="limit of 199 bytes"):
        gunzip(stream, limit=199)


def test_the_limit_is_each_batchs_own() -> None:
    decompressor = Decompressor(100)
    for _ in range(3):
        decompressor.append(CompressionType.GZIP, memoryview(gzip_member(bytes(100))), 2)
    assert decompressor.buffer.length == 300


def test_the_limit_is_for_bytes_that_were_never_compressed_as_well() -> None:
    assert decompress(bytes(101), CompressionType.NONE, limit=101) == bytes(101)
    with pytest.raises(InvalidRecordError, match="at least 101 bytes of records, more than"):
        decompress(bytes(101), CompressionType.NONE, limit=100)


def test_a_decompressor_can_be_used_after_a_refusal() -> None:
    decompressor = Decompressor(100)
    for codec in (CompressionType.GZIP, CompressionType.ZSTD, CompressionType.LZ4):
        with pytest.raises(InvalidRecordError):
            decompressor.append(codec, memoryview(b"garbage garbage"), 2)
        decompressor.buffer.clear()
    start, end = decompressor.append(CompressionType.ZSTD, memoryview(zstd_frame(b"fine")), 2)
    assert bytes(decompressor.buffer.view(start, end)) == b"fine"

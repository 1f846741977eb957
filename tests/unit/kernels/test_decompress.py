"""Many batches decompressed by one call: which are, what comes out, and where the call stops."""

from __future__ import annotations

import struct
from itertools import pairwise

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from pylog.columnar.decode import GROUP_BYTES, append_group
from pylog.errors import InvalidRecordError
from pylog.model import CompressionType
from pylog.record.codec_libraries import lz4_function, open_zstd_context
from pylog.record.compression import Decompressor
from tests.support.codecs import (
    LZ4_END_MARK,
    LZ4_STORED,
    lz4_block,
    lz4_frame,
    lz4_header,
    zstd_frame,
)
from tests.support.reading import as_buffer

LZ4, ZSTD = CompressionType.LZ4, CompressionType.ZSTD
DATA = b"to be or not to be, " * 50
NOISE = np.random.default_rng(1).bytes(70_000)
LIMIT = 1 << 17


def group(
    codec: CompressionType, streams: list[bytes], limit: int = 1 << 24
) -> tuple[Decompressor, list[bytes]]:
    """Return what one call makes of the streams, which stand apart in one buffer."""
    decompressor = Decompressor(limit)
    decompressor.buffer.reserve(min(limit, 1 << 17))  # then there is memory for a group
    data, bounds = bytearray(), []
    for stream in streams:
        data += b"before"
        bounds.append((len(data), len(data) + len(stream)))
        data += stream
    places = append_group(decompressor, codec, as_buffer(data), np.array(bounds, dtype=np.int64))
    decompressor.buffer.length = places[-1]
    return decompressor, [bytes(decompressor.buffer.view(*place)) for place in pairwise(places)]


def test_the_libraries_show_their_functions() -> None:
    assert lz4_function() is not None
    assert open_zstd_context() is not None


@pytest.mark.parametrize(("codec", "compress"), [(LZ4, lz4_frame), (ZSTD, zstd_frame)])
def test_usual_batches_are_all_decompressed(codec: CompressionType, compress) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001
    contents = [DATA, b"", b"a", NOISE, DATA * 60, bytes(65_536)]
    assert group(codec, [compress(each) for each in contents])[1] == contents


def test_other_shapes_of_zstd_frames_are_decompressed() -> None:
    compressor = zstandard.ZstdCompressor(level=1, write_checksum=True, write_content_size=True)
    assert group(ZSTD, [compressor.compress(DATA), zstd_frame(NOISE)])[1] == [DATA, NOISE]


def wide_zstd_frame(window: int) -> bytes:
    """Return a frame whose header asks for a window of 2^(10 + window / 8) bytes and more."""
    return bytes.fromhex("28b52ffd00") + bytes([window]) + bytes.fromhex("090000") + b"a"


def test_a_zstd_frame_may_ask_for_a_window_of_128_mib_at_the_most() -> None:
    assert group(ZSTD, [wide_zstd_frame(17 << 3)])[1] == [b"a"]
    assert group(ZSTD, [wide_zstd_frame((17 << 3) + 1)])[1] == []


def test_a_zstd_frame_without_a_window_may_have_128_mib_at_the_most() -> None:
    most = 1 << 27
    for size, is_taken in ((most, True), (most + 2, False)):
        stream = as_single_segment(zstandard.ZstdCompressor().compress(bytes(size)), size)
        decompressor = Decompressor(most + 2)
        decompressor.buffer.reserve(most + 2)
        bounds = np.array([[0, len(stream)]], dtype=np.int64)
        places = append_group(decompressor, ZSTD, as_buffer(stream), bounds)
        assert places == ([0, size] if is_taken else [0])
    with pytest.raises(InvalidRecordError, match="too much memory"):
        Decompressor(most + 2).append(ZSTD, memoryview(stream), 2)


def as_single_segment(frame: bytes, size: int) -> bytes:
    """Return a frame of 4 bytes of content size with its content as its window."""
    assert frame[4] == 0x80
    assert frame[6:10] == struct.pack("<I", size)
    return frame[:4] + b"\xa0" + frame[6:]


LEFT_ALONE = {
    "LZ4, no bytes": (LZ4, b""),
    "LZ4, half a header": (LZ4, lz4_frame(DATA)[:6]),
    "LZ4, a header alone": (LZ4, lz4_header()),
    "LZ4, a wrong header checksum": (LZ4, lz4_frame(DATA, magic=0)),
    "LZ4, block checksums": (LZ4, lz4_frame(DATA, block_checksums=True)),
    "LZ4, a content size": (LZ4, lz4_frame(DATA, content_size=True)),
    "LZ4, a content checksum": (LZ4, lz4_frame(DATA, content_checksum=1)),
    "LZ4, another block size": (LZ4, lz4_header(descriptor=0x50) + lz4_block(DATA) + LZ4_END_MARK),
    "LZ4, no end mark": (LZ4, lz4_frame(DATA)[:-4]),
    "LZ4, an end mark cut short": (LZ4, lz4_frame(DATA)[:-1]),
    "LZ4, a block cut short": (LZ4, lz4_frame(DATA)[:-9]),
    "LZ4, a block past the end": (LZ4, lz4_header() + b"\xff\xff\x00\x00" + LZ4_END_MARK),
    "LZ4, a block too large": (LZ4, lz4_frame(bytes(70_000), block_size=70_000)),
    "LZ4, a stored block too large": (
        LZ4,
        lz4_header() + struct.pack("<I", LZ4_STORED | 70_000) + NOISE + LZ4_END_MARK,
    ),
    "LZ4, a block of nonsense": (LZ4, lz4_header() + b"\x04\0\0\0\xff\xff\xff\xff" + LZ4_END_MARK),
    "LZ4, over the limit": (LZ4, lz4_frame(bytes(LIMIT + 1))),
    "LZ4, stored, over the limit": (LZ4, lz4_frame(NOISE + NOISE)),
    "zstd": (LZ4, zstd_frame(DATA)),
    "zstd, no bytes": (ZSTD, b""),
    "zstd, five bytes": (ZSTD, zstd_frame(DATA)[:5]),
    "zstd, cut short": (ZSTD, zstd_frame(DATA)[:-1]),
    "zstd, two frames": (ZSTD, zstd_frame(DATA) + zstd_frame(DATA)),
    "zstd, a byte after the frame": (ZSTD, zstd_frame(DATA) + b"\0"),
    "zstd, a skippable frame": (ZSTD, bytes.fromhex("502a4d1801000000ff") + zstd_frame(DATA)),
    "zstd, a wrong checksum": (ZSTD, zstd_frame(DATA, checksum=True)[:-1] + b"\0"),
    "zstd, over the limit": (ZSTD, zstd_frame(bytes(LIMIT + 1))),
    "LZ4 frame": (ZSTD, lz4_frame(DATA)),
    "gzip": (CompressionType.GZIP, b"\x1f\x8b"),
    "snappy": (CompressionType.SNAPPY, b"\x82SNAPPY\0"),
    "none": (CompressionType.NONE, lz4_frame(DATA)),
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_what_is_unusual_is_left_alone_with_all_after_it(case: str) -> None:
    codec, stream = LEFT_ALONE[case]
    compress = lz4_frame if codec is LZ4 else zstd_frame
    usual = [compress(DATA), compress(b"b")] if codec in {LZ4, ZSTD} else []
    _, contents = group(codec, [*usual, stream, *usual], LIMIT)
    assert contents == [DATA, b"b"][: len(usual)]


def test_a_call_ends_with_the_batch_that_fills_the_group() -> None:
    size = 1 << 17
    streams = [lz4_frame(bytes(size))] * (GROUP_BYTES // size + 3)
    assert len(group(LZ4, streams)[1]) == GROUP_BYTES // size


def test_batches_follow_what_is_in_the_buffer() -> None:
    decompressor, _ = group(ZSTD, [zstd_frame(DATA)])
    stream = as_buffer(zstd_frame(b"more"))
    bounds = np.array([[0, stream.size]], dtype=np.int64)
    assert append_group(decompressor, ZSTD, stream, bounds) == [len(DATA), len(DATA) + 4]
    assert bytes(decompressor.buffer.view(0, len(DATA) + 4)) == DATA + b"more"


def test_no_byte_outside_the_buffer_is_read() -> None:
    stream = as_buffer(lz4_frame(DATA))
    for bounds in ([-1, stream.size], [0, stream.size + 1], [stream.size, 0]):
        array = np.array([[0, stream.size], bounds], dtype=np.int64)
        assert len(append_group(Decompressor(), LZ4, stream, array)) == 2


_CHANGES = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=3)


@given(st.sampled_from([LZ4, ZSTD]), st.binary(max_size=300), st.integers(1, 400), _CHANGES)
def test_what_is_done_in_a_call_is_what_is_done_one_by_one(
    codec: CompressionType, data: bytes, times: int, changes: list[tuple[int, int]]
) -> None:
    stream = bytearray((lz4_frame if codec is LZ4 else zstd_frame)(data * times))
    for at, byte in changes:
        stream[at % len(stream)] = byte
    _, contents = group(codec, [bytes(stream)], LIMIT)
    one = Decompressor(LIMIT)
    try:
        place = one.append(codec, memoryview(stream), 2)
    except InvalidRecordError:
        assert contents == []
    else:
        assert contents in ([], [bytes(one.buffer.view(*place))])
        assert contents or changes

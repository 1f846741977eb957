from __future__ import annotations

import gzip
import random
import struct
import zlib
from typing import Any

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from pylog.model import CompressionType
from pylog.record.compression import Decompressor
from pylog.record.compressor import Compressor, ensure_level
from tests.support import peers
from tests.support.codecs import CODEC_IDS, CODECS, LZ4_END_MARK, XERIAL_HEADER

KAFKA_PYTHON: Any = vars(peers)["kafka_python_codec"]
GZIP, SNAPPY, LZ4, ZSTD = (CompressionType(number) for number in range(1, 5))
WORDS = b"to be or not to be, " * 500
NOISE = random.Random(7).randbytes(100_000)
# The lengths of Kafka's own test: around its block of 64 KB, random and constant.
LENGTHS = (0, 1, 1_000, 1 << 16, (1 << 16) * 3 // 2)
PAYLOADS = [NOISE[:length] for length in LENGTHS] + [b"x" * length for length in LENGTHS[1:]]


def compress(
    codec: CompressionType, data: bytes, magic: int = 2, level: int | None = None
) -> bytes:
    return bytes(Compressor().compress(codec, data, magic=magic, level=level))


def own_decompress(codec: CompressionType, stream: bytes, magic: int) -> bytes:
    decompressor = Decompressor(1 << 24)
    start, end = decompressor.append(codec, memoryview(stream), magic)
    return bytes(decompressor.buffer.view(start, end))


def lz4_blocks(frame: bytes) -> list[tuple[int, bytes]]:
    """Return the size word and the bytes of each block, and check the end mark."""
    blocks: list[tuple[int, bytes]] = []
    at = 7
    while True:
        (word,) = struct.unpack_from("<I", frame, at)
        at += 4
        if word == 0:
            assert at == len(frame)
            return blocks
        length = word & 0x7FFFFFFF
        blocks.append((word, frame[at : at + length]))
        at += length


@given(st.binary(max_size=2_000), st.integers(1, 200), st.sampled_from(CODECS), st.integers(0, 2))
def test_whatever_is_compressed_comes_back(data: bytes, times: int, codec: str, magic: int) -> None:
    kind = CompressionType(CODEC_IDS[codec])
    if kind is ZSTD and magic < 2:
        return
    assert own_decompress(kind, compress(kind, data * times, magic), magic) == data * times


@pytest.mark.parametrize("data", PAYLOADS, ids=lambda data: f"{len(data)} {data[:2]!r}")
def test_libraries_read_every_codec(data: bytes) -> None:
    assert gzip.decompress(compress(GZIP, data)) == data
    assert lz4.frame.decompress(compress(LZ4, data)) == data
    assert zstandard.ZstdDecompressor().decompress(compress(ZSTD, data)) == data


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("data", PAYLOADS, ids=lambda data: f"{len(data)} {data[:2]!r}")
def test_kafka_python_reads_every_codec(data: bytes, magic: int) -> None:
    assert KAFKA_PYTHON.gzip_decode(compress(GZIP, data, magic)) == data
    if data:  # it takes a bare xerial header for a raw block
        assert KAFKA_PYTHON.snappy_decode(compress(SNAPPY, data, magic)) == data
    lz4_decode = KAFKA_PYTHON.lz4_decode_old_kafka if magic == 0 else KAFKA_PYTHON.lz4_decode
    assert lz4_decode(compress(LZ4, data, magic)) == data
    if magic == 2:
        assert KAFKA_PYTHON.zstd_decode(compress(ZSTD, data)) == data


def test_without_codec_the_data_is_returned_as_it_is() -> None:
    data = bytearray(b"as it is")
    assert Compressor().compress(CompressionType.NONE, data, magic=2) is data


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_any_bytes_are_compressed(codec: CompressionType, kind: type) -> None:
    assert compress(codec, kind(WORDS)) == compress(codec, WORDS)


@pytest.mark.parametrize(
    ("magic", "checksum"),
    [(0, 0x1A), (1, 0x82), (2, 0x82)],
)
def test_only_v0_has_the_lz4_header_checksum_wrong(magic: int, checksum: int) -> None:
    # KAFKA-3160
    frame = compress(LZ4, WORDS, magic)
    assert frame[:7] == bytes.fromhex("04224d186040") + bytes([checksum])


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("data", PAYLOADS, ids=lambda data: f"{len(data)} {data[:2]!r}")
def test_an_lz4_frame_has_blocks_of_64_kilobytes_stored_where_they_do_not_shrink(
    data: bytes, magic: int
) -> None:
    frame = compress(LZ4, data, magic)
    assert frame.endswith(LZ4_END_MARK)
    cuts = [data[at : at + 65_536] for at in range(0, len(data), 65_536)]
    blocks = lz4_blocks(frame)
    assert len(blocks) == len(cuts)
    for (word, stored), raw in zip(blocks, cuts, strict=True):
        if word & 0x80000000:
            assert stored == raw
        else:
            assert len(stored) < len(raw)
            size = len(raw)
            assert bytes(cramjam.lz4.decompress_block(stored, output_len=size)) == raw
    # One byte and noise do not shrink, a thousand equal bytes do.
    assert all(
        bool(word >> 31) == (len(set(raw)) > 1 or len(raw) == 1)
        for (word, _), raw in zip(blocks, cuts, strict=True)
    )


def test_lz4_level_9_is_the_fast_compressor_and_higher_numbers_are_not() -> None:
    data = b"".join(b"%d;" % (number * number % 9_973) for number in range(10_000))
    by_level = {level: len(compress(LZ4, data, level=level)) for level in range(1, 18)}
    assert compress(LZ4, data) == compress(LZ4, data, level=9)
    assert all(size < by_level[9] for level, size in by_level.items() if level != 9)
    assert by_level[12] == by_level[17]
    assert by_level[12] <= by_level[8] <= by_level[3]


def test_snappy_is_xerials_stream_of_32_kib_blocks() -> None:
    data = (WORDS * 8)[:70_000]
    stream = compress(SNAPPY, data)
    assert stream[:16] == bytes.fromhex("82534e41505059000000000100000001") == XERIAL_HEADER
    at, lengths, content = 16, [], b""
    while at < len(stream):
        (length,) = struct.unpack_from(">i", stream, at)
        block = bytes(cramjam.snappy.decompress_raw(stream[at + 4 : at + 4 + length]))
        lengths.append(len(block))
        content += block
        at += 4 + length
    assert lengths == [32_768, 32_768, 70_000 - 65_536]
    assert content == data


def test_snappy_of_nothing_is_the_header_alone() -> None:
    assert compress(SNAPPY, b"") == XERIAL_HEADER


@pytest.mark.parametrize("level", [None, -1, 1, 2, 5, 6, 9])
def test_a_gzip_stream_is_one_member_without_a_time(level: int | None) -> None:
    stream = compress(GZIP, WORDS, level=level)
    assert stream[:8] == bytes.fromhex("1f8b080000000000")
    member = zlib.decompressobj(wbits=31)
    assert member.decompress(stream) == WORDS
    assert member.eof
    assert member.unused_data == b""


def test_gzip_levels_are_zlibs_and_the_default_is_6() -> None:
    data = b"".join(b"%d;" % (number * number % 9_973) for number in range(10_000))
    sizes = {level: len(compress(GZIP, data, level=level)) for level in range(1, 10)}
    for level in range(2, 10):
        member = zlib.compressobj(level, wbits=31)
        assert sizes[level] == len(member.compress(data) + member.flush())
    assert sizes[9] <= sizes[6] < sizes[1]
    assert compress(GZIP, data) == compress(GZIP, data, level=-1) == compress(GZIP, data, level=6)


def test_zstd_levels_differ_and_the_default_is_3() -> None:
    data = b"".join(b"%d;" % (number * number % 9_973) for number in range(10_000))
    sizes = [len(compress(ZSTD, data, level=level)) for level in (19, 3, -100)]
    assert sizes[0] < sizes[1] < sizes[2]
    assert compress(ZSTD, data) == compress(ZSTD, data, level=3)


def test_one_compressor_serves_any_order_of_codecs_and_levels() -> None:
    compressor = Compressor()
    calls = [(ZSTD, 1), (LZ4, None), (ZSTD, 19), (GZIP, 1), (ZSTD, 1), (SNAPPY, None), (ZSTD, None)]
    for codec, level in calls:
        stream = compressor.compress(codec, WORDS, magic=2, level=level)
        assert stream == compress(codec, WORDS, level=level)


@pytest.mark.parametrize(
    ("codec", "levels"),
    [(GZIP, (-1, 1, 9)), (LZ4, (1, 17)), (ZSTD, (-131_072, 0, 22))],
)
def test_kafkas_bounds_of_levels_are_accepted(
    codec: CompressionType, levels: tuple[int, ...]
) -> None:
    for level in levels:
        ensure_level(codec, level)
        assert own_decompress(codec, compress(codec, b"data", level=level), 2) == b"data"


@pytest.mark.parametrize(
    ("codec", "level", "message"),
    [
        (GZIP, 0, "gzip level is 0, expected 1 to 9 or -1"),
        (GZIP, 10, "gzip level is 10, expected 1 to 9 or -1"),
        (GZIP, -2, "gzip level is -2, expected 1 to 9 or -1"),
        (LZ4, 0, "lz4 level is 0, expected 1 to 17"),
        (LZ4, 18, "lz4 level is 18, expected 1 to 17"),
        (ZSTD, 23, "zstd level is 23, expected -131072 to 22"),
        (ZSTD, -131_073, "zstd level is -131073, expected -131072 to 22"),
        (SNAPPY, 1, "compression snappy has no levels, 1 was given"),
        (CompressionType.NONE, 0, "compression none has no levels, 0 was given"),
    ],
)
def test_levels_beyond_them_are_refused(codec: CompressionType, level: int, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        ensure_level(codec, level)
    with pytest.raises(ValueError, match=f"^{message}$"):
        compress(codec, b"data", level=level)


@pytest.mark.parametrize("magic", [0, 1])
def test_zstd_is_refused_below_v2(magic: int) -> None:
    with pytest.raises(ValueError, match=f"zstd is not allowed in message format v{magic}"):
        compress(ZSTD, b"data", magic)

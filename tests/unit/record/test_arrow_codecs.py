"""Arrow in the place of the libraries that compress and decompress, held against these."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import cramjam
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pylog
from pylog.errors import InvalidRecordError
from pylog.model import CompressionType
from pylog.record import (
    arrow_codecs,
    codec_libraries,
    compression,
    compressor,
    lz4_frame,
    xerial_snappy,
)
from pylog.record.compression import Decompressor
from pylog.record.compressor import Compressor
from tests.support.codecs import CODEC_IDS, CODECS, compress, zstd_frame
from tests.support.golden import Holds, golden_partitions, read_expected

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.golden import GoldenRoot

WORDS = b"to be or not to be, " * 20_000
NOISE = random.Random(3).randbytes(150_000)


@pytest.fixture
def arrow_alone() -> Iterator[None]:
    """Have pylog do without cramjam, lz4 and zstandard."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lz4_frame, "decompress_lz4_into", arrow_codecs.decompress_lz4_into)
        patch.setattr(lz4_frame, "LZ4_ERRORS", (arrow_codecs.CodecError,))
        patch.setattr(xerial_snappy, "snappy_length", arrow_codecs.snappy_length)
        patch.setattr(xerial_snappy, "decompress_snappy_into", arrow_codecs.decompress_snappy_into)
        patch.setattr(xerial_snappy, "SNAPPY_ERRORS", (arrow_codecs.CodecError,))
        patch.setattr(compression, "open_zstd_decompressor", arrow_codecs.ZstdDecompressor)
        patch.setattr(compression, "ZSTD_ERRORS", (arrow_codecs.CodecError,))
        patch.setattr(compressor, "compress_snappy", arrow_codecs.compress_snappy)
        patch.setattr(compressor, "compress_lz4", arrow_codecs.compress_lz4)
        patch.setattr(compressor, "open_zstd_compressor", arrow_codecs.ZstdCompressor)
        yield


def decompressed(codec: str, stream: bytes, magic: int = 2, limit: int = 1 << 24) -> bytes:
    decompressor = Decompressor(limit)
    kind = CompressionType(CODEC_IDS[codec])
    start, end = decompressor.append(kind, memoryview(stream), magic)
    return bytes(decompressor.buffer.view(start, end))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.binary(max_size=2_000),
    times=st.integers(1, 200),
    codec=st.sampled_from(CODECS),
    magic=st.integers(0, 2),
)
@pytest.mark.usefixtures("arrow_alone")
def test_what_producers_compress_comes_back(
    data: bytes, times: int, codec: str, magic: int
) -> None:
    assert decompressed(codec, compress(codec, data * times, magic), magic) == data * times


@pytest.mark.parametrize("data", [b"", b"x", WORDS, NOISE, NOISE[:65_536], WORDS[:65_537]])
@pytest.mark.parametrize("level", [None, 1, 3, 12])
@pytest.mark.parametrize("codec", ["snappy", "lz4", "zstd"])
@pytest.mark.usefixtures("arrow_alone")
def test_what_it_compresses_the_libraries_read(codec: str, level: int | None, data: bytes) -> None:
    if codec == "snappy" and level is not None:
        return
    kind = CompressionType(CODEC_IDS[codec])
    stream = bytes(Compressor().compress(kind, data, magic=2, level=level))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lz4_frame, "decompress_lz4_into", codec_libraries.decompress_lz4_into)
        patch.setattr(xerial_snappy, "snappy_length", codec_libraries.snappy_length)
        into = codec_libraries.decompress_snappy_into
        patch.setattr(xerial_snappy, "decompress_snappy_into", into)
        patch.setattr(compression, "open_zstd_decompressor", zstandard.ZstdDecompressor)
        assert decompressed(codec, stream) == data
    assert decompressed(codec, stream) == data


def outcome(codec: str, stream: bytes) -> bytes | str:
    try:
        return decompressed(codec, stream)
    except InvalidRecordError:
        return "refused"


@pytest.mark.parametrize("codec", ["snappy", "lz4", "zstd"])
def test_damaged_streams_give_the_same_bytes_or_are_refused_by_both(
    codec: str, request: pytest.FixtureRequest
) -> None:
    sound = compress(codec, WORDS[:3_000] + NOISE[:500])
    chance = random.Random(5)
    damaged = []
    for _ in range(300):
        stream = bytearray(sound)
        stream[chance.randrange(len(stream))] ^= 1 << chance.randrange(8)
        damaged.append(bytes(stream))
    if codec != "zstd":  # where a stream that is cut short is known by its record count
        damaged += [sound[:length] for length in range(0, len(sound), 7)]
    by_libraries = [outcome(codec, stream) for stream in damaged]
    assert "refused" in by_libraries
    request.getfixturevalue("arrow_alone")
    assert [outcome(codec, stream) for stream in damaged] == by_libraries


@pytest.mark.usefixtures("arrow_alone")
def test_a_zstd_stream_that_is_cut_short_is_refused() -> None:
    whole = zstd_frame(WORDS)
    for length in range(1, len(whole), 7):
        with pytest.raises(InvalidRecordError, match="zstd stream cannot be decompressed"):
            decompressed("zstd", whole[:length])


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [1, 65_535, 65_536, 65_537, 1_000_000])
@pytest.mark.usefixtures("arrow_alone")
def test_a_batch_may_be_as_large_as_the_limit_and_no_larger(codec: str, size: int) -> None:
    stream = compress(codec, bytes(size))
    assert decompressed(codec, stream, limit=size) == bytes(size)
    with pytest.raises(InvalidRecordError, match=f"more than the limit of {size - 1} bytes"):
        decompressed(codec, stream, limit=size - 1)


def test_an_lz4_block_that_holds_more_than_its_room_is_refused() -> None:
    block = bytes(cramjam.lz4.compress_block(bytes(1_000), store_size=False))
    room = memoryview(bytearray(1_000))
    assert arrow_codecs.decompress_lz4_into(block, room) == 1_000
    for decompress in (arrow_codecs.decompress_lz4_into, codec_libraries.decompress_lz4_into):
        with pytest.raises((arrow_codecs.CodecError, *codec_libraries.LZ4_ERRORS)):
            decompress(block, room[:999])


@pytest.mark.parametrize("head", [b"\xff", b"\xff" * 5, b"\xff\xff\xff\xff\x7f"])
def test_a_snappy_length_that_cannot_be_is_refused(head: bytes) -> None:
    for length_of in (arrow_codecs.snappy_length, codec_libraries.snappy_length):
        with pytest.raises((arrow_codecs.CodecError, *codec_libraries.SNAPPY_ERRORS)):
            length_of(head)


@pytest.mark.usefixtures("arrow_alone")
def test_golden_partitions_of_every_codec_are_read(golden_root: GoldenRoot) -> None:
    chosen = [
        each
        for each in golden_partitions(Holds.EXACTLY)
        if any(f"codec-{codec}" in each for codec in CODECS)
    ]
    assert len(chosen) >= len(CODECS)
    for partition_id in chosen:
        partition = golden_root.partition(partition_id)
        path = partition.expected_path("uncommitted")
        assert path is not None
        found = pylog.scan(partition.directory, columns=["offset", "value"]).to_table()
        expected = [line["offset"] for line in read_expected(path)]
        assert found["offset"].to_pylist() == expected

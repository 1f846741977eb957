"""Each codec in the framing that Kafka's own producer writes.

gzip: one member. snappy: the xerial stream, a 16-byte header, then raw blocks of 32 KB input,
each after its length. lz4: one frame, version 1, independent blocks of 64 KB, no content size, no
checksum but the header's. zstd: one frame written as a stream, so without a content size.
Source: Kafka's ``compress/*Compression``, 3.9 and 4.3 (``Lz4BlockOutputStream``, snappy-java's
``SnappyOutputStream``).
"""

import struct
import zlib
from collections.abc import Callable, Iterator

import cramjam
import lz4.block
import zstandard

SNAPPY_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
SNAPPY_BLOCK_BYTES = 32 << 10
LZ4_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"  # magic, FLG 0x60, BD 0x40, header checksum
LZ4_BLOCK_BYTES = 64 << 10
LZ4_STORED = 1 << 31  # this bit of a block's size says: not compressed

_GZIP_LEVEL = 6
_GZIP_WBITS = 31
_ZSTD_LEVEL = 3


def _chunks(records: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(records), size):
        yield records[start : start + size]


def _gzip(records: bytes) -> bytes:
    return zlib.compress(records, level=_GZIP_LEVEL, wbits=_GZIP_WBITS)


def _snappy(records: bytes) -> bytes:
    parts = [SNAPPY_HEADER]
    for chunk in _chunks(records, SNAPPY_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(chunk))
        parts += (struct.pack(">i", len(block)), block)
    return b"".join(parts)


def _lz4(records: bytes) -> bytes:
    parts = [LZ4_HEADER]
    for chunk in _chunks(records, LZ4_BLOCK_BYTES):
        block = lz4.block.compress(chunk, store_size=False)
        if len(block) < len(chunk):
            parts += (struct.pack("<I", len(block)), block)
        else:
            parts += (struct.pack("<I", len(chunk) | LZ4_STORED), chunk)
    parts.append(struct.pack("<I", 0))  # end mark
    return b"".join(parts)


def _zstd(records: bytes) -> bytes:
    stream = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_content_size=False).compressobj()
    return stream.compress(records) + stream.flush()


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "none": lambda records: records,
    "gzip": _gzip,
    "snappy": _snappy,
    "lz4": _lz4,
    "zstd": _zstd,
}


def snappy_blocks(section: memoryview) -> Iterator[memoryview]:
    """Yield the raw blocks of a xerial stream that :data:`COMPRESSORS` wrote."""
    position = len(SNAPPY_HEADER)
    while position < len(section):
        size = int.from_bytes(section[position : position + 4], "big")
        position += 4
        yield section[position : position + size]
        position += size


def lz4_blocks(section: memoryview) -> Iterator[tuple[memoryview, bool]]:
    """Yield ``(block, stored)`` for each block of a frame that :data:`COMPRESSORS` wrote."""
    position = len(LZ4_HEADER)
    while word := int.from_bytes(section[position : position + 4], "little"):
        size = word & (LZ4_STORED - 1)
        position += 4
        yield section[position : position + size], bool(word & LZ4_STORED)
        position += size

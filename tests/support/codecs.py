"""Compression in Kafka's framing, written for the tests and sharing nothing with ``pylog``."""

from __future__ import annotations

import gzip
import struct
import zlib
from contextlib import suppress

import cramjam
import xxhash

with suppress(ImportError):  # a free-threaded Python reads what brokers wrote without these
    import lz4.block
    import zstandard

CODEC_IDS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
CODECS = tuple(CODEC_IDS)
LEGACY_CODECS = ("gzip", "snappy", "lz4")

XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
LZ4_MAGIC = b"\x04\x22\x4d\x18"
LZ4_END_MARK = b"\x00\x00\x00\x00"
LZ4_STORED = 0x80000000


def gzip_member(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def snappy_raw(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def xerial_block(data: bytes) -> bytes:
    block = snappy_raw(data)
    return struct.pack(">i", len(block)) + block


def xerial(data: bytes, block_size: int = 32768, header: bytes = XERIAL_HEADER) -> bytes:
    """Return a xerial stream, as snappy-java, kafka-python and aiokafka write it."""
    blocks = range(0, len(data), block_size)
    return header + b"".join(xerial_block(data[at : at + block_size]) for at in blocks)


def lz4_header(
    *,
    magic: int = 2,
    flags: int = 0x60,
    descriptor: int = 0x40,
    content_size: int | None = None,
    checksum: int | None = None,
) -> bytes:
    """Return a frame header; that of format v0 has Kafka's wrong header checksum (KAFKA-3160)."""
    if content_size is not None:
        flags |= 0x08
    described = bytes([flags, descriptor])
    if content_size is not None:
        described += struct.pack("<Q", content_size)
    covered = LZ4_MAGIC + described if magic == 0 else described
    if checksum is None:
        checksum = (xxhash.xxh32_intdigest(covered) >> 8) & 0xFF
    return LZ4_MAGIC + described + bytes([checksum])


def lz4_block(data: bytes, *, with_checksum: bool = False) -> bytes:
    """Return one block, stored raw where compression does not help, as Kafka's writer does."""
    packed = bytes(lz4.block.compress(data, store_size=False))
    size = len(packed)
    if size >= len(data):
        packed, size = data, len(data) | LZ4_STORED
    block = struct.pack("<I", size) + packed
    return block + struct.pack("<I", xxhash.xxh32_intdigest(packed)) if with_checksum else block


def lz4_frame(
    data: bytes,
    *,
    magic: int = 2,
    block_size: int = 65536,
    block_checksums: bool = False,
    content_size: bool = False,
    content_checksum: int | None = None,
) -> bytes:
    """Return a frame that Kafka's reader accepts."""
    flags = 0x60 | (0x10 if block_checksums else 0) | (0x04 if content_checksum is not None else 0)
    header = lz4_header(magic=magic, flags=flags, content_size=len(data) if content_size else None)
    blocks = [
        lz4_block(data[at : at + block_size], with_checksum=block_checksums)
        for at in range(0, len(data), block_size)
    ]
    end = LZ4_END_MARK
    if content_checksum is not None:
        end += struct.pack("<I", content_checksum)
    return header + b"".join(blocks) + end


def zstd_frame(data: bytes, *, checksum: bool = False) -> bytes:
    """Return a frame without content size, as a streaming writer makes it."""
    stream = zstandard.ZstdCompressor(write_checksum=checksum).compressobj()
    return stream.compress(data) + stream.flush()


def compress(codec: str, data: bytes, magic: int = 2) -> bytes:
    """Return ``data`` as a Java producer of that record format would compress it."""
    match codec:
        case "none":
            return data
        case "gzip":
            return gzip_member(data)
        case "snappy":
            return xerial(data)
        case "lz4":
            return lz4_frame(data, magic=magic)
        case "zstd":
            return zstd_frame(data)
    raise ValueError(codec)


def crc32(data: bytes) -> int:
    return zlib.crc32(data)

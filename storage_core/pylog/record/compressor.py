"""Compression in Kafka's framing: what `pylog.record.compression` reads.

====== ======================== ==================================================================
codec  level (default)          stream
====== ======================== ==================================================================
none
gzip   -1, 1 to 9 (-1, means 6) one RFC 1952 member
snappy none                     xerial: 16 header bytes, blocks of 32 KiB of input; no input
                                is the header alone
lz4    1 to 17 (9)              one frame of independent 64 KB blocks without checksums (FLG 0x60,
                                BD 0x40); a block that does not shrink is stored; end mark
zstd   -131072 to 22 (3)        one RFC 8878 frame; format v2 only
====== ======================== ==================================================================

LZ4's default level takes the fast compressor, every other level the high-compression one, whose
levels end at 12: higher ones mean 12. Format v0 has the frame's header checksum wrong for ever
(KAFKA-3160): its readers of old demand it.

gzip's level 1 asks for speed and gets isal: about three times as fast as zlib's, at the same size
within a percent. What the other levels promise in size only zlib gives; isal's best is about
zlib's level 3.

Source: CompressionType, Lz4BlockOutputStream, SnappyCompression and the other classes of
org.apache.kafka.common.compress (Kafka 4.3).
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import isal.isal_zlib
import xxhash

from pylog.model import COMPRESSION_LEVELS, CompressionType
from pylog.record.batch_header import MAGIC_VALUE_V0, MAGIC_VALUE_V2
from pylog.record.codec_libraries import (
    compress_lz4,
    compress_snappy,
    open_zstd_compressor,
)
from pylog.record.compression import GZIP_WINDOW_BITS
from pylog.record.lz4_frame import FRAME_MAGIC
from pylog.record.xerial_snappy import STREAM_MAGIC

SNAPPY_BLOCK_SIZE = 32 * 1024
LZ4_BLOCK_SIZE = 64 * 1024

_GZIP_FASTEST_LEVEL = 1
_ISAL_LEVEL = 2
_SNAPPY_HEADER = STREAM_MAGIC + struct.pack(">ii", 1, 1)
_INT32 = struct.Struct(">i")
_LZ4_MAGIC = struct.pack("<I", FRAME_MAGIC)
_LZ4_DESCRIPTOR = b"\x60\x40"
_LZ4_HIGHEST_LEVEL = 12
_LZ4_STORED_BIT = 0x80000000
_LZ4_END_MARK = b"\x00\x00\x00\x00"
_UINT32_LITTLE = struct.Struct("<I")

Bytes = bytes | bytearray | memoryview


def parse_compression(name: str | CompressionType) -> CompressionType:
    """Return the codec that ``name`` stands for, in any case."""
    if isinstance(name, CompressionType):
        return name
    for codec in CompressionType:
        if name.strip().lower() == codec.label:
            return codec
    known = ", ".join(codec.label for codec in CompressionType)
    msg = f"compression {name!r} is not one of {known}"
    raise ValueError(msg)


def ensure_level(codec: CompressionType, level: int | None) -> None:
    """Raise ``ValueError`` unless ``codec`` has that level; None is the default of every codec."""
    if level is None:
        return
    if codec not in COMPRESSION_LEVELS:
        msg = f"compression {codec.label} has no levels, {level} was given"
        raise ValueError(msg)
    lowest, highest, default = COMPRESSION_LEVELS[codec]
    if not lowest <= level <= highest and level != default:
        other = "" if lowest <= default <= highest else f" or {default}"
        msg = f"{codec.label} level is {level}, expected {lowest} to {highest}{other}"
        raise ValueError(msg)


class Compressor:
    """Compresses streams of any codec; keeps the zstd contexts. One thread."""

    __slots__ = ("_zstd",)

    def __init__(self) -> None:
        self._zstd: dict[int, Any] = {}

    def compress(
        self, codec: CompressionType, data: Bytes, *, magic: int, level: int | None = None
    ) -> Bytes:
        """Return ``data`` compressed; with NONE ``data`` itself."""
        ensure_level(codec, level)
        if level is None:
            levels = COMPRESSION_LEVELS.get(codec)
            level = 0 if levels is None else levels.default
        match codec:
            case CompressionType.NONE:
                return data
            case CompressionType.GZIP:
                return _gzip(data, level)
            case CompressionType.SNAPPY:
                return _snappy(memoryview(data))
            case CompressionType.LZ4:
                return _lz4(memoryview(data), magic, level)
            case CompressionType.ZSTD:
                if magic < MAGIC_VALUE_V2:
                    msg = f"zstd is not allowed in message format v{magic}"
                    raise ValueError(msg)
                return self._compress_zstd(data, level)

    def _compress_zstd(self, data: Bytes, level: int) -> Bytes:
        if level not in self._zstd:
            self._zstd[level] = open_zstd_compressor(level)
        return self._zstd[level].compress(data)  # type: ignore[no-any-return]


def _gzip(data: Bytes, level: int) -> bytes:
    if level == _GZIP_FASTEST_LEVEL:
        fast = isal.isal_zlib.compressobj(_ISAL_LEVEL, wbits=GZIP_WINDOW_BITS)
        return fast.compress(data) + fast.flush()
    member = zlib.compressobj(level, wbits=GZIP_WINDOW_BITS)
    return member.compress(data) + member.flush()


def _snappy(data: memoryview) -> bytes:
    parts: list[Bytes] = [_SNAPPY_HEADER]
    for start in range(0, len(data), SNAPPY_BLOCK_SIZE):
        block = memoryview(compress_snappy(data[start : start + SNAPPY_BLOCK_SIZE]))
        parts.append(_INT32.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _lz4_header(magic: int) -> bytes:
    covered = _LZ4_MAGIC + _LZ4_DESCRIPTOR if magic == MAGIC_VALUE_V0 else _LZ4_DESCRIPTOR
    checksum = (xxhash.xxh32_intdigest(covered) >> 8) & 0xFF
    return _LZ4_MAGIC + _LZ4_DESCRIPTOR + bytes([checksum])


def _lz4(data: memoryview, magic: int, level: int) -> bytes:
    high_level = (
        None
        if level == COMPRESSION_LEVELS[CompressionType.LZ4].default
        else min(level, _LZ4_HIGHEST_LEVEL)
    )
    parts: list[Bytes] = [_lz4_header(magic)]
    for start in range(0, len(data), LZ4_BLOCK_SIZE):
        block: Bytes = data[start : start + LZ4_BLOCK_SIZE]
        word = len(block) | _LZ4_STORED_BIT
        packed = compress_lz4(block, high_level)
        if len(packed) < len(block):
            block, word = packed, len(packed)
        parts.append(_UINT32_LITTLE.pack(word))
        parts.append(block)
    parts.append(_LZ4_END_MARK)
    return b"".join(parts)

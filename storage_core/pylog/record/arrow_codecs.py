"""Arrow's codecs in the place of libraries that have no wheel for a platform.

The bytes that come out are the same; each call costs several times as much. What the functions
take and give is what `pylog.record.codec_libraries` says of them.

What is compressed is asked for as bytes: a view of the buffer that Arrow would return instead has
the length that it had before it was cut to what is used (seen in Arrow 26).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from pylog.lazy_modules import LazyModule

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = LazyModule("pyarrow")

_SNAPPY = "snappy"
_LZ4_BLOCK = "lz4_raw"
_LZ4_FRAME = "lz4"
_ZSTD = "zstd"

# Arrow's decompressor of LZ4 blocks has to know how much comes out, and a block does not say that.
# Its decompressor of frames needs not, so a block is read as a frame of one block, which may have
# up to 4 MiB. The last byte is the header's checksum.
_FRAME_HEADER = bytes.fromhex("04224d18607073")
_FRAME_END = bytes(4)
_UINT32_LITTLE = struct.Struct("<I")
_LZ4_FAST_LEVEL = 1  # levels of its high compression begin at 3
_LZ4_LEAST_HIGH_LEVEL = 3

_MOST_VARINT_BYTES = 5

Bytes = bytes | bytearray | memoryview


class CodecError(Exception):
    """A block or a stream is damaged or cut short."""


def compress_snappy(data: Bytes) -> Bytes:
    """Compress one raw block."""
    return pa.Codec(_SNAPPY).compress(data, asbytes=True)  # type: ignore[no-any-return]


def snappy_length(block: Bytes) -> int:
    """Return how many bytes a raw block says it holds: the varint at its head."""
    if not len(block):
        return 0
    length = 0
    for at, byte in enumerate(bytes(block[:_MOST_VARINT_BYTES])):
        length |= (byte & 0x7F) << (7 * at)
        if not byte & 0x80:
            if length >> 32:
                break
            return length
    raise CodecError("the length at the head of a snappy block cannot be read")


def decompress_snappy_into(block: Bytes, room: memoryview) -> int:
    """Decompress one raw block."""
    length = snappy_length(block)
    if length > len(room):
        msg = f"a snappy block of {length} bytes does not fit into {len(room)}"
        raise CodecError(msg)
    try:
        content = pa.Codec(_SNAPPY).decompress(block, decompressed_size=length)
    except (OSError, pa.ArrowException) as error:
        raise CodecError(str(error)) from error
    room[:length] = memoryview(content).cast("B")
    return length


def compress_lz4(data: Bytes, level: int | None) -> Bytes:
    """Compress one block."""
    level = _LZ4_FAST_LEVEL if level is None else max(level, _LZ4_LEAST_HIGH_LEVEL)
    codec = pa.Codec(_LZ4_BLOCK, compression_level=level)
    return codec.compress(data, asbytes=True)  # type: ignore[no-any-return]


def decompress_lz4_into(block: Bytes, room: memoryview) -> int:
    """Decompress one block."""
    frame = b"".join([_FRAME_HEADER, _UINT32_LITTLE.pack(len(block)), block, _FRAME_END])
    try:
        with pa.CompressedInputStream(pa.py_buffer(frame), _LZ4_FRAME) as stream:
            count = int(stream.readinto(room))
            if count == len(room) and stream.read(1):
                msg = f"an LZ4 block holds more than {count} bytes"
                raise CodecError(msg)
    except (OSError, pa.ArrowException) as error:
        raise CodecError(str(error)) from error
    return count


class ZstdDecompressor:
    """Opens streams of zstd frames."""

    def stream_reader(self, payload: Bytes, *, read_across_frames: bool) -> ZstdReader:
        """Return a reader of all frames of ``payload``, which stays as it is meanwhile."""
        if not read_across_frames:
            raise NotImplementedError("Arrow reads all frames of a stream")
        return ZstdReader(pa.CompressedInputStream(pa.py_buffer(payload), _ZSTD))


class ZstdReader:
    """Reads what concatenated zstd frames hold."""

    def __init__(self, stream: pa.CompressedInputStream) -> None:
        self._stream = stream

    def __enter__(self) -> ZstdReader:
        """Return the reader."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of what is read."""
        self._stream.close()

    def readinto(self, room: memoryview) -> int:
        """Fill ``room`` and return how many bytes that are: fewer only where the content ends."""
        try:
            return int(self._stream.readinto(room))
        except (OSError, pa.ArrowException) as error:
            raise CodecError(str(error)) from error


class ZstdCompressor:
    """Compresses whole zstd frames."""

    def __init__(self, level: int) -> None:
        self._codec = pa.Codec(_ZSTD, compression_level=level)

    def compress(self, data: Bytes) -> Bytes:
        """Return one frame."""
        return self._codec.compress(data, asbytes=True)  # type: ignore[no-any-return]

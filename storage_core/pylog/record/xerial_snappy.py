r"""Snappy as Kafka's clients write it: xerial's stream format, or one raw block.

::

    82 53 4e 41 50 50 59 00   "\x82SNAPPY\0"
    int32 version, int32 oldest compatible version      not compared in the first header
    blocks                    int32 compressed length (big-endian), raw snappy block

This is neither snappy's own framing format nor a bare block. A block length that reads
0x82534e41 is the start of another concatenated stream (12 more header bytes follow). Fewer than 4
bytes left end the stream; a block that is cut short, or has no bytes, is an error. A payload that
does not begin with the magic, or is shorter than 16 bytes, is one raw block: some clients write
that.

Source: snappy-java SnappyInputStream 1.1.10, through Kafka's SnappyCompression (4.3).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from pylog.errors import InvalidRecordError
from pylog.record.codec_libraries import SNAPPY_ERRORS, decompress_snappy_into, snappy_length

if TYPE_CHECKING:
    from pylog.record.byte_buffer import ByteBuffer

STREAM_MAGIC = b"\x82SNAPPY\x00"
STREAM_HEADER_SIZE = 16
MAX_BLOCK_SIZE = 512 * 1024 * 1024
_NEXT_STREAM = int.from_bytes(STREAM_MAGIC[:4], "big", signed=True)
_INT32 = struct.Struct(">i")
# An element of a raw block takes at least 3 bytes for at most 64 bytes of output; 32 is roomy.
_MAX_EXPANSION = 32


def _refuse(reason: str) -> InvalidRecordError:
    return InvalidRecordError(f"snappy stream: {reason}")


def _append_block(block: memoryview, out: ByteBuffer) -> None:
    try:
        length = snappy_length(block)
        if length > len(block) * _MAX_EXPANSION:
            raise _refuse(f"block of {len(block)} bytes claims to hold {length}")
        written = decompress_snappy_into(block, out.reserve(length)) if length else 0
    except SNAPPY_ERRORS as error:
        raise _refuse(f"block cannot be decompressed: {error}") from error
    out.advance(written)


def decompress_snappy(payload: memoryview, out: ByteBuffer) -> None:
    """Append the content of ``payload``, a xerial stream or one raw block, to ``out``."""
    size = len(payload)
    if size == 0:
        raise _refuse("is empty")
    if size < STREAM_HEADER_SIZE or payload[: len(STREAM_MAGIC)] != STREAM_MAGIC:
        _append_block(payload, out)
        return
    position = STREAM_HEADER_SIZE
    while position + 4 <= size:
        (length,) = _INT32.unpack_from(payload, position)
        position += 4
        if length == _NEXT_STREAM:
            position = _skip_stream_header(payload, position)
            continue
        if not 0 < length <= MAX_BLOCK_SIZE:
            raise _refuse(f"block length is {length}, expected 1 to {MAX_BLOCK_SIZE}")
        if position + length > size:
            raise _refuse(f"block of {length} bytes is cut short after {size - position}")
        _append_block(payload[position : position + length], out)
        position += length


def _skip_stream_header(payload: memoryview, position: int) -> int:
    """Return the position after a concatenated stream's header, whose first 4 bytes are read."""
    rest = STREAM_HEADER_SIZE - 4
    if position + rest > len(payload) or payload[position : position + 4] != STREAM_MAGIC[4:]:
        raise _refuse("concatenated stream has a broken header")
    (version,) = _INT32.unpack_from(payload, position + 4)
    if version < 1:
        raise _refuse(f"concatenated stream has version {version}, expected at least 1")
    return position + rest

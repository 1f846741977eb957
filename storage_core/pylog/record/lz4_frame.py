"""LZ4 frames as Kafka writes and reads them: a subset of LZ4 frame format 1.5.1.

::

    04 22 4d 18            magic (0x184D2204, little-endian; so is all of the frame)
    FLG                    bits 6-7 version = 01, 5 block independence = 1, 4 block checksums,
                           3 content size present, 2 content checksum, 0-1 reserved = 0
    BD                     bits 4-6 block size: 4 = 64 KB, 5 = 256 KB, 6 = 1 MB, 7 = 4 MB; others 0
    [content size]         8 bytes, not compared with anything
    HC                     second byte of xxh32(FLG … content size)
    blocks                 uint32 size, top bit set = stored uncompressed; data; [xxh32 of data]
    00000000               end mark, also with the top bit set
    [content checksum]     xxh32 of the content; never verified

Everything after that is ignored; a missing end mark or content checksum is an error. Format v0 has
the header checksum wrong for ever (KAFKA-3160: it covers the magic too), so for magic 0 it is not
looked at; v1 and v2 refuse a wrong one. Block checksums are verified.

Source: Lz4BlockInputStream (Kafka 4.3).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import xxhash

from pylog.errors import InvalidRecordError
from pylog.record.codec_libraries import LZ4_ERRORS, decompress_lz4_into

if TYPE_CHECKING:
    from pylog.record.byte_buffer import ByteBuffer

FRAME_MAGIC = 0x184D2204
MIN_HEADER_SIZE = 7
_CONTENT_SIZE_FLAG = 0x08
_BLOCK_CHECKSUM_FLAG = 0x10
_BLOCK_INDEPENDENCE_FLAG = 0x20
_CONTENT_CHECKSUM_FLAG = 0x04
_STORED_BIT = 0x80000000
_BLOCK_SIZES = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}
_UINT32 = struct.Struct("<I")


def _refuse(reason: str) -> InvalidRecordError:
    return InvalidRecordError(f"LZ4 frame: {reason}")


def _parse_header(payload: memoryview, *, check_header_checksum: bool) -> tuple[int, int, int]:
    """Return the position of the first block, the block size limit and the flags."""
    if len(payload) < MIN_HEADER_SIZE:
        raise _refuse(f"only {len(payload)} bytes, the header alone has {MIN_HEADER_SIZE}")
    (magic,) = _UINT32.unpack_from(payload, 0)
    if magic != FRAME_MAGIC:
        raise _refuse(f"begins with {magic:#010x}, expected {FRAME_MAGIC:#010x}")
    flags, descriptor = payload[4], payload[5]
    if flags >> 6 != 1 or flags & 0x03 or not flags & _BLOCK_INDEPENDENCE_FLAG:
        raise _refuse(f"flags {flags:#04x} are not version 1 with independent blocks")
    block_size = _BLOCK_SIZES.get((descriptor >> 4) & 0x07)
    if block_size is None or descriptor & 0x8F:
        raise _refuse(f"block descriptor {descriptor:#04x} has an unknown size or reserved bits")
    checksum_at = 6 + (8 if flags & _CONTENT_SIZE_FLAG else 0)
    if len(payload) <= checksum_at:
        raise _refuse("ends inside its header")
    if check_header_checksum:
        computed = (xxhash.xxh32_intdigest(payload[4:checksum_at]) >> 8) & 0xFF
        if payload[checksum_at] != computed:
            stored = payload[checksum_at]
            raise _refuse(f"header checksum stored {stored:#04x}, computed {computed:#04x}")
    return checksum_at + 1, block_size, flags


def usual_block_size(header: memoryview) -> int | None:
    """Return the block size limit if a frame's first 7 bytes are its whole header, and right.

    And if blocks are all that comes after it: None for one that has checksums of them.
    """
    try:
        _, block_size, flags = _parse_header(header, check_header_checksum=True)
    except InvalidRecordError:
        return None
    return None if flags & (_BLOCK_CHECKSUM_FLAG | _CONTENT_CHECKSUM_FLAG) else block_size


def decompress_lz4(payload: memoryview, magic: int, out: ByteBuffer) -> None:
    """Append the content of the frame at the head of ``payload`` to ``out``."""
    position, block_size, flags = _parse_header(payload, check_header_checksum=magic > 0)
    has_checksums = bool(flags & _BLOCK_CHECKSUM_FLAG)
    size = len(payload)
    while True:
        if position + 4 > size:
            raise _refuse("stream ended prematurely (no end mark)")
        (word,) = _UINT32.unpack_from(payload, position)
        position += 4
        length = word & ~_STORED_BIT
        if length == 0:
            if flags & _CONTENT_CHECKSUM_FLAG and position + _UINT32.size > size:
                raise _refuse("stream ended prematurely (inside the content checksum)")
            return
        if length > block_size:
            raise _refuse(f"block of {length} bytes exceeds the frame's maximum of {block_size}")
        if position + length + (4 if has_checksums else 0) > size:
            raise _refuse("stream ended prematurely (inside a block)")
        block = payload[position : position + length]
        position += length
        if has_checksums:
            (stored,) = _UINT32.unpack_from(payload, position)
            position += 4
            computed = xxhash.xxh32_intdigest(block)
            if stored != computed:
                raise _refuse(f"block checksum stored {stored:#010x}, computed {computed:#010x}")
        if word & _STORED_BIT:
            out.append(block)
            continue
        _append_block(block, block_size, out)


def _append_block(block: memoryview, block_size: int, out: ByteBuffer) -> None:
    """Append a block's content, which has ``block_size`` bytes at the most."""
    # Near the limit into memory of its own: what is too large is then told from what is damaged.
    is_near_limit = out.room() < block_size
    whole = memoryview(bytearray(block_size)) if is_near_limit else out.reserve(block_size)
    room = whole[:block_size]
    try:
        written = decompress_lz4_into(block, room)
    except LZ4_ERRORS as error:
        raise _refuse(f"block cannot be decompressed: {error}") from error
    if is_near_limit:
        out.append(room[:written])
    else:
        out.advance(written)

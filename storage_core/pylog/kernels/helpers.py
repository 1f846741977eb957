"""What several kernels do: words, varints, copies, characters; compiled into each that imports it.

These functions call only each other, and use no constants: what a kernel's file imports from here
is part of the key of its object file (`pylog.kernel_compilation`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.kernels import helper, intrinsic

if TYPE_CHECKING:
    import numpy.typing as npt


@intrinsic("load_word")
def load_word(buf: npt.NDArray[np.uint8], at: int) -> int:
    """Return the 8 bytes at ``buf[at]`` as an int64 whose lowest byte is the first."""
    word = np.int64(0)
    for i in range(8):
        word |= np.int64(buf[at + i]) << (8 * i)
    return word


@intrinsic("load_big_word")
def load_big_word(buf: npt.NDArray[np.uint8], at: int) -> int:
    """Return the 8 bytes at ``buf[at]`` as an int64 whose lowest byte is the last."""
    word = np.int64(0)
    for i in range(8):
        word = (word << 8) | np.int64(buf[at + i])
    return word


@intrinsic("load_big_half")
def load_big_half(buf: npt.NDArray[np.uint8], at: int) -> int:
    """Return the 4 bytes at ``buf[at]`` as a signed number whose lowest byte is the last."""
    value = np.int64(0)
    for i in range(4):
        value = (value << 8) | np.int64(buf[at + i])
    return value - ((value & 0x80000000) << 1)


@intrinsic("store_word")
def store_word(buf: npt.NDArray[np.uint8], at: int, word: int) -> None:
    """Write ``word`` to the 8 bytes at ``buf[at]``, its lowest byte first."""
    for i in range(8):
        buf[at + i] = (word >> (8 * i)) & 0xFF


@intrinsic("copy_bytes")
def copy_bytes(
    dst: npt.NDArray[np.uint8], dst_at: int, src: npt.NDArray[np.uint8], src_at: int, count: int
) -> None:
    """Copy ``src[src_at:src_at + count]`` to ``dst[dst_at:]``."""
    for i in range(count):
        dst[dst_at + i] = src[src_at + i]


@intrinsic("add_words", also_checked=True)
def add_words(left: int, right: int) -> int:
    """Return the sum modulo 2^64, as an int64."""
    total = (int(left) + int(right)) & 0xFFFFFFFFFFFFFFFF
    return np.int64(total - (1 << 64) if total >> 63 else total)


@helper
def varint(buf: npt.NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """Return the int32 at ``at`` and the position after it; position -1 if it does not fit."""
    if at >= end:
        return np.int64(0), np.int64(-1)
    byte = np.int64(buf[at])
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    raw = byte & 0x7F
    shift = 7
    for i in range(1, 5):
        if at + i >= end:
            return np.int64(0), np.int64(-1)
        byte = np.int64(buf[at + i])
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            raw &= 0xFFFFFFFF
            return (raw >> 1) ^ -(raw & 1), at + i + 1
        shift += 7
    return np.int64(0), np.int64(-1)


@helper
def skip_varlong(buf: npt.NDArray[np.uint8], at: int, end: int) -> int:
    """Return the position after the number at ``at``; -1 if it does not fit."""
    for i in range(10):
        if at + i >= end:
            return np.int64(-1)
        if np.int64(buf[at + i]) < 0x80:
            return at + i + 1
    return np.int64(-1)


@helper
def skip_headers(buf: npt.NDArray[np.uint8], at: int, end: int, count: int) -> int:
    """Return the position after ``count`` well-formed headers; -1 if they do not fit."""
    for _ in range(count):
        length, at = varint(buf, at, end)
        if at < 0 or length < 0 or length > end - at:
            return np.int64(-1)
        at += length
        length, at = varint(buf, at, end)
        if at < 0 or length > end - at:
            return np.int64(-1)
        if length > 0:
            at += length
    return at


@helper
def unsigned_varint(buf: npt.NDArray[np.uint8], at: int) -> tuple[int, int]:
    """Return the number at ``at``, which has been found sound, and the position after it."""
    raw = np.int64(0)
    shift = 0
    while True:
        byte = np.int64(buf[at])
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return raw, at
        shift += 7


@helper
def size_of_varint(raw: int) -> int:
    """Return the bytes of an unsigned varint; a negative ``raw`` stands for one of 64 bits."""
    if raw < 0:
        return np.int64(10)
    size = np.int64(1)
    while raw > 0x7F:
        raw >>= 7
        size += 1
    return size


@helper
def put_varint(out: npt.NDArray[np.uint8], at: int, raw: int) -> int:
    """Write an unsigned varint; return the position after it."""
    while (raw & ~0x7F) != 0:
        out[at] = (raw & 0x7F) | 0x80
        raw = (raw >> 7) & 0x01FFFFFFFFFFFFFF
        at += 1
    out[at] = raw
    return at + 1


@helper
def put_integer(out: npt.NDArray[np.uint8], at: int, value: int, width: int) -> None:
    """Write a big-endian integer of ``width`` bytes."""
    for i in range(width):
        out[at + i] = (value >> (8 * (width - 1 - i))) & 0xFF


@helper
def character(buf: npt.NDArray[np.uint8], at: int, end: int) -> tuple[int, bool]:
    """Return how many bytes of ``[at, end)`` one character, or one U+FFFD, stands for; which."""
    lead = np.int64(buf[at])
    if lead < 0x80:
        return np.int64(1), True
    low = np.int64(0x80)
    high = np.int64(0xBF)
    if lead < 0xC2 or lead > 0xF4:
        return np.int64(1), False
    if lead < 0xE0:
        longest = np.int64(2)
    elif lead < 0xF0:
        longest = np.int64(3)
        if lead == 0xE0:
            low = np.int64(0xA0)
    else:
        longest = np.int64(4)
        if lead == 0xF0:
            low = np.int64(0x90)
        elif lead == 0xF4:
            high = np.int64(0x8F)
    is_surrogate = lead == 0xED and at + 1 < end and np.int64(buf[at + 1]) >= 0xA0
    length = np.int64(1)
    while length < longest and at + length < end:
        byte = np.int64(buf[at + length])
        if byte < low or byte > high:
            break
        low = np.int64(0x80)
        high = np.int64(0xBF)
        length += 1
    return length, length == longest and not is_surrogate

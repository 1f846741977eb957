"""Kernels: the records of many batches, decompressed by a library's functions in one call.

A call of a library from Python costs little, but each gives the interpreter's lock away and has to
get it back, and with several threads that takes longer than a batch does. Here the lock is given
away once for all batches of a group.

The functions are C functions, named by their addresses; `pylog.record.codec_libraries` finds them.
These kernels take only what writers usually make. They stop at anything else, damage included, and
leave it to `pylog.record.compression`.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np

from pylog.kernels import helper, intrinsic, kernel
from pylog.kernels.helpers import copy_bytes

if TYPE_CHECKING:
    import numpy.typing as npt

_STORED_BIT = 0x80000000
_INT_MASK = 0xFFFFFFFF
_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_SINGLE_SEGMENT = 0x20
_ZSTD_WINDOW_BYTES = 1 << 27
"""The widest window that streams are decompressed with, here and by Kafka."""
_ZSTD_WINDOW = 17 << 3  # the same in a header


@intrinsic("address_of", also_checked=True)
def _address_of(buf: npt.NDArray[np.uint8], at: int) -> int:
    return buf.ctypes.data + int(at)


@intrinsic("call_library", also_checked=True)
def _call(function: int, words: tuple[int, int, int, int, int]) -> int:
    """Call a C function that takes up to five words; one that takes fewer does not see the rest."""
    return int(ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)(function)(*map(int, words)))


@helper
def _little_half(buf: npt.NDArray[np.uint8], at: int) -> int:
    value = np.int64(0)
    for i in range(4):
        value |= np.int64(buf[at + i]) << (8 * i)
    return value


@kernel(writes=("memory", "ends"))
def decompress_lz4_frames(
    buf: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    stops: npt.NDArray[np.int64],
    header: npt.NDArray[np.uint8],
    block_bytes: int,
    function: int,
    memory: npt.NDArray[np.uint8],
    memory_at: int,
    enough: int,
    most_bytes: int,
    ends: npt.NDArray[np.int64],
) -> int:
    """Decompress LZ4 frames ``buf[starts[i]:stops[i]]`` one after the other to ``memory_at``.

    ``ends`` gets where each ends. Return how many were done: as many as begin below ``enough``, up
    to the first that does not begin with ``header``, is damaged, or has more than ``most_bytes``.
    """
    at = np.int64(memory_at)
    for i in range(starts.size):
        position = starts[i]
        stop = stops[i]
        if at >= enough or position < 0 or stop > buf.size:
            return i
        if stop - position < header.size:
            return i
        for k in range(header.size):
            if buf[position + k] != header[k]:
                return i
        position += header.size
        limit = min(at + most_bytes, np.int64(memory.size))
        while True:
            if position + 4 > stop:
                return i
            word = _little_half(buf, position)
            position += 4
            count = word & (_STORED_BIT - 1)
            if count == 0:
                break
            if count > block_bytes or position + count > stop:
                return i
            if word & _STORED_BIT:
                if count > limit - at:
                    return i
                copy_bytes(memory, at, buf, position, count)
                at += count
            else:
                room = min(np.int64(block_bytes), limit - at)
                # int LZ4_decompress_safe(const char *src, char *dst, int count, int room)
                src, dst = _address_of(buf, position), _address_of(memory, at)
                written = _call(function, (src, dst, count, room, 0)) & _INT_MASK
                if written > room:  # also if it is negative
                    return i
                at += written
            position += count
        ends[i] = at
    return starts.size


@kernel(writes=("memory", "ends"))
def decompress_zstd_frames(
    buf: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    stops: npt.NDArray[np.int64],
    function: int,
    frame_size_function: int,
    context: int,
    memory: npt.NDArray[np.uint8],
    memory_at: int,
    enough: int,
    most_bytes: int,
    ends: npt.NDArray[np.int64],
) -> int:
    """Decompress zstd frames, one a batch; see `decompress_lz4_frames`."""
    at = np.int64(memory_at)
    for i in range(starts.size):
        position = starts[i]
        stop = stops[i]
        if at >= enough or position < 0 or stop > buf.size:
            return i
        count = stop - position
        if count < 6 or _little_half(buf, position) != _ZSTD_MAGIC:
            return i
        is_narrow = np.int64(buf[position + 5]) <= _ZSTD_WINDOW
        if not is_narrow and not buf[position + 4] & _ZSTD_SINGLE_SEGMENT:
            return i
        # size_t ZSTD_findFrameCompressedSize(const void *src, size_t count)
        src, dst = _address_of(buf, position), _address_of(memory, at)
        if _call(frame_size_function, (src, count, 0, 0, 0)) != count:
            return i
        # size_t ZSTD_decompressDCtx(context, void *dst, size_t room, const void *src, size_t count)
        # All of a single segment is its window.
        room = min(np.int64(most_bytes), memory.size - at, np.int64(_ZSTD_WINDOW_BYTES))
        written = _call(function, (context, dst, room, src, count))
        if written < 0 or written > room:
            return i
        at += written
        ends[i] = at
    return starts.size

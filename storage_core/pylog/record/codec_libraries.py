"""What compresses and decompresses blocks and streams: libraries, or Arrow in their place.

A library that has no wheel for a platform is not installed there (see the markers of the
dependencies in ``pyproject.toml``), and `pylog.record.arrow_codecs` stands in: the same
decompressed bytes, more slowly.

=========  =============================  ==============================================
library    is for                         where Arrow stands in
=========  =============================  ==============================================
cramjam    snappy; LZ4's decompression
lz4        LZ4's compression              levels 1 and 2 compress as level 3 does
zstandard  zstd                           a stream that is cut short is an error at once
=========  =============================  ==============================================

Rooms are writable views that are filled from their first byte on. Whatever is damaged raises one
of `SNAPPY_ERRORS`, `LZ4_ERRORS` and `ZSTD_ERRORS`.

Kernels call LZ4 and zstd themselves, where the libraries' files show their C functions.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pylog.record import arrow_codecs

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.record.arrow_codecs import Bytes

SNAPPY_ERRORS: tuple[type[Exception], ...] = (arrow_codecs.CodecError,)
LZ4_ERRORS: tuple[type[Exception], ...] = (arrow_codecs.CodecError,)
ZSTD_ERRORS: tuple[type[Exception], ...] = (arrow_codecs.CodecError,)

compress_snappy: Callable[[Bytes], Any] = arrow_codecs.compress_snappy
"""A raw block of the bytes, as something that `memoryview` takes."""
snappy_length: Callable[[Bytes], int] = arrow_codecs.snappy_length
"""How many bytes a raw block says it holds."""
decompress_snappy_into: Callable[[Bytes, memoryview], int] = arrow_codecs.decompress_snappy_into
"""Block and room, which has at least the block's length: how many bytes were written."""
decompress_lz4_into: Callable[[Bytes, memoryview], int] = arrow_codecs.decompress_lz4_into
"""Block and room: how many bytes were written. A block that holds more than the room is refused."""
compress_lz4: Callable[[Bytes, int | None], Bytes] = arrow_codecs.compress_lz4
"""The bytes, and the level of the high-compression compressor or None for the fast one: a block."""
open_zstd_decompressor: Callable[[], Any] = arrow_codecs.ZstdDecompressor
"""An object whose ``stream_reader(payload, read_across_frames=True)`` is a context manager.

Its reader's ``readinto(room)`` fills the room unless the content ends, and returns how many bytes
it wrote.
"""
open_zstd_compressor: Callable[[int], Any] = arrow_codecs.ZstdCompressor
"""For a level an object whose ``compress(data)`` returns one frame."""

try:
    import cramjam
except ImportError:
    pass
else:
    SNAPPY_ERRORS = LZ4_ERRORS = (cramjam.DecompressionError,)
    compress_snappy = cramjam.snappy.compress_raw
    snappy_length = cramjam.snappy.decompress_raw_len
    decompress_snappy_into = cramjam.snappy.decompress_raw_into

    def _decompress_lz4_into(block: Bytes, room: memoryview) -> int:
        # The library takes what it is given, and looks at no other limit.
        return cramjam.lz4.decompress_block_into(block, room, output_len=len(room))

    decompress_lz4_into = _decompress_lz4_into

try:
    import lz4.block
except ImportError:
    pass
else:

    def _compress_lz4(data: Bytes, level: int | None) -> Bytes:
        if level is None:
            return lz4.block.compress(data, store_size=False)  # type: ignore[no-any-return]
        return lz4.block.compress(  # type: ignore[no-any-return]
            data, mode="high_compression", compression=level, store_size=False
        )

    compress_lz4 = _compress_lz4

try:
    import zstandard
except ImportError:
    pass
else:
    ZSTD_ERRORS = (zstandard.ZstdError,)
    open_zstd_decompressor = zstandard.ZstdDecompressor
    open_zstd_compressor = zstandard.ZstdCompressor


def _c_functions(module: str, *names: str) -> tuple[int, ...] | None:
    """Return the addresses of functions in an extension module's file, None if one is lacking."""
    try:
        spec = find_spec(module)
        if spec is None or spec.origin is None:
            return None
        file = ctypes.CDLL(spec.origin)
        return tuple(ctypes.cast(getattr(file, name), ctypes.c_void_p).value or 0 for name in names)
    except (ImportError, OSError, AttributeError):
        return None


@functools.cache
def lz4_function() -> int | None:
    """Return the address of ``LZ4_decompress_safe``."""
    found = _c_functions("lz4.block._block", "LZ4_decompress_safe")
    return found[0] if found else None


class ZstdContext:
    """A decompression context for ``ZSTD_decompressDCtx``, at the address `address`. One thread."""

    def __init__(self, make: int, free: int, decompress: int, find_frame_size: int) -> None:
        self.decompress = decompress
        self.find_frame_size = find_frame_size
        self.address: int = ctypes.CFUNCTYPE(ctypes.c_void_p)(make)()
        if not self.address:
            raise MemoryError
        weakref.finalize(
            self, ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p)(free), self.address
        )


@functools.cache
def _zstd_functions() -> tuple[int, ...] | None:
    names = "createDCtx", "freeDCtx", "decompressDCtx", "findFrameCompressedSize"
    return _c_functions("zstandard._cffi", *(f"ZSTD_{name}" for name in names))


def open_zstd_context() -> ZstdContext | None:
    """Return a context for kernels, None where the library does not show its functions."""
    functions = _zstd_functions()
    return ZstdContext(*functions) if functions else None

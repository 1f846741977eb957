"""Decompression of what a batch's codec bits announce, in Kafka's framing.

===== ======= =====================================================================
id    codec   stream
===== ======= =====================================================================
0     none
1     gzip    RFC 1952, concatenated members, garbage after the last one ignored
2     snappy  `pylog.record.xerial_snappy`
3     lz4     `pylog.record.lz4_frame`
4     zstd    RFC 8878, concatenated frames, usually without a content size; v2 only
===== ======= =====================================================================

In v0 and v1 the stream is the wrapper message's value, in v2 all that follows the 61 header
bytes. Source: CompressionType and the classes of org.apache.kafka.common.compress (Kafka 4.3).
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import isal.isal_zlib

from pylog.errors import InvalidRecordError
from pylog.model import CompressionType
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES, RAISE_THE_OPTION, ByteBuffer
from pylog.record.codec_libraries import (
    ZSTD_ERRORS,
    open_zstd_context,
    open_zstd_decompressor,
)
from pylog.record.lz4_frame import decompress_lz4
from pylog.record.xerial_snappy import decompress_snappy

if TYPE_CHECKING:
    from pylog.record.codec_libraries import ZstdContext

# isal's type stubs declare its exception class as an instance.
_GzipError: type[Exception] = isal.isal_zlib.error  # type: ignore[assignment]
_GZIP_MAGIC = b"\x1f\x8b\x08"
_GZIP_HEADER_BYTES = 10
GZIP_WINDOW_BITS = 31
_CHUNK = 1 << 16
_GZIP_CHUNK = 1 << 22
_GZIP_SLICE = 1 << 20
_LEAST_GZIP_SLICE = 1 << 12


class Decompressor:
    """Appends decompressed batches to a `ByteBuffer`; keeps the codecs' contexts.

    One thread.
    """

    def __init__(
        self,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
        advice: str = RAISE_THE_OPTION,
    ) -> None:
        self.max_decompressed_bytes = max_decompressed_bytes
        self.buffer = ByteBuffer(max_decompressed_bytes, advice)
        self._zstd_context: ZstdContext | None = None

    def append(self, codec: CompressionType, payload: memoryview, magic: int) -> tuple[int, int]:
        """Decompress ``payload`` after the content of `buffer`."""
        start = self.buffer.open_batch()
        match codec:
            case CompressionType.NONE:
                self.buffer.append(payload)
            case CompressionType.GZIP:
                _append_gzip(payload, self.buffer)
            case CompressionType.SNAPPY:
                decompress_snappy(payload, self.buffer)
            case CompressionType.LZ4:
                decompress_lz4(payload, magic, self.buffer)
            case CompressionType.ZSTD:
                self._append_zstd(payload)
        return start, self.buffer.length

    @cached_property
    def _zstd(self) -> Any:  # noqa: ANN401 - of one of two libraries
        return open_zstd_decompressor()

    @property
    def zstd_context(self) -> ZstdContext | None:
        """A context for kernels that call zstd, None where they cannot; one thread, as the rest."""
        if self._zstd_context is None:
            self._zstd_context = open_zstd_context()
        return self._zstd_context

    def _append_zstd(self, payload: memoryview) -> None:
        out = self.buffer
        try:
            with self._zstd.stream_reader(payload, read_across_frames=True) as reader:
                guess = max(_CHUNK, 4 * len(payload))
                while True:
                    room = out.reserve_up_to(guess)
                    count = reader.readinto(room)
                    out.advance(count)
                    if count < len(room):  # filled unless the stream ends
                        return
                    del room  # or the memory that it views would outlive the buffer's growing
        except ZSTD_ERRORS as error:
            reason = f"zstd stream cannot be decompressed: {error}"
            raise InvalidRecordError(reason) from error


def _append_gzip(payload: memoryview, out: ByteBuffer) -> None:
    position = 0
    slice_bytes = _GZIP_SLICE
    while True:
        start = position
        position = _append_gzip_member(payload, start, slice_bytes, out)
        # What follows and is not the header of a further member is ignored by the JDK.
        header = payload[position : position + _GZIP_HEADER_BYTES]
        if len(header) < _GZIP_HEADER_BYTES or header[: len(_GZIP_MAGIC)] != _GZIP_MAGIC:
            return
        # The library copies the input that it does not use, so it gets a slice of what follows.
        slice_bytes = min(_GZIP_SLICE, max(_LEAST_GZIP_SLICE, 2 * (position - start)))


def _append_gzip_member(
    payload: memoryview, position: int, slice_bytes: int, out: ByteBuffer
) -> int:
    """Append one member, given to the library in slices; return the position after it."""
    member = isal.isal_zlib.decompressobj(wbits=GZIP_WINDOW_BITS)
    while position < len(payload):
        rest: bytes | memoryview = payload[position : position + slice_bytes]
        position += len(rest)
        while True:
            most = min(_GZIP_CHUNK, out.room() + 1)
            try:
                data = member.decompress(rest, most)
            except _GzipError as error:
                reason = f"gzip stream cannot be decompressed: {error}"
                raise InvalidRecordError(reason) from error
            out.append(data)
            if member.eof:
                return position - len(member.unused_data)
            rest = member.unconsumed_tail
            if not rest and len(data) < most:
                break
    reason = "gzip stream is cut short"
    raise InvalidRecordError(reason)

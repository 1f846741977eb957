"""Header by header through a ``.log`` file, in plain Python, reading only what it must.

For look-ups and for the end of a log, where few headers are read and start-up time counts; bulk
work goes through `pylog.log_file.segment_windows`.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptRecordError
from pylog.native.checksum import crc32c
from pylog.record.batch_header import (
    ATTRIBUTES_OFFSET,
    ENTRY_START,
    HEADER_SIZE_UP_TO_MAGIC,
    LEAST_SIZES,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_VALUE_V0,
    MAGIC_VALUE_V2,
    RECORD_BATCH_OVERHEAD,
    RECORD_OVERHEAD_V0,
    BatchHeader,
    parse_batch_header,
    peek_entry_size,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.files.byte_source import ByteSource


_FIRST_CHUNK = 1 << 13
_LARGEST_CHUNK = 1 << 20
_ZERO_CHUNK = 1 << 20
HIGHEST_OFFSET = 2**63 - 1  # there is none after it, so that no batch ends there


OFFSETS_IN_SEGMENT = 2**31
"""Offsets are int32 in an index, relative to the segment's: from here on none is possible."""


class PositionedHeader(NamedTuple):
    """A batch header and the byte of the file where it begins."""

    position: int
    header: BatchHeader

    @property
    def end_position(self) -> int:
        """The byte after the batch."""
        return self.position + self.header.size_bytes


class WholeBatches(NamedTuple):
    """The whole batches at the head of a file: where they end, and why."""

    end_position: int
    last: PositionedHeader | None
    defect: str | None


class _Chunks:
    """Bytes around a moving position, read in chunks that grow while the walk continues."""

    def __init__(self, source: ByteSource, end: int) -> None:
        self._source = source
        self._end = end
        self._data = b""
        self._start = 0
        self._chunk = _FIRST_CHUNK

    def at(self, position: int, length: int) -> tuple[bytes, int]:
        """Return bytes holding ``[position, position + length)``, if they exist, and where."""
        inside = position - self._start
        if inside < 0 or inside + length > len(self._data):
            wanted = min(max(length, self._chunk), self._end - position)
            self._data = self._source.read_at(position, wanted)
            self._start = position
            self._chunk = min(2 * self._chunk, _LARGEST_CHUNK)
            inside = 0
        return self._data, inside

    def header(self, position: int) -> PositionedHeader | None:
        """Return the header at a position, as `read_header` does."""
        data, at = self.at(position, min(RECORD_BATCH_OVERHEAD, self._end - position))
        return _parse(data, at, self._source.path, position, self._end)


def read_header(source: ByteSource, position: int, end: int) -> PositionedHeader | None:
    """Return the header of the batch at ``position`` if the whole batch lies before ``end``."""
    data = source.read_at(position, min(RECORD_BATCH_OVERHEAD, end - position))
    return _parse(data, 0, source.path, position, end)


def _parse(data: bytes, at: int, path: str, position: int, end: int) -> PositionedHeader | None:
    # As FileLogInputStream.nextBatch: the smallest batch is longer, so a tail of 17 bytes is torn.
    if len(data) - at <= HEADER_SIZE_UP_TO_MAGIC:
        return None
    if position + peek_entry_size(data, at, path=path, position=position) > end:
        return None
    return PositionedHeader(position, parse_batch_header(data, at, path=path, position=position))


_HIGHEST_MAGIC = 127  # of a byte with a sign


def _parse_as_broker(
    data: bytes, at: int, path: str, position: int, end: int
) -> PositionedHeader | None:
    """Parse a header as Kafka does, which looks at the size before it looks at the format.

    It takes any later format for v2, and a negative one for v0.

    Source: FileLogInputStream.nextBatch (Kafka 4.4).
    """
    if len(data) - at <= HEADER_SIZE_UP_TO_MAGIC:
        return None
    _, size, magic = ENTRY_START.unpack_from(data, at)
    if size >= RECORD_OVERHEAD_V0 and position + LOG_OVERHEAD + size > end:
        return None
    if magic > MAGIC_VALUE_V2:
        head = bytearray(data[at : at + RECORD_BATCH_OVERHEAD])
        head[MAGIC_OFFSET] = MAGIC_VALUE_V2 if magic <= _HIGHEST_MAGIC else MAGIC_VALUE_V0
        data, at = bytes(head), 0
    return _parse(data, at, path, position, end)


def walk_headers(
    source: ByteSource, position: int, end: int, *, lowest_offset: int | None = 0
) -> Iterator[PositionedHeader]:
    """Yield the header of every whole batch in ``[position, end)``.

    Offsets have to go up, from ``lowest_offset`` on. With None it is a broker's walk: offsets and
    formats may be any.
    """
    parse = _parse if lowest_offset is not None else _parse_as_broker
    chunks = _Chunks(source, end)
    while position < end:
        data, at = chunks.at(position, RECORD_BATCH_OVERHEAD)
        batch = parse(data, at, source.path, position, end)
        if batch is None:
            return
        if lowest_offset is not None:
            if batch.header.offset < lowest_offset:
                reason = _below(batch.header.offset, lowest_offset)
                raise CorruptRecordError(reason, source.path, position)
            lowest_offset = batch.header.next_offset
        yield batch
        position = batch.end_position


def _below(offset: int, lowest_offset: int) -> str:
    """Return the defect of a batch whose offset is not above those before it."""
    return f"batch has offset {offset}, expected at least {lowest_offset}"


def find_whole_batches(
    source: ByteSource,
    position: int,
    end: int,
    *,
    lowest_offset: int,
    limit_offset: int = HIGHEST_OFFSET,
) -> WholeBatches:
    """Return how far whole batches reach from ``position`` on, reading sizes and offsets only.

    Zeros up to ``end`` (a preallocated file, a hole) and a batch or header cut short by ``end`` are
    normal ends: Kafka acknowledges before it forces to disk. Anything else that cannot be a header
    is a defect, and so is an offset that is not above the one before, or the first if it is below
    ``lowest_offset`` or the last is at or above ``limit_offset``: the end of the log is taken from
    the last one.
    """
    chunks = _Chunks(source, end)
    return _whole(chunks, _walk_sizes(source, chunks, position, end, lowest_offset), limit_offset)


def find_last_offset(source: ByteSource, position: int, end: int, *, lowest_offset: int) -> int:
    """Return the offset that the last whole batch begins with, as that walk finds it.

    Below ``lowest_offset`` without a batch. No header is looked at for more.
    """
    walk = _walk_sizes(source, _Chunks(source, end), position, end, lowest_offset)
    return walk.next_offset - 1


class _SizeWalk(NamedTuple):
    """How far sizes lead, where the last two batches begin, and what is after the last offset."""

    end_position: int
    before_last: int | None
    last: int | None
    next_offset: int
    defect: str | None = None


def _walk_sizes(
    source: ByteSource, chunks: _Chunks, position: int, end: int, lowest_offset: int
) -> _SizeWalk:
    before_last = last = None
    while end - position >= HEADER_SIZE_UP_TO_MAGIC:
        data, at = chunks.at(position, HEADER_SIZE_UP_TO_MAGIC)
        readable = len(data) - HEADER_SIZE_UP_TO_MAGIC
        if at > readable:
            break
        chunk_position = position - at
        while at <= readable:  # a loop of its own: messages of v0 and v1 are many and short
            position = chunk_position + at
            offset, length, magic = ENTRY_START.unpack_from(data, at)
            if magic > MAGIC_VALUE_V2 or length < LEAST_SIZES[magic]:
                is_end = is_zero(source, position, end)
                defect = None if is_end else _describe(data, at)
                return _SizeWalk(position, before_last, last, lowest_offset, defect)
            at += LOG_OVERHEAD + length
            if chunk_position + at > end:
                return _SizeWalk(position, before_last, last, lowest_offset)
            if offset < lowest_offset:
                defect = _below(offset, lowest_offset)
                return _SizeWalk(position, before_last, last, lowest_offset, defect)
            lowest_offset = offset + 1
            before_last, last = last, position
        position = chunk_position + at
    return _SizeWalk(position, before_last, last, lowest_offset)


def _describe(data: bytes, at: int) -> str:
    """Return what is impossible about the header at ``data[at:]``."""
    try:
        peek_entry_size(data, at)
    except CorruptRecordError as error:
        return error.reason
    raise AssertionError  # whoever asks has found the same


def _whole(chunks: _Chunks, walk: _SizeWalk, limit_offset: int) -> WholeBatches:
    end_position, before_last, last, _, defect = walk
    if last is None:
        return WholeBatches(end_position, None, defect)
    batch = chunks.header(last)
    if batch is not None and not (batch.header.offset <= batch.header.last_offset < limit_offset):
        below = "" if limit_offset == HIGHEST_OFFSET else f", expected below {limit_offset}"
        defect = f"batch has offsets {batch.header.offset} to {batch.header.last_offset}{below}"
        sound = None if before_last is None else chunks.header(before_last)
        return WholeBatches(last, sound, defect)
    return WholeBatches(end_position, batch, defect)


def is_zero(source: ByteSource, position: int, end: int) -> bool:
    """Whether every byte in ``[position, end)`` is zero; holes are not read."""
    while position < end:
        data_at = source.next_data(position)
        if data_at is None or data_at >= end:
            return True
        data = source.read_at(data_at, min(_ZERO_CHUNK, end - data_at))
        if not data or data.count(0) != len(data):
            return not data
        position = data_at + len(data)
    return True


def has_valid_checksum(source: ByteSource, batch: PositionedHeader) -> bool:
    """Whether the batch's stored checksum is that of its bytes; memory is bounded."""
    return computed_checksum(source, batch) == batch.header.crc


def computed_checksum(source: ByteSource, batch: PositionedHeader) -> int:
    """Return the checksum that the batch should store, read a chunk at a time."""
    is_v2 = batch.header.magic == MAGIC_VALUE_V2
    update = crc32c if is_v2 else zlib.crc32
    position = batch.position + (ATTRIBUTES_OFFSET if is_v2 else MAGIC_OFFSET)
    value = 0
    while position < batch.end_position:
        data = source.read_at(position, min(_LARGEST_CHUNK, batch.end_position - position))
        if not data:
            break
        value = update(data, value)
        position += len(data)
    return value

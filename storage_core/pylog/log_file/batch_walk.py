"""Header by header through a ``.log`` file, in plain Python, reading only what it must.

For look-ups and for the end of a log, where few headers are read and start-up time counts; bulk
work goes through `pylog.log_file.segment_windows`.
"""

from __future__ import annotations

import struct
import zlib
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptRecordError
from pylog.files.index_entries import goes_up
from pylog.model import OffsetPosition
from pylog.native.checksum import crc32c
from pylog.record.batch_header import (
    ATTRIBUTES_OFFSET,
    COMPRESSION_CODEC_MASK,
    HEADER_SIZE_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_VALUE_V2,
    MIN_ENTRY_SIZE_V1,
    OFFSET_LENGTH,
    RECORD_BATCH_OVERHEAD,
    RECORD_OVERHEAD_V0,
    RECORD_OVERHEAD_V1,
    BatchHeader,
    parse_batch_header,
    peek_entry_size,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.files.byte_source import ByteSource
    from pylog.files.index_entries import OffsetIndexEntries


_FIRST_CHUNK = 1 << 13
_LARGEST_CHUNK = 1 << 20
_ZERO_CHUNK = 1 << 20
_OFFSET_SIZE_MAGIC = struct.Struct(">qi4xB")
_LEAST_LENGTHS = (RECORD_OVERHEAD_V0, RECORD_OVERHEAD_V1, RECORD_BATCH_OVERHEAD - LOG_OVERHEAD)
"""Of what follows offset and size, by magic."""
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
    """How far a file holds whole batches."""

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
        """Return what `read_header` does."""
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


def _parse_as_broker(
    data: bytes, at: int, path: str, position: int, end: int
) -> PositionedHeader | None:
    """Parse a header as Kafka does, which looks at the size before it looks at the format.

    It takes any later format for v2. Source: FileLogInputStream.nextBatch (Kafka 4.4).
    """
    if len(data) - at <= HEADER_SIZE_UP_TO_MAGIC:
        return None
    _, size, magic = _OFFSET_SIZE_MAGIC.unpack_from(data, at)
    if size >= RECORD_OVERHEAD_V0 and position + LOG_OVERHEAD + size > end:
        return None
    if magic > MAGIC_VALUE_V2:
        head = bytearray(data[at : at + RECORD_BATCH_OVERHEAD])
        head[MAGIC_OFFSET] = MAGIC_VALUE_V2
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
                offset = batch.header.offset
                reason = f"batch has offset {offset}, expected at least {lowest_offset}"
                raise CorruptRecordError(reason, source.path, position)
            lowest_offset = batch.header.next_offset
        yield batch
        position = batch.end_position


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
            offset, length, magic = _OFFSET_SIZE_MAGIC.unpack_from(data, at)
            if magic > MAGIC_VALUE_V2 or length < _LEAST_LENGTHS[magic]:
                is_end = is_zero(source, position, end)
                defect = None if is_end else _describe(data, at)
                return _SizeWalk(position, before_last, last, lowest_offset, defect)
            at += LOG_OVERHEAD + length
            if chunk_position + at > end:
                return _SizeWalk(position, before_last, last, lowest_offset)
            if offset < lowest_offset:
                defect = f"batch has offset {offset}, expected at least {lowest_offset}"
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


# Which entries of an offset index the batches of the ``.log`` file prove.
#
# An index file has no checksum, and a record's value may hold the image of a batch, so neither an
# entry nor what looks like a batch at its position is believed. An entry is proved when
#
# * a walk from header to header arrives exactly at it. The walk starts at an entry at least
#   `LEAST_WALK_BYTES` before it (at the segment's beginning if there is none) and passes every
#   entry in between;
# * the entry's offset is one that a broker stores for the batch that begins there
#   (`pylog.files.index_entries` says which);
# * a walk on from it arrives exactly at the next entry, or at the end of the whole batches;
# * offsets go up all the way.
#
# A walk that starts at the segment's first byte rests on nothing else. Any other one rests on
# the entry where it begins. Checksums are not looked at: the reader of a batch does that, and
# an image has a right one anyway. A lie needs neighbouring entries that all lie, into one chain
# of images that fills more than `LEAST_WALK_BYTES` of one batch and leads to its end or to
# another such entry.


LEAST_WALK_BYTES = 1 << 12
"""A broker's entries are farther apart unless it is configured otherwise: one interval."""

_CHUNK = 1 << 13
_LARGE_BATCH = 1 << 12
_LARGEST_WRAPPER = 1 << 31
_ATTRIBUTES = 17
"""Of v0 and v1; of v2 the second byte of the checksum stands there."""
_OFFSET = struct.Struct(">q")
_V2_START = struct.Struct(">qi11xi")
"""Base offset, size, last offset delta."""
_LEAST_SIZES = (
    RECORD_OVERHEAD_V0,
    MIN_ENTRY_SIZE_V1 - LOG_OVERHEAD,
    RECORD_BATCH_OVERHEAD - LOG_OVERHEAD,
)


class ProvedPosition(NamedTuple):
    """Where a batch of the log begins."""

    position: int
    lowest_offset: int


class _Walk(NamedTuple):
    """Where a walk from an index entry has come to, and which batch holds the offset."""

    reached: ProvedPosition
    is_borne_out: bool
    holder: ProvedPosition | None


class ProvedPositions:
    """The proved entries of one index. One thread; for a few look-ups.

    A batch is known to start at ``start``. The index may know of more than what is before ``end``:
    a broker continues appending.
    """

    def __init__(
        self, source: ByteSource, index: OffsetIndexEntries, start: ProvedPosition, end: int
    ) -> None:
        self._source = source
        self._index = index
        self._start = start
        self._end = end

    def before_offset(self, offset: int) -> ProvedPosition:
        """Return a proved position whose batch is not after the one that holds ``offset``."""
        if offset <= self._start.lowest_offset:
            return self._start
        nearest = self._index.floor_slot(offset)
        if nearest >= 0 and self._index.entry(nearest).position >= self._end:
            nearest = self._index.first_slot_from_position(self._end) - 1
        for slot in _backwards(nearest):
            proved = self.prove(slot, offset)
            if proved is not None and proved.lowest_offset <= offset:
                return proved
        return self._start

    def last(self, *, is_sound: bool = False) -> ProvedPosition:
        """Return the proved position nearest to the end; the start if no entry is proved."""
        for slot in _backwards(self._index.first_slot_from_position(self._end) - 1):
            proved = self.prove(slot)
            if proved is not None and (not is_sound or self._has_sound_batch(proved.position)):
                return proved
        return self._start

    def _has_sound_batch(self, position: int) -> bool:
        batch = read_header(self._source, position, self._end)
        return batch is not None and has_valid_checksum(self._source, batch)

    def from_position(self, position: int, tries: int) -> ProvedPosition | None:
        """Return the first proved entry at or after a byte; None if ``tries`` entries are not."""
        first = self._index.first_slot_from_position(position)
        for slot in range(first, min(first + tries, self._index.entry_count)):
            if self._index.entry(slot).position >= self._end:
                return None
            proved = self.prove(slot)
            if proved is not None:
                return proved
        return None

    def prove(self, slot: int, offset: int = -1) -> ProvedPosition | None:
        """Return what the entry at ``slot`` says if it is proved, else None."""
        entry = self._index.entry(slot)
        if not self._start.position < entry.position < self._end:
            return None
        way = self._way_to(slot)
        if way is None:
            return None
        reached = self._start
        for here, there in pairwise(way):
            arrived = self._arrive(here, reached.lowest_offset, there.position)
            if arrived is None:
                return None
            reached = arrived
        walk = self._walk_on(slot, reached.lowest_offset, offset)
        if walk is None:
            return None
        return reached if offset <= reached.lowest_offset else walk.holder or walk.reached

    def _way_to(self, slot: int) -> list[OffsetPosition] | None:
        """Return the entries that a walk to ``slot`` passes; None if they do not go up."""
        start = OffsetPosition(-1, self._start.position)
        way = [self._index.entry(slot)]
        farthest = way[0].position - LEAST_WALK_BYTES
        if farthest <= start.position:
            return [start, way[0]]
        while way[-1].position > farthest:
            slot -= 1
            if slot < 0:
                return [start, way[0]]
            entry = self._index.entry(slot)
            if entry.position <= start.position:
                return [start, way[0]]
            if not goes_up(entry, way[-1]):
                return None
            way.append(entry)
        return way[::-1]

    def _walk_on(self, slot: int, lowest_offset: int, offset: int) -> _Walk | None:
        """Return the walk from an entry to the next one, or to the end; None if it fails."""
        entry = self._index.entry(slot)
        goal = self._end
        if slot + 1 < self._index.entry_count:
            following = self._index.entry(slot + 1)
            if not goes_up(entry, following):
                return None
            goal = min(goal, following.position)
        walk = self._walk(entry, lowest_offset, goal, offset)
        if walk is None or not walk.is_borne_out:
            return None
        if goal < self._end:
            return walk if walk.reached.position == goal else None
        return walk if self._is_end(*walk.reached) else None

    def _arrive(
        self, entry: OffsetPosition, lowest_offset: int, goal: int
    ) -> ProvedPosition | None:
        """Return where a walk from an entry arrives if it is ``goal``, else None."""
        walk = self._walk(entry, lowest_offset, goal)
        if walk is None or walk.reached.position != goal:
            return None
        return walk.reached if walk.is_borne_out or entry.offset < 0 else None

    def _is_end(self, position: int, next_offset: int) -> bool:
        """Whether the rest of the file is what may follow a log's last whole batch.

        Nothing, zeros, or what a crash leaves of the batch with the next offset. Less of that than
        its offset could be the rest of a record just as well.
        """
        source, rest = self._source, self._end - position
        if rest == 0:
            return True
        start = source.read_at(position, min(HEADER_SIZE_UP_TO_MAGIC, rest))
        if not any(start[:LOG_OVERHEAD]):
            return rest >= LOG_OVERHEAD and is_zero(source, position, self._end)
        if len(start) < OFFSET_LENGTH:
            return False
        (offset,) = _OFFSET.unpack_from(start)
        if len(start) < HEADER_SIZE_UP_TO_MAGIC:
            return bool(offset == next_offset)
        # A v0/v1 wrapper carries the offset of its last message. The walk has ended here, so that
        # a possible header is of a batch that does not fit into the file.
        gap = _LARGEST_WRAPPER if start[MAGIC_OFFSET] < MAGIC_VALUE_V2 else 1
        return bool(0 <= offset - next_offset < gap)

    def _walk(
        self, entry: OffsetPosition, lowest_offset: int, goal: int, offset: int = -1
    ) -> _Walk | None:
        """Walk from an entry up to ``goal``, to zeros, or to a batch that the end cuts."""
        source, end = self._source, self._end
        position, indexed = entry.position, entry.offset
        is_borne_out = False
        holder = None
        data, start, stop, wanted = b"", position, position, _CHUNK
        while position < goal:
            if position + RECORD_BATCH_OVERHEAD > stop:
                wanted = max(RECORD_BATCH_OVERHEAD, min(wanted, goal - position))
                data = source.read_at(position, min(wanted, end - position))
                start, stop = position, position + len(data)
                data += bytes(RECORD_BATCH_OVERHEAD)
            at = position - start
            first, size, delta = _V2_START.unpack_from(data, at)
            magic = data[at + MAGIC_OFFSET]
            if stop - position < HEADER_SIZE_UP_TO_MAGIC or (first == size == 0):
                break
            if magic > MAGIC_VALUE_V2 or size < _LEAST_SIZES[magic]:
                return None
            following = position + LOG_OVERHEAD + size
            if following > end:
                break
            last = first + delta if magic == MAGIC_VALUE_V2 else first
            if not lowest_offset <= first <= last:
                return None
            if last == indexed:
                is_borne_out = True
            elif position == entry.position:
                # A v0/v1 wrapper's first offset is known after decompression only.
                is_wrapper = (
                    magic < MAGIC_VALUE_V2 and data[at + _ATTRIBUTES] & COMPRESSION_CODEC_MASK
                )
                is_borne_out = indexed == first or bool(is_wrapper and indexed < last)
            if holder is None and last >= offset:
                holder = ProvedPosition(position, lowest_offset)
            lowest_offset = last + 1
            # Only the headers of large batches are read.
            wanted = _CHUNK if size < _LARGE_BATCH else RECORD_BATCH_OVERHEAD
            position = following
        return _Walk(ProvedPosition(position, lowest_offset), is_borne_out, holder)


def _backwards(slot: int) -> Iterator[int]:
    """Yield ``slot`` and slots before it, each twice as far back as the one before."""
    step = 1
    while slot >= 0:
        yield slot
        slot -= step
        step *= 2

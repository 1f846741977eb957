"""Which entries of an offset index the batches of the ``.log`` file prove.

An index file has no checksum, and a record's value may hold the image of a batch, so neither an
entry nor what looks like a batch at its position is believed. An entry is proved when

* a walk from header to header arrives exactly at it. The walk begins at an entry at least
  `LEAST_WALK_BYTES` before it (at the segment's beginning if there is none) and comes by every
  entry in between;
* a batch with a right checksum begins there, and the entry's offset is one that a broker stores
  for it;
* a walk on from it arrives exactly at the next entry, or at the end of the whole batches;
* offsets go up all the way.

A walk that begins at the segment's first byte rests on nothing else. Any other one rests on the entry
where it begins. A lie needs several neighbouring entries that all lie, into one chain of images that
fills more than `LEAST_WALK_BYTES` of one batch and leads to its end or to another such entry.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptRecordError
from pylog.log_file.batch_walk import has_valid_checksum, is_zero, read_header
from pylog.model import OffsetPosition
from pylog.record.batch_header import peek_entry_size
from pylog.record.batch_layout import (
    COMPRESSION_CODEC_MASK,
    HEADER_SIZE_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_VALUE_V2,
    OFFSET_LENGTH,
    RECORD_BATCH_OVERHEAD,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.files.byte_source import ByteSource
    from pylog.files.offset_index import OffsetIndex

LEAST_WALK_BYTES = 1 << 13
"""A broker's entries are more than 4 KiB apart unless it is configured otherwise: one or two."""

_CHUNK = 1 << 13
_LARGE_BATCH = 1 << 12
_LARGEST_WRAPPER = 1 << 31
_ATTRIBUTES = 17
"""Of v0 and v1; of v2 the second byte of the checksum stands there."""
_OFFSET = struct.Struct(">q")
_V2_OFFSETS = struct.Struct(">q15xi")


class ProvedPosition(NamedTuple):
    """Where a batch of the log begins.

    Attributes
    ----------
    position
        Byte of the ``.log`` file.
    lowest_offset
        Batches before it are below this offset, those from it on are not.
    """

    position: int
    lowest_offset: int


class _Step(NamedTuple):
    """One batch that a walk passes over."""

    position: int
    end_position: int
    first_offset: int | None
    last_offset: int


class ProvedPositions:
    """The proved entries of one index. One thread; for a few look-ups.

    Parameters
    ----------
    source
        The ``.log`` file.
    index
        Its offset index.
    start
        A batch that is known to begin there: the segment's first byte, or where a slice begins.
    end
        Byte after the last one to look at. The index may know of more: a broker goes on appending.
    """

    def __init__(
        self, source: ByteSource, index: OffsetIndex, start: ProvedPosition, end: int
    ) -> None:
        self._source = source
        self._index = index
        self._start = start
        self._end = end

    def before_offset(self, offset: int) -> ProvedPosition:
        """Return a proved position whose batch is not after the one that holds ``offset``.

        Normally that of the nearest entry; the start if no entry is proved.
        """
        if offset <= self._start.lowest_offset:
            return self._start
        nearest = self._index.floor_slot(offset)
        if nearest >= 0 and self._index.entry(nearest).position >= self._end:
            nearest = self._index.first_slot_from_position(self._end) - 1
        for slot in _backwards(nearest):
            found = self.prove(slot)
            if found is not None and found.lowest_offset <= offset:
                return found
        return self._start

    def last(self) -> ProvedPosition:
        """Return the proved position nearest to the end; the start if no entry is proved."""
        for slot in _backwards(self._index.first_slot_from_position(self._end) - 1):
            found = self.prove(slot)
            if found is not None:
                return found
        return self._start

    def from_position(self, position: int, tries: int) -> ProvedPosition | None:
        """Return the first proved entry at or after a byte; None if ``tries`` entries are not."""
        first = self._index.first_slot_from_position(position)
        for slot in range(first, min(first + tries, self._index.entry_count)):
            if self._index.entry(slot).position >= self._end:
                return None
            found = self.prove(slot)
            if found is not None:
                return found
        return None

    def prove(self, slot: int) -> ProvedPosition | None:
        """Return what the entry at ``slot`` says if it is proved, else None."""
        entry = self._index.entry(slot)
        if not self._start.position < entry.position < self._end:
            return None
        way = self._way_to(slot)
        if way is None:
            return None
        try:
            found = read_header(self._source, entry.position, self._end)
            if found is None or not has_valid_checksum(self._source, found):
                return None
            lowest_offset = self._start.lowest_offset
            for here, there in pairwise(way):
                steps = self._steps(here.position, lowest_offset, there.position)
                reached = _arrive(steps, here, there.position)
                if reached is None:
                    return None
                lowest_offset = reached
            if not self._leads_on(slot, lowest_offset):
                return None
        except CorruptRecordError:
            return None
        return ProvedPosition(entry.position, lowest_offset)

    def _way_to(self, slot: int) -> list[OffsetPosition] | None:
        """Return the entries that a walk to ``slot`` comes by; None if they do not go up.

        The start stands for the entries before it, with an offset that no entry has.
        """
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
            if not (entry.position < way[-1].position and entry.offset < way[-1].offset):
                return None
            way.append(entry)
        return way[::-1]

    def _leads_on(self, slot: int, lowest_offset: int) -> bool:
        """Whether a walk from an entry arrives at the next one, or at the end."""
        entry = self._index.entry(slot)
        if slot + 1 < self._index.entry_count:
            following = self._index.entry(slot + 1)
            if not (entry.position < following.position and entry.offset < following.offset):
                return False
            if following.position < self._end:
                steps = self._steps(entry.position, lowest_offset, following.position)
                return _arrive(steps, entry, following.position) is not None
        steps = self._steps(entry.position, lowest_offset, self._end)
        return self._arrive_at_end(steps, entry, lowest_offset)

    def _arrive_at_end(
        self, steps: Iterator[_Step], entry: OffsetPosition, lowest_offset: int
    ) -> bool:
        """Whether steps from an entry lead to where whole batches end."""
        fit = _Fit(entry)
        position = entry.position
        for step in steps:
            fit.add(step)
            position, lowest_offset = step.end_position, step.last_offset + 1
        return fit.is_found and self._is_end(position, lowest_offset)

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

    def _steps(self, position: int, lowest_offset: int, goal: int) -> Iterator[_Step]:
        """Yield the batches from ``position`` to ``goal``.

        The walk ends early at zeros, and at a batch that is cut.

        Raises
        ------
        CorruptRecordError
            A header is impossible, or offsets do not go up.
        """
        source, end = self._source, self._end
        data, start = b"", position
        wanted = _CHUNK
        while position < goal:
            at = position - start
            if at + RECORD_BATCH_OVERHEAD > len(data):
                wanted = max(RECORD_BATCH_OVERHEAD, min(wanted, goal - position))
                data, start, at = source.read_at(position, min(wanted, end - position)), position, 0
            if len(data) - at < HEADER_SIZE_UP_TO_MAGIC:
                return
            if not any(data[at : at + LOG_OVERHEAD]):
                return
            size = peek_entry_size(data, at, path=source.path, position=position)
            if position + size > end:
                return
            step = _parse(data, at, position, size)
            lowest = step.last_offset if step.first_offset is None else step.first_offset
            if lowest < lowest_offset or step.last_offset < lowest:
                reason = f"batch has offset {lowest}, expected at least {lowest_offset}"
                raise CorruptRecordError(reason, source.path, position)
            yield step
            lowest_offset = step.last_offset + 1
            position += size
            # Of large batches the headers alone are read.
            wanted = _CHUNK if size < _LARGE_BATCH else RECORD_BATCH_OVERHEAD


def _parse(data: bytes, at: int, position: int, size: int) -> _Step:
    if data[at + MAGIC_OFFSET] == MAGIC_VALUE_V2:
        first, delta = _V2_OFFSETS.unpack_from(data, at)
        return _Step(position, position + size, first, first + delta)
    (last,) = _OFFSET.unpack_from(data, at)
    # A wrapper's first offset is known after decompression only.
    is_wrapper = data[at + _ATTRIBUTES] & COMPRESSION_CODEC_MASK
    return _Step(position, position + size, None if is_wrapper else last, last)


class _Fit:
    """Whether the offset of an entry is one that a broker stores for the batches from it on.

    The first one of its batch, the last one, or the last one of the batches appended with it.
    """

    def __init__(self, entry: OffsetPosition) -> None:
        self._entry = entry
        self.is_found = False

    def add(self, step: _Step) -> None:
        """Note one of the batches."""
        offset = self._entry.offset
        if offset == step.last_offset:
            self.is_found = True
        elif step.position == self._entry.position:
            first = step.first_offset
            self.is_found = offset < step.last_offset if first is None else offset == first


def _arrive(steps: Iterator[_Step], entry: OffsetPosition, goal: int) -> int | None:
    """Return the offset after the batches from an entry to ``goal``.

    None if no batch ends there, or the entry's offset is none of theirs; the start has none.
    """
    fit = _Fit(entry)
    position, next_offset = entry.position, 0
    for step in steps:
        fit.add(step)
        position, next_offset = step.end_position, step.last_offset + 1
    is_borne_out = fit.is_found or entry.offset < 0
    return next_offset if position == goal and is_borne_out else None


def _backwards(slot: int) -> Iterator[int]:
    """Yield ``slot`` and slots before it, each twice as far back as the one before."""
    step = 1
    while slot >= 0:
        yield slot
        slot -= step
        step *= 2

"""Which entries of an offset index the batches of the ``.log`` file prove.

An index file has no checksum, and a record's value may hold the image of a batch, so neither an
entry nor what looks like a batch at its position is believed. An entry is proved when

* a walk from header to header arrives exactly at it. The walk starts at an entry at least
  `LEAST_WALK_BYTES` before it (at the segment's beginning if there is none) and passes every
  entry in between;
* the entry's offset is one that a broker stores for the batch that begins there
  (`pylog.files.index_entries` says which);
* a walk on from it arrives exactly at the next entry, or at the end of the whole batches;
* offsets go up all the way.

A walk that starts at the segment's first byte rests on nothing else. Any other one rests on
the entry where it begins. Checksums are not looked at: the reader of a batch does that, and
an image has a right one anyway. A lie needs neighbouring entries that all lie, into one chain
of images that fills more than `LEAST_WALK_BYTES` of one batch and leads to its end or to
another such entry.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pylog.files.index_entries import goes_up
from pylog.log_file.batch_walk import has_valid_checksum, is_zero, read_header
from pylog.model import OffsetPosition
from pylog.record.batch_header import (
    COMPRESSION_CODEC_MASK,
    HEADER_SIZE_UP_TO_MAGIC,
    LEAST_SIZES,
    LEGACY_ATTRIBUTES_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_VALUE_V2,
    OFFSET_LENGTH,
    RECORD_BATCH_OVERHEAD,
    V2_SPAN,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.files.byte_source import ByteSource
    from pylog.files.offset_index import OffsetIndexEntries


LEAST_WALK_BYTES = 1 << 12
"""A broker's entries are farther apart unless it is configured otherwise: one interval."""

_CHUNK = 1 << 13
_LARGE_BATCH = 1 << 12
_LARGEST_WRAPPER = 1 << 31


class ProvedPosition(NamedTuple):
    """The offset and byte at which a batch is known to begin."""

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
        offset = int.from_bytes(start[:OFFSET_LENGTH], "big", signed=True)
        if len(start) < HEADER_SIZE_UP_TO_MAGIC:
            return offset == next_offset
        # A v0/v1 wrapper carries the offset of its last message. The walk has ended here, so that
        # a possible header is of a batch that does not fit into the file.
        gap = _LARGEST_WRAPPER if start[MAGIC_OFFSET] < MAGIC_VALUE_V2 else 1
        return 0 <= offset - next_offset < gap

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
            first, size, delta = V2_SPAN.unpack_from(data, at)
            magic = data[at + MAGIC_OFFSET]
            if stop - position < HEADER_SIZE_UP_TO_MAGIC or (first == size == 0):
                break
            if magic > MAGIC_VALUE_V2 or size < LEAST_SIZES[magic]:
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
                    magic < MAGIC_VALUE_V2
                    and data[at + LEGACY_ATTRIBUTES_OFFSET] & COMPRESSION_CODEC_MASK
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

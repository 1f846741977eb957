"""Time index of a segment that we own: from which offset on a timestamp can occur.

What an entry means and its history stand in `pylog.files.time_index`, files and lengths in
`pylog.indexes.abstract_index`.

Source: TimeIndex (KIP-33; Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pylog.errors import InvalidOffsetError
from pylog.files.time_index import LAYOUT, TimeIndexEntries
from pylog.indexes.abstract_index import AbstractIndex
from pylog.model import NO_TIMESTAMP, TimestampOffset

if TYPE_CHECKING:
    from collections.abc import Sequence

_RESERVED_ENTRIES = 1


class TimeIndex(AbstractIndex[TimeIndexEntries, TimestampOffset]):
    """Running maxima of the timestamps of a segment. See `AbstractIndex`."""

    __slots__ = ()

    entries_class: ClassVar[type[TimeIndexEntries]] = TimeIndexEntries

    @property
    def is_full(self) -> bool:
        """Whether only the slot is left that is reserved for the last entry of the segment."""
        stored = self._stored()
        return len(stored) >= stored.slot_count - _RESERVED_ENTRIES

    @property
    def last_entry(self) -> TimestampOffset:
        """The last entry, ``(NO_TIMESTAMP, base_offset)`` if there is none."""
        return self._loaded().last_entry() or TimestampOffset(NO_TIMESTAMP, self.base_offset)

    def lookup(self, timestamp: int) -> TimestampOffset:
        """Return the entry with the largest timestamp that is not above ``timestamp`` (ms)."""
        return self._loaded().lookup(timestamp)

    def maybe_append(self, timestamp: int, offset: int, *, skip_full_check: bool = False) -> bool:
        """Append an entry if it says more than the last one, see `maybe_append_all`."""
        return self.maybe_append_all([(timestamp, offset)], skip_full_check=skip_full_check) == 1

    def maybe_append_all(
        self, new_entries: Sequence[tuple[int, int]], *, skip_full_check: bool = False
    ) -> int:
        """Append pairs of timestamp and offset with one write, without what says nothing new."""
        entries, stored = self._loaded(), self._stored()
        count, room = len(stored), stored.slot_count
        last = entries.last_entry()
        pack = LAYOUT.struct.pack
        packed = bytearray()
        for timestamp, offset in new_entries:
            if not skip_full_check:
                self._ensure_room(count, room - _RESERVED_ENTRIES)
            if last is not None:
                self._ensure_in_order(timestamp, offset, last, count)
            if timestamp > (NO_TIMESTAMP if last is None else last.timestamp):
                self._ensure_room(count, room)
                self._ensure_in_range(offset)
                packed += pack(timestamp, offset - self.base_offset)
                last = TimestampOffset(timestamp, offset)
                count += 1
        if packed:
            self._append(stored, packed)
        return len(packed) // LAYOUT.struct.size

    def _ensure_room(self, count: int, room: int) -> None:
        if count >= room:
            msg = f"no entry fits into the time index {self.path}, which has {count} of {room}"
            raise ValueError(msg)

    def _ensure_in_order(
        self, timestamp: int, offset: int, last: TimestampOffset, count: int
    ) -> None:
        if offset < last.offset:
            reason = f"offset {offset} cannot follow {last.offset} as an index entry"
            raise InvalidOffsetError(reason, self.path, count * LAYOUT.struct.size)
        if timestamp < last.timestamp:
            msg = f"timestamp {timestamp} cannot follow {last.timestamp} in time index {self.path}"
            raise ValueError(msg)

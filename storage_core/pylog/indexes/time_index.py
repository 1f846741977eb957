"""Time index of a segment that we own: from which offset on a timestamp can occur.

An entry ``(t, o)`` says that no record at or before offset ``o`` has a timestamp above ``t``;
layout and history stand in `pylog.files.time_index`, files and lengths in
`pylog.indexes.abstract_index`.

Source: TimeIndex (KIP-33; Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pylog.errors import InvalidOffsetError
from pylog.files.time_index import ENTRY, RELATIVE_OFFSET_COLUMN, TIMESTAMP_COLUMN
from pylog.indexes.abstract_index import AbstractIndex
from pylog.model import NO_TIMESTAMP, TimestampOffset

if TYPE_CHECKING:
    import struct
    from collections.abc import Sequence

_RESERVED_ENTRIES = 1


class TimeIndex(AbstractIndex):
    """Running maxima of the timestamps of a segment. See `AbstractIndex`."""

    __slots__ = ()

    entry_struct: ClassVar[struct.Struct] = ENTRY
    relative_offset_column: ClassVar[int] = RELATIVE_OFFSET_COLUMN

    @property
    def is_full(self) -> bool:
        """Whether only the slot is left that is reserved for the last entry of the segment.

        That entry is forced when the segment is rolled or closed.
        """
        return self.entries >= self.max_entries - _RESERVED_ENTRIES

    @property
    def last_entry(self) -> TimestampOffset:
        """The last entry, ``(NO_TIMESTAMP, base_offset)`` if there is none."""
        return self._last_entry(self._loaded())

    def entry(self, slot: int) -> TimestampOffset:
        """Return the entry at ``slot``, which counts from 0.

        Raises
        ------
        ValueError
            There is no such entry.
        """
        entries = self._loaded()
        count = len(entries) // ENTRY.size
        if not 0 <= slot < count:
            msg = f"slot {slot} is not in 0 .. {count - 1} of {self.path}"
            raise ValueError(msg)
        return self._decode(entries, slot)

    def lookup(self, timestamp: int) -> TimestampOffset:
        """Return the entry with the largest timestamp that is not above ``timestamp`` (ms).

        ``(NO_TIMESTAMP, base_offset)`` if there is none.
        """
        entries = self._loaded()
        slot = self._first_slot_at_least(entries, TIMESTAMP_COLUMN, timestamp + 1) - 1
        return self._decode(entries, slot) if slot >= 0 else self._none()

    def maybe_append(self, timestamp: int, offset: int, *, skip_full_check: bool = False) -> bool:
        """Append an entry if it tells more than the last one, see `maybe_append_all`."""
        return self.maybe_append_all([(timestamp, offset)], skip_full_check=skip_full_check) == 1

    def maybe_append_all(
        self, new_entries: Sequence[tuple[int, int]], *, skip_full_check: bool = False
    ) -> int:
        """Append pairs of timestamp and offset with one write, leaving out what tells nothing new.

        A pair is left out if its timestamp is the last entry's, or is `NO_TIMESTAMP` in an empty
        index.

        Parameters
        ----------
        new_entries
            In the order of the log.
        skip_full_check
            Use the reserved slot, too.

        Returns
        -------
        int
            How many were appended.

        Raises
        ------
        ValueError
            There is no room, also where the pair would be left out; or a timestamp is below the
            last one. Nothing is appended.
        InvalidOffsetError
            An offset is below the last one. Nothing is appended.
        IndexOffsetOverflowError
            An offset is below the base offset or too far above it. Nothing is appended.
        """
        entries = self._loaded()
        count, room = len(entries) // ENTRY.size, self._length // ENTRY.size
        last = self._last_entry(entries) if entries else None
        packed = bytearray()
        for timestamp, offset in new_entries:
            have = count + len(packed) // ENTRY.size
            if not skip_full_check:
                self._ensure_room(have, room - _RESERVED_ENTRIES)
            if last is not None:
                self._ensure_in_order(timestamp, offset, last, have)
            if timestamp > (NO_TIMESTAMP if last is None else last.timestamp):
                self._ensure_room(have, room)
                packed += ENTRY.pack(timestamp, self._relative_offset(offset))
                last = TimestampOffset(timestamp, offset)
        if packed:
            self._append(bytes(packed))
        return len(packed) // ENTRY.size

    def _ensure_room(self, count: int, room: int) -> None:
        if count >= room:
            msg = f"no entry fits into the time index {self.path}, which has {count} of {room}"
            raise ValueError(msg)

    def _ensure_in_order(
        self, timestamp: int, offset: int, last: TimestampOffset, count: int
    ) -> None:
        if offset < last.offset:
            reason = f"offset {offset} cannot follow {last.offset} as an index entry"
            raise InvalidOffsetError(reason, self.path, count * ENTRY.size)
        if timestamp < last.timestamp:
            msg = f"timestamp {timestamp} cannot follow {last.timestamp} in time index {self.path}"
            raise ValueError(msg)

    def _last_entry(self, entries: bytearray) -> TimestampOffset:
        return self._decode(entries, -1) if entries else self._none()

    def _none(self) -> TimestampOffset:
        return TimestampOffset(NO_TIMESTAMP, self.base_offset)

    def _find_defect(self) -> str | None:
        entries = self._loaded()
        if not entries:
            return None
        first, last = self._decode(entries, 0), self._decode(entries, -1)
        if last.timestamp < first.timestamp:
            return (
                f"last index timestamp {last.timestamp} is below the first one, {first.timestamp}"
            )
        if last.offset < self.base_offset:
            return f"last index offset {last.offset} is below base offset {self.base_offset}"
        return None

    def _decode(self, entries: bytearray, slot: int) -> TimestampOffset:
        timestamp, relative_offset = self._fields(entries, slot)
        return TimestampOffset(timestamp, self.base_offset + relative_offset)

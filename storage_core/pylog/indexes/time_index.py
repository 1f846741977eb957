"""Time index of a segment that we own: from which offset on a timestamp can occur.

What an entry means and its history stand in `pylog.files.index_entries`, files and lengths in
`pylog.indexes.abstract_index`.

Source: TimeIndex (KIP-33; Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pylog.errors import InvalidOffsetError
from pylog.files.index_entries import MAX_RELATIVE_OFFSET
from pylog.files.time_index import TIME_INDEX_LAYOUT, TimeIndexEntries
from pylog.indexes.abstract_index import AbstractIndex
from pylog.model import NO_TIMESTAMP, TimestampOffset

if TYPE_CHECKING:
    import numpy.typing as npt

_RESERVED_ENTRIES = 1
_ENTRY = np.dtype([("timestamp", ">i8"), ("relative_offset", ">i4")])


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
        """Append an entry unless the last one has its timestamp; return whether it was appended."""
        entries, stored = self._loaded(), self._stored()
        count, room = len(stored), stored.slot_count
        last = entries.last_entry()
        if not skip_full_check:
            self._ensure_room(count, room - _RESERVED_ENTRIES)
        if last is not None:
            self._ensure_in_order(timestamp, offset, last, count)
        if timestamp <= (NO_TIMESTAMP if last is None else last.timestamp):
            return False
        self._ensure_room(count, room)
        self._ensure_in_range(offset)
        self._append(stored, TIME_INDEX_LAYOUT.struct.pack(timestamp, offset - self.base_offset))
        return True

    def append_all(self, rows: npt.ArrayLike) -> None:
        """Append rows of timestamp and offset, whose timestamps rise, with one write."""
        new_entries = np.asarray(rows, np.int64)
        if not len(new_entries):
            return
        entries, stored = self._loaded(), self._stored()
        count = len(stored)
        self._ensure_room(count + len(new_entries) - 1, stored.slot_count - _RESERVED_ENTRIES)
        offsets = new_entries[:, 1]
        relative = offsets - self.base_offset
        before = np.concatenate(([entries.last_entry() or new_entries[0]], new_entries[:-1]))
        is_wrong = (new_entries < before).any(axis=1)
        is_wrong |= (relative < 0) | (relative > MAX_RELATIVE_OFFSET)
        if is_wrong.any():
            at = int(is_wrong.argmax())
            self._ensure_in_order(
                int(new_entries[at, 0]),
                int(offsets[at]),
                TimestampOffset(*before[at].tolist()),
                count + at,
            )
            self._ensure_in_range(int(offsets[at]))
        packed = np.empty(len(new_entries), _ENTRY)
        packed["timestamp"], packed["relative_offset"] = new_entries[:, 0], relative
        self._append(stored, packed.tobytes())

    def _ensure_room(self, count: int, room: int) -> None:
        if count >= room:
            msg = f"no entry fits into the time index {self.path}, which has {count} of {room}"
            raise ValueError(msg)

    def _ensure_in_order(
        self, timestamp: int, offset: int, last: TimestampOffset, count: int
    ) -> None:
        if offset < last.offset:
            reason = f"offset {offset} cannot follow {last.offset} as an index entry"
            raise InvalidOffsetError(reason, self.path, count * TIME_INDEX_LAYOUT.struct.size)
        if timestamp < last.timestamp:
            msg = f"timestamp {timestamp} cannot follow {last.timestamp} in time index {self.path}"
            raise ValueError(msg)

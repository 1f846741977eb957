"""Offset index of a segment that we own: where in the ``.log`` file an offset is.

What an entry means and its history stand in `pylog.files.index_entries`, files and lengths in
`pylog.indexes.abstract_index`. We store the last offset of a batch and the position where that
batch begins.

Source: OffsetIndex (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pylog.errors import InvalidOffsetError
from pylog.files.index_entries import MAX_RELATIVE_OFFSET
from pylog.files.offset_index import OFFSET_COLUMN, OFFSET_INDEX_LAYOUT, OffsetIndexEntries
from pylog.indexes.abstract_index import AbstractIndex
from pylog.model import OffsetPosition

if TYPE_CHECKING:
    import numpy.typing as npt

_MAX_POSITION = 2**31 - 1


class OffsetIndex(AbstractIndex[OffsetIndexEntries, OffsetPosition]):
    """Offsets and byte positions of some batches. See `AbstractIndex`."""

    __slots__ = ()

    entries_class: ClassVar[type[OffsetIndexEntries]] = OffsetIndexEntries

    @property
    def last_offset(self) -> int:
        """The last indexed offset, the base offset if there is none."""
        return self._loaded().last_offset

    def lookup(self, target_offset: int) -> OffsetPosition:
        """Return the entry with the largest offset that is not above ``target_offset``."""
        return self._loaded().lookup(target_offset)

    def fetch_upper_bound_offset(
        self, fetch_offset: OffsetPosition, fetch_size_bytes: int
    ) -> OffsetPosition | None:
        """Return the first entry at or after the end of a range of bytes, None if there is none."""
        return self._loaded().fetch_upper_bound_offset(fetch_offset, fetch_size_bytes)

    def append(self, offset: int, position: int) -> None:
        """Append an entry."""
        stored = self._stored()
        count, relative_offset = len(stored), offset - self.base_offset
        self._ensure_room(count, 1, stored.slot_count)
        if count:
            self._ensure_follows(offset, stored[count - 1][OFFSET_COLUMN], count)
        self._ensure_in_range(offset)
        self._append(stored, OFFSET_INDEX_LAYOUT.struct.pack(relative_offset, position))

    def append_all(self, rows: npt.ArrayLike) -> None:
        """Append rows of offset and position with one write, all or none."""
        new_entries = np.asarray(rows, np.int64)
        if not len(new_entries):
            return
        stored = self._stored()
        count = len(stored)
        self._ensure_room(count, len(new_entries), stored.slot_count)
        relative = new_entries[:, 0] - self.base_offset
        first = stored[count - 1][OFFSET_COLUMN] if count else relative[0] - 1
        before = np.concatenate(([first], relative[:-1]))
        is_wrong = (relative <= before) | (relative < 0) | (relative > MAX_RELATIVE_OFFSET)
        if is_wrong.any():
            at = int(is_wrong.argmax())
            self._ensure_follows(int(new_entries[at, 0]), int(before[at]), count + at)
            self._ensure_in_range(int(new_entries[at, 0]))
        if new_entries[-1, 1] > _MAX_POSITION:
            msg = f"position {new_entries[-1, 1]} does not fit into the offset index {self.path}"
            raise ValueError(msg)
        packed = np.stack((relative, new_entries[:, 1]), axis=1).astype(">i4")
        self._append(stored, packed.tobytes())

    def _ensure_room(self, count: int, more: int, room: int) -> None:
        if count + more > room:
            msg = (
                f"{more} entries do not fit into the offset index {self.path}, which "
                f"has {count} of {room}"
            )
            raise ValueError(msg)

    def _ensure_follows(self, offset: int, last_relative_offset: int, slot: int) -> None:
        last = self.base_offset + last_relative_offset
        if offset <= last:
            reason = f"offset {offset} cannot follow {last} as an index entry"
            raise InvalidOffsetError(reason, self.path, slot * OFFSET_INDEX_LAYOUT.struct.size)

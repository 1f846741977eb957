"""Offset index of a segment that we own: where in the ``.log`` file an offset is.

What an entry means and its history stand in `pylog.files.offset_index`, files and lengths in
`pylog.indexes.abstract_index`. We store the last offset of a batch and the position where that
batch begins.

Source: OffsetIndex (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pylog.errors import InvalidOffsetError
from pylog.files.offset_index import LAYOUT, RELATIVE_OFFSET_COLUMN, OffsetIndexEntries
from pylog.indexes.abstract_index import AbstractIndex
from pylog.model import OffsetPosition

if TYPE_CHECKING:
    from collections.abc import Sequence


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
        """Append an entry, see `append_all`."""
        self.append_all([(offset, position)])

    def append_all(self, new_entries: Sequence[tuple[int, int]]) -> None:
        """Append pairs of offset and position with one write, all or none."""
        stored = self._stored()
        count, room = len(stored), stored.slot_count
        if count + len(new_entries) > room:
            msg = (
                f"{len(new_entries)} entries do not fit into the offset index {self.path}, which "
                f"has {count} of {room}"
            )
            raise ValueError(msg)
        pack = LAYOUT.struct.pack
        last = stored[count - 1][RELATIVE_OFFSET_COLUMN] if count else None
        packed = bytearray()
        for offset, position in new_entries:
            relative_offset = offset - self.base_offset
            if last is not None and relative_offset <= last:
                reason = (
                    f"offset {offset} cannot follow {self.base_offset + last} as an index entry"
                )
                raise InvalidOffsetError(reason, self.path, len(stored.content) + len(packed))
            self._ensure_in_range(offset)
            packed += pack(relative_offset, position)
            last = relative_offset
        self._append(stored, packed)

"""Where an offset index says that batches begin, as places to cut a file at.

An index is a hint. Whoever reads from one cut to the next sees whether batches lead exactly from
the one to the other: then the second is where a batch begins if the first is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pylog.errors import UnreadableFileError
from pylog.files.file_names import INDEX_FILE_SUFFIX, LOG_FILE_SUFFIX
from pylog.files.offset_index import OffsetIndexEntries

if TYPE_CHECKING:
    from types import TracebackType

    from pylog.reading.segment_slice import SegmentSlice


class IndexCuts:
    """Cuts a slice into ranges of bytes, one after the other. One thread.

    Parameters
    ----------
    segment_slice
        Of the file.
    position
        Where the first range begins.

    Attributes
    ----------
    position
        Where the next range begins; the end of the slice once there is none.
    """

    def __init__(self, segment_slice: SegmentSlice, position: int) -> None:
        self.position = position
        self._end = segment_slice.end_position
        path = segment_slice.path.replace(LOG_FILE_SUFFIX, INDEX_FILE_SUFFIX)
        self._index = OffsetIndexEntries.open(
            path,
            segment_slice.segment_base_offset,
            leaves_page_cache=segment_slice.leaves_page_cache,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._index.close()

    def next_range(self, size_bytes: int, most_bytes: int) -> tuple[int, int] | None:
        """Return the next range, ``[start, end)``; None at the end, or where entries are too rare.

        Parameters
        ----------
        size_bytes
            About how many bytes it shall have.
        most_bytes
            How many it may have.
        """
        start, end = self.position, self._end
        try:
            slot = self._index.first_slot_from_position(start + size_bytes)
            if slot < self._index.entry_count:
                end = min(end, self._index.entry(slot).position)
        except UnreadableFileError:
            return None
        if not start < end <= start + most_bytes:
            return None
        self.position = end
        return start, end

"""When the records of a log begin, from the header of one batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import CorruptRecordError, UnreadableFileError

if TYPE_CHECKING:
    from pylog.reading.log_view import LogView


def first_timestamp(view: LogView) -> int | None:
    """Return the timestamp in ms of the first batch that is served; None without one.

    See `BatchHeader.first_timestamp`.

    Raises
    ------
    LogStorageError
        The start of the log cannot be read; where the view has a damage report, damage is None.
    """
    start_offset = view.log_start_offset
    for index in range(view.find_segment(start_offset) or 0, len(view.segments)):
        segment = view.segments[index]
        end = view.segment_end(index)
        try:
            with segment.open_log() as source:
                batch = segment.find_batch(source, start_offset, end)
        except (CorruptRecordError, UnreadableFileError):
            if view.damage is None:
                raise
            return None
        if batch is not None:
            return batch.header.first_timestamp
    return None

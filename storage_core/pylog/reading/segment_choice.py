"""What is read where ``.log`` files were given instead of their partition's directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import LogDirectoryError
from pylog.files.file_names import LOG_FILE_SUFFIX, file_name_prefix

if TYPE_CHECKING:
    from pylog.reading.log_view import LogView


def chosen_offset_ranges(view: LogView, start: int, end: int) -> list[tuple[int, int]]:
    """Return the parts of ``[start, end)`` that lie in the segments chosen; adjacent ones as one.

    A segment has the offsets from its base offset up to that of the segment after it. The log is
    looked at as a whole all the same: what ended a transaction may stand in a later segment, and
    where a file may be torn depends on whether it is the last one.

    Raises
    ------
    LogDirectoryError
        A segment that was chosen is not there any more.
    """
    if not view.directory.segments:
        return [(start, end)]
    places = {segment.base_offset: index for index, segment in enumerate(view.segments)}
    ranges: list[tuple[int, int]] = []
    for base_offset in view.directory.segments:
        if base_offset not in places:
            name = file_name_prefix(base_offset) + LOG_FILE_SUFFIX
            reason = f"segment file {name} is not part of the log any more"
            raise LogDirectoryError(reason, view.directory.path)
        following = view.next_base_offset(places[base_offset])
        low = max(start, base_offset)
        high = max(low, end if following is None else min(end, following))
        if ranges and ranges[-1][1] == low:
            low = ranges.pop()[0]
        ranges.append((low, high))
    return ranges

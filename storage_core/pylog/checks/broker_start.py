"""What a broker makes of a log when it starts on its directory, and what is lost then.

See `pylog.checks.findings` for the rule. A broker looks at sizes, checksums and
offsets, not into records.

Source: LogLoader.recoverLog, LogSegment.recover (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import LogDirectoryError
from pylog.files.clean_shutdown import CLEAN_SHUTDOWN_FILE, read_clean_shutdown
from pylog.files.file_names import INDEX_FILE_SUFFIX
from pylog.locations import join, name_of, printable_location

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pylog.reading.damage import DamagedRange
    from pylog.reading.log_view import LogView


class BrokerStart(NamedTuple):
    """What a broker would do to one log."""

    is_clean: bool  # whether the log directory was closed in order: then no batch is read
    scanned_segments: int  # how many segments it would scan
    # Which ``.log`` file it would cut off, at which byte, and which offset is the first that it
    # loses; None where it cuts nothing.
    cut_path: str | None = None
    cut_position: int | None = None
    cut_offset: int | None = None
    lost_bytes: int = 0  # of that file and of the segments after it, which it would delete
    deleted_segments: int = 0  # how many those are
    end_offset: int = 0  # the offset after the last batch that is on the disk now

    @property
    def loses_records(self) -> bool:
        """Whether whole batches, or damaged ones, would be removed; not just a torn tail."""
        return self.cut_offset is not None and (
            self.deleted_segments > 0 or self.cut_offset < self.end_offset
        )

    def printable(self) -> BrokerStart:
        """Return it with a path that shows no secrets of a URI."""
        path = self.cut_path
        return self if path is None else self._replace(cut_path=printable_location(path))

    def describe(self) -> str:
        """Return a sentence of what it would do."""
        if self.cut_path is None:
            if not self.scanned_segments:
                return "a broker starts on it as it is: it was closed in order"
            return f"a broker scans {_segments(self.scanned_segments)} and finds them sound"
        where = f"cuts {name_of(self.cut_path)} off at byte {self.cut_position}"
        text = f"a broker {where}: {self.lost_bytes} bytes go"
        if self.deleted_segments:
            text += f", {_segments(self.deleted_segments)} after it among them"
        if self.loses_records:
            text += f"; the log ends at offset {self.cut_offset} then, not {self.end_offset}"
        return text


def _segments(count: int) -> str:
    return "1 segment" if count == 1 else f"{count} segments"


def broker_start(
    view: LogView,
    recovery_point: int,
    damaged: Sequence[DamagedRange],
    ends: Sequence[int],
    end_offset: int,
) -> BrokerStart:
    """Return what a broker would do to a log."""
    is_clean = has_clean_shutdown(view.directory.log_directory)
    first = view.find_segment(recovery_point) or 0
    scanned = [
        index
        for index, segment in enumerate(view.segments)
        if (not is_clean and index >= first) or INDEX_FILE_SUFFIX not in segment.suffixes
    ]
    for index in scanned:
        segment = view.segments[index]
        cut = _first_cut(segment.file_path(), segment.size_bytes, damaged, ends[index])
        if cut is None:
            continue
        position, offset = cut
        later = () if is_clean else view.segments[index + 1 :]
        if offset is None:  # torn, preallocated: after the last batch of the segment
            following = view.next_base_offset(index)
            offset = end_offset if following is None else following
        return BrokerStart(
            is_clean,
            len(scanned),
            segment.file_path(),
            position,
            offset,
            segment.size_bytes - position + sum(each.size_bytes for each in later),
            len(later),
            end_offset,
        )
    return BrokerStart(is_clean, len(scanned), end_offset=end_offset)


def has_clean_shutdown(log_directory: str) -> bool:
    """Whether the marker of a clean stop is in a log directory."""
    try:
        return read_clean_shutdown(join(log_directory, CLEAN_SHUTDOWN_FILE)) is not None
    except LogDirectoryError:
        return False


def _first_cut(
    path: str, size_bytes: int, damaged: Iterable[DamagedRange], end: int
) -> tuple[int, int | None] | None:
    """Return the first byte of a segment that does not survive, and the offset lost with it."""
    for each in damaged:
        if each.path == path:
            return each.position, each.next_offset
    return (end, None) if end < size_bytes else None

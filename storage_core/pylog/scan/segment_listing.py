"""Which segments a partition directory holds, from the names in it.

Compaction replaces segments in steps: the new one is written as ``.cleaned``, renamed to ``.swap``,
the old ones to ``.deleted``, and at last ``.swap`` is taken off the name. From ``.swap`` on the
replacement counts, as it does for a broker that starts after a crash in between: ``.log`` files
whose base offsets lie in the range of the ``.swap`` files are left out. A ``.swap`` at or above a
``.cleaned`` file was not renamed with all its like and does not count.

Source: LogLoader, LocalLog.replaceSegments (Kafka 3.9, 4.3).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pylog.errors import LogDirectoryError, SegmentVanishedError
from pylog.files.file_names import (
    CLEANED_FILE_SUFFIX,
    LOG_FILE_SUFFIX,
    PRODUCER_SNAPSHOT_FILE_SUFFIX,
    SWAP_FILE_SUFFIX,
    find_segment_file_name,
)
from pylog.files.storage import list_directory, settled_since
from pylog.log_file.batch_walk import find_whole_batches
from pylog.scan.log_segment_view import LogSegmentView

if TYPE_CHECKING:
    from pylog.files.file_names import SegmentFileName
    from pylog.files.storage import DirectoryEntry, FileStatus

_MOST_LOOKS = 100


@dataclass(slots=True)
class SegmentListing:
    """What a partition directory holds.

    Attributes
    ----------
    segments
        In offset order.
    producer_snapshot_offsets
        From the names of ``.snapshot`` files, in no order.
    file_count
        Files and directories of any kind.
    leftover_file_count
        Those of ``.deleted``, ``.cleaned`` and ``.swap``.
    """

    segments: list[LogSegmentView] = field(default_factory=list)
    producer_snapshot_offsets: list[int] = field(default_factory=list)
    file_count: int = 0
    leftover_file_count: int = 0


class _Names:
    """The files of one state (live, or ``.swap``) by base offset."""

    def __init__(self, directory: str, state: str) -> None:
        self._directory = directory
        self._state = state
        self._suffixes: dict[int, set[str]] = {}
        self._logs: dict[int, FileStatus] = {}

    def add(self, name: SegmentFileName, entry: DirectoryEntry) -> None:
        if name.suffix == LOG_FILE_SUFFIX:
            self._logs[name.base_offset] = entry.stat()
        self._suffixes.setdefault(name.base_offset, set()).add(name.suffix)

    def segments(self) -> list[LogSegmentView]:
        return [
            LogSegmentView(
                self._directory,
                base,
                status.st_size,
                frozenset(self._suffixes[base]),
                self._state,
                status.st_ino,
            )
            for base, status in sorted(self._logs.items())
        ]


def list_segments(directory: str) -> SegmentListing:
    """Return what the partition directory at ``directory`` holds.

    A file that is renamed while a directory is listed may be listed under its old name, its new
    one, both or none. So the directory is listed again until nothing has changed in it meanwhile.

    Raises
    ------
    LogDirectoryError
        The directory cannot be listed.
    """
    for _ in range(_MOST_LOOKS):
        before = settled_since(directory)
        try:
            listing = _list_once(directory)
        except (FileNotFoundError, SegmentVanishedError):
            continue  # renamed or deleted between listing and stat, or before it was read
        if before == settled_since(directory):
            return listing
    reason = "files come and go faster than the directory can be listed"
    raise LogDirectoryError(reason, directory)


def _list_once(directory: str) -> SegmentListing:
    listing = SegmentListing()
    live, swap = _Names(directory, ""), _Names(directory, SWAP_FILE_SUFFIX)
    cleaned: list[int] = []
    for entry in list_directory(directory):
        listing.file_count += 1
        name = find_segment_file_name(entry.name)
        if name is None:
            continue
        if name.state:
            listing.leftover_file_count += 1
        if name.state == CLEANED_FILE_SUFFIX:
            cleaned.append(name.base_offset)
        elif name.state == SWAP_FILE_SUFFIX:
            swap.add(name, entry)
        elif not name.state and name.suffix == PRODUCER_SNAPSHOT_FILE_SUFFIX:
            listing.producer_snapshot_offsets.append(name.base_offset)
        elif not name.state:
            live.add(name, entry)
    replacing = [
        segment for segment in swap.segments() if not cleaned or segment.base_offset < min(cleaned)
    ]
    listing.segments = _replaced(live.segments(), replacing)
    return listing


def _replaced(
    segments: list[LogSegmentView], replacing: list[LogSegmentView]
) -> list[LogSegmentView]:
    """Return the segments of a log once those of a compaction have taken their places."""
    if not replacing:
        return segments
    start = replacing[0].base_offset
    end = max(_next_offset(segment) for segment in replacing)
    # One that compaction left empty has no range, and still takes its name.
    names = {segment.base_offset for segment in replacing}
    kept = [
        each
        for each in segments
        if each.base_offset not in names and not start <= each.base_offset < end
    ]
    return sorted([*kept, *replacing], key=lambda each: each.base_offset)


def _next_offset(segment: LogSegmentView) -> int:
    with segment.open_log() as source:
        found = find_whole_batches(source, 0, source.size(), lowest_offset=segment.base_offset).last
    return segment.base_offset if found is None else found.header.next_offset

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

from pylog.errors import LogDirectoryError, SegmentVanishedError, UnreadableFileError
from pylog.files.file_names import (
    CLEANED_FILE_SUFFIX,
    LOG_FILE_SUFFIX,
    PRODUCER_SNAPSHOT_FILE_SUFFIX,
    SWAP_FILE_SUFFIX,
    find_segment_file_name,
    is_kafka_0_7_log,
)
from pylog.files.storage import list_directory, settled_since, stat_file
from pylog.log_file.batch_walk import find_whole_batches
from pylog.reading.log_segment_view import LogSegmentView

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
    base_offsets_without_log
        Of segments of which index files are there and no ``.log``, ascending. A broker deletes such
        files at its start.
    misnamed_logs
        Names that end in ``.log`` and are not those of a segment: other than 20 ASCII digits.
    """

    segments: list[LogSegmentView] = field(default_factory=list)
    producer_snapshot_offsets: list[int] = field(default_factory=list)
    file_count: int = 0
    leftover_file_count: int = 0
    base_offsets_without_log: list[int] = field(default_factory=list)
    misnamed_logs: list[str] = field(default_factory=list)


class _Names:
    """The files of one state (live, or ``.swap``) by base offset."""

    def __init__(self, directory: str, state: str) -> None:
        self._directory = directory
        self._state = state
        self._suffixes: dict[int, set[str]] = {}
        self._logs: dict[int, FileStatus | UnreadableFileError] = {}

    def add(self, name: SegmentFileName, entry: DirectoryEntry) -> None:
        if name.suffix == LOG_FILE_SUFFIX:
            try:
                self._logs[name.base_offset] = stat_file(entry)
            except UnreadableFileError as error:
                self._logs[name.base_offset] = error
        self._suffixes.setdefault(name.base_offset, set()).add(name.suffix)

    def segments(self) -> list[LogSegmentView]:
        return [self._segment(base, status) for base, status in sorted(self._logs.items())]

    def base_offsets_without_log(self) -> set[int]:
        return self._suffixes.keys() - self._logs.keys()

    def _segment(self, base: int, status: FileStatus | UnreadableFileError) -> LogSegmentView:
        suffixes = frozenset(self._suffixes[base])
        if isinstance(status, UnreadableFileError):
            return LogSegmentView(
                self._directory, base, 0, suffixes, self._state, defect=status.reason
            )
        return LogSegmentView(
            self._directory, base, status.st_size, suffixes, self._state, status.st_ino
        )


def list_segments(directory: str) -> SegmentListing:
    """Return what the partition directory at ``directory`` holds.

    A file that is renamed while a directory is listed may be listed under its old name, its new
    one, both or none. So the directory is listed again until nothing has changed in it meanwhile.

    Raises
    ------
    LogDirectoryError
        The directory cannot be listed, or holds nothing but segments of Kafka 0.7.
    """
    for _ in range(_MOST_LOOKS):
        before = settled_since(directory)
        try:
            listing = _list_once(directory)
        except SegmentVanishedError:
            continue  # renamed or deleted between listing and stat, or before it was read
        if before == settled_since(directory):
            return listing
    reason = "files come and go faster than the directory can be listed"
    raise LogDirectoryError(reason, directory)


def _list_once(directory: str) -> SegmentListing:
    listing = SegmentListing()
    live, swap = _Names(directory, ""), _Names(directory, SWAP_FILE_SUFFIX)
    cleaned: list[int] = []
    is_kafka_0_7 = False
    for entry in list_directory(directory):
        listing.file_count += 1
        name = find_segment_file_name(entry.name)
        if name is None:
            is_kafka_0_7 = is_kafka_0_7 or is_kafka_0_7_log(entry.name)
            if entry.name.endswith(LOG_FILE_SUFFIX):
                listing.misnamed_logs.append(entry.name)
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
    replaced = _Replaced(replacing)
    kept = [each for each in live.segments() if each.base_offset not in replaced]
    listing.segments = sorted([*kept, *replacing], key=lambda each: each.base_offset)
    if is_kafka_0_7 and not listing.segments:
        reason = (
            "cannot read segments of Kafka 0.7 (.kafka files), only those of Kafka 0.8 and later "
            "(.log files); the KafkaMigrationTool of Kafka 0.8 copies topics of 0.7"
        )
        raise LogDirectoryError(reason, directory)
    without_log = live.base_offsets_without_log()
    listing.base_offsets_without_log = sorted(base for base in without_log if base not in replaced)
    return listing


class _Replaced:
    """The base offsets of segments whose places those of a compaction have taken."""

    def __init__(self, replacing: list[LogSegmentView]) -> None:
        # One that compaction left empty has no range, and still takes its name.
        self._names = {segment.base_offset for segment in replacing}
        self._start = min(self._names, default=0)
        self._end = max(map(_next_offset, replacing), default=0)

    def __contains__(self, base_offset: int) -> bool:
        return base_offset in self._names or self._start <= base_offset < self._end


def _next_offset(segment: LogSegmentView) -> int:
    with segment.open_log() as source:
        last = find_whole_batches(source, 0, source.size(), lowest_offset=segment.base_offset).last
    return segment.base_offset if last is None else last.header.next_offset

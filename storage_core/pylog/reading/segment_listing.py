"""Which segments a partition directory has."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from pylog.errors import (
    LogDirectoryError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files import disk
from pylog.files.byte_source import stamp_of
from pylog.files.file_names import (
    CLEANED_FILE_SUFFIX,
    LOG_FILE_SUFFIX,
    PRODUCER_SNAPSHOT_FILE_SUFFIX,
    SWAP_FILE_SUFFIX,
    file_name_prefix,
    find_segment_file_name,
    is_kafka_0_7_log,
)
from pylog.files.java_numbers import find_offset_of
from pylog.files.looks import Looks
from pylog.files.storage import is_folder, list_directory, settled_since, stat_file
from pylog.locations import join
from pylog.log_file.batch_walk import (
    find_whole_batches,
)
from pylog.reading.segments import LogSegmentView

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylog.files.file_names import SegmentFileName
    from pylog.files.storage import DirectoryEntry, FileStatus


@dataclass(slots=True)
class SegmentListing:
    """The segments and side files of a partition directory."""

    segments: list[LogSegmentView] = field(default_factory=list)
    producer_snapshot_offsets: list[int] = field(default_factory=list)
    file_count: int = 0
    leftover_file_count: int = 0
    base_offsets_without_log: list[int] = field(default_factory=list)
    misnamed_logs: list[str] = field(default_factory=list)
    other_names: list[str] = field(default_factory=list)

    @property
    def empty_segments(self) -> list[int]:
        """Where a broker makes empty segments of unusual names, such as ``-1.log``."""
        found = map(find_offset_of, self.misnamed_logs)
        return [each for each in found if each is not None]

    def add_other(self, entry: DirectoryEntry) -> None:
        """Add a file whose name is not that of a segment's file."""
        self.other_names.append(entry.name)
        if entry.name.endswith(LOG_FILE_SUFFIX) and not is_folder(entry):
            self.misnamed_logs.append(entry.name)


_NO_SUFFIXES: frozenset[str] = frozenset()


@cache  # segments have the same few sets, however many segments there are
def _with_suffix(suffixes: frozenset[str], suffix: str) -> frozenset[str]:
    return suffixes | {suffix}


class _Names:
    """The files of one state (live, or ``.swap``) by base offset."""

    def __init__(self, directory: str, state: str) -> None:
        self._directory = directory
        self._state = state
        self._suffixes: dict[int, frozenset[str]] = {}
        self._logs: dict[int, FileStatus | UnreadableFileError] = {}

    def add(self, name: SegmentFileName, entry: DirectoryEntry) -> None:
        if name.suffix == LOG_FILE_SUFFIX:
            try:
                self._logs[name.base_offset] = stat_file(entry)
            except UnreadableFileError as error:
                self._logs[name.base_offset] = error
        before = self._suffixes.get(name.base_offset, _NO_SUFFIXES)
        self._suffixes[name.base_offset] = _with_suffix(before, name.suffix)

    def add_folders(self, folders: Iterable[tuple[SegmentFileName, DirectoryEntry]]) -> None:
        """Add folders in the places of files: of an index, or of a ``.log`` that has indexes.

        A broker ignores all others; also the latter, and its consumers pass over what is missing.
        An index without an entry shows no segment: nothing need be missing.
        """
        for name, entry in folders:
            others = self._suffixes.get(name.base_offset, _NO_SUFFIXES)
            has_others = (
                any(self._has_bytes(name.base_offset, each) for each in others)
                if name.suffix == LOG_FILE_SUFFIX
                else LOG_FILE_SUFFIX in others
            )
            if not name.state and has_others and name.suffix != PRODUCER_SNAPSHOT_FILE_SUFFIX:
                self.add(name, entry)

    def _has_bytes(self, base_offset: int, suffix: str) -> bool:
        path = join(self._directory, file_name_prefix(base_offset) + suffix)
        with suppress(FileNotFoundError):
            return disk.is_dir(path) or disk.stat(path).st_size > 0
        return False

    def segments(self) -> list[LogSegmentView]:
        """Return them in order; the last one, which may still grow, without a stamp."""
        logs = sorted(self._logs.items())
        last = logs[-1][0] if logs else None
        return [self._segment(base, status, has_stamp=base != last) for base, status in logs]

    def base_offsets_without_log(self) -> set[int]:
        return self._suffixes.keys() - self._logs.keys()

    def _segment(
        self, base: int, status: FileStatus | UnreadableFileError, *, has_stamp: bool
    ) -> LogSegmentView:
        suffixes = self._suffixes[base]
        if isinstance(status, UnreadableFileError):
            return LogSegmentView(
                self._directory, base, 0, suffixes, self._state, defect=status.reason
            )
        return LogSegmentView(
            self._directory,
            base,
            status.st_size,
            suffixes,
            self._state,
            status.st_ino,
            stamp=stamp_of(status) if has_stamp and isinstance(status, os.stat_result) else 0,
        )


def _without_stamp(segment: LogSegmentView) -> LogSegmentView:
    return replace(segment, stamp=0) if segment.stamp else segment


def list_segments(directory: str) -> SegmentListing:
    """Return what the partition directory at ``directory`` holds."""
    looks = Looks()
    while True:
        before = settled_since(directory)
        # A file may be renamed or deleted between listing and stat, or before it is read.
        with suppress(SegmentVanishedError):
            listing = _list_once(directory)
            if before == settled_since(directory):
                return listing
        reason = "files come and go faster than the directory can be listed"
        looks.again(LogDirectoryError(reason, directory))


def _list_once(directory: str) -> SegmentListing:
    listing = SegmentListing()
    live, swap = _Names(directory, ""), _Names(directory, SWAP_FILE_SUFFIX)
    cleaned: list[int] = []
    folders: list[tuple[SegmentFileName, DirectoryEntry]] = []
    for entry in list_directory(directory):
        listing.file_count += 1
        name = find_segment_file_name(entry.name)
        if name is None:
            listing.add_other(entry)
            continue
        if is_folder(entry):
            folders.append((name, entry))
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
    live.add_folders(folders)
    replacing = [
        segment for segment in swap.segments() if not cleaned or segment.base_offset < min(cleaned)
    ]
    replaced = _Replaced(replacing)
    kept = [each for each in live.segments() if each.base_offset not in replaced]
    listing.segments = sorted([*kept, *replacing], key=lambda each: each.base_offset)
    listing.segments[-1:] = map(_without_stamp, listing.segments[-1:])
    if not listing.segments and any(map(is_kafka_0_7_log, listing.other_names)):
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

"""Records of an owned log directory, erased or replaced; afterwards all files are looked through.

What is done to the batches of each log is a `Rewriter`'s business.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pylog.files.free_space import NeededSpace, ensure_space, log_space
from pylog.files.owned_directories import writable_log_directory
from pylog.model import TopicPartition
from pylog.reading.log_directory import choose_partitions, open_directory
from pylog.reading.log_view import find_remote_offsets, remote_offsets_note
from pylog.recovery.places_of_records import (
    PlaceOfRecords,
    files_with_batches,
    live_partition_of,
    look_through,
)
from pylog.recovery.rewritten_segments import Rewriter, rewrite_segments, segments_due
from pylog.writing.owned_directory import own_log_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pylog.config.server_properties import ServerProperties
    from pylog.log.unified_log import UnifiedLog
    from pylog.record.batch_scan import Window


class RewrittenPartition(NamedTuple):
    """What was changed in a partition, or would be.

    Attributes
    ----------
    records
        How many records were erased or masked.
    segments
        How many segments were written anew.
    before_bytes, after_bytes
        Of all ``.log`` files; the same in a dry run.
    """

    topic: str
    partition: int
    records: int
    segments: int
    before_bytes: int
    after_bytes: int


@dataclass(frozen=True, slots=True)
class RewrittenRecords:
    """What `pylog.jobs.erase` and `pylog.jobs.mask` return.

    Attributes
    ----------
    directory
        The log directory.
    is_written
        Whether it was done, and not only planned.
    partitions
        Those that have had such records.
    remaining
        Files that have such records now, or that could not be looked through as a whole: of the
        directory, and of the others that were given. Of a dry run, those that would have them.
    notes
        What was not looked at, or could not be masked.
    """

    directory: str
    is_written: bool
    partitions: list[RewrittenPartition]
    remaining: list[PlaceOfRecords] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class CountingRewriter(Rewriter, Protocol):
    """A rewriter of one log that counts the records that it changes."""

    records: int
    """How many records it has changed."""

    def count(self, window: Window) -> int:
        """Return how many records of a window it would change."""


class DirectoryRewriting:
    """One change of a log directory.

    Parameters
    ----------
    directory, topics, partitions, pattern, look_in
        As for `erase`.
    rewriter_of
        Makes the rewriter of a partition.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        rewriter_of: Callable[[TopicPartition], CountingRewriter],
        *,
        topics: Iterable[str],
        partitions: Sequence[int],
        pattern: str | None,
        look_in: Iterable[str | os.PathLike[str]],
    ) -> None:
        self.path = writable_log_directory(directory, must_exist=True)
        self._rewriter_of = rewriter_of
        self._look_in = [os.fspath(each) for each in look_in]
        self._assign = choose_partitions(
            open_directory(self.path), topics, partitions, pattern=pattern
        )
        self._chosen = sorted(
            TopicPartition(topic, each) for topic, found in self._assign.items() for each in found
        )

    def plan(self) -> RewrittenRecords:
        """Return what would be done; nothing is changed or locked."""
        directory, found = open_directory(self.path), []
        for place in self._chosen:
            view = directory[place]
            counts = [self._look_through(each.file_path()).records for each in view.segments]
            size, segments = view.size_bytes, sum(each > 0 for each in counts)
            found.append(RewrittenPartition(*place, sum(counts), segments, size, size))
        return self._summary(found, is_written=False)

    def carry_out(
        self,
        server_properties: ServerProperties | None,
        progress: Callable[[int, int], None] | None,
        *,
        recover_as_broker: bool,
    ) -> RewrittenRecords:
        """Rewrite the segments, and look for records that are left."""
        with own_log_directory(
            self.path,
            must_exist=True,
            server_properties=server_properties,
            recover_as_broker=recover_as_broker,
            works_on=self._chosen.__contains__,
        ) as manager:
            logs = [manager.get_log(each) for each in self._chosen]
            report = _reporter(sum(each.size_bytes for each in logs), progress)
            rewriters = [self._rewriter_of(log.topic_partition) for log in logs]
            due = [
                segments_due(log, rewriter, report)
                for log, rewriter in zip(logs, rewriters, strict=True)
            ]
            self._ensure_space(logs, due)
            done = list(map(_rewritten, logs, due, rewriters))
        return self._summary(done, is_written=True)

    def _ensure_space(self, logs: Sequence[UnifiedLog], due: Sequence[list[int]]) -> None:
        """Refuse to begin if the largest segment has no room beside itself: one is done at once."""
        sizes = [
            segment.size_bytes
            for log, base_offsets in zip(logs, due, strict=True)
            for segment in log.segments
            if segment.base_offset in base_offsets
        ]
        if sizes:
            ensure_space([NeededSpace(self.path, log_space(max(sizes)))], "a new segment")

    def _summary(
        self, partitions: Iterable[RewrittenPartition], *, is_written: bool
    ) -> RewrittenRecords:
        changed = [each for each in partitions if each.records]
        remaining = list(self._remaining(is_written=is_written))
        return RewrittenRecords(self.path, is_written, changed, remaining, list(self._notes()))

    def _look_through(self, file: str) -> PlaceOfRecords:
        return look_through(file, lambda place, window: self._rewriter_of(place).count(window))

    def _remaining(self, *, is_written: bool) -> Iterator[PlaceOfRecords]:
        """Yield the files that have such records, or may have them."""
        for directory in (self.path, *self._look_in):
            for file in files_with_batches(directory, self._assign):
                if directory == self.path and not is_written and self._is_due(file):
                    continue
                found = self._look_through(file)
                if found.records or found.problem is not None:
                    yield found

    def _is_due(self, file: str) -> bool:
        """Whether a file is one that is looked at to be written anew."""
        return live_partition_of(file) in self._chosen

    def _notes(self) -> Iterator[str]:
        directory = open_directory(self.path)
        for place in self._chosen:
            remote = find_remote_offsets(directory[place])
            if remote is not None:
                yield f"{place}: {remote_offsets_note(remote)}"


def _rewritten(log: UnifiedLog, due: list[int], rewriter: CountingRewriter) -> RewrittenPartition:
    before, place = log.size_bytes, log.topic_partition
    rewrite_segments(log, due, rewriter)
    return RewrittenPartition(*place, rewriter.records, len(due), before, log.size_bytes)


def _reporter(total: int, progress: Callable[[int, int], None] | None) -> Callable[[int], None]:
    done = 0

    def report(size_bytes: int) -> None:
        nonlocal done
        done += size_bytes
        if progress is not None:
            progress(done, max(done, total))

    return report

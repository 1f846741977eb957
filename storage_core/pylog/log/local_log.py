"""The segments of one partition: append, roll, read, flush, truncate; no validation, no producers.

Rolling, step by step, and what a crash leaves:

1. the old active segment gets its last time entry; index files and ``.log`` are trimmed. A crash
   leaves an active segment like after a clean close;
2. the new ``.log`` is made, empty. A crash leaves an empty last segment, which start-up takes as it
   is, and makes its indexes;
3. its index files are made, so that no reader has to. A crash leaves some of them, and start-up
   makes the others.

The directory entry of the new file is forced to disk by the next `flush` that covers it.

Source: LocalLog (Kafka 4.3).
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from pylog.errors import KafkaStorageError, OffsetOutOfRangeError
from pylog.files import disk
from pylog.files.file_names import DELETED_FILE_SUFFIX, SEGMENT_FILE_SUFFIXES, SegmentTarget
from pylog.files.owned_directories import file_names
from pylog.locations import printable_location
from pylog.log.log_segment import FetchDataInfo, LogOffsetMetadata
from pylog.model import AbortedTransaction, OffsetPosition

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pylog.config import LogConfig
    from pylog.files.durable_io import DurableIO
    from pylog.log.log_context import LogContext
    from pylog.log.log_segment import LogSegment
    from pylog.log.log_segments import LogSegments
    from pylog.model import TopicPartition
    from pylog.producers.producer_state_manager import ProducerStateManager


_LOGGER = logging.getLogger(__name__)


# Deleting segments in two steps.
#
# 1. Every file of the segment is renamed to ``….deleted``, the ``.log`` first. A crash leaves some
#    renamed and some not; start-up deletes the renamed ones, and index files without ``.log``.
#    The directory is synced after each ``.log``, so that a power loss keeps no later rename without
#    the earlier ones: segments go in the order in which they are given, and none comes back without
#    its transaction index, as one whose aborted records are taken for committed.
# 2. After ``file.delete.delay.ms`` the files are removed, so that readers that have them open come
#    to an end in the meantime.
#
# Source: LocalLog.deleteSegmentFiles (Kafka 4.3). Differs from Kafka, which syncs nothing.


def delete_segment_files(
    segments: Sequence[LogSegment],
    config: LogConfig,
    context: LogContext,
    *,
    is_async: bool = True,
    snapshots: Sequence[str] = (),
) -> None:
    """Rename the files of segments that no map holds any more, and remove them later."""
    for segment in segments:
        segment.mark_deleted()

    def remove() -> None:
        for segment in segments:
            segment.delete_if_exists()
        for path in snapshots:
            context.io.remove(path, missing_ok=True)

    if is_async:
        remove_later(remove, config, context)
    else:
        remove()


def remove_later(remove: Callable[[], object], config: LogConfig, context: LogContext) -> None:
    """Have ``remove`` called after ``file.delete.delay.ms``."""

    def try_to_remove() -> None:
        try:
            remove()
        except KafkaStorageError as error:
            _LOGGER.warning("deleted files stay behind: %s", error)

    context.scheduler.schedule_once("delete-file", try_to_remove, config.file_delete_delay_ms)


def mark_snapshots_for_deletion(
    producer_state: ProducerStateManager, segments: Sequence[LogSegment]
) -> list[str]:
    """Rename the producer snapshots at the base offsets of segments that go; return their paths."""
    bases = [segment.base_offset for segment in segments]
    marked = map(producer_state.remove_and_mark_snapshot_for_deletion, bases)
    return [path for path in marked if path]


def delete_directory(path: str, io: DurableIO) -> None:
    """Remove a partition directory with all its files; a link, and not what it points to.

    A directory inside stays, and so does the partition directory then: neither Kafka nor we have
    made it.
    """
    if disk.is_link(path):
        io.remove(path, missing_ok=True)
        return
    for name in file_names(path):
        io.remove(os.path.join(path, name), missing_ok=True)  # noqa: PTH118
    io.remove_directory(path)


class LocalLog:
    """Segments with increasing base offsets, of which the last one is appended to.

    The log end offset is published last of all, so a reader that takes it sees whole appends.
    Everything that changes something needs the caller's lock; reads need none.
    """

    def __init__(  # noqa: PLR0913 - what a log is made of
        self,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        context: LogContext,
        segments: LogSegments,
        *,
        recovery_point: int,
        log_end_offset: int,
    ) -> None:
        self.directory = directory
        self.topic_partition = topic_partition
        self.config = config
        self.segments = segments
        self.recovery_point = recovery_point
        self._context = context
        self._log_end = LogOffsetMetadata(0)
        self.update_log_end_offset(log_end_offset)

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return self._log_end.message_offset

    @property
    def log_end_offset_metadata(self) -> LogOffsetMetadata:
        """The same, with its place in the active segment."""
        return self._log_end

    def update_log_end_offset(self, offset: int) -> None:
        """Publish a new end; the recovery point is never above it."""
        active = self.segments.active_segment
        self._log_end = LogOffsetMetadata(offset, active.base_offset, active.size_bytes)
        self.recovery_point = min(self.recovery_point, offset)

    # ---- rolling

    def next_base_offset(self, expected_next_offset: int | None = None) -> int:
        """Return where `roll` would begin a segment."""
        return max(expected_next_offset or 0, self.log_end_offset)

    def roll(self, expected_next_offset: int | None = None) -> LogSegment:
        """Begin a new segment at the larger of the log's end and ``expected_next_offset``."""
        new_offset = self.next_base_offset(expected_next_offset)
        following = self.segments.values_from(new_offset)
        if following:
            self._ensure_empty(following, new_offset)
            segment = self._replace_empty(following, new_offset)
        else:
            for suffix in SEGMENT_FILE_SUFFIXES:
                path = SegmentTarget(self.directory, new_offset).path(suffix)
                self._context.io.remove(path, missing_ok=True)
            active = self.segments.active_segment
            if active.on_become_inactive_segment() and self.recovery_point >= self.log_end_offset:
                # Differs from Kafka: all of it had been flushed, so no flush comes after. Zeros
                # that a power loss brings back would be damage between two segments.
                active.log.sync()
            segment = self._new_segment(new_offset)
            self.segments.add(segment)
        self.update_log_end_offset(self.log_end_offset)
        return segment

    def _ensure_empty(self, segments: Sequence[LogSegment], new_offset: int) -> None:
        for segment in segments:
            if segment.size_bytes:
                msg = (
                    f"cannot roll {self.topic_partition} at offset {new_offset}: its segment "
                    f"{segment.log.path} holds {segment.size_bytes} bytes of later records"
                )
                raise ValueError(msg)

    def _replace_empty(self, segments: Sequence[LogSegment], new_offset: int) -> LogSegment:
        """Put a new segment in the place of empty ones at or above its base offset.

        The new one is made first, so that the directory is never without a segment. A crash in
        between leaves empty segments, of which start-up takes the last one as the active one.
        """
        bases = [segment.base_offset for segment in segments]
        _LOGGER.warning(
            "rolling %s at %d, in place of the empty segments at %s",
            printable_location(self.directory),
            new_offset,
            bases,
        )
        segment = self.replace_segment(new_offset, segments[0])
        if bases[-1] > new_offset:
            # Differs from Kafka, which fails here until the process ends: an append refused after
            # its roll left a segment above the log's end. Its names must not come back after
            # records have been appended below them: start-up would take the end to be there.
            self.remove_segments(segments[:0:-1])
            self._context.io.sync_directory(self.directory)
        return segment

    def _new_segment(self, base_offset: int) -> LogSegment:
        target = SegmentTarget(self.directory, base_offset)
        segment = self._context.open_segment(target, self.config, is_new=True)
        segment.create_indexes()
        return segment

    def replace_segment(self, new_offset: int, old: LogSegment) -> LogSegment:
        """Put a new, empty segment in the place of ``old``, whose files are deleted later."""
        if old.base_offset == new_offset:
            old.change_file_suffixes("", DELETED_FILE_SUFFIX)
        segment = self._new_segment(new_offset)
        self.segments.replace((old,), (segment,))
        if old.base_offset == new_offset:
            remove_later(old.delete_if_exists, self.config, self._context)
        else:
            delete_segment_files((old,), self.config, self._context)
        return segment

    # ---- reading

    def read(
        self,
        start_offset: int,
        max_length: int,
        bound: LogOffsetMetadata,
        *,
        min_one_message: bool,
        include_aborted: bool,
    ) -> FetchDataInfo:
        """Return bytes of one segment from the batch that holds ``start_offset`` on."""
        end = self._log_end
        segment = self.segments.floor_segment(start_offset)
        if segment is None or start_offset > end.message_offset:
            first = self.segments.first_segment.base_offset
            raise OffsetOutOfRangeError(
                str(self.topic_partition), start_offset, first, end.message_offset
            )
        aborted: list[AbortedTransaction] | None = [] if include_aborted else None
        if start_offset >= bound.message_offset:
            return FetchDataInfo(self._metadata_of(start_offset), b"", aborted_transactions=aborted)
        while segment is not None:
            fetched = segment.read(
                start_offset,
                max_length,
                max_position=_max_position(segment, bound),
                min_one_message=min_one_message,
            )
            if fetched is not None:
                return self._with_aborted(fetched, segment) if include_aborted else fetched
            segment = self.segments.higher_segment(segment.base_offset)
        # All records from there on have been compacted away.
        return FetchDataInfo(end, b"", aborted_transactions=aborted)

    def _metadata_of(self, offset: int) -> LogOffsetMetadata:
        return self.locate(offset) or LogOffsetMetadata(offset)

    def locate(self, offset: int, *, checks_order: bool = True) -> LogOffsetMetadata | None:
        """Return where the batch that holds ``offset`` begins, or the first one after it.

        The log's end for its end offset; None if there is no such batch. Differs from Kafka since
        4.0: the offset in the answer is ``offset``, not the base offset of that batch.
        """
        end = self._log_end
        if offset >= end.message_offset:
            return end if offset == end.message_offset else None
        segment = self.segments.floor_segment(offset)
        while segment is not None:
            batch = segment.translate_offset(offset, checks_order=checks_order)
            if batch is not None:
                return LogOffsetMetadata(offset, segment.base_offset, batch.position)
            segment = self.segments.higher_segment(segment.base_offset)
        return end._replace(message_offset=offset)

    def _with_aborted(self, fetched: FetchDataInfo, segment: LogSegment) -> FetchDataInfo:
        start = fetched.fetch_offset_metadata
        upper_bound = segment.fetch_upper_bound_offset(
            OffsetPosition(start.message_offset, start.relative_position_in_segment),
            len(fetched.records),
        )
        if upper_bound is None:
            following = self.segments.higher_segment(segment.base_offset)
            upper_bound = self.log_end_offset if following is None else following.base_offset
        aborted = self.collect_aborted_transactions(start.message_offset, upper_bound, segment)
        return FetchDataInfo(start, fetched.records, fetched.first_entry_incomplete, aborted)

    def collect_aborted_transactions(
        self, start_offset: int, end_offset: int, segment: LogSegment | None = None
    ) -> list[AbortedTransaction]:
        """Return the aborted transactions that touch ``[start_offset, end_offset)``."""
        aborted: list[AbortedTransaction] = []
        segment = self.segments.floor_segment(start_offset) if segment is None else segment
        while segment is not None:
            indexed = segment.transaction_index.collect_aborted_transactions(
                start_offset, end_offset
            )
            aborted += indexed.aborted_transactions
            if indexed.is_complete:
                break
            segment = self.segments.higher_segment(segment.base_offset)
        return aborted

    # ---- flushing

    def flush(self, offset: int) -> None:
        """Force every segment with offsets in ``[recovery point, offset)`` to disk.

        And the directory, if one of them is new since the recovery point. The recovery point does
        not move; see `mark_flushed`.
        """
        recovery_point = self.recovery_point
        if offset < recovery_point:
            return
        segments = self.segments.values(recovery_point, offset)
        for segment in segments:
            segment.flush()
        if any(segment.base_offset >= recovery_point for segment in segments):
            self._context.io.sync_directory(self.directory)

    def mark_flushed(self, offset: int) -> None:
        """Raise the recovery point; it never goes back."""
        self.recovery_point = max(self.recovery_point, offset)

    # ---- truncating

    def remove_segments(
        self,
        segments: Sequence[LogSegment],
        *,
        is_async: bool = True,
        snapshots: Sequence[str] = (),
    ) -> None:
        """Remove segments from the map and delete their files, later if ``is_async``."""
        self.segments.replace(segments, ())
        delete_segment_files(
            segments, self.config, self._context, is_async=is_async, snapshots=snapshots
        )

    def truncate_to(self, target_offset: int) -> list[LogSegment]:
        """Remove everything from ``target_offset`` on; return the segments that went as a whole."""
        removed = [each for each in self.segments if each.base_offset > target_offset]
        if removed:
            # The newest first, so that a crash leaves no hole. And for good: no flush of the
            # segments that stay would keep the names of these from coming back.
            self.remove_segments(removed[::-1])
            self._context.io.sync_directory(self.directory)
        active = self.segments.active_segment
        if active.truncate_to(target_offset):
            # Nor may batches come back that reach beyond the base offset of the next segment.
            active.log.sync()
        self.update_log_end_offset(target_offset)
        return removed

    def truncate_fully_and_start_at(self, new_offset: int) -> list[LogSegment]:
        """Delete all segments and begin at ``new_offset``; return those deleted.

        The new segment is made before the last old one goes, so that a crash never leaves a
        directory without segments.
        """
        old = list(self.segments)
        self.remove_segments(old[:-1])
        self.replace_segment(new_offset, old[-1])
        self.update_log_end_offset(new_offset)
        return old

    def close(self) -> None:
        """Close all segments as a broker does at a clean shutdown."""
        for segment in self.segments:
            segment.close()

    def close_handlers(self) -> None:
        """Release all files, changing nothing."""
        for segment in self.segments:
            segment.close_handlers()


def _max_position(segment: LogSegment, bound: LogOffsetMetadata) -> int:
    """Return the byte of a segment before which everything is below the bound."""
    if segment.base_offset < bound.segment_base_offset:
        return segment.size_bytes
    if segment.base_offset == bound.segment_base_offset:
        return bound.relative_position_in_segment
    return 0

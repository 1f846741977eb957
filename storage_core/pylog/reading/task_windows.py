"""The windows of all slices of a task, whatever becomes of the files meanwhile.

A broker that goes on working rolls, deletes and compacts segments under a reader. A segment that is
gone, or that compaction has replaced, is looked for again by offset: what the log now holds of the
rest of the range is read. Records that are below the log's start by then are lost: an error, or
skipped with a warning where the user said so (``failOnDataLoss=false``).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import LogDirectoryError, SegmentReplacedError, SegmentVanishedError
from pylog.log_file.segment_windows import DEFAULT_WINDOW_BYTES
from pylog.reading.checked_windows import CheckedWindows
from pylog.reading.early_batches import without_early_batches
from pylog.reading.log_view import LogView
from pylog.reading.slicing import open_slice, segment_slices

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.log_file.segment_windows import WindowMemory
    from pylog.reading.damage import DamageReport
    from pylog.reading.log_segment_view import LogSegmentView
    from pylog.reading.scan_task import ScanTask, SegmentSlice
    from pylog.record.window import Window

_LOGGER = logging.getLogger(__name__)
_MOST_LOOKS = 100
"""How often a task looks for its files again; a broker that outruns it for ever is an error."""


class TaskWindows:
    """Iterates (slice, window) over a task, in offset order. One thread, one iteration.

    Parameters
    ----------
    task
        From the planner.
    damage, verifies_checksums, window_bytes, max_decompressed_bytes, memory
        As of `CheckedWindows`.
    """

    def __init__(
        self,
        task: ScanTask,
        *,
        damage: DamageReport | None = None,
        verifies_checksums: bool = True,
        window_bytes: int = DEFAULT_WINDOW_BYTES,
        max_decompressed_bytes: int | None = None,
        memory: WindowMemory | None = None,
    ) -> None:
        self._task = task
        self._memory = memory
        self._max_decompressed_bytes = max_decompressed_bytes
        self._damage = damage
        self._verifies_checksums = verifies_checksums
        self._window_bytes = window_bytes
        self._next_offset = 0

    def __iter__(self) -> Iterator[tuple[SegmentSlice, Window]]:
        """Yield windows with the slices that they are of.

        Raises
        ------
        CorruptRecordError
            Something is damaged, and there is no report to note it in.
        SegmentVanishedError
            Records of the range have been deleted since the task was planned.
        SegmentReplacedError
            A file in an object store was replaced while it was read. Noticed after the last read
            of the file: a caller that stops earlier has rows that were not checked for it.
        """
        slices = self._task.slices
        for _ in range(_MOST_LOOKS):
            try:
                for segment_slice in slices:
                    yield from self._windows_of(segment_slice)
            except SegmentReplacedError:
                raise  # rows that were given already may be of either file
            except SegmentVanishedError as error:
                slices = self._slices_now(error)
            else:
                return
        reason = "the log changes faster than it is read"
        raise SegmentVanishedError(reason, self._task.directory.path)

    def _windows_of(self, segment_slice: SegmentSlice) -> Iterator[tuple[SegmentSlice, Window]]:
        where = self._task.where
        opened = open_slice(segment_slice, self._damage, self._next_offset)
        if opened is None:
            return
        with opened as source:
            looks = self._task.looks_for_late
            if looks and where is not None and where.min_timestamp is not None:
                segment_slice = without_early_batches(source, segment_slice, where.min_timestamp)
            windows = CheckedWindows(
                source,
                segment_slice,
                lowest_offset=self._next_offset,
                damage=self._damage,
                verifies_checksums=self._verifies_checksums,
                window_bytes=self._window_bytes,
                max_decompressed_bytes=self._max_decompressed_bytes,
                memory=self._memory,
            )
            for window in windows:
                if window.end_position >= segment_slice.end_position:
                    source.ensure_same()  # before the caller gets the last rows
                self._next_offset = windows.next_offset
                yield segment_slice, window
            # The slice's whole range of offsets is done, also where the last batches held less.
            self._next_offset = max(windows.next_offset, self._next_offset)

    def _slices_now(self, vanished: SegmentVanishedError) -> tuple[SegmentSlice, ...]:
        """Return where the rest of the task's range lies now."""
        task = self._task
        start = max(task.start_offset, self._next_offset)
        try:
            look = self._look_again(start)
        except LogDirectoryError as error:
            raise SegmentVanishedError(
                f"{vanished.reason}; its directory: {error.reason}", vanished.path
            ) from error
        if look.lost is not None:
            first, end = look.log_range
            reason = (
                f"{vanished.reason}; records of {task.topic_partition} with offsets "
                f"{look.lost[0]} to {look.lost[1]} (exclusive) are lost, the log holds {first} "
                f"to {end} (exclusive) now"
            )
            if task.fail_on_data_loss:
                raise SegmentVanishedError(reason, vanished.path) from vanished
            _LOGGER.warning("%s", SegmentVanishedError(reason, vanished.path))
        return look.slices

    def _look_again(self, start: int) -> _Look:
        """Look again where a file vanishes between the listing and what is read of it."""
        for looks_left in range(_MOST_LOOKS - 1, -1, -1):
            view = LogView(self._task.directory, damage=self._damage)
            try:
                first, end = view.log_start_offset, view.log_end_offset
                lost = _lost_offsets(view, self._task, start)
                rest = max(start, first), min(self._task.end_offset, end)
                return _Look((first, end), lost, segment_slices(view, *rest, checks_gap=False))
            except SegmentVanishedError:
                if not looks_left:
                    raise
        raise AssertionError  # the last look returns or raises


class _Look(NamedTuple):
    """What a directory holds of a task's range at one moment."""

    log_range: tuple[int, int]
    lost: tuple[int, int] | None
    slices: tuple[SegmentSlice, ...]


def _lost_offsets(view: LogView, task: ScanTask, start: int) -> tuple[int, int] | None:
    """Return the offsets ``[from, to)`` of the task that are gone from ``start`` on, None if none.

    Retention deletes from the front, truncation from the end. In between only compaction takes a
    segment away, and puts its records into a new file of the segment before.
    """
    if view.log_start_offset > start:
        return start, min(view.log_start_offset, task.end_offset)
    if view.log_end_offset < task.end_offset:
        return view.log_end_offset, task.end_offset
    planned = {each.path: each.file_id for each in task.slices}
    now = {segment.file_path(): segment for segment in view.segments}
    for segment_slice in task.slices:
        if (segment_slice.next_base_offset or task.end_offset) <= start:
            continue
        segment = now.get(segment_slice.path)
        if segment is not None and not _has_shrunk(segment, segment_slice):
            continue
        index = view.find_segment(segment_slice.base_offset)
        if index is None or not _has_taken_over(view, index, planned, segment_slice.base_offset):
            following = segment_slice.next_base_offset
            return (
                max(start, segment_slice.base_offset),
                task.end_offset if following is None else following,
            )
    return None


def _has_shrunk(segment: LogSegmentView, segment_slice: SegmentSlice) -> bool:
    """Whether the very file that was planned is shorter now: no broker does that to an old one."""
    is_same = bool(segment_slice.file_id) and segment.file_id == segment_slice.file_id
    return is_same and segment.size_bytes < segment_slice.end_position


def _has_taken_over(view: LogView, index: int, planned: dict[str, int], offset: int) -> bool:
    """Whether compaction may have put records from ``offset`` on into segment ``index``."""
    segment = view.segments[index]
    file_id = planned.get(segment.file_path())
    if file_id is not None:
        return segment.file_id != file_id
    with segment.open_log() as source:
        return segment.find_batch(source, offset, view.segment_end(index)) is not None

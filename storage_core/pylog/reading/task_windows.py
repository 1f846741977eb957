"""The windows of a task, wherever its segments lie by now.

A working broker rolls, deletes and compacts segments under a reader. A segment that is gone, or
that compaction has replaced, is looked for again by offset: what the log now holds of the rest of
the range is read. Records that are below the log's start by then are lost: an error, or
skipped with a warning where the user said so (``failOnDataLoss=false``).
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import (
    LogDirectoryError,
    SegmentReplacedError,
    SegmentVanishedError,
)
from pylog.files.looks import Looks
from pylog.reading.checked_windows import CheckedWindows, ReadOptions
from pylog.reading.early_batches import without_early_batches
from pylog.reading.log_view import LogView, view_of
from pylog.reading.slicing import open_slice, segment_slices
from pylog.text.words import offsets_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.log_file.segment_windows import WindowMemory
    from pylog.reading.damage import DamageReport
    from pylog.reading.segments import LogSegmentView
    from pylog.reading.task_range import SegmentSlice, TaskRange
    from pylog.record.batch_scan import Window


_LOGGER = logging.getLogger(__name__)


class TaskWindows:
    """Iterates (slice, window) over a task, in offset order. One thread, one iteration."""

    def __init__(
        self,
        task: TaskRange,
        options: ReadOptions | None = None,
        *,
        damage: DamageReport | None = None,
        verifies_checksums: bool = True,
        memory: WindowMemory | None = None,
    ) -> None:
        self._task = task
        self._options = options
        self._memory = memory
        self._damage = damage
        self._verifies_checksums = verifies_checksums
        self._next_offset = 0
        # Records of the window that was given last are a reader's from here on: what is below has
        # been given, or is outside the task.
        self.position = task.start_offset

    def __iter__(self) -> Iterator[tuple[SegmentSlice, Window]]:
        """Yield windows with the slices that they are of.

        `SegmentVanishedError`: records of the range have been deleted since the task was planned.
        `SegmentReplacedError`: a file in an object store was replaced while it was read. Noticed
        after the last read of the file: a caller that stops earlier has rows that were not checked.
        """
        slices = self._task.slices
        looks = Looks()
        while True:
            try:
                for segment_slice in slices:
                    yield from self._windows_of(segment_slice)
            except SegmentReplacedError:
                raise  # rows that were given already may be of either file
            except SegmentVanishedError as error:
                reason = "the log changes faster than it is read"
                looks.again(SegmentVanishedError(reason, self._task.directory.path))
                slices = self._slices_now(error)
            else:
                return

    def _windows_of(self, segment_slice: SegmentSlice) -> Iterator[tuple[SegmentSlice, Window]]:
        where = self._task.where
        opened = open_slice(segment_slice, self._damage, self._next_offset)
        if opened is None:
            return
        with opened as source:
            looks = self._task.looks_for_late
            if looks and where is not None:
                segment_slice = without_early_batches(source, segment_slice, where)
            windows = CheckedWindows(
                source,
                segment_slice,
                self._options,
                lowest_offset=self._next_offset,
                damage=self._damage,
                verifies_checksums=self._verifies_checksums,
                memory=self._memory,
            )
            for window in windows:
                if window.end_position >= segment_slice.end_position:
                    source.ensure_same()  # before the caller gets the last rows
                self.position = max(self.position, self._next_offset)
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
                f"{vanished.reason}; records of {task.topic_partition} are lost, "
                f"{offsets_text(*look.lost)}; the log holds {offsets_text(first, end)} now"
            )
            if task.fail_on_data_loss:
                raise SegmentVanishedError(reason, vanished.path) from vanished
            _LOGGER.warning("%s", SegmentVanishedError(reason, vanished.path))
        return look.slices

    def _look_again(self, start: int) -> _Look:
        looks = Looks()
        while True:
            look = partial(LogView, damage=self._damage, access=self._task.access)
            view = view_of(self._task.directory, look)
            try:
                first, end = view.log_start_offset, view.log_end_offset
                lost = _lost_offsets(view, self._task, start)
                rest = max(start, first), min(self._task.end_offset, end)
                return _Look((first, end), lost, segment_slices(view, *rest, checks_gap=False))
            except SegmentVanishedError as error:
                looks.again(error)


class _Look(NamedTuple):
    """What a directory holds of a task's range at one moment."""

    log_range: tuple[int, int]
    lost: tuple[int, int] | None
    slices: tuple[SegmentSlice, ...]


def _lost_offsets(view: LogView, task: TaskRange, start: int) -> tuple[int, int] | None:
    """Return the offsets ``[from, to)`` of the task gone from ``start`` on, or None."""
    if view.log_start_offset > start and start != task.earliest_offset:
        return start, min(view.log_start_offset, task.end_offset)
    if view.log_end_offset < task.end_offset:
        return view.log_end_offset, task.end_offset
    planned = {
        base_offset: (file_id, stamp)
        for each in task.slices
        if each.defect is None
        for base_offset, file_id, stamp in [
            *([] if each.file_before is None else [each.file_before]),
            (each.segment_base_offset, each.file_id, each.stamp),
        ]
    }
    # Not by path: a segment that takes the place of others has two names, one after the other.
    now = {segment.base_offset: segment for segment in view.segments}
    for segment_slice in task.slices:
        if segment_slice.defect is not None:
            continue
        if (segment_slice.next_base_offset or task.end_offset) <= start:
            continue
        segment = now.get(segment_slice.segment_base_offset)
        # No broker shortens an old file. Compaction leaves the replaced ones for a while, and the
        # new file may have the inode number of one that is gone.
        has_shrunk = (
            segment is not None
            and not view.leftover_file_count
            and _has_shrunk(segment, segment_slice)
        )
        if segment is not None and not has_shrunk:
            continue
        if segment_slice.base_offset < view.log_start_offset:
            continue  # retention is faster than a reader that began at the log's start
        index = view.find_segment(segment_slice.base_offset)
        if has_shrunk or index is None or not _has_taken_over(view.segments[index], planned):
            following = segment_slice.next_base_offset
            return (
                max(start, segment_slice.base_offset),
                task.end_offset if following is None else following,
            )
    return None


def _has_shrunk(segment: LogSegmentView, segment_slice: SegmentSlice) -> bool:
    """Whether the very file that was planned is shorter now."""
    is_same = bool(segment_slice.file_id) and segment.file_id == segment_slice.file_id
    return is_same and segment.size_bytes < segment_slice.end_position


def _has_taken_over(segment: LogSegmentView, planned: dict[int, tuple[int, int]]) -> bool:
    """Whether a segment is not the file that was there when the task was planned.

    Compaction puts what it keeps of several segments into one, which may have nothing from the
    offset on that is looked for. Whoever removes a file by hand leaves the ones around it.
    """
    if segment.base_offset not in planned:
        return True
    file_id, stamp = planned[segment.base_offset]
    has_changed = stamp != 0 and segment.stamp not in (0, stamp)
    return segment.file_id != file_id or has_changed

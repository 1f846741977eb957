"""The windows of all slices of a task, whatever becomes of the files meanwhile.

A broker that goes on working rolls, deletes and compacts segments under a reader. A segment that is
gone, or that compaction has put another file in the place of, is looked for anew by offset: what
the log holds of the rest of the range now is read. Records that are below the log's start by then
are lost: an error, or skipped with a warning where the user said so (``failOnDataLoss=false``).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pylog.errors import LogDirectoryError, SegmentVanishedError
from pylog.scan.checked_windows import CheckedWindows
from pylog.scan.log_segment_view import open_segment
from pylog.scan.log_view import LogView
from pylog.scan.segment_windows import DEFAULT_WINDOW_BYTES
from pylog.scan.slicing import segment_slices

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.scan.damage import DamageReport
    from pylog.scan.scan_task import ScanTask, SegmentSlice
    from pylog.scan.segment_windows import SegmentWindow

_LOGGER = logging.getLogger(__name__)
_MOST_LOOKS = 100
"""How often a task looks for its files anew: a broker that outruns a reader for ever is told."""


class TaskWindows:
    """Iterates (slice, window) over a task, in offset order. One thread, one iteration.

    Parameters
    ----------
    task
        From the planner.
    damage, has_checksums, window_bytes
        As of `CheckedWindows`.
    """

    def __init__(
        self,
        task: ScanTask,
        *,
        damage: DamageReport | None = None,
        has_checksums: bool = True,
        window_bytes: int = DEFAULT_WINDOW_BYTES,
    ) -> None:
        self._task = task
        self._damage = damage
        self._has_checksums = has_checksums
        self._window_bytes = window_bytes
        self._next_offset = 0

    def __iter__(self) -> Iterator[tuple[SegmentSlice, SegmentWindow]]:
        """Yield windows with the slices that they are of.

        Raises
        ------
        CorruptRecordError
            Something is damaged, and there is no report to note it in.
        SegmentVanishedError
            Records of the range have been deleted since the task was planned.
        """
        slices = self._task.slices
        for _ in range(_MOST_LOOKS):
            try:
                for piece in slices:
                    yield from self._windows_of(piece)
            except SegmentVanishedError as error:
                slices = self._slices_now(error)
            else:
                return
        reason = "the log changes faster than it is read"
        raise SegmentVanishedError(reason, self._task.directory.path)

    def _windows_of(self, piece: SegmentSlice) -> Iterator[tuple[SegmentSlice, SegmentWindow]]:
        with open_segment(piece.path, piece.file_id) as source:
            windows = CheckedWindows(
                source,
                piece,
                lowest_offset=self._next_offset,
                damage=self._damage,
                has_checksums=self._has_checksums,
                window_bytes=self._window_bytes,
            )
            for window in windows:
                self._next_offset = windows.next_offset
                yield piece, window
            # What a slice was to hold is done with, also where the last batches held less.
            self._next_offset = max(windows.next_offset, self._next_offset)

    def _slices_now(self, vanished: SegmentVanishedError) -> tuple[SegmentSlice, ...]:
        """Return where the rest of the task's range lies now."""
        task = self._task
        start = max(task.start_offset, self._next_offset)
        try:
            view = LogView(task.directory, damage=self._damage)
            first, end = view.log_start_offset, view.log_end_offset
        except LogDirectoryError as error:
            raise SegmentVanishedError(
                f"{vanished.reason}; its directory: {error.reason}", vanished.path
            ) from error
        lost = _lost_offsets(view, task, start)
        if lost is not None:
            reason = (
                f"{vanished.reason}; records of {task.topic_partition} with offsets {lost[0]} to "
                f"{lost[1]} (exclusive) are lost, the log holds {first} to {end} (exclusive) now"
            )
            if task.fail_on_data_loss:
                raise SegmentVanishedError(reason, vanished.path) from vanished
            _LOGGER.warning("%s", SegmentVanishedError(reason, vanished.path))
        return segment_slices(view, max(start, first), min(task.end_offset, end))


def _lost_offsets(view: LogView, task: ScanTask, start: int) -> tuple[int, int] | None:
    """Return the offsets ``[from, to)`` of the task that are gone from ``start`` on, None if none.

    Retention deletes from the front, truncation from the end. In between only compaction takes a
    segment away, and puts its records into a new file of the segment before.
    """
    if view.log_start_offset > start:
        return start, min(view.log_start_offset, task.end_offset)
    if view.log_end_offset < task.end_offset:
        return view.log_end_offset, task.end_offset
    planned = {piece.base_offset: piece for piece in task.slices}
    now = {segment.base_offset: segment for segment in view.segments}
    for base, piece in planned.items():
        if base in now or (piece.next_base_offset or start) <= start:
            continue
        index = view.find_segment(base)
        before = None if index is None else view.segments[index]
        as_planned = None if before is None else planned.get(before.base_offset)
        if before is None or (as_planned and as_planned.file_id == before.file_id):
            following = piece.next_base_offset
            return max(start, base), task.end_offset if following is None else following
    return None

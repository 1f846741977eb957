"""The times of offsets: what is known of the records around those that are missing, or damaged.

Of each window of batches its ends are kept, and what stands around each gap. So the times of a
range are those of the nearest batches that are kept before and after it.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np

from pylog.checks.indexes import read_time_index
from pylog.files.file_names import TIME_INDEX_FILE_SUFFIX, file_name_prefix
from pylog.locations import join
from pylog.record.header_sums import first_timestamps

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.findings.finding import Finding
    from pylog.reading.log_view import LogView
    from pylog.record.batch_scan import Window

_MOST_GAPS = 10_000
"""Of how many the times are kept: a compacted log may have one after each batch."""


class LostTimes:
    """Remembers the times around gaps, window by window. One thread."""

    def __init__(self, view: LogView) -> None:
        self._view = view
        self._next_offset = view.local_log_start_offset
        self._gaps = 0
        self._offsets: list[int] = []
        self._first_times: list[int] = []  # of the first record of each
        self._last_times: list[int] = []

    def add(self, window: Window, is_lost: npt.NDArray[np.bool_]) -> None:
        """Take in the batches of a window but those that are lost."""
        headers = window.headers
        sound = np.flatnonzero(~is_lost)
        if not sound.size:
            return
        firsts, lasts = headers.offsets[sound], headers.last_offsets[sound]
        before = np.concatenate(([self._next_offset], lasts[:-1] + 1))
        self._next_offset = int(lasts[-1]) + 1
        after_gap = np.flatnonzero(firsts > before)[: max(0, _MOST_GAPS - self._gaps)]
        self._gaps += after_gap.size
        # The times of markers are those of a coordinator's clock.
        timed = np.flatnonzero((headers.max_timestamps >= 0) & ~headers.is_control & ~is_lost)
        if not timed.size:
            return
        kept = timed[[0, -1]]
        if after_gap.size:
            ends = np.searchsorted(timed, sound[after_gap])
            places = np.concatenate((ends, ends - 1))
            kept = np.union1d(kept, timed[places[(places >= 0) & (places < timed.size)]])
        self._offsets += headers.last_offsets[kept].tolist()
        self._first_times += first_timestamps(headers)[kept].tolist()
        self._last_times += headers.max_timestamps[kept].tolist()

    def add_lost_segments(self) -> None:
        """Take in what time indexes say whose ``.log`` is missing, after all windows."""
        for base in self._view.listing.base_offsets_without_log:
            name = file_name_prefix(base) + TIME_INDEX_FILE_SUFFIX
            columns = read_time_index(join(self._view.directory.path, name), base)
            if columns.defect is None:
                self._offsets += columns.offsets.tolist()
                self._first_times += columns.values.tolist()
                self._last_times += columns.values.tolist()
        order = sorted(range(len(self._offsets)), key=self._offsets.__getitem__)
        self._offsets, self._first_times, self._last_times = (
            [column[each] for each in order]
            for column in (self._offsets, self._first_times, self._last_times)
        )

    def dated(self, finding: Finding) -> Finding:
        """Return a finding with the times around its offsets, once everything has been added."""
        start, end = finding.next_offset, finding.end_offset
        if start is None or end == start or finding.effect is None:
            return finding
        before = bisect_left(self._offsets, start) - 1
        after = len(self._offsets) if end is None else bisect_left(self._offsets, end)
        to_time = self._first_times[after] if after < len(self._offsets) else None
        if to_time is None and before + 1 < after:  # time indexes tell when the last was written
            to_time = max(self._last_times[before + 1 : after]) + 1
        from_time = self._last_times[before] if before >= 0 else None
        if from_time is not None and to_time is not None and from_time > to_time:
            # Producers write what is older after what is newer: the times between are anybody's.
            from_time = to_time = None
        return finding._replace(from_time=from_time, to_time=to_time)

"""Whether the markers agree with what a reader has taken for committed and for aborted.

A ``.txnindex`` has no checksum: one that was cut between two entries looks sound, and one that
lists a committed transaction, too. Both show at the next marker of the producer, in the range that
is read or after it, but only where offsets have no gap in between: compaction removes COMMIT
markers, and what was committed by one may then precede another transaction's ABORT.

For FAILFAST: the modes that skip damage ask no transaction index
(`pylog.reading.aborted_transactions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.errors import CorruptIndexError, CorruptRecordError, SegmentVanishedError
from pylog.files.file_names import LOG_FILE_SUFFIX, TXN_INDEX_FILE_SUFFIX
from pylog.model import ControlRecordType
from pylog.reading.checked_windows import CheckedWindows
from pylog.reading.control_batches import control_types
from pylog.reading.log_view import LogView
from pylog.reading.slicing import segment_slices
from pylog.reading.transaction_walk import END_TYPES
from pylog.record.batch_layout import TRANSACTIONAL_FLAG_MASK

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.reading.scan_task import ScanTask
    from pylog.record.window import Window

_FIRST_WINDOW_BYTES = 1 << 14  # a transaction's marker is seldom far away
_WAY_OUT = (
    "read without index files, then the markers decide (pylog.scan: use_indexes=False; Spark: "
    "useIndexes=false; pylog cat: --ignore-indexes)"
)


class AbortWatch:
    """Watches the batches that one pass over a task reads, in order.

    Parameters
    ----------
    task
        Whose range is read with READ_COMMITTED.
    """

    def __init__(self, task: ScanTask) -> None:
        self._task = task
        # Producer ids whose records in the range were given, or left out as aborted, since their
        # last marker, to how many gaps there were before.
        self._given: dict[int, int] = {}
        self._left_out: dict[int, int] = {}
        self._gaps = 0
        self._next_offset = 0

    def look(self, scan: Window, wanted: npt.NDArray[np.bool_] | None, path: str) -> None:
        """Note the batches of a window.

        Parameters
        ----------
        scan
            The window; its transactional control batches are there in whole.
        wanted
            Mask of the batches whose records are given; None for all.
        path
            The ``.log`` file.

        Raises
        ------
        CorruptIndexError
            Records of a transaction were given that turns out to be aborted, or left out of one
            that turns out to be committed.
        """
        headers = scan.headers
        follows = np.append(self._next_offset, headers.last_offsets[:-1] + 1)
        gaps = self._gaps + np.cumsum(headers.offsets != follows)
        self._gaps, self._next_offset = int(gaps[-1]), int(headers.last_offsets[-1]) + 1
        if not headers.traits.any_has(TRANSACTIONAL_FLAG_MASK):
            return
        which = np.flatnonzero(headers.is_transactional)
        control = headers.is_control[which]
        kinds = np.full(which.size, ControlRecordType.UNKNOWN, dtype=np.int64)
        kinds[control] = control_types(scan, which[control])
        in_range = ~control & (headers.last_offsets[which] >= self._task.start_offset)
        in_range &= headers.offsets[which] < self._task.end_offset
        given = in_range if wanted is None else in_range & wanted[which]
        rows = zip(
            headers.producer_ids[which].tolist(),
            headers.offsets[which].tolist(),
            kinds.tolist(),
            in_range.tolist(),
            given.tolist(),
            gaps[which].tolist(),
            strict=True,
        )
        for producer_id, offset, kind, is_in_range, is_given, gaps_before in rows:
            if is_in_range and is_given:
                self._given[producer_id] = gaps_before
            elif is_in_range:
                self._left_out[producer_id] = gaps_before
            elif kind in END_TYPES:
                self._end(producer_id, ControlRecordType(kind), gaps_before, (offset, path))

    def look_on(self) -> None:
        """Look at what comes after the range, up to the markers of the transactions that it cuts.

        Raises
        ------
        CorruptIndexError
            As of `look`.

        Notes
        -----
        Damage outside the range that was asked for is not reported: the search ends there.
        """
        try:
            for scan, path in self._windows_after():
                self.look(scan, np.zeros(len(scan.headers), dtype=np.bool_), path)
                if not self._is_waiting():
                    return
        except (CorruptRecordError, SegmentVanishedError):
            return

    def _end(
        self, producer_id: int, kind: ControlRecordType, gaps: int, place: tuple[int, str]
    ) -> None:
        offset, path = place
        given, left_out = self._given.pop(producer_id, -1), self._left_out.pop(producer_id, -1)
        reason = None
        if kind is ControlRecordType.ABORT and given == gaps:
            reason = (
                f"transaction index lacks the transaction of producer {producer_id} that is "
                f"aborted at offset {offset}, and its records were taken for committed"
            )
        if kind is ControlRecordType.COMMIT and left_out == gaps:
            reason = (
                f"transaction index lists the transaction of producer {producer_id} that is "
                f"committed at offset {offset}, and its records were taken for aborted"
            )
        if reason is not None:
            raise CorruptIndexError(f"{reason}; {_WAY_OUT}", _index_path(path))

    def _is_waiting(self) -> bool:
        """Whether a marker could still contradict, gaps considered."""
        return any(gaps == self._gaps for gaps in (*self._given.values(), *self._left_out.values()))

    def _windows_after(self) -> Iterator[tuple[Window, str]]:
        if not self._is_waiting():
            return
        view = LogView(self._task.directory)
        for segment_slice in segment_slices(view, self._next_offset, view.log_end_offset):
            with segment_slice.open() as source:
                windows = CheckedWindows(
                    source, segment_slice, first_window_bytes=_FIRST_WINDOW_BYTES
                )
                for window in windows:
                    yield window, segment_slice.path


def _index_path(log_path: str) -> str:
    return log_path.replace(LOG_FILE_SUFFIX, TXN_INDEX_FILE_SUFFIX)

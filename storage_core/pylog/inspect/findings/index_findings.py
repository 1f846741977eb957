"""Findings about offset and time indexes, next to the batches that their entries are about.

Readers do without an index that is wrong, and a broker rebuilds it, so that these are warnings.
`missing_time_indexes` has those about time indexes that are not there. Of
entries that nothing bears out, a finding names the first of each file and counts them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from pylog.files.file_names import INDEX_FILE_SUFFIX, TIME_INDEX_FILE_SUFFIX
from pylog.files.offset_index import OffsetIndexEntries
from pylog.files.time_index import TimeIndexEntries
from pylog.inspect.findings.finding import Finding, missing_index, warning
from pylog.inspect.findings.severity import Severity
from pylog.inspect.index_columns import LIVE_PAUSES, read_offset_index, read_time_index

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from pylog.inspect.index_columns import IndexColumns
    from pylog.reading.damage import DamagedRange
    from pylog.reading.segments import LogSegmentView
    from pylog.record.batch_scan import BatchHeaders
    from pylog.record.window import Window

_ENTRY_BYTES = {
    INDEX_FILE_SUFFIX: OffsetIndexEntries.layout.struct.size,
    TIME_INDEX_FILE_SUFFIX: TimeIndexEntries.layout.struct.size,
}


class IndexFindings:
    """Collects what is wrong with a segment's indexes, window by window. One thread.

    Parameters
    ----------
    segment
        Whose index files; they are read now.
    """

    def __init__(self, segment: LogSegmentView) -> None:
        self._base_offset = segment.base_offset
        self._offset_index = _Entries(segment, INDEX_FILE_SUFFIX)
        self._time_index = _Entries(segment, TIME_INDEX_FILE_SUFFIX)

    def add(self, window: Window) -> None:
        """Hold the entries that are about these batches against them."""
        headers = window.headers
        positions = headers.positions + window.file_position
        self._check_offset_entries(headers, positions)
        self._check_time_entries(headers)

    def findings(
        self,
        end_position: int,
        next_offset: int,
        damaged: Sequence[DamagedRange],
        *,
        is_expected: bool = True,
        is_last: bool = False,
    ) -> Iterator[Finding]:
        """Yield what has been found, once all batches have been seen.

        Parameters
        ----------
        end_position, next_offset
            Byte and offset after the segment's last whole batch.
        damaged
            What could not be read of its ``.log``: entries about that are not judged.
        is_expected
            Whether it is a finding if there is no offset index.
        is_last
            Whether this is the log's last segment, to whose indexes a broker may be adding.
        """
        entries = self._offset_index
        if entries.columns is None:
            if is_expected:
                yield missing_index("index", entries.path)
        else:
            entries.note(np.flatnonzero(entries.columns.values >= end_position))
            for each in damaged:
                entries.forget(entries.columns.values, each.position, each.end_position)
        yield from entries.findings("index")
        entries = self._time_index
        if entries.columns is not None:
            entries.note(np.flatnonzero(entries.columns.offsets >= next_offset))
            for each in damaged:
                entries.forget(entries.columns.offsets, each.next_offset, each.end_offset)
            if is_last:
                self._forget_half_written(entries.columns)
        yield from entries.findings("time_index")

    def _forget_half_written(self, columns: IndexColumns) -> None:
        """Take back what was noted of a first time index entry of which half was written.

        A broker writes its timestamp before its offset. Until then it seems to be about the base
        offset; a later entry does not count.
        """
        if columns.offsets.tolist() != [self._base_offset] or not self._time_index.is_wrong.any():
            return
        for pause in LIVE_PAUSES:
            time.sleep(pause)
            now = read_time_index(self._time_index.path, self._base_offset)
            if now.offsets[:1].tolist() != [self._base_offset]:
                self._time_index.is_wrong[:] = False
                return

    def _check_offset_entries(
        self, headers: BatchHeaders, positions: npt.NDArray[np.int64]
    ) -> None:
        entries = self._offset_index.columns
        if entries is None or not entries.values.size:
            return
        end = positions[-1] + headers.sizes_bytes[-1]
        which = np.flatnonzero((entries.values >= positions[0]) & (entries.values < end))
        place = np.searchsorted(positions, entries.values[which])
        is_start = place < len(positions)
        is_start[is_start] = positions[place[is_start]] == entries.values[which][is_start]
        place = np.minimum(place, len(positions) - 1)
        offsets = entries.offsets[which]
        # `pylog.files.offset_index` says which offsets a broker stores for a batch; the first one
        # of a compressed v0/v1 wrapper is not in the header.
        last = np.minimum(
            np.searchsorted(headers.last_offsets, offsets), len(headers.last_offsets) - 1
        )
        is_last = headers.last_offsets[last] == offsets
        is_behind = offsets > headers.last_offsets[-1]
        is_first = headers.offsets[place] == offsets
        is_hidden = (headers.record_counts[place] < 0) & (offsets < headers.last_offsets[place])
        fits = (is_last & (last >= place)) | is_behind | is_first | is_hidden
        self._offset_index.note(which[~(is_start & fits)])
        self._offset_index.note_inside(which[~is_start])

    def _check_time_entries(self, headers: BatchHeaders) -> None:
        entries = self._time_index.columns
        if entries is None or not entries.offsets.size:
            return
        lasts = headers.last_offsets
        lowest = headers.offsets[0] if headers.record_counts[0] >= 0 else lasts[0]
        which = np.flatnonzero((entries.offsets >= lowest) & (entries.offsets <= lasts[-1]))
        place = np.searchsorted(lasts, entries.offsets[which])
        self._time_index.note(which[headers.max_timestamps[place] < entries.values[which]])


class _Entries:
    """The entries of one index file, and which of them nothing bears out."""

    def __init__(self, segment: LogSegmentView, suffix: str) -> None:
        self.path = segment.file_path(suffix)
        self.columns: IndexColumns | None = None
        self._entry_bytes = _ENTRY_BYTES[suffix]
        if suffix in segment.suffixes:
            read = read_offset_index if suffix == INDEX_FILE_SUFFIX else read_time_index
            self.columns = read(self.path, segment.base_offset)
            self.is_wrong = np.zeros(self.columns.offsets.size, dtype=np.bool_)
            self._is_inside = np.zeros(self.columns.offsets.size, dtype=np.bool_)

    def note(self, which: npt.NDArray[np.int64]) -> None:
        """Note entries that nothing bears out, by their number."""
        self.is_wrong[which] = True

    def note_inside(self, which: npt.NDArray[np.int64]) -> None:
        """Note entries whose positions lie inside a batch, by their number."""
        self._is_inside[which] = True

    def forget(self, values: npt.NDArray[np.int64], start: int | None, end: int | None) -> None:
        """Take back what was noted of entries whose values are in ``[start, end)``."""
        is_inside = np.ones(values.size, dtype=np.bool_) if start is None else values >= start
        if end is not None:
            is_inside &= values < end
        self.is_wrong[is_inside] = False

    def findings(self, kind: str) -> Iterator[Finding]:
        """Yield what is wrong with a file as a whole, or else with its entries."""
        if self.columns is None:
            return
        if self.columns.defect is not None:
            yield warning(f"damaged_{kind}", self.path, self.columns.defect)
            return
        wrong = np.flatnonzero(self.is_wrong)
        if wrong.size:
            first = int(wrong[0])
            offset = int(self.columns.offsets[first])
            value = "timestamp" if kind == "time_index" else "position"
            entry = f"offset {offset}, {value} {self.columns.values[first]}"
            message = f"{_counted(wrong.size)} no batch"
            inside = int(self._is_inside[wrong].sum())
            if inside:
                message += f" ({inside} point{'s' * (inside == 1)} into the middle of one)"
            message += f"; the first is entry {first}: {entry}"
            at = first * self._entry_bytes
            yield Finding(
                Severity.WARNING,
                f"wrong_{kind}",
                self.path,
                message,
                at,
                at + self._entry_bytes,
                offset,
            )


def _counted(count: int) -> str:
    """Return ``1 entry fits``, ``2 entries fit``."""
    return "1 entry fits" if count == 1 else f"{count} entries fit"

"""The headers of every batch of a log, window by window, and what they add up to.

Offsets are held against each other and against the files' names, and the whole batches of a
segment must reach the next one: a table that left batches out in silence would be worse than none.
A record
count that does not fit the offsets is damage, too. Checksums are looked at only where the view
skips damage, to know what that is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.kernels.decode_headers import OFFSET, RECORD_COUNT
from pylog.model import NO_SEQUENCE, NO_TIMESTAMP, CompressionType
from pylog.reading.checked_windows import CheckedWindows
from pylog.reading.slicing import open_slice, slice_of
from pylog.record.batch_header import DELETE_HORIZON_FLAG_MASK, UNKNOWN_RECORD_COUNT
from pylog.record.batch_scan import BatchHeaders, find_bad_checksum

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.reading.log_view import LogView
    from pylog.reading.segments import LogSegmentView
    from pylog.record.batch_scan import Window


def from_offset(window: Window, first: int) -> Window:
    """Return the batches that have an offset from one on, and count only these; there may be none.

    For sums: the records of a batch whose first ones are cut off cannot be decoded by its header.
    """
    headers = window.headers
    if not len(headers) or int(headers.offsets[0]) >= first:
        return window
    columns = headers.columns[:, headers.last_offsets >= first].copy()
    part = BatchHeaders(columns)
    begins_before = part.is_v2 & (part.offsets < first)
    room = part.last_offsets - first + 1
    columns[OFFSET] = np.where(begins_before, first, part.offsets)
    columns[RECORD_COUNT] = np.where(
        begins_before, np.minimum(part.record_counts, room), part.record_counts
    )
    return replace(window, headers=part)


class HeaderWindow(NamedTuple):
    """Batches of one segment; valid until the next one is asked for."""

    segment: LogSegmentView
    window: Window


def header_windows(view: LogView, *, checks_counts: bool = True) -> Iterator[HeaderWindow]:
    """Yield the whole batches of a log, in file order, in windows of at least one.

    Where segments overlap, those that a reader from the log's start gets. Without ``checks_counts``
    also those that count more records than they can have.
    """
    for index, segment in enumerate(view.segments):
        headers = SegmentHeaders(view, index, checks_counts=checks_counts)
        for window in headers:
            new = from_offset(window, headers.first_new)
            if len(new.headers):
                yield HeaderWindow(segment, new)


class SegmentHeaders:
    """Iterates the windows of one segment; one thread, one iteration."""

    def __init__(
        self,
        view: LogView,
        index: int,
        *,
        verifies_checksums: bool = False,
        checks_counts: bool = True,
    ) -> None:
        if view.next_base_offset(index) is None:
            # Raises where the last segment is damaged: what follows it would be left out.
            _ = view.next_offset
        self._segment = view.segments[index]
        self.slice = slice_of(view, index)  # where its bytes are
        self._damage = view.damage
        self._verifies_checksums = verifies_checksums
        self._checks_counts = checks_counts
        # From here on, the offsets of the window that was given last are a reader's: others were in
        # an earlier segment, or in a batch that this one repeats where damage is skipped.
        self.first_new = view.first_consumed(index)
        # the byte after the last whole batch, once all windows have been seen
        self.end_position = 0
        # the offset after it; the segment's base offset where there is none
        self.next_offset = self._segment.base_offset

    def __iter__(self) -> Iterator[Window]:
        opened = open_slice(self.slice, self._damage)
        if opened is None:
            return
        with opened as source:
            windows = CheckedWindows(
                source,
                self.slice,
                damage=self._damage,
                verifies_checksums=self._verifies_checksums,
                checks_counts=self._checks_counts,
            )
            next_offset = windows.next_offset
            for window in windows:
                self.first_new = max(self.first_new, next_offset)
                next_offset = self.next_offset = windows.next_offset
                self.end_position = window.end_position
                yield window
            self.next_offset = windows.next_offset  # also after a batch that was left out


def codec_label(codec_id: int) -> str:
    """Return the name of a codec, also of one that nobody knows."""
    if CompressionType.is_known(codec_id):
        return CompressionType(codec_id).label
    return f"unknown ({codec_id})"


def has_horizon(headers: BatchHeaders) -> npt.NDArray[np.bool_]:
    """Return which batches have a delete horizon, in the place of their base timestamp."""
    mask: npt.NDArray[np.bool_] = headers.is_v2 & (
        headers.attributes & DELETE_HORIZON_FLAG_MASK != 0
    )
    return mask


def last_sequences(headers: BatchHeaders) -> npt.NDArray[np.int64]:
    """Return the sequence of each batch's last record, as it was written."""
    bases = headers.base_sequences
    # From 2^31-1 on they begin again at 0.
    lasts = (bases + headers.last_offsets - headers.offsets) & 0x7FFFFFFF
    return np.where(bases == NO_SEQUENCE, NO_SEQUENCE, lasts)


def valid_checksums(scan: Window) -> npt.NDArray[np.bool_]:
    """Return whether the checksum of each batch is right."""
    is_valid = np.ones(len(scan.headers), dtype=np.bool_)
    left = is_valid.copy()
    bad = find_bad_checksum(scan)
    while bad is not None:
        is_valid[bad.index] = False
        left[: bad.index + 1] = False
        bad = find_bad_checksum(scan, left)
    return is_valid


def first_timestamps(headers: BatchHeaders) -> npt.NDArray[np.int64]:
    """Return the timestamp of each batch's first record, as far as its header knows it.

    The largest one where it does not: where the broker stamped the batch, or a delete horizon has
    taken the field's place; `NO_TIMESTAMP` where there is none at all.
    """
    has_no_record_timestamp = (
        headers.is_append_time | has_horizon(headers) | (headers.base_timestamps == NO_TIMESTAMP)
    )
    first: npt.NDArray[np.int64] = np.where(
        has_no_record_timestamp, headers.max_timestamps, headers.base_timestamps
    )
    return first


class HeaderSums:
    """Sums over batches, added window after window."""

    def __init__(self) -> None:
        self.batches = 0  # how many
        # what they hold, control records too; None where a compressed v0/v1 wrapper hides how many
        self.records: int | None = 0
        # The smallest that a header has, and the largest, ms; None without one. A batch has its
        # first record's and its largest, so that an earlier one may lie between them.
        self.min_timestamp: int | None = None
        self.max_timestamp: int | None = None
        # Those that there are
        self.magics: set[int] = set()
        self.codec_ids: set[int] = set()

    def add(self, headers: BatchHeaders) -> None:
        """Add some batches."""
        self.batches += len(headers)
        counts = headers.record_counts
        if (counts == UNKNOWN_RECORD_COUNT).any():
            self.records = None
        elif self.records is not None:
            self.records += int(counts.sum())
        # Small numbers: counting them is faster than sorting them.
        self.magics |= set(np.flatnonzero(np.bincount(headers.magics)).tolist())
        self.codec_ids |= set(np.flatnonzero(np.bincount(headers.codec_ids)).tolist())
        largest = headers.max_timestamps[headers.max_timestamps != NO_TIMESTAMP]
        smallest = first_timestamps(headers)
        smallest = smallest[smallest != NO_TIMESTAMP]
        if largest.size:
            highest = int(largest.max())
            known = self.max_timestamp
            self.max_timestamp = highest if known is None else max(known, highest)
        if smallest.size:
            lowest = int(smallest.min())
            known = self.min_timestamp
            self.min_timestamp = lowest if known is None else min(known, lowest)

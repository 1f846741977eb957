"""What the headers of many batches say: of each one, and added up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pylog.kernels.decode_headers import OFFSET, RECORD_COUNT
from pylog.model import NO_SEQUENCE, NO_TIMESTAMP, CompressionType
from pylog.record.batch_header import DELETE_HORIZON_FLAG_MASK, UNKNOWN_RECORD_COUNT
from pylog.record.batch_scan import BatchHeaders, find_bad_checksum

if TYPE_CHECKING:
    import numpy.typing as npt

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

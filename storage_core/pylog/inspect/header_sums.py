"""What the headers of some batches add up to, and which timestamps they tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.model import NO_TIMESTAMP, CompressionType
from pylog.record.batch_header import UNKNOWN_RECORD_COUNT
from pylog.record.batch_layout import DELETE_HORIZON_FLAG_MASK

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.record.batch_scan import BatchHeaders


def codec_label(codec_id: int) -> str:
    """Return the name of a codec, also of one that nobody knows."""
    if CompressionType.is_known(codec_id):
        return CompressionType(codec_id).label
    return f"unknown ({codec_id})"


def first_timestamps(headers: BatchHeaders) -> npt.NDArray[np.int64]:
    """Return the timestamp of each batch's first record, as far as its header knows it.

    The largest one where it does not: where the broker stamped the batch, or a delete horizon has
    taken the field's place; `NO_TIMESTAMP` where there is none at all.
    """
    has_horizon = headers.is_v2 & (headers.attributes & DELETE_HORIZON_FLAG_MASK != 0)
    has_no_record_timestamp = (
        headers.is_append_time | has_horizon | (headers.base_timestamps == NO_TIMESTAMP)
    )
    first: npt.NDArray[np.int64] = np.where(
        has_no_record_timestamp, headers.max_timestamps, headers.base_timestamps
    )
    return first


class HeaderSums:
    """Sums over batches, added window after window.

    Attributes
    ----------
    batches
        How many.
    records
        What they hold, control records too; None where a compressed v0/v1 wrapper hides how many.
    min_timestamp, max_timestamp
        The smallest that a header has, and the largest, ms; None without one. A batch has its
        first record's and its largest, so that an earlier one may lie between them.
    magics, codec_ids
        Those that there are.
    """

    def __init__(self) -> None:
        self.batches = 0
        self.records: int | None = 0
        self.min_timestamp: int | None = None
        self.max_timestamp: int | None = None
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

"""Table ``segments``: the files of each segment and what the headers in it add up to.

================= ============ ==========================================================
column            type         meaning
================= ============ ==========================================================
segment           string       name of the ``.log`` file
base_offset       int64        what that name says
next_offset       int64        offset after the last batch; base_offset without a batch
size_in_bytes     int64        length of the ``.log`` file
valid_bytes       int64        of them, what whole batches take: less after a crash, or where the
                               file is preallocated
batches           int64
records           int64        control records too; null where a compressed v0/v1 wrapper hides
                               how many it holds
min_timestamp     timestamp    the smallest that a header has: a batch has its first record's
                               and its largest, so that an earlier one may lie between them
max_timestamp     timestamp    the largest that a header has
magics            list<int32>  record formats, ascending
codecs            list<string> by their ids
offset_index      struct       state, entries, reason; see `IndexState`
time_index        struct
transaction_index struct
path              string       of the ``.log`` file
================= ============ ==========================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.inspect.header_windows import SegmentHeaders
from pylog.inspect.tables.index_state import INDEX_STATE_TYPE, index_states
from pylog.inspect.tables.row_batches import TIMESTAMP, record_batches, table_schema
from pylog.locations import name_of
from pylog.model import NO_TIMESTAMP, CompressionType
from pylog.record.batch_header import UNKNOWN_RECORD_COUNT
from pylog.record.batch_layout import DELETE_HORIZON_FLAG_MASK

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.reading.log_view import LogView
    from pylog.record.batch_scan import BatchHeaders

SEGMENTS_SCHEMA = table_schema(
    ("segment", pa.string()),
    ("base_offset", pa.int64()),
    ("next_offset", pa.int64()),
    ("size_in_bytes", pa.int64()),
    ("valid_bytes", pa.int64()),
    ("batches", pa.int64()),
    ("records", pa.int64()),
    ("min_timestamp", TIMESTAMP),
    ("max_timestamp", TIMESTAMP),
    ("magics", pa.list_(pa.int32())),
    ("codecs", pa.list_(pa.string())),
    ("offset_index", INDEX_STATE_TYPE),
    ("time_index", INDEX_STATE_TYPE),
    ("transaction_index", INDEX_STATE_TYPE),
    ("path", pa.string()),
)


def segments_of(view: LogView) -> Iterator[pa.RecordBatch]:
    """Yield the segments of one partition, after a look at all headers.

    Raises
    ------
    CorruptRecordError
        A header is impossible, or offsets go back.
    """
    rows = (_row(view, index) for index in range(len(view.segments)))
    return record_batches(view.topic_partition, rows, SEGMENTS_SCHEMA)


def _row(view: LogView, index: int) -> tuple[object, ...]:
    segment = view.segments[index]
    headers = SegmentHeaders(view, index)
    sums = _Sums()
    for window in headers:
        sums.add(window.scan.headers)
    path = segment.file_path()
    return (
        name_of(path),
        segment.base_offset,
        headers.next_offset,
        segment.size_bytes,
        headers.end_position,
        sums.batches,
        sums.records,
        sums.min_timestamp,
        sums.max_timestamp,
        sorted(sums.magics),
        [_codec_label(codec) for codec in sorted(sums.codec_ids)],
        *index_states(segment, headers.end_position, headers.next_offset),
        path,
    )


def _codec_label(codec_id: int) -> str:
    if CompressionType.is_known(codec_id):
        return CompressionType(codec_id).label
    return f"unknown ({codec_id})"


class _Sums:
    """What the headers of a segment add up to, window after window."""

    def __init__(self) -> None:
        self.batches = 0
        self.records: int | None = 0
        self.min_timestamp: int | None = None
        self.max_timestamp: int | None = None
        self.magics: set[int] = set()
        self.codec_ids: set[int] = set()

    def add(self, headers: BatchHeaders) -> None:
        self.batches += len(headers)
        counts = headers.record_counts
        if (counts == UNKNOWN_RECORD_COUNT).any():
            self.records = None
        elif self.records is not None:
            self.records += int(counts.sum())
        self.magics |= set(np.unique(headers.magics).tolist())
        self.codec_ids |= set(np.unique(headers.codec_ids).tolist())
        largest = _largest_timestamps(headers)
        smallest = _smallest_timestamps(headers)
        if largest.size:
            highest = int(largest.max())
            known = self.max_timestamp
            self.max_timestamp = highest if known is None else max(known, highest)
        if smallest.size:
            lowest = int(smallest.min())
            known = self.min_timestamp
            self.min_timestamp = lowest if known is None else min(known, lowest)


def _largest_timestamps(headers: BatchHeaders) -> npt.NDArray[np.int64]:
    """Return the largest timestamp of each batch that has one."""
    known: npt.NDArray[np.int64] = headers.max_timestamps[headers.max_timestamps != NO_TIMESTAMP]
    return known


def _smallest_timestamps(headers: BatchHeaders) -> npt.NDArray[np.int64]:
    """Return the smallest timestamp of each batch whose header knows one."""
    has_horizon = headers.is_v2 & (headers.attributes & DELETE_HORIZON_FLAG_MASK != 0)
    has_no_record_timestamp = (
        headers.is_append_time | has_horizon | (headers.base_timestamps == NO_TIMESTAMP)
    )
    smallest = np.where(has_no_record_timestamp, headers.max_timestamps, headers.base_timestamps)
    known: npt.NDArray[np.int64] = smallest[smallest != NO_TIMESTAMP]
    return known

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
batches           int64        whole batches
records           int64        control records too; null where a compressed v0/v1 wrapper hides
                               how many it holds
min_timestamp     timestamp    the smallest that a header has: a batch has its first record's
                               and its largest, so that an earlier one may lie between them
max_timestamp     timestamp    the largest that a header has
magics            list<int32>  record formats that its batches have, ascending
codecs            list<string> compression codecs of its batches, by their ids
offset_index      struct       in what state the file is; see `IndexState`
time_index        struct       likewise
transaction_index struct       likewise
path              string       of the ``.log`` file
================= ============ ==========================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pylog.inspect.header_sums import HeaderSums, codec_label
from pylog.inspect.header_windows import SegmentHeaders
from pylog.inspect.tables.index_state import INDEX_STATE_TYPE, index_states
from pylog.inspect.tables.row_batches import TIMESTAMP, record_batches, table_schema
from pylog.locations import name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.reading.log_view import LogView

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
    sums = HeaderSums()
    for window in headers:
        sums.add(window.headers)
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
        [codec_label(codec) for codec in sorted(sums.codec_ids)],
        *index_states(segment, headers.end_position, headers.next_offset),
        path,
    )

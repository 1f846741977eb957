"""Table ``latest``: the last record of each key, as a compaction of the whole log would leave it.

The log is read twice: for the last offset of each key (`pylog.tables.key_search`), and for the
records at these offsets. Of a log with more keys than the map has room for, that is done for a
share of the keys at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pylog.columnar.arrow_schema import record_schema
from pylog.columnar.rows import TableText
from pylog.model import IsolationLevel
from pylog.positions import LATEST as LOG_END
from pylog.reading.damage import ReadMode
from pylog.reading.planner import ScanRequest, plan_tasks
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.tables.key_search import MAP_BYTES, KeySearch
from pylog.tables.metadata_table import MetadataTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.positions import OffsetSpecs
    from pylog.reading.log_view import LogView
    from pylog.reading.scan_task import ScanTask

_TEXT = TableText.of_partitions("""\
The last record of each key in its partition: what is left of the log when it is compacted.

offset        int64     the record's offset
timestamp     timestamp the record's timestamp
timestampType int32     0: the producer set it (CreateTime); 1: the broker (LogAppendTime)
key           binary    the key, never null
value         binary    the value, never null
headers       headers   null where there are none

A key whose last record is a tombstone (its value is null) has no row, and a record without a key
has none: a cleaner removes both. Aborted records do not count, nor does what follows the first open
transaction. ``end`` (Spark: ``endingOffsets``, ``endingTimestamp``; ``pylog sql``:
``--end-offset``, ``--end-timestamp``) shows the state at an offset or a time: records from there on
do not count.

The same key may be in several partitions where a producer chose partitions by something else.
Whether the topic is configured to be compacted makes no difference. Each partition is read twice,
in 128 MiB for its keys, plus 8 bytes a key; with more than 5 million keys it is read more often,
and its rows are then in several runs that are each in order of offset.
""")


def latest_records(
    view: LogView,
    *,
    end: OffsetSpecs = LOG_END,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    map_bytes: int = MAP_BYTES,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one partition."""
    tasks = plan_tasks([view], ScanRequest(end=end, isolation=IsolationLevel.READ_COMMITTED))
    if not tasks:
        return
    start = min(each.start_offset for each in tasks)
    stop = max(each.end_offset for each in tasks)
    search = KeySearch(view, start, stop, map_bytes)
    mode = ReadMode.FAILFAST if view.damage is None else ReadMode.DROPMALFORMED
    for offsets in _shares(search, 0, 1):
        for task in tasks:
            yield from _records_at(view, task, offsets, mode, max_decompressed_bytes)


def _shares(search: KeySearch, share: int, shares: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the last offsets of the keys of a share, cut into as many parts as is needed."""
    if search.fill(share, shares):
        yield search.map.offsets()
        return
    # What is left over by a division by n is, by 2 n, the same or n more.
    yield from _shares(search, share, 2 * shares)
    yield from _shares(search, share + shares, 2 * shares)


def _records_at(
    view: LogView,
    task: ScanTask,
    offsets: npt.NDArray[np.int64],
    mode: ReadMode,
    max_decompressed_bytes: int,
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a task that have one of some sorted offsets, and a value."""
    if not offsets.size:
        return
    schema = record_schema(_TEXT.schema.names, timestamp_unit="ms")
    batches = task.read(
        schema, mode=mode, damage=view.damage, max_decompressed_bytes=max_decompressed_bytes
    )
    for batch in batches:
        of_batch = batch.column("offset").to_numpy(zero_copy_only=False)
        places = np.minimum(np.searchsorted(offsets, of_batch), offsets.size - 1)
        is_last = pa.array(offsets[places] == of_batch)
        rows = batch.filter(pc.and_(is_last, batch.column("value").is_valid()))
        if rows.num_rows:
            yield rows.cast(_TEXT.schema)


LATEST = MetadataTable(
    "latest",
    _TEXT.schema,
    latest_records,
    text=_TEXT,
    options={"end": "is about whole logs", "max_decompressed_bytes": ""},
)

"""Table ``latest``: the last record of each key, as a compaction of the whole log would leave it.

The log is read twice: for the last offset of each key (`KeySearch`), and for the records at these
offsets. Of a log with more keys than an offset map of bounded memory has room for, that is done for
a share of the keys at a time, chosen by their hash.

Typed keys and values are decoded of these records alone, and conditions on their fields are tested
there: after the last record of each key has been found by its bytes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pylog.cleaner.keyed_records import KeyedRecordReader
from pylog.cleaner.offset_map import HashKey, OffsetMap
from pylog.columnar.arrow_schema import record_schema, schema_like
from pylog.columnar.rows import TableText
from pylog.model import LATEST as LOG_END
from pylog.model import IsolationLevel
from pylog.reading.damage import ReadMode
from pylog.reading.headers import SegmentHeaders
from pylog.reading.planner import ScanRequest, plan_tasks
from pylog.reading.transactions import AbortedTransactions, find_aborted_transactions
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.tables.metadata_table import MetadataTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.cleaner.keyed_records import KeyedRecords
    from pylog.model import OffsetSpecs
    from pylog.reading.log_view import LogView
    from pylog.reading.scan_task import ScanTask
    from pylog.reading.typed_records import TypedRecords
    from pylog.record.batch_scan import BatchHeaders, Window


MAP_BYTES = 128 << 20
"""As much as a broker's ``log.cleaner.dedupe.buffer.size``: room for five million keys."""
_LOAD_FACTOR = 0.9


class KeySearch:
    """One look at all keys of a log between two offsets; one thread."""

    def __init__(self, view: LogView, start: int, end: int, map_bytes: int = MAP_BYTES) -> None:
        self.map = OffsetMap(map_bytes, _LOAD_FACTOR)
        self._view = view
        self._start, self._end = start, end
        self._aborted = AbortedTransactions(find_aborted_transactions(view, start, end))
        self._reader = KeyedRecordReader()
        # One hash key for all shares: the hash says which share a key belongs to.
        self._hash_key = HashKey.random()

    def fill(self, share: int, shares: int) -> bool:
        """Have the map hold the last offset of each key of a share; False if it has no room."""
        self.map.clear(max(1, self._end - self._start))
        for index in range(len(self._view.segments)):
            for window in self.windows(index):
                for records in self.read(window, self._candidates(window.headers)):
                    rows = self.rows(records, share, shares)
                    if self.map.put(records.hashes, records.offsets, rows) < rows.size:
                        return False
                if len(window.headers) and int(window.headers.last_offsets[-1]) >= self._end:
                    return True
        return True

    def windows(self, index: int) -> Iterator[Window]:
        """Yield the windows of a segment."""
        headers = SegmentHeaders(self._view, index, verifies_checksums=True)
        for window in headers:
            new = window.headers.last_offsets >= headers.first_new
            if new.any():
                yield window.select(None if new.all() else new)

    def are_gone(self, headers: BatchHeaders) -> npt.NDArray[np.bool_]:
        """Return which batches no consumer gets."""
        gone: npt.NDArray[np.bool_] = headers.last_offsets < self._start
        return gone | self._aborted.mask(headers)

    def _candidates(self, headers: BatchHeaders) -> npt.NDArray[np.int64]:
        """Return the batches that may have records with keys before the end."""
        # A batch of v0 or v1 does not say its first offset.
        before = np.concatenate([[-1], headers.last_offsets[:-1]])
        is_none = headers.is_control | (headers.record_counts == 0) | (before >= self._end - 1)
        return np.flatnonzero(~is_none & ~self.are_gone(headers))

    def read(self, window: Window, batches: npt.NDArray[np.int64]) -> Iterator[KeyedRecords]:
        """Yield the records of some batches of a window."""
        return self._reader.read(window, batches, self._hash_key, range(self._start, self._end))

    def rows(self, records: KeyedRecords, share: int, shares: int) -> npt.NDArray[np.int64]:
        """Return the rows of records that are served and whose keys are of a share."""
        chosen = records.has_key & (records.offsets >= self._start)
        chosen &= records.offsets < self._end
        if shares > 1:
            chosen &= records.hashes[:, 1].view(np.uint64) % np.uint64(shares) == share
        return np.flatnonzero(chosen)


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
With ``value_format`` or ``key_format`` (Spark: ``valueFormat``, ``keyFormat``; ``pylog sql``:
``--value-format``, ``--key-format``, of one topic), values and keys are structs, see
docs/typed-values.md. Keys are the same if their bytes are.

Whether the topic is configured to be compacted makes no difference. Each partition is read twice,
in 128 MiB for its keys, plus 8 bytes a key; with more than 5 million keys it is read more often,
and its rows are then in several runs that are each in order of offset.
""")


class _Decoding(NamedTuple):
    typed: TypedRecords
    schema: pa.Schema
    mode: ReadMode

    def reads(self, topic: str) -> bool:
        return self.typed.reads(topic) and all(each.covers(topic) for each in self.typed.where)


def latest_records(
    view: LogView,
    *,
    end: OffsetSpecs = LOG_END,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    map_bytes: int = MAP_BYTES,
    decoding: _Decoding | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one partition."""
    if decoding is not None and not decoding.reads(view.topic):
        return
    tasks = plan_tasks([view], ScanRequest(end=end, isolation=IsolationLevel.READ_COMMITTED))
    if not tasks:
        return
    tasks[-1].ensure_end_is_found()
    start = min(each.start_offset for each in tasks)
    stop = max(each.end_offset for each in tasks)
    search = KeySearch(view, start, stop, map_bytes)
    schema = record_schema(_TEXT.schema.names, timestamp_unit="ms")
    if decoding is None:
        for offsets in _shares(search, 0, 1):
            for task in tasks:
                for rows in _records_at(view, task, offsets, schema, max_decompressed_bytes):
                    yield rows.cast(_TEXT.schema)
        return
    typed = decoding.typed.for_one_thread()
    raw = typed.raw_schema(decoding.schema)
    if "value" not in raw.names:  # which says what is a tombstone
        raw = schema_like(raw, (*raw.names, "value"))
    for offsets in _shares(search, 0, 1):
        for task in tasks:
            rows = _records_at(view, task, offsets, raw, max_decompressed_bytes)
            partition = view.topic_partition
            yield from typed.decoded(rows, decoding.schema, partition, decoding.mode)


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
    schema: pa.Schema,
    max_decompressed_bytes: int,
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a task that have one of some sorted offsets, and a value."""
    if not offsets.size:
        return
    mode = ReadMode.FAILFAST if view.damage is None else ReadMode.DROPMALFORMED
    batches = task.read(
        schema, mode=mode, damage=view.damage, max_decompressed_bytes=max_decompressed_bytes
    )
    for batch in batches:
        of_batch = batch.column("offset").to_numpy(zero_copy_only=False)
        places = np.minimum(np.searchsorted(offsets, of_batch), offsets.size - 1)
        is_last = pa.array(offsets[places] == of_batch)
        rows = batch.filter(pc.and_(is_last, batch.column("value").is_valid()))
        if rows.num_rows:
            yield rows


LATEST = MetadataTable(
    "latest",
    _TEXT.schema,
    latest_records,
    text=_TEXT,
    options={"end": "is about whole logs", "max_decompressed_bytes": ""},
)


def decoded_latest(
    typed: TypedRecords,
    schema: pa.Schema,
    mode: ReadMode = ReadMode.FAILFAST,
    *,
    end: OffsetSpecs = LOG_END,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> MetadataTable:
    """Return table ``latest`` with typed keys and values, and only the rows that pass conditions.

    A key whose last record does not pass, or cannot be decoded and is left out, has no row: never
    one of an older record.

    Parameters
    ----------
    typed
        `Scan.typed` of a scan of the same topics, with `value_format` or `key_format`.
    schema
        `Scan.schema` of that scan, whose columns are those of the table, or others of records, and
        whose ``timestamp_unit`` is "ms".
    mode
        What happens to values that cannot be decoded, as for `pylog.scan`.
    end, max_decompressed_bytes
        See `pylog.jobs.metadata_table`.

    Examples
    --------
    >>> scan = pylog.scan("kafka/intact", topics="orders", value_format="json", columns="value")
    >>> pylog.jobs.decoded_latest(scan.typed, scan.schema).schema.names
    ['value']
    """
    rows = partial(
        latest_records,
        end=end,
        max_decompressed_bytes=max_decompressed_bytes,
        decoding=_Decoding(typed, schema, mode),
    )
    return replace(LATEST, schema=schema, record_batches=rows)

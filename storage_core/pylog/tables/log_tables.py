"""Tables of a log and its side files: ends, segments, indexes, transactions, producers, findings.

Each text below is a table as the documentation has it: what it is about, then its columns by name,
type and meaning. Its schema is made of these.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from pylog.checks.examination import Examination
from pylog.checks.indexes import read_offset_index, read_time_index
from pylog.columnar.arrow_buffers import fixed_width_array, string_array
from pylog.columnar.rows import TIMESTAMP, TableText, none_if
from pylog.columnar.rows import table_of_rows as arrow_table
from pylog.errors import (
    CorruptCheckpointError,
    CorruptIndexError,
    CorruptSnapshotError,
    UnreadableFileError,
)
from pylog.files.file_names import (
    INDEX_FILE_SUFFIX,
    PRODUCER_SNAPSHOT_FILE_SUFFIX,
    TIME_INDEX_FILE_SUFFIX,
    TXN_INDEX_FILE_SUFFIX,
    file_name_prefix,
)
from pylog.files.partition_metadata import format_uuid
from pylog.files.producer_snapshot import NO_OFFSET, ProducerSnapshotEntry, read_producer_snapshot
from pylog.files.transaction_index import read_transaction_index
from pylog.findings.finding import FINDINGS
from pylog.locations import join, name_of, printable_location
from pylog.model import NO_SEQUENCE, NO_TIMESTAMP
from pylog.reading.damage import Attempts
from pylog.reading.headers import SegmentHeaders
from pylog.reading.log_view import first_timestamp
from pylog.reading.producer_transactions import find_transactions
from pylog.reading.transactions import find_last_stable_offset
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.record.header_sums import HeaderSums, codec_label
from pylog.tables.metadata_table import MetadataTable, table_of_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from pylog.checks.indexes import IndexColumns
    from pylog.reading.log_directory import TopicChoice
    from pylog.reading.log_view import LogView
    from pylog.reading.segments import LogSegmentView


_SEGMENTS = TableText.of_partitions("""\
The files of each segment and what the headers in it add up to.

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
offset_index      index_state  in what state the file is; see below
time_index        index_state  likewise
transaction_index index_state  likewise
path              string       of the ``.log`` file
""")

_TRANSACTIONS = TableText.of_partitions("""\
What each producer wrote between two of its markers.

producer_id             int64     whose transaction it is
producer_epoch          int32     of its data; of the marker where no data is left
first_offset            int64     of its first batch, also of one that is gone, if that is known
last_offset             int64     of its last data batch; null where no data is left
state                   string    committed, aborted, or open: no marker follows; unknown: damage
                                  was left out inside it, and a marker may have been there
marker_offset           int64     of the marker that ends it; null while it is open
size_in_bytes           int64     of its data batches
batches                 int64     data batches that are there
records                 int64     records in them
begins_before_log_start bool      whether its first offset lies below the log start offset, where
                                  retention has deleted it; null where that is not known, for want
                                  of a side file that can be read
first_timestamp         timestamp the largest of its first batch that is there; null where none is
marker_timestamp        timestamp of that marker; null while it is open

In the order of decisions: by marker, then what is open by first offset.
""")

_PRODUCERS = TableText.of_partitions("""\
What each producer snapshot of a partition says, a row a producer.

snapshot                 string       name of the file
snapshot_offset          int64        the state is the one before this offset
producer_id              int64        whose state it is
producer_epoch           int32        the latest that the log has seen
first_sequence           int32        of its last batch
last_sequence            int32        of its last batch
last_offset              int64        of its last data record
offset_delta             int32        last minus first offset of its last batch
timestamp                timestamp    of that batch, or of a later marker
coordinator_epoch        int32        of its last marker
current_txn_first_offset int64        of its open transaction
defect                   string       why the file cannot be read; all but its name is null then

A value that the producer has not given rise to is null. A snapshot without producers has no row. A
damaged one is normal after a crash: a broker deletes it and takes an older one; here it is a row.
""")

_LEADER_EPOCHS = TableText.of_partitions("""\
Which leader wrote which offsets, from ``leader-epoch-checkpoint``.

epoch          int32   the number that the controller gave the leader
start_offset   int64   the first offset written under it
end_offset     int64   where the next epoch starts; the log end offset for the last
defect         string  in a row without an epoch: why the file cannot be read. In the row of the
                       last epoch: why the log end offset is not known

No row where a partition has no such file (brokers before 0.11, formats v0 and v1).
""")

_PARTITIONS = TableText.of_partitions("""\
Where each log begins and ends.

log_start_offset   int64        first offset that a broker serves
log_end_offset     int64        offset after the last record
last_stable_offset int64        first offset of the oldest open transaction; log_end_offset
                                without one
segments           int64        how many the log has
size_in_bytes      int64        of all ``.log`` files
first_timestamp    timestamp    of the first batch that is served: its first record's, the batch's
                                largest where a header lacks that; null where damage that
                                is skipped lies before it
last_timestamp     timestamp    the largest of the last batch
leader_epoch       int32        the latest; null where none is known
topic_id           string       as Kafka writes it; null before Kafka 2.8
leftover_files     int64        ending in ``.deleted``, ``.cleaned`` or ``.swap``: not in the log
path               string       of the directory
defects            list<string> what is wrong with files or the directory, each with its path; empty
                                if nothing. What is unknown because of that is null

One row a partition, whatever is wrong with it: the table is the overview that shows which one is.
From file names, side files and few headers; the last stable offset may take the headers of all that
has been written since the newest producer snapshot. Timestamps need not be in order.
""")

_CONTENT_COLUMNS = 10  # of partitions: all but topic, partition, path and defects
_NO_COORDINATOR_EPOCH = -1
_NUMBERS = 9  # columns that a damaged file leaves empty
_SEQUENCES = 1 << 31


def _partitions(view: LogView) -> Iterator[tuple[object, ...]]:
    """Yield the one row of a partition; damage is a value in it, and no error."""
    attempts = Attempts()
    segments = attempts.read(lambda: view.segments)
    if segments is None:
        yield (
            *[None] * _CONTENT_COLUMNS,
            printable_location(view.directory.path),
            _defects(attempts),
        )
        return
    for segment in segments:
        attempts.read(segment.ensure_readable)
    start_offset = attempts.read(lambda: view.log_start_offset)
    # Where the start is not known, the files still show the end.
    end_offset = attempts.read(
        lambda: view.next_offset if start_offset is None else view.log_end_offset
    )
    is_whole = start_offset is not None and end_offset is not None
    last = None if end_offset is None else attempts.read(lambda: view.last_header)
    metadata = attempts.read(lambda: view.metadata)
    attempts.read(lambda: view.leader_epochs)
    yield (
        start_offset,
        end_offset,
        attempts.read(lambda: find_last_stable_offset(view)) if is_whole else None,
        len(segments),
        view.size_bytes,
        attempts.read(lambda: first_timestamp(view)) if is_whole else None,
        None if last is None else none_if(last.max_timestamp, NO_TIMESTAMP),
        attempts.read(lambda: view.latest_leader_epoch),
        None if metadata is None else format_uuid(metadata.topic_id),
        view.leftover_file_count,
        printable_location(view.directory.path),
        _defects(attempts),
    )


def _defects(attempts: Attempts) -> list[str]:
    attempts.ensure_all_there()
    return [str(error) for error in attempts.errors]


def _segments(view: LogView) -> Iterator[tuple[object, ...]]:
    for index, segment in enumerate(view.segments):
        headers = SegmentHeaders(view, index)
        sums = HeaderSums()
        for window in headers:
            sums.add(window.headers)
        path = segment.file_path()
        yield (
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
            *_index_states(segment, headers.end_position, headers.next_offset),
            path,
        )


# missing; empty: no entry, as of a new segment; ok; or damaged: what Kafka would rebuild,
# what cannot be read, is out of order, or points beyond the last batch.
class _IndexState(NamedTuple):
    state: str
    entries: int | None = None
    reason: str | None = None


def _index_states(
    segment: LogSegmentView, end_position: int, next_offset: int
) -> list[dict[str, object]]:
    """Return the states of its offset, time and transaction index; what its batches end before."""
    states = (
        _offset_index(segment, end_position),
        _time_index(segment, next_offset),
        _transaction_index(segment),
    )
    return [state._asdict() for state in states]


def _offset_index(segment: LogSegmentView, end_position: int) -> _IndexState:
    if INDEX_FILE_SUFFIX not in segment.suffixes:
        return _IndexState("missing")
    index = read_offset_index(segment.file_path(INDEX_FILE_SUFFIX), segment.base_offset)
    last = int(index.values[-1]) if index.values.size else -1
    contradiction = None
    if last >= end_position:
        contradiction = f"last entry is byte {last} of the log, whose batches end at {end_position}"
    return _state(index, contradiction)


def _time_index(segment: LogSegmentView, next_offset: int) -> _IndexState:
    if not segment.has_time_index:
        return _IndexState("missing")
    index = read_time_index(segment.file_path(TIME_INDEX_FILE_SUFFIX), segment.base_offset)
    last = int(index.offsets[-1]) if index.offsets.size else -1
    contradiction = None
    if last >= next_offset:
        contradiction = (
            f"last entry has offset {last}, the segment's batches end before {next_offset}"
        )
    return _state(index, contradiction)


def _state(index: IndexColumns, contradiction: str | None) -> _IndexState:
    entries = index.offsets.size
    reason = index.defect or contradiction
    if reason is not None:
        return _IndexState("damaged", entries, reason)
    return _IndexState("ok" if entries else "empty", entries)


def _transaction_index(segment: LogSegmentView) -> _IndexState:
    if not segment.has_transaction_index:
        return _IndexState("missing")
    try:
        entries = len(read_transaction_index(segment.file_path(TXN_INDEX_FILE_SUFFIX)))
    except (CorruptIndexError, UnreadableFileError) as error:
        return _IndexState("damaged", None, str(error.reason))
    return _IndexState("ok" if entries else "empty", entries)


def _producers(view: LogView) -> Iterator[tuple[object, ...]]:
    for offset in sorted(view.producer_snapshot_offsets):
        name = file_name_prefix(offset) + PRODUCER_SNAPSHOT_FILE_SUFFIX
        try:
            entries = read_producer_snapshot(join(view.directory.path, name))
        except (CorruptSnapshotError, UnreadableFileError) as error:
            yield name, offset, *[None] * _NUMBERS, error.reason
            continue
        for entry in sorted(entries):  # in the file they have the order of a hash map
            yield name, offset, *_values(entry), None


def _values(entry: ProducerSnapshotEntry) -> tuple[int | None, ...]:
    has_data = entry.last_offset != NO_OFFSET
    return (
        entry.producer_id,
        entry.producer_epoch,
        _first_sequence(entry),
        none_if(entry.last_sequence, NO_SEQUENCE),
        none_if(entry.last_offset, NO_OFFSET),
        entry.offset_delta if has_data else None,
        none_if(entry.timestamp, NO_TIMESTAMP),
        none_if(entry.coordinator_epoch, _NO_COORDINATOR_EPOCH),
        none_if(entry.current_txn_first_offset, NO_OFFSET),
    )


def _first_sequence(entry: ProducerSnapshotEntry) -> int | None:
    """Return the sequence of the last batch's first record; they go from 2^31-1 to 0."""
    if entry.last_sequence == NO_SEQUENCE:
        return None
    return (entry.last_sequence - entry.offset_delta) % _SEQUENCES


def _leader_epochs(view: LogView) -> Iterator[tuple[object, ...]]:
    _ = view.listing  # raises where nothing is known of the partition
    try:
        entries = view.leader_epochs
    except (CorruptCheckpointError, UnreadableFileError) as error:
        yield None, None, None, error.reason
        return
    for entry, following in pairwise(entries):
        yield entry.epoch, entry.start_offset, following.start_offset, None
    if entries:
        last = entries[-1]
        attempts = Attempts()
        end = attempts.read(lambda: view.log_end_offset)
        if end is not None:
            end = max(last.start_offset, end)  # an epoch may have begun without a record
        defect = str(attempts.errors[0]) if attempts.errors else None
        yield last.epoch, last.start_offset, end, defect


PARTITIONS = table_of_rows("partitions", _PARTITIONS, _partitions)
SEGMENTS = table_of_rows("segments", _SEGMENTS, _segments)
TRANSACTIONS = table_of_rows("transactions", _TRANSACTIONS, find_transactions)
PRODUCERS = table_of_rows("producers", _PRODUCERS, _producers)
LEADER_EPOCHS = table_of_rows("leader_epochs", _LEADER_EPOCHS, _leader_epochs)


_FINDINGS = TableText.of_partitions(FINDINGS)


class _Findings:
    """What doctor finds under some paths, of the partitions that are chosen."""

    def __init__(self, paths: Sequence[str], choice: TopicChoice) -> None:
        self._examination = Examination(paths)
        self._choice = choice

    def of(self, view: LogView, max_decompressed_bytes: int) -> Iterator[tuple[object, ...]]:
        """Yield the findings about one partition, in each directory that it has."""
        for each in self._examination.views_of.get(view.topic_partition, ()):
            check = self._examination.check(each, max_decompressed_bytes=max_decompressed_bytes)
            for finding in check.findings:
                yield finding.row()

    def record_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the findings about log directories."""
        examination = self._examination
        not_live = [
            (each, each.findings())
            for each in examination.not_live
            if each.view.directory in self._choice
        ]
        examination.look_at_groups(
            each for each in examination.views if each.directory in self._choice
        )
        rows = [
            (None, None, *finding.row())
            for check in examination.checks
            for finding in examination.findings_of(check, not_live)
        ]
        if rows:
            yield from arrow_table(rows, _FINDINGS.schema).to_batches()


def _findings(
    view: LogView,
    *,
    around: _Findings,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> Iterator[tuple[object, ...]]:
    return around.of(view, max_decompressed_bytes)


FINDINGS_TABLE = table_of_rows(
    "findings", _FINDINGS, _findings, _Findings, max_decompressed_bytes=""
)


_INDEX_ENTRIES = TableText.of_partitions("""\
What the offset, time and transaction indexes say, a row an entry.

index              string       offset, time or transaction
file               string       name of the file
entry              int64        place in the file, from 0
offset             int64        offset, time: the offset indexed
position           int64        offset: byte of the ``.log`` file
timestamp          timestamp    time: the largest one up to that offset
producer_id        int64        transaction: of an aborted transaction
first_offset       int64        transaction: its first offset
last_offset        int64        transaction: that of its ABORT marker
last_stable_offset int64        transaction: right after the abort
defect             string       what is wrong with the file, in a row of its own after the entries
                                that can be read; all but the file's name is null there

As stored: nothing here is checked against the log. Slots of a preallocated file are not entries.
""")
_INDEX_SCHEMA = _INDEX_ENTRIES.schema

_TRANSACTION_COLUMNS = ("producer_id", "first_offset", "last_offset", "last_stable_offset")


def _index_entries(view: LogView) -> Iterator[pa.RecordBatch]:
    """Yield the entries by segment, kind of index and place in the file, a record batch a file."""
    for segment in view.segments:
        path, base_offset = segment.file_path(INDEX_FILE_SUFFIX), segment.base_offset
        offset_index = read_offset_index(path, base_offset)
        columns = {"offset": offset_index.offsets, "position": offset_index.values}
        yield _index_batch(view, "offset", path, _index_arrays(columns))
        yield from _index_defect(view, "offset", path, offset_index)
        path = segment.file_path(TIME_INDEX_FILE_SUFFIX)
        time_index = read_time_index(path, base_offset)
        stamps = fixed_width_array(time_index.values, null=NO_TIMESTAMP).view(TIMESTAMP)
        arrays = {**_index_arrays({"offset": time_index.offsets}), "timestamp": stamps}
        yield _index_batch(view, "time", path, arrays)
        yield from _index_defect(view, "time", path, time_index)
        if segment.has_transaction_index:
            path = segment.file_path(TXN_INDEX_FILE_SUFFIX)
            yield _index_batch(view, "transaction", path, _transaction_entries(path))


def _transaction_entries(path: str) -> dict[str, pa.Array]:
    try:
        entries = read_transaction_index(path)
    except (CorruptIndexError, UnreadableFileError) as error:
        # A row and not an error: readers do without a transaction index that is damaged.
        return _defect_arrays(error.reason)
    return _index_arrays(
        {
            name: np.array([getattr(entry, name) for entry in entries], dtype=np.int64)
            for name in _TRANSACTION_COLUMNS
        }
    )


def _index_defect(
    view: LogView, index: str, path: str, columns: IndexColumns
) -> Iterator[pa.RecordBatch]:
    if columns.defect is not None:
        yield _index_batch(view, index, path, _defect_arrays(columns.defect))


def _defect_arrays(defect: str) -> dict[str, pa.Array]:
    return {"entry": pa.nulls(1, pa.int64()), "defect": string_array([defect])}


def _index_arrays(columns: dict[str, npt.NDArray[np.int64]]) -> dict[str, pa.Array]:
    arrays = {name: fixed_width_array(values) for name, values in columns.items()}
    entries = min(map(len, arrays.values()))
    return {"entry": fixed_width_array(np.arange(entries, dtype=np.int64)), **arrays}


def _index_batch(
    view: LogView, index: str, path: str, arrays: dict[str, pa.Array]
) -> pa.RecordBatch:
    rows = len(arrays["entry"])
    constants = {"topic": view.topic, "index": index, "file": name_of(path)}
    columns = {
        **arrays,
        **{name: pa.repeat(string_array([text])[0], rows) for name, text in constants.items()},
        "partition": fixed_width_array(np.full(rows, view.partition, dtype=np.int32)),
    }
    return pa.RecordBatch.from_arrays(
        [
            columns[field.name] if field.name in columns else pa.nulls(rows, field.type)
            for field in _INDEX_SCHEMA
        ],
        schema=_INDEX_SCHEMA,
    )


INDEX_ENTRIES = MetadataTable("index_entries", _INDEX_SCHEMA, _index_entries, text=_INDEX_ENTRIES)

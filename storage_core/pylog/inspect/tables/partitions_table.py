"""Table ``partitions``: where each log begins and ends.

================== ============ =========================================================
column             type         meaning
================== ============ =========================================================
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
================== ============ =========================================================

One row a partition, whatever is wrong with it: the table is the overview that shows which one is.
From file names, side files and few headers; the last stable offset may take the headers of all that
has been written since the newest producer snapshot. Timestamps need not be in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pylog.files.partition_metadata import format_uuid
from pylog.inspect.tables.row_batches import TIMESTAMP, none_if, record_batches, table_schema
from pylog.locations import printable_location
from pylog.log_file.batch_walk import find_whole_batches
from pylog.model import NO_PARTITION_LEADER_EPOCH, NO_TIMESTAMP
from pylog.reading.damage import Attempts
from pylog.reading.log_view import first_timestamp
from pylog.reading.transactions import find_last_stable_offset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.reading.log_view import LogView
    from pylog.record.batch_header import BatchHeader

PARTITIONS_SCHEMA = table_schema(
    ("log_start_offset", pa.int64()),
    ("log_end_offset", pa.int64()),
    ("last_stable_offset", pa.int64()),
    ("segments", pa.int64()),
    ("size_in_bytes", pa.int64()),
    ("first_timestamp", TIMESTAMP),
    ("last_timestamp", TIMESTAMP),
    ("leader_epoch", pa.int32()),
    ("topic_id", pa.string()),
    ("leftover_files", pa.int64()),
    ("path", pa.string()),
    ("defects", pa.list_(pa.string())),
)


_CONTENT_COLUMNS = len(PARTITIONS_SCHEMA) - 4  # all columns but topic, partition, path, defects


def partitions_of(view: LogView) -> Iterator[pa.RecordBatch]:
    """Yield the one row of a partition; damage is a value in it, and no error."""
    return record_batches(view.topic_partition, _rows(view), PARTITIONS_SCHEMA)


def _rows(view: LogView) -> Iterator[tuple[object, ...]]:
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
    last = None if end_offset is None else attempts.read(lambda: _last_header(view))
    metadata = attempts.read(lambda: view.metadata)
    yield (
        start_offset,
        end_offset,
        attempts.read(lambda: find_last_stable_offset(view)) if is_whole else None,
        len(segments),
        view.size_bytes,
        attempts.read(lambda: first_timestamp(view)) if is_whole else None,
        None if last is None else none_if(last.max_timestamp, NO_TIMESTAMP),
        attempts.read(lambda: _latest_leader_epoch(view, last)),
        None if metadata is None else format_uuid(metadata.topic_id),
        view.leftover_file_count,
        printable_location(view.directory.path),
        _defects(attempts),
    )


def _defects(attempts: Attempts) -> list[str]:
    return [str(error) for error in attempts.errors]


def _last_header(view: LogView) -> BatchHeader | None:
    """Return the last batch's header; the last segments may be empty."""
    if view.end.last is not None:
        return view.end.last.header
    for segment in reversed(view.segments[:-1]):
        # All headers of one segment, where the next one has just been rolled.
        with segment.open_log() as source:
            batches = find_whole_batches(
                source, 0, segment.size_bytes, lowest_offset=segment.base_offset
            )
        if batches.last is not None:
            return batches.last.header
    return None


def _latest_leader_epoch(view: LogView, last: BatchHeader | None) -> int | None:
    """Return what the checkpoint says or, where there is none, the last batch."""
    if view.leader_epochs:
        return view.leader_epochs[-1].epoch
    if last is None:
        return None
    return none_if(last.partition_leader_epoch, NO_PARTITION_LEADER_EPOCH)

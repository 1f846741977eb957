"""Table ``producers``: what each producer snapshot of a partition says, a row a producer.

======================== ============ ===================================================
column                   type         meaning
======================== ============ ===================================================
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
======================== ============ ===================================================

A value that the producer has not given rise to is null. A snapshot without producers has no row. A
damaged one is normal after a crash: a broker deletes it and takes an older one; here it is a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pylog.errors import CorruptSnapshotError, UnreadableFileError
from pylog.files.file_names import PRODUCER_SNAPSHOT_FILE_SUFFIX, file_name_prefix
from pylog.files.producer_snapshot import NO_OFFSET, ProducerStateEntry, read_producer_snapshot
from pylog.inspect.tables.row_batches import TIMESTAMP, none_if, record_batches, table_schema
from pylog.locations import join
from pylog.model import NO_SEQUENCE, NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.reading.log_view import LogView

PRODUCERS_SCHEMA = table_schema(
    ("snapshot", pa.string()),
    ("snapshot_offset", pa.int64()),
    ("producer_id", pa.int64()),
    ("producer_epoch", pa.int32()),
    ("first_sequence", pa.int32()),
    ("last_sequence", pa.int32()),
    ("last_offset", pa.int64()),
    ("offset_delta", pa.int32()),
    ("timestamp", TIMESTAMP),
    ("coordinator_epoch", pa.int32()),
    ("current_txn_first_offset", pa.int64()),
    ("defect", pa.string()),
)

_NO_COORDINATOR_EPOCH = -1
_NUMBERS = 9  # columns that a damaged file leaves empty
_SEQUENCES = 1 << 31


def producers_of(view: LogView) -> Iterator[pa.RecordBatch]:
    """Yield the content of a partition's snapshots by their offset, then by producer id.

    Raises
    ------
    SegmentVanishedError
        A file is gone since the directory was listed.
    """
    return record_batches(view.topic_partition, _rows(view), PRODUCERS_SCHEMA)


def _rows(view: LogView) -> Iterator[tuple[object, ...]]:
    for offset in sorted(view.producer_snapshot_offsets):
        name = file_name_prefix(offset) + PRODUCER_SNAPSHOT_FILE_SUFFIX
        try:
            entries = read_producer_snapshot(join(view.directory.path, name))
        except (CorruptSnapshotError, UnreadableFileError) as error:
            yield name, offset, *[None] * _NUMBERS, error.reason
            continue
        for entry in sorted(entries):  # in the file they have the order of a hash map
            yield name, offset, *_values(entry), None


def _values(entry: ProducerStateEntry) -> tuple[int | None, ...]:
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


def _first_sequence(entry: ProducerStateEntry) -> int | None:
    """Return the sequence of the last batch's first record; they go from 2^31-1 to 0."""
    if entry.last_sequence == NO_SEQUENCE:
        return None
    return (entry.last_sequence - entry.offset_delta) % _SEQUENCES

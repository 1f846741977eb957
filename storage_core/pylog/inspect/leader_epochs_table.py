"""Table ``leader_epochs``: which leader wrote which offsets, from ``leader-epoch-checkpoint``.

============== ======= ==========================================================
column         type    meaning
============== ======= ==========================================================
epoch          int32
start_offset   int64   the first offset written under it
end_offset     int64   where the next epoch starts; the log end offset for the last
============== ======= ==========================================================

No row where a partition has no such file (brokers before 0.11, formats v0 and v1).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa

from pylog.inspect.row_batches import record_batches, table_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.scan.log_view import LogView

LEADER_EPOCHS_SCHEMA = table_schema(
    ("epoch", pa.int32()), ("start_offset", pa.int64()), ("end_offset", pa.int64())
)


def leader_epochs_of(view: LogView) -> Iterator[pa.RecordBatch]:
    """Yield the leader epochs of one partition, oldest first.

    Raises
    ------
    CorruptCheckpointError
        The file does not follow its format.
    CorruptRecordError
        Where the log ends cannot be told.
    """
    return record_batches(view.topic_partition, _rows(view), LEADER_EPOCHS_SCHEMA)


def _rows(view: LogView) -> Iterator[tuple[object, ...]]:
    entries = view.leader_epochs
    for entry, following in pairwise(entries):
        yield entry.epoch, entry.start_offset, following.start_offset
    if entries:
        last = entries[-1]
        # An epoch may have begun without a record; it ends where it starts then.
        yield last.epoch, last.start_offset, max(last.start_offset, view.log_end_offset)

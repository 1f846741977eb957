"""Table ``leader_epochs``: which leader wrote which offsets, from ``leader-epoch-checkpoint``.

============== ======= ==========================================================
column         type    meaning
============== ======= ==========================================================
epoch          int32   the number that the controller gave the leader
start_offset   int64   the first offset written under it
end_offset     int64   where the next epoch starts; the log end offset for the last
defect         string  in a row without an epoch: why the file cannot be read. In the row of the
                       last epoch: why the log end offset is not known
============== ======= ==========================================================

No row where a partition has no such file (brokers before 0.11, formats v0 and v1).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa

from pylog.errors import CorruptCheckpointError, UnreadableFileError
from pylog.inspect.tables.row_batches import record_batches, table_schema
from pylog.reading.damage import Attempts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.reading.log_view import LogView

LEADER_EPOCHS_SCHEMA = table_schema(
    ("epoch", pa.int32()),
    ("start_offset", pa.int64()),
    ("end_offset", pa.int64()),
    ("defect", pa.string()),
)


def leader_epochs_of(view: LogView) -> Iterator[pa.RecordBatch]:
    """Yield the leader epochs of one partition, oldest first.

    Raises
    ------
    LogDirectoryError
        The directory cannot be listed.
    """
    return record_batches(view.topic_partition, _rows(view), LEADER_EPOCHS_SCHEMA)


def _rows(view: LogView) -> Iterator[tuple[object, ...]]:
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

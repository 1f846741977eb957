"""Table ``transactions``: what each producer wrote between two of its markers.

======================= ========= ===============================================================
column                  type      meaning
======================= ========= ===============================================================
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
======================= ========= ===============================================================

The order is that of `pylog.inspect.transactions`, which finds them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pylog.inspect.tables.row_batches import TIMESTAMP, record_batches, table_schema
from pylog.inspect.transactions import find_transactions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.reading.log_view import LogView

TRANSACTIONS_SCHEMA = table_schema(
    ("producer_id", pa.int64()),
    ("producer_epoch", pa.int32()),
    ("first_offset", pa.int64()),
    ("last_offset", pa.int64()),
    ("state", pa.string()),
    ("marker_offset", pa.int64()),
    ("size_in_bytes", pa.int64()),
    ("batches", pa.int64()),
    ("records", pa.int64()),
    ("begins_before_log_start", pa.bool_()),
    ("first_timestamp", TIMESTAMP),
    ("marker_timestamp", TIMESTAMP),
)


def transactions_of(view: LogView) -> Iterator[pa.RecordBatch]:
    """Yield the transactions of one partition, after a look at all headers.

    Raises
    ------
    CorruptRecordError
        A header is impossible, or offsets go back.
    """
    return record_batches(view.topic_partition, find_transactions(view), TRANSACTIONS_SCHEMA)

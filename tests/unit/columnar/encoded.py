"""Columns that tests encode, and the batches that come of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pylog.columnar.encode import RecordEncoder


def encoded(data: pa.RecordBatch | pa.Table, *, timestamp_ms: int = -1, **options: Any) -> bytes:  # noqa: ANN401
    encoder = RecordEncoder(**{"partition_leader_epoch": 0} | options)
    return b"".join(bytes(batch.data) for batch in encoder.encode(data, timestamp_ms=timestamp_ms))


def batch_of(**columns: pa.Array) -> pa.RecordBatch:
    """Return a record batch of values and what else is given."""
    rows = len(next(iter(columns.values())))
    columns.setdefault("value", pa.array([b"v"] * rows, pa.binary()))
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))

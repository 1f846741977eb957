"""Rows that no record gives: of a place alone, for tools that count, and of damaged bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.columnar.arrow_buffers import fixed_width_array, string_array
from pylog.columnar.arrow_schema import CORRUPT_RECORD, record_schema
from pylog.columnar.record_columns import ConstantColumns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.model import TopicPartition


def damaged_row(schema: pa.Schema, topic_partition: TopicPartition, reason: str) -> pa.RecordBatch:
    """Return one row: where and why in ``_corrupt_record``, topic and partition, else nulls."""
    known = {
        "topic": lambda: string_array([topic_partition.topic]),
        "partition": lambda: fixed_width_array(np.array([topic_partition.partition], np.int32)),
        CORRUPT_RECORD: lambda: string_array([reason]),
    }
    arrays = [
        known[field.name]() if field.name in known else pa.nulls(1, field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


PLACE_COLUMNS = frozenset(("topic", "partition"))

_ROWS_A_BATCH = 1 << 16


def place_rows(
    topic_partition: TopicPartition, count: int, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield ``count`` rows of a partition."""
    constant = ConstantColumns(topic_partition)
    whole = record_schema(("topic", "partition"))
    for start in range(0, count, _ROWS_A_BATCH):
        rows = min(_ROWS_A_BATCH, count - start)
        columns = [constant.topic(rows), constant.partition(rows)]
        yield pa.RecordBatch.from_arrays(columns, schema=whole).select(schema.names)

"""Rows that say nothing of records but where they are: the topic and the partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pylog.columnar.arrow_schema import record_schema
from pylog.columnar.constant_columns import ConstantColumns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.model import TopicPartition

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

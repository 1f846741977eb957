"""The row that stands for a damaged range in mode PERMISSIVE."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.columnar.arrow_buffers import fixed_width_array, string_array
from pylog.columnar.arrow_schema import CORRUPT_RECORD

if TYPE_CHECKING:
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

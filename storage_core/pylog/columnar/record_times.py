"""Offsets and timestamps of the records of single batches: all that a look-up by time needs.

Control records count. Nothing else of a record is decoded, so memory is that of two numbers a
record, and of one piece of a batch at that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.columnar.arrow_buffers import int64_values
from pylog.columnar.arrow_schema import record_schema
from pylog.columnar.decode import RecordDecoder
from pylog.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.record.batch_scan import Window

_NOBODY = TopicPartition("", 0)  # columns that name the partition are not asked for
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


class RecordTimes:
    """Decodes offsets and timestamps; keeps memory between batches. One thread."""

    def __init__(self) -> None:
        schema = record_schema(("offset", "timestamp"), timestamp_unit="ms")
        self._decoder = RecordDecoder(_NOBODY, schema)

    def from_timestamp(self, window: Window, timestamp: int) -> Iterator[tuple[int, int]]:
        """Yield (offset, timestamp in ms) of the records that are not before ``timestamp`` ms."""
        for batch in self._decoder.decode(window, _LOWEST, _HIGHEST):
            offsets, timestamps = map(int64_values, batch.columns)
            late = np.flatnonzero(timestamps >= timestamp)
            yield from zip(offsets[late].tolist(), timestamps[late].tolist(), strict=True)

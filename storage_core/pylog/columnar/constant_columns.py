"""Columns that are the same for every row of a partition, or of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.columnar.arrow_buffers import fixed_width_array, string_array
from pylog.model import TimestampType
from pylog.record.batch_layout import TIMESTAMP_TYPE_MASK

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.model import TopicPartition
    from pylog.record.batch_scan import BatchHeaders


class ConstantColumns:
    """Makes constant arrays once and hands out slices of them.

    An array is made again, with twice the rows, only when more rows are wanted than ever before.
    One thread.
    """

    def __init__(self, topic_partition: TopicPartition) -> None:
        self._topic_partition = topic_partition
        self._made: dict[str | int, pa.Array] = {}

    def _slice(self, constant: str | int, rows: int) -> pa.Array:
        array = self._made.get(constant)
        if array is None or len(array) < rows:
            one = string_array([constant]) if isinstance(constant, str) else _int32([constant])
            array = pa.repeat(one[0], max(1024, 2 * rows))
            self._made[constant] = array
        return array.slice(0, rows)

    def topic(self, rows: int) -> pa.Array:
        """Return the topic's name ``rows`` times."""
        return self._slice(self._topic_partition.topic, rows)

    def partition(self, rows: int) -> pa.Array:
        """Return the partition's number ``rows`` times."""
        return self._slice(self._topic_partition.partition, rows)

    def timestamp_type(
        self, headers: BatchHeaders, batch_rows: npt.NDArray[np.int64], rows: int
    ) -> pa.Array:
        """Return each row's timestamp type, which is its batch's."""
        if headers.traits.all_v2 and not headers.traits.any_has(TIMESTAMP_TYPE_MASK):
            return self._slice(TimestampType.CREATE_TIME.value, rows)
        types = headers.is_append_time.astype(np.int32)
        types[headers.magics == 0] = TimestampType.NO_TIMESTAMP_TYPE
        if types.min() == types.max():
            return self._slice(int(types[0]), rows)
        return fixed_width_array(np.repeat(types, batch_rows))


def _int32(values: list[int]) -> pa.Array:
    return fixed_width_array(np.array(values, dtype=np.int32))

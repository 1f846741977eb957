"""Columns that are the same for every row of a partition, or of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.columnar.arrow_schema import HEADERS_TYPE

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.model import TopicPartition


class ConstantColumns:
    """Makes constant arrays once and hands out slices of them.

    An array is made anew, at twice the rows, only when more rows are asked for than ever before.
    One thread.
    """

    def __init__(self, topic_partition: TopicPartition) -> None:
        self._topic_partition = topic_partition
        self._made: dict[object, pa.Array] = {}

    def _slice(self, key: object, scalar: pa.Scalar, rows: int) -> pa.Array:
        array = self._made.get(key)
        if array is None or len(array) < rows:
            array = pa.repeat(scalar, max(1024, 2 * rows))
            self._made[key] = array
        return array.slice(0, rows)

    def topic(self, rows: int) -> pa.Array:
        """Return the topic's name ``rows`` times."""
        return self._slice("topic", pa.scalar(self._topic_partition.topic, pa.string()), rows)

    def partition(self, rows: int) -> pa.Array:
        """Return the partition's number ``rows`` times."""
        return self._slice(
            "partition", pa.scalar(self._topic_partition.partition, pa.int32()), rows
        )

    def no_headers(self, rows: int) -> pa.Array:
        """Return a ``headers`` column of nulls."""
        return pa.nulls(rows, HEADERS_TYPE)

    def timestamp_type(
        self, batch_types: npt.NDArray[np.int32], batch_rows: npt.NDArray[np.int64]
    ) -> pa.Array:
        """Return each row's timestamp type from its batch's.

        Parameters
        ----------
        batch_types
            Timestamp type ids, shape (batches,).
        batch_rows
            Rows that each batch gave, shape (batches,).
        """
        kinds = np.unique(batch_types)
        if kinds.size == 1:
            kind = int(kinds[0])
            return self._slice(kind, pa.scalar(kind, pa.int32()), int(batch_rows.sum()))
        return pa.array(np.repeat(batch_types.astype(np.int32), batch_rows))

"""Which partition of its topic each row goes to: the one it names, or one that is chosen for it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pylog.columnar.encode_input import binary_column
from pylog.writing.partitioner import DefaultPartitioner

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    import numpy.typing as npt

    Partitioner = Callable[[pa.RecordBatch], npt.ArrayLike]

UNASSIGNED = -1
"""Stands for a row whose partition the partitioner chooses."""

_INT16_MAX = 2**15 - 1
_NO_SIZES = np.empty(0, dtype=np.int64)
_RECORD_OVERHEAD = 8  # bytes of an encoded record beside key and value, about


def record_sizes(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Return about how many bytes each record takes, for a partitioner that balances bytes."""
    sizes = np.full(batch.num_rows, _RECORD_OVERHEAD, dtype=np.int64)
    for name in ("key", "value"):
        ends = binary_column(batch.column(name), name).ends
        if ends.size:
            sizes += np.diff(ends)
    return sizes


class ByKey:
    """Kafka's default partitioner as a function of a record batch; see `DefaultPartitioner`."""

    def __init__(self, partition_count: int, random_source: random.Random | None = None) -> None:
        self.partition_count = partition_count
        self._partitioner = DefaultPartitioner(partition_count, random_source or random.Random())  # noqa: S311 - no secret

    def __call__(self, batch: pa.RecordBatch) -> npt.NDArray[np.int32]:
        """Return the partition of each row."""
        keys = batch.column("key")
        # Sizes matter for records without keys alone.
        sizes_bytes = record_sizes(batch) if keys.null_count else _NO_SIZES
        return self._partitioner.partition_column(keys, sizes_bytes)


class PartitionAssignment:
    """Assigns rows to the partitions of one topic. One thread.

    Parameters
    ----------
    topic
        Its name, for errors.
    partitions
        The numbers of its partitions, ascending; more may be added meanwhile.
    partitioner
        A function that returns the partition of each row of a record batch; `ByKey` if None.
    """

    def __init__(
        self, topic: str, partitions: Collection[int], partitioner: Partitioner | None = None
    ) -> None:
        self._topic = topic
        self._partitions = partitions
        self._partitioner = partitioner
        self._by_key: ByKey | None = None

    def assign(
        self,
        batch: pa.RecordBatch,
        named: npt.NDArray[np.integer[Any]] | None,
        rows: npt.NDArray[np.int64] | None = None,
    ) -> npt.NDArray[np.int64]:
        """Return the partition of each row.

        Parameters
        ----------
        batch
            With columns ``key`` and ``value``.
        named
            The partition that each row names; `UNASSIGNED` where it names none. None: no row does.
        rows
            What errors call each row; its place in the batch if None.

        Raises
        ------
        ValueError
            A partition is not there, or the partitioner's result is not a partition for each row.
        """
        if named is None:
            assigned = self._chosen(batch)
        else:
            is_open = named == UNASSIGNED
            assigned = named.astype(np.int64)
            if is_open.any():
                assigned[is_open] = self._chosen(batch.filter(pa.array(is_open)))
        known = np.fromiter(self._partitions, dtype=np.int64)
        is_unknown = ~np.isin(assigned, known)
        if is_unknown.any():
            at = int(is_unknown.argmax())
            row = at if rows is None else int(rows[at])
            there = ", ".join(map(str, self._partitions)) or "none"
            msg = (
                f"row {row} goes to partition {assigned[at]} of topic {self._topic!r}; "
                f"partitions that are there: {there}"
            )
            raise ValueError(msg)
        return assigned

    def _chosen(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        if self._partitioner is None and list(self._partitions) == [0]:
            return np.zeros(batch.num_rows, dtype=np.int64)
        partitioner = self._partitioner or self._by_key_now()
        chosen = np.asarray(partitioner(batch))
        if chosen.shape != (batch.num_rows,) or chosen.dtype.kind not in "iu":
            msg = (
                f"partitioner gave {chosen.dtype} of shape {chosen.shape}, expected "
                f"{batch.num_rows} integers"
            )
            raise ValueError(msg)
        return chosen.astype(np.int64)

    def _by_key_now(self) -> ByKey:
        """Return the default partitioner over the partitions that are there now."""
        count = len(self._partitions)
        if set(range(count)) != set(self._partitions):
            msg = (
                f"partitions {', '.join(map(str, self._partitions))} of topic {self._topic!r} are "
                "here, not all from 0 on: a key then does not decide the partition; name "
                "the partition of each record"
            )
            raise ValueError(msg)
        if self._by_key is None or self._by_key.partition_count != count:
            self._by_key = ByKey(count)
        return self._by_key


def rows_by_partition(
    assigned: npt.NDArray[np.int64],
) -> Iterator[tuple[int, npt.NDArray[np.intp] | None]]:
    """Yield each partition with its rows, in their order; None for all of them."""
    if not assigned.size:
        return
    first = int(assigned[0])
    if (assigned == first).all():
        yield first, None
        return
    fits = assigned.min() >= 0 and assigned.max() <= _INT16_MAX
    numbers = assigned.astype(np.int16) if fits else assigned  # NumPy sorts 16 bits by radix.
    order = np.argsort(numbers, kind="stable")  # Rows of a partition stay in order.
    in_order = numbers[order]
    starts = np.flatnonzero(in_order[1:] != in_order[:-1]) + 1
    firsts = in_order[np.concatenate(([0], starts))]
    yield from zip(firsts.tolist(), np.split(order, starts), strict=True)

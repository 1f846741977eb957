"""Partitioners that are chosen by name, and those that a caller brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.writing.partition_assignment import ByKey
from pylog.writing.partitioner import IntegerKeyPartitioner, RoundRobinPartitioner
from pylog.writing.partitioner_names import PARTITIONER_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Sized

    import numpy.typing as npt
    import pyarrow as pa

    from pylog.writing.partition_assignment import Partitioner


def _default(count: int) -> Partitioner | None:
    return None if count == 1 else ByKey(count)


def _round_robin(count: int) -> Partitioner:
    partitioner = RoundRobinPartitioner(count)
    return lambda batch: partitioner.partitions(batch.num_rows)


def _integer_key(count: int) -> Partitioner:
    partitioner = IntegerKeyPartitioner(count)
    return lambda batch: partitioner.partition_column(batch.column("key"))


_BY_NAME: dict[str, Callable[[int], Partitioner | None]] = {
    "default": _default,
    "round_robin": _round_robin,
    "integer_key": _integer_key,
}


def ensure_known_partitioner(partitioner: str | Partitioner) -> None:
    """Raise ``ValueError`` unless it is a function or the name of a partitioner."""
    if not callable(partitioner) and partitioner not in _BY_NAME:
        known = ", ".join(PARTITIONER_NAMES)
        msg = f"partitioner {partitioner!r} is neither a function nor one of {known}"
        raise ValueError(msg)


def partitioner_for(chosen: str | Partitioner, count: int) -> Partitioner | None:
    """Return what chooses among ``count`` partitions; None if there is nothing to choose."""
    return chosen if callable(chosen) else _BY_NAME[chosen](count)


class NamedPartitioner:
    """A partitioner by name, over as many partitions as a topic has at each call. One thread.

    Parameters
    ----------
    name
        A known one: see `ensure_known_partitioner`.
    partitions
        The topic's partitions; others may be added.
    """

    def __init__(self, name: str, partitions: Sized) -> None:
        self._name = name
        self._partitions = partitions
        self._count = 0
        self._partitioner: Partitioner | None = None

    def __call__(self, batch: pa.RecordBatch) -> npt.ArrayLike:
        """Return the partition of each row."""
        if self._partitioner is None or self._count != len(self._partitions):
            self._count = len(self._partitions)
            self._partitioner = partitioner_for(self._name, self._count) or ByKey(self._count)
        return self._partitioner(batch)

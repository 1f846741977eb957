"""Partitioners that are chosen by name, and those that a caller brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.writing.partition_assignment import ByKey
from pylog.writing.partitioner import IntegerKeyPartitioner, RoundRobinPartitioner

if TYPE_CHECKING:
    from collections.abc import Callable

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
        known = ", ".join(_BY_NAME)
        msg = f"partitioner {partitioner!r} is neither a function nor one of {known}"
        raise ValueError(msg)


def partitioner_for(chosen: str | Partitioner, count: int) -> Partitioner | None:
    """Return what chooses among ``count`` partitions; None if there is nothing to choose."""
    return chosen if callable(chosen) else _BY_NAME[chosen](count)

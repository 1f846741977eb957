"""The most rows of a result: whatever comes after them is not asked for."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa


def check_limit(limit: int | None) -> None:
    """Raise `ValueError` for a limit that is negative; None stands for no limit."""
    if limit is None:
        return
    try:
        operator.index(limit)
    except TypeError:
        msg = f"limit is {limit!r}, expected a whole number, or None for all"
        raise TypeError(msg) from None
    if limit < 0:
        msg = f"limit is {limit}, expected 0 or more"
        raise ValueError(msg)


def limited(batches: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the first ``limit`` rows, all if it is None, and ask for no batch after them."""
    if limit is None:
        yield from batches
        return
    if limit <= 0:
        return
    for batch in batches:
        yield batch.slice(0, min(limit, batch.num_rows))
        limit -= batch.num_rows
        if limit <= 0:
            return


def limited_count(counts: Iterable[int], limit: int | None) -> int:
    """Return the sum of ``counts``, at most ``limit``; counts that cannot matter are not asked."""
    total = 0
    for count in counts:
        total += count
        if limit is not None and total >= limit:
            return limit
    return total

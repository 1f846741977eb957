"""The most rows that a read gives: what comes after them is not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa


def check_limit(limit: int | None) -> None:
    """Raise `ValueError` for a limit that is negative; None stands for no limit."""
    if limit is not None and limit < 0:
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
        yield batch.slice(0, limit)
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

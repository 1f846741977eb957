"""The records of several partitions as one timeline: a merge by timestamp in bounded memory.

Within a partition, records stay in offset order, whatever their timestamps say: one that is earlier
than the record before it comes right after that one. Of equal timestamps, the first partition's
comes first (in the order of the scan), then the lower offset.

Backwards, each partition is read from its end, and the latest record of those that are next comes
first. Where timestamps are in order, that is the timeline from its end to its beginning.

Each partition has one *block* in memory: the records of a part of its files, which offset indexes
cut out. What no later block can precede is put in order at once, column by column.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from pylog.columnar.arrow_buffers import fixed_width_array, int64_values
from pylog.columnar.arrow_schema import record_schema
from pylog.reading.row_limit import check_limit, limited
from pylog.reading.splitting import split_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from pylog.reading.scan import Scan
    from pylog.reading.scan_task import ScanTask

DEFAULT_MEMORY_BYTES = 1 << 27
_LEAST_BLOCK_BYTES = 1 << 16
_MOST_BLOCK_BYTES = 1 << 22


def merge_by_timestamp(
    scan: Scan,
    *,
    reverse: bool = False,
    limit: int | None = None,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a scan in the order of their timestamps.

    Record batches have records of several partitions, and the columns of the scan, to which its
    filter, mode and damage report apply.

    Parameters
    ----------
    scan
        What is read. Its column ``timestamp`` is read in any case.
    reverse
        Whether the latest records come first.
    limit
        The most records, of those that come first on the timeline; None for all.
    memory_bytes
        About how many bytes of files the blocks of all partitions come from. A block is at least 64
        KiB, and holds at least one batch; decompressed, it is larger.
    progress
        Called with the bytes of ``.log`` files that have been read, and those that there are to
        read.

    Raises
    ------
    LogStorageError
        See `Scan.to_batches`.
    ValueError
        The scan gives a row that stands for damage (mode PERMISSIVE), or has a limit of its own,
        which is one of rows in another order; or ``limit`` is negative.

    Examples
    --------
    >>> scan = pylog.scan("kafka/intact", topics=["orders", "invoices-eu"])
    >>> for batch in pylog.merge_by_timestamp(scan, reverse=True, limit=3):
    ...     print(batch.column("topic").to_pylist(), batch.column("offset").to_pylist())
    ['orders', 'orders', 'orders'] [48, 47, 46]
    """
    if scan.limit is not None:
        msg = "a timeline is made of a scan without a limit; give the timeline the limit"
        raise ValueError(msg)
    check_limit(limit)
    names, schema = scan.schema.names, scan.schema
    if "timestamp" not in names:
        schema = schema.append(record_schema(("timestamp",), timestamp_unit="ms").field(0))

    def read(part: ScanTask) -> list[pa.RecordBatch]:
        return list(scan.reader_of(part, schema=schema).record_batches())

    tasks = scan.plan()
    scan.scanned.report_to(progress, scan.plan)
    tasks_by_partition: dict[tuple[str, int], list[ScanTask]] = {}
    for task in tasks:
        tasks_by_partition.setdefault(task.topic_partition, []).append(task)
    share = memory_bytes // max(1, len(tasks_by_partition))
    block_bytes = min(max(share, _LEAST_BLOCK_BYTES), _MOST_BLOCK_BYTES)
    sources = [
        _Source(read, own_tasks, block_bytes, is_reversed=reverse, place=place)
        for place, own_tasks in enumerate(tasks_by_partition.values())
    ]
    for merged in limited(_merged(sources, is_reversed=reverse), limit):
        yield merged.select(names)


class _Block(NamedTuple):
    """Records of one partition in the order in which they come, and what they are ordered by."""

    rows: pa.RecordBatch
    ranks: npt.NDArray[np.int64]


class _Source:
    """The blocks of one partition; ``block`` is the rest of the current one, None at the end."""

    def __init__(
        self,
        read: Callable[[ScanTask], list[pa.RecordBatch]],
        tasks: Sequence[ScanTask],
        block_bytes: int,
        *,
        is_reversed: bool,
        place: int,
    ) -> None:
        self.place = place
        self._read = read
        self._is_reversed = is_reversed
        self._highest = -(1 << 63)
        self._parts = _parts(tasks, block_bytes, is_reversed=is_reversed)
        self.block: _Block | None = None
        self.advance()

    def advance(self) -> None:
        """Read the next block that has records."""
        for part in self._parts:
            batches = self._read(part)
            if batches:
                self.block = self._block_of(_one_batch(batches))
                return
        self.block = None

    def _block_of(self, rows: pa.RecordBatch) -> _Block:
        if rows.column("timestamp").null_count:
            msg = "a row that stands for damage (mode PERMISSIVE) has no place on a timeline"
            raise ValueError(msg)
        if self._is_reversed:
            rows = rows.take(fixed_width_array(np.arange(rows.num_rows - 1, -1, -1)))
        stamps = int64_values(rows.column("timestamp"))
        # Not the negative, which the lowest timestamp does not have.
        ranks = np.maximum.accumulate(~stamps if self._is_reversed else stamps)
        ranks = np.maximum(ranks, self._highest)
        self._highest = int(ranks[-1])
        return _Block(rows, ranks)

    def take_up_to(self, bound: int, *, includes_bound: bool) -> _Block | None:
        """Return what comes before ``bound``, or at it, too, and keep the rest."""
        if self.block is None:
            return None
        rows, ranks = self.block
        count = int(np.searchsorted(ranks, bound, "right" if includes_bound else "left"))
        self.block = _Block(rows.slice(count), ranks[count:])
        return _Block(rows.slice(0, count), ranks[:count]) if count else None


def _parts(tasks: Sequence[ScanTask], block_bytes: int, *, is_reversed: bool) -> Iterator[ScanTask]:
    for task in reversed(tasks) if is_reversed else tasks:
        segments = _segments_of(task)
        for segment in reversed(segments) if is_reversed else segments:
            parts = split_tasks([segment], max_partition_bytes=block_bytes)
            yield from reversed(parts) if is_reversed else parts


def _segments_of(task: ScanTask) -> list[ScanTask]:
    starts = [max(task.start_offset, each.base_offset) for each in task.slices]
    ends = [*starts[1:], task.end_offset]
    starts[:1] = [task.start_offset]
    return [
        replace(task, slices=(each,), start_offset=start, end_offset=end)
        for each, start, end in zip(task.slices, starts, ends, strict=True)
    ]


def _merged(sources: Sequence[_Source], *, is_reversed: bool) -> Iterator[pa.RecordBatch]:
    waiting = [each for each in sources if each.block is not None]
    while waiting:
        # The block that ends first: nothing that comes after it belongs before its end.
        ends = [
            (int(each.block.ranks[-1]), -each.place if is_reversed else each.place, each)
            for each in waiting
            if each.block is not None
        ]
        bound, place, first = min(ends, key=lambda end: end[:2])
        blocks, places = [], []
        for each in waiting:
            own = -each.place if is_reversed else each.place
            block = each.take_up_to(bound, includes_bound=own <= place)
            if block is not None:
                blocks.append(block)
                places.append(np.full(block.ranks.size, own))
        ranks = np.concatenate([block.ranks for block in blocks])
        # Stable, so that a partition's own order stays.
        order = np.lexsort((np.concatenate(places), ranks))
        yield from _ordered([block.rows for block in blocks], order)
        first.advance()
        waiting = [each for each in waiting if each.block is not None]


def _ordered(
    blocks: list[pa.RecordBatch], order: npt.NDArray[np.int64]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of blocks in an order that leaves each block's own as it is."""
    if len(blocks) == 1:
        yield blocks[0]
    elif all(each.schema.equals(blocks[0].schema) for each in blocks):
        yield _one_batch(blocks).take(fixed_width_array(order))
    else:  # of topics with columns of their own
        starts = np.cumsum([0, *(each.num_rows for each in blocks)])
        which = np.searchsorted(starts, order, side="right") - 1
        for run in np.split(np.arange(order.size), np.flatnonzero(np.diff(which)) + 1):
            block = int(which[run[0]])
            yield blocks[block].slice(int(order[run[0]] - starts[block]), run.size)


def _one_batch(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]

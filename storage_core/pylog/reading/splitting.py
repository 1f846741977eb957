"""Where a large range can be cut: tasks in parts of about the same size.

A cut changes nothing about what is read, not even what an error says: it is between two intact
batches, an index entry that is proved or a walk from batch to batch leads to it, and a part knows
which offset the batch before it ends with.
"""

from __future__ import annotations

import heapq
from collections import deque
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from pylog.errors import (
    InvalidRecordError,
    LogStorageError,
)
from pylog.files.file_names import INDEX_FILE_SUFFIX, LOG_FILE_SUFFIX
from pylog.files.offset_index import OffsetIndexEntries
from pylog.log_file.batch_walk import (
    has_valid_checksum,
    read_header,
    walk_headers,
)
from pylog.log_file.proved_positions import ProvedPosition, ProvedPositions
from pylog.record.batch_header import MAGIC_VALUE_V2
from pylog.record.record_batch import RecordBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType

    from pylog.files.byte_source import ByteSource
    from pylog.log_file.batch_walk import PositionedHeader
    from pylog.model import TopicPartition
    from pylog.reading.task_range import SegmentSlice, TaskRange
    from pylog.record.record import Record


_Task = TypeVar("_Task", bound="TaskRange")


_MOST_RANGES = 1_000_000


_INDEX_TRIES = 4


_LARGEST_WRAPPER = 64 << 20


class Cut(NamedTuple):
    """Where a part begins: a byte of the file, its first offset, and the one after those before."""

    position: int
    offset: int
    lowest_offset: int


def offset_ranges(start: int, end: int, max_records: int | None) -> list[tuple[int, int]]:
    """Return ``[start, end)`` in ranges of at most ``max_records`` offsets, as even as may be.

    ``ValueError`` if there are too many: offsets of a damaged or compacted log may lie far apart.
    """
    size = end - start
    if max_records is None or size <= max_records:
        return [(start, end)]
    parts = -(-size // max_records)
    if parts > _MOST_RANGES:
        msg = (
            f"offsets {start} to {end} in ranges of at most {max_records} make {parts:,} tasks, "
            f"more than {_MOST_RANGES:,}: allow more records in a task, or choose fewer offsets"
        )
        raise ValueError(msg)
    edges = [start + size * part // parts for part in range(parts + 1)]
    return list(pairwise(edges))


def split_tasks(
    tasks: Sequence[_Task],
    *,
    max_partition_bytes: int | None = None,
    min_partitions: int | None = None,
    skips_damage: bool = False,
) -> list[_Task]:
    """Return the tasks, each cut into parts of about the same number of bytes."""
    total = sum(task.size_bytes for task in tasks)
    most = max_partition_bytes or max(1, total)
    if min_partitions is not None and total:
        most = max(1, min(most, -(-total // min_partitions)))
    parts = [
        part
        for task in tasks
        for part in _split(task, -(-task.size_bytes // most), checks_records=skips_damage)
    ]
    if min_partitions is None:
        return parts
    return _halve_largest(parts, min_partitions, checks_records=skips_damage)


def first_part(task: _Task, max_bytes: int) -> _Task:
    """Return the part of about ``max_bytes`` at a task's beginning, one batch at the least."""
    return next(cut_task(task, lambda: max_bytes))


def _halve_largest(parts: Sequence[_Task], wanted: int, *, checks_records: bool) -> list[_Task]:
    """Return the parts, the largest cut in two again and again until there are ``wanted``."""
    heap = [(-part.size_bytes, at, part.start_offset, part) for at, part in enumerate(parts)]
    heapq.heapify(heap)
    done: list[tuple[int, int, int, _Task]] = []
    while heap and len(heap) + len(done) < wanted:
        largest = heapq.heappop(heap)
        _, at, _, part = largest
        halves = _halves(part, checks_records=checks_records)
        if halves is None:
            done.append(largest)
            continue
        for half in halves:
            heapq.heappush(heap, (-half.size_bytes, at, half.start_offset, half))
    in_order = sorted(heap + done, key=lambda entry: entry[1:3])
    return [part for _, _, _, part in in_order]


def _halves(task: _Task, *, checks_records: bool) -> tuple[_Task, _Task] | None:
    """Return a task cut near the middle of its bytes; None if it holds a single batch."""
    middle, at = task.size_bytes // 2, 0
    while at < len(task.slices) - 1 and task.slices[at].size_bytes <= middle:
        middle -= task.slices[at].size_bytes
        at += 1
    before, segment_slice, after = task.slices[:at], task.slices[at], task.slices[at + 1 :]
    wanted = segment_slice.start_position + middle
    for by_index in (True, False) if task.access.use_indexes else (False,):
        with _Cutter(segment_slice, uses_indexes=by_index, checks_records=checks_records) as cutter:
            cut = cutter.find(segment_slice, wanted)
        if cut is not None and task.start_offset < cut.offset < task.end_offset:
            head, rest = _cut_slice(segment_slice, cut)
            return _cut_at(task, cut.offset, (*before, head), (rest, *after))
    # The slice is a single batch: between it and its neighbours.
    for edge in (at, at + 1):
        if 0 < edge < len(task.slices):
            offset = task.slices[edge].first_offset
            if task.start_offset < offset < task.end_offset:
                return _cut_at(task, offset, task.slices[:edge], task.slices[edge:])
    return None


def _cut_at(
    task: _Task, offset: int, head: tuple[SegmentSlice, ...], rest: tuple[SegmentSlice, ...]
) -> tuple[_Task, _Task]:
    return (
        replace(task, slices=head, end_offset=offset),
        replace(task, slices=rest, start_offset=offset),
    )


def _split(task: _Task, parts: int, *, checks_records: bool) -> Iterator[_Task]:
    if parts <= 1:
        yield task
        return
    target = -(-task.size_bytes // parts)
    yield from cut_task(task, lambda: target, checks_records=checks_records)


def cut_task(
    task: _Task,
    size: Callable[[], int],
    *,
    is_thorough: bool = True,
    checks_records: bool = False,
) -> Iterator[_Task]:
    """Yield parts of about ``size()`` bytes; each is looked for when it is asked for."""
    slices: list[SegmentSlice] = []
    start, taken = task.start_offset, 0
    uses_indexes = task.access.use_indexes
    for whole in task.slices:
        rest = whole
        edge = rest.first_offset
        if taken >= size() and start < edge < task.end_offset:
            yield replace(task, slices=tuple(slices), start_offset=start, end_offset=edge)
            slices, start, taken = [], edge, 0
        if (uses_indexes or is_thorough) and taken + rest.size_bytes > size():
            with _Cutter(
                rest,
                uses_indexes=uses_indexes,
                is_thorough=is_thorough,
                checks_records=checks_records,
            ) as cutter:
                while taken + rest.size_bytes > size():
                    cut = cutter.find(rest, rest.start_position + max(0, size() - taken))
                    if cut is None or not start < cut.offset < task.end_offset:
                        break
                    head, rest = _cut_slice(rest, cut)
                    part = replace(task, slices=(*slices, head), start_offset=start)
                    slices, start, taken = [], cut.offset, 0
                    yield replace(part, end_offset=cut.offset)
        slices.append(rest)
        taken += rest.size_bytes
    yield replace(task, slices=tuple(slices), start_offset=start)


def _cut_slice(segment_slice: SegmentSlice, cut: Cut) -> tuple[SegmentSlice, SegmentSlice]:
    """Return the parts before and after a cut, with the bounds that one reader would know of."""
    return (
        replace(segment_slice, end_position=cut.position, runs_to_segment_end=False),
        replace(segment_slice, start_position=cut.position, base_offset=cut.lowest_offset),
    )


class _Cutter:
    """Finds cuts in one slice, whose files stay open from one to the next."""

    def __init__(
        self,
        segment_slice: SegmentSlice,
        *,
        uses_indexes: bool,
        is_thorough: bool = True,
        checks_records: bool = False,
    ) -> None:
        self._slice = segment_slice
        self._checks_records = checks_records
        self._uses_indexes = uses_indexes
        self._is_thorough = is_thorough
        self._source: ByteSource | None = None
        self._index: OffsetIndexEntries | None = None
        self._files = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._files.close()

    def find(self, rest: SegmentSlice, wanted: int) -> Cut | None:
        """Return a cut near byte ``wanted`` of the file, None if there is none inside ``rest``."""
        try:
            two = None
            source = self._opened()
            if self._uses_indexes:
                two = self._two_by_index(source, rest, wanted)
            if two is None and self._is_thorough:
                two = _two_by_walk(source, rest, wanted)
            if two is None:
                return None
            before, batch = two
            if not self._is_thorough and any(each.header.magic < MAGIC_VALUE_V2 for each in two):
                return None
            if not all(has_valid_checksum(source, each) for each in two):
                return None
            if batch.header.last_offset >= rest.limit_offset:
                return None  # its reader will report it
            if self._checks_records and not _are_readable(source, before, batch, rest.end_position):
                return None
            return Cut(batch.position, _first_offset(source, batch), before.header.next_offset)
        except LogStorageError:
            return None  # its reader will report it

    def _opened(self) -> ByteSource:
        if self._source is None:
            self._source = self._files.enter_context(self._slice.open())
        return self._source

    def _two_by_index(
        self, source: ByteSource, rest: SegmentSlice, wanted: int
    ) -> tuple[PositionedHeader, PositionedHeader] | None:
        """Return the batch of a proved entry, and the one before it."""
        if self._index is None:
            self._index = self._files.enter_context(
                OffsetIndexEntries.open(
                    rest.path.replace(LOG_FILE_SUFFIX, INDEX_FILE_SUFFIX),
                    rest.segment_base_offset,
                    leaves_page_cache=rest.leaves_page_cache,
                )
            )
        start = ProvedPosition(rest.start_position, rest.base_offset)
        entries = ProvedPositions(source, self._index, start, rest.end_position)
        proved = entries.from_position(wanted, _INDEX_TRIES)
        if proved is None:
            return None
        batch = read_header(source, proved.position, rest.end_position)
        near = entries.before_offset(proved.lowest_offset - 1)
        headers = walk_headers(
            source, near.position, proved.position, lowest_offset=near.lowest_offset
        )
        for before in deque(headers, maxlen=1):
            if batch is not None and before.end_position == batch.position:
                return before, batch
        return None


def _two_by_walk(
    source: ByteSource, rest: SegmentSlice, wanted: int
) -> tuple[PositionedHeader, PositionedHeader] | None:
    """Return the first batch from byte ``wanted`` on, else the last, and the one before it."""
    before = last = None
    headers = walk_headers(
        source, rest.start_position, rest.end_position, lowest_offset=rest.base_offset
    )
    for header in headers:
        before, last = last, header
        if before is not None and header.position >= wanted:
            next(headers, None)
            break
    return None if before is None or last is None else (before, last)


def _are_readable(
    source: ByteSource, before: PositionedHeader, batch: PositionedHeader, end: int
) -> bool:
    """Whether a reader that skips damage gives two batches as they are; an error if it cannot."""
    if batch.header.base_offset != before.header.next_offset:
        # One whose offset is wrong is moved: it goes back behind what follows.
        following = read_header(source, batch.end_position, end)
        if following is None or following.header.offset <= batch.header.last_offset:
            return False
    for each in (before, batch):
        _records(source, each)
    return True


def _first_offset(source: ByteSource, batch: PositionedHeader) -> int:
    """Return the first offset of a batch; for a v0/v1 wrapper, by decompressing it."""
    base_offset = batch.header.base_offset
    return _records(source, batch)[0].offset if base_offset is None else base_offset


def _records(source: ByteSource, batch: PositionedHeader) -> list[Record]:
    """Return the records of a batch; an error if one of them breaks a rule."""
    if batch.header.size_bytes > _LARGEST_WRAPPER:
        reason = f"batch of {batch.header.size_bytes} bytes"
        raise InvalidRecordError(reason, source.path, batch.position)
    data = source.read_at(batch.position, batch.header.size_bytes)
    return list(RecordBatch(memoryview(data)).records())


def ends_within_bytes(tasks: Iterable[TaskRange], max_bytes: int) -> dict[TopicPartition, int]:
    """Return where each partition's range ends if about ``max_bytes`` are read of all together.

    Each gets a share in proportion to its bytes. A range ends after a whole batch that the offset
    index knows, and holds one batch at least: that much there may be more than ``max_bytes``.

    Parameters
    ----------
    tasks
        Of `Scan.plan`, one for each partition.
    max_bytes
        Bytes of ``.log`` files, 1 or more.

    Returns
    -------
    dict
        The offset after the last one, by partition.

    Examples
    --------
    >>> tasks = pylog.scan("kafka/intact", topics="orders").plan()
    >>> ends = pylog.jobs.ends_within_bytes(tasks, 4_096)
    >>> {str(each): end for each, end in ends.items()}
    {'orders-0': 28, 'orders-1': 41}
    """
    tasks = list(tasks)
    total = sum(task.size_bytes for task in tasks)
    if total <= max_bytes:
        return {task.topic_partition: task.end_offset for task in tasks}
    return {
        task.topic_partition: first_part(
            task, max(1, max_bytes * task.size_bytes // total)
        ).end_offset
        for task in tasks
    }

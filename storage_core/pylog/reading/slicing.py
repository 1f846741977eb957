"""From offsets to bytes of ``.log`` files, and where a large range can be cut.

A cut changes nothing about what is read, not even what an error says: it is between two intact
batches, an index entry that is proved or a walk from batch to batch leads to it, and a part knows
which offset the batch before it ends with.

Batches at the head of a slice that are too early for a filter are skipped by their headers, one
after the other: the time index is not needed, so it cannot mislead.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self, TypeVar

from pylog.errors import (
    CorruptRecordError,
    InvalidRecordError,
    LogStorageError,
    UnreadableFileError,
)
from pylog.files.byte_source import LocalFile
from pylog.files.file_names import INDEX_FILE_SUFFIX, LOG_FILE_SUFFIX
from pylog.files.index_entries import OffsetIndexEntries
from pylog.lazy_modules import LazyModule
from pylog.locations import name_of
from pylog.log_file.batch_walk import (
    has_valid_checksum,
    read_header,
    walk_headers,
)
from pylog.log_file.proved_positions import ProvedPosition, ProvedPositions
from pylog.reading.damage import DamagedRange
from pylog.reading.task_range import SegmentSlice
from pylog.record.batch_header import MAGIC_VALUE_V2
from pylog.record.record_batch import RecordBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType

    import numpy as np
    import pyarrow as pa

    from pylog.files.byte_source import ByteSource
    from pylog.kernels import skip_headers  # compiles
    from pylog.log_file.batch_walk import PositionedHeader
    from pylog.model import TopicPartition
    from pylog.reading.damage import DamageReport
    from pylog.reading.log_view import LogView
    from pylog.reading.record_filter import RecordFilter
    from pylog.reading.segments import LogSegmentView
    from pylog.reading.task_range import TaskRange
    from pylog.record.batch_scan import Window
    from pylog.record.record import Record
else:
    np = LazyModule("numpy")
    skip_headers = LazyModule("pylog.kernels.skip_headers")

_Task = TypeVar("_Task", bound="TaskRange")
_MOST_RANGES = 1_000_000


_STRIDE = 64 << 20


def late_part(segment_slice: SegmentSlice, where: RecordFilter | None) -> SegmentSlice:
    """Return a slice without what is too early for a filter; as it is if it cannot be read."""
    if where is None or where.min_timestamp is None:
        return segment_slice
    try:
        with segment_slice.open() as source:
            return without_early_batches(source, segment_slice, where)
    except UnreadableFileError:
        return segment_slice  # its reader will report it


def without_early_batches(
    source: ByteSource, segment_slice: SegmentSlice, where: RecordFilter
) -> SegmentSlice:
    """Return the rest of a slice from the first batch on that may be late enough for a filter.

    The slice itself where that is uncertain, where the file is not local, since a request for each
    header would cost more than reading all, and where the page cache is to be left as it was.
    """
    if where.min_timestamp is None:
        return segment_slice
    if not (isinstance(source, LocalFile) and source.is_read_by_kernels):
        return segment_slice
    scratch = np.empty(64, dtype=np.uint8)
    position, end = segment_slice.start_position, segment_slice.end_position
    while position < end:
        until = min(position + _STRIDE, end)
        source.will_need(position, _STRIDE)
        position = int(
            skip_headers.first_late_batch(
                source.descriptor,
                position,
                until,
                end,
                where.min_timestamp,
                int(where.trusts_batch_timestamps),
                scratch,
            )
        )
        if position < until:
            break
    if position < end and not _is_sound(source, position, end):
        return segment_slice
    return replace(segment_slice, start_position=position)


def _is_sound(source: ByteSource, position: int, end: int) -> bool:
    """Whether sizes have led to an intact batch, which ends where the slice or another one does."""
    try:
        two = list(islice(walk_headers(source, position, end), 2))
    except CorruptRecordError:
        return False
    is_last = len(two) == 1 and two[0].end_position == end
    return (is_last or len(two) == 2) and all(has_valid_checksum(source, each) for each in two)


def slice_of(
    view: LogView,
    index: int,
    start: int = 0,
    end: int | None = None,
    *,
    skipped_below: int = 0,
) -> SegmentSlice:
    """Return bytes ``[start, end)`` of segment ``index``; up to the end of its log if None."""
    segment = view.segments[index]
    segment_end = view.segment_end(index)
    end = segment_end if end is None else end
    limit = view.limit_offset(index)
    return SegmentSlice(
        segment.file_path(),
        segment.base_offset,
        limit,
        start,
        end,
        limit is not None and end == segment_end,
        segment.file_id,
        segment.access.leave_page_cache,
        segment.defect,
        skipped_below,
        segment.stamp,
        _file_of(view.segments[index - 1]) if index else None,
        view.is_overlong(index),
    )


def _file_of(segment: LogSegmentView) -> tuple[int, int, int]:
    return segment.base_offset, segment.file_id, segment.stamp


def segment_slices(
    view: LogView,
    start_offset: int,
    end_offset: int,
    *,
    origin: int | None = None,
    checks_gap: bool = True,
) -> tuple[SegmentSlice, ...]:
    """Return the byte ranges of every segment that may hold offsets ``[start, end)``.

    They begin and end with whole batches, so they may hold a little more: also the batch before a
    gap in which the range begins, unless ``checks_gap`` is false. A file that cannot be
    read has a slice, too, so that its reader meets the error. Where damage is skipped and the
    range goes up to the log's end, the slices reach to the end of the last file: what is damaged
    there is to be reported, whatever its offsets say.

    Where segments overlap, the slices are those of a reader that begins at ``origin``, by default
    at the range's own start; see `LogView.consumed_segments`.
    """
    reaches_end_of_files = view.damage is not None and end_offset >= view.log_end_offset
    if start_offset >= end_offset and not reaches_end_of_files:
        return ()
    slices = []
    origin = start_offset if origin is None else origin
    for index, consumed_from in view.consumed_segments(origin):
        segment = view.segments[index]
        first = max(start_offset, consumed_from)
        if max(segment.base_offset, first) >= end_offset and not reaches_end_of_files:
            break
        limit = view.limit_offset(index)
        if limit is not None and limit <= start_offset and origin < start_offset:
            continue
        segment_end = view.segment_end(index)
        start, end = ProvedPosition(0, segment.base_offset), segment_end
        is_unreadable = segment.defect is not None
        if segment_end and (segment.base_offset < first or _ends_inside(limit, end_offset)):
            start, end = _positions(
                view, index, (first, end_offset), checks_gap=checks_gap and first == start_offset
            )
        if start.position < end or is_unreadable:
            skipped_below = consumed_from if consumed_from > origin else 0
            found = slice_of(view, index, start.position, end, skipped_below=skipped_below)
            if start.lowest_offset != found.base_offset:
                # Where offsets are wrong, those before the slice tell which ones.
                found = replace(found, base_offset=start.lowest_offset)
            slices.append(found)
    return tuple(slices)


def open_slice(
    segment_slice: SegmentSlice, damage: DamageReport | None, lowest_offset: int = 0
) -> ByteSource | None:
    """Open the file of a slice; None where it cannot be read and ``damage`` has a note of it."""
    try:
        return segment_slice.open()
    except UnreadableFileError as error:
        if damage is None:
            raise
        damage.add(
            DamagedRange(
                segment_slice.path,
                segment_slice.start_position,
                segment_slice.end_position,
                max(lowest_offset, segment_slice.base_offset),
                segment_slice.next_base_offset,
                error.reason,
                is_unreadable=True,
            )
        )
        return None


def _ends_inside(limit: int | None, end_offset: int) -> bool:
    return limit is None or end_offset < limit


def _positions(
    view: LogView, index: int, offsets: tuple[int, int], *, checks_gap: bool
) -> tuple[ProvedPosition, int]:
    """Return where the batch that holds the first offset begins, and the last one's ends."""
    start_offset, end_offset = offsets
    segment = view.segments[index]
    segment_end = view.segment_end(index)
    start, end = ProvedPosition(0, segment.base_offset), segment_end
    first = None
    try:
        with segment.open_log() as source:
            if segment.base_offset < start_offset:
                start, first = segment.find_start(
                    source, start_offset, segment_end, checks_gap=checks_gap
                )
            covers_the_end = end_offset >= view.log_end_offset
            if _ends_inside(view.limit_offset(index), end_offset) and not covers_the_end:
                last = first
                if first is None or first.header.last_offset < end_offset - 1:
                    last = segment.find_batch(source, end_offset - 1, segment_end)
                end = segment_end if last is None else last.end_position
                if view.damage is not None and last is not None:
                    following = read_header(source, end, segment_end)
                    if following and following.header.offset <= last.header.last_offset:
                        end = segment_end  # one of the two has a wrong offset
    except (CorruptRecordError, UnreadableFileError):
        if view.damage is None:
            raise
        return ProvedPosition(0, segment.base_offset), segment_end  # its reader finds its way
    return start, end


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


class PlannedBytes:
    """How many of the bytes to be read lie before the end of a record batch.

    Parameters
    ----------
    tasks
        Of the scan: `Scan.plan`.

    Attributes
    ----------
    COLUMNS
        What the scan must read for `before_end_of`.
    total
        Bytes of ``.log`` files that the tasks read.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = ("topic", "partition", "batch")

    def __init__(self, tasks: Iterable[TaskRange]) -> None:
        self.total = 0
        # By topic, partition and segment: what position 0 of the file would have been preceded by.
        self._bases: dict[tuple[str, int, str], int] = {}
        for task in tasks:
            for each in task.slices:
                key = (*task.topic_partition, name_of(each.path))
                self._bases[key] = self.total - each.start_position
                self.total += each.size_bytes

    def before_end_of(self, batch: pa.RecordBatch) -> int:
        """Return the bytes up to the end of the batch on disk that gave the last row."""
        last = batch.slice(batch.num_rows - 1)
        origin = last.column("batch")[0].as_py()
        key = (
            last.column("topic")[0].as_py(),
            last.column("partition")[0].as_py(),
            origin["segment"],
        )
        return self._bases[key] + int(origin["position"]) + int(origin["sizeInBytes"])


class ScannedBytes:
    """Sums over the windows of some reads. Any number of threads may add to them."""

    def __init__(self) -> None:
        self.size_bytes = self.batches = self.records = self.uncounted_batches = 0
        self.on_change: Callable[[int], None] | None = None
        self._lock = threading.Lock()

    def report_to(
        self, progress: Callable[[int, int], None] | None, plan: Callable[[], Iterable[TaskRange]]
    ) -> None:
        """Call ``progress``, if there is one, with the bytes scanned and those planned."""
        if progress is not None:
            total_bytes = sum(task.size_bytes for task in plan())
            self.on_change = lambda size_bytes: progress(size_bytes, total_bytes)

    def add(self, window: Window) -> None:
        """Count the batches of a window."""
        counts = window.headers.record_counts
        is_known = window.headers.has_possible_count
        with self._lock:
            self.size_bytes += window.size_bytes
            self.batches += counts.size
            self.records += int(counts[is_known].sum())
            self.uncounted_batches += counts.size - int(is_known.sum())
            size_bytes = self.size_bytes
        if self.on_change is not None:
            self.on_change(size_bytes)

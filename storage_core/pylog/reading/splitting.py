"""Large tasks cut into smaller ones, at batches that the offset index knows.

A cut changes nothing about what is read: each part begins at a batch that the batches before and
after it prove, and knows the offsets that it may hold.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptRecordError, InvalidRecordError, UnreadableFileError
from pylog.files.file_names import INDEX_FILE_SUFFIX, LOG_FILE_SUFFIX
from pylog.files.offset_index import OffsetIndexEntries
from pylog.log_file.batch_walk import has_valid_checksum, read_header, walk_headers
from pylog.log_file.proved_position import ProvedPosition, ProvedPositions
from pylog.reading.log_segment_view import open_segment
from pylog.record.batch_layout import MAGIC_VALUE_V2
from pylog.record.record_batch import RecordBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pylog.files.byte_source import ByteSource
    from pylog.log_file.batch_walk import PositionedHeader
    from pylog.reading.scan_task import ScanTask
    from pylog.reading.segment_slice import SegmentSlice

_INDEX_TRIES = 4
_LARGEST_WRAPPER = 64 << 20


class Cut(NamedTuple):
    """Where a part begins: a byte of the file, the first offset there, and after those before."""

    position: int
    offset: int
    lowest_offset: int = 0


def offset_ranges(start: int, end: int, max_records: int | None) -> list[tuple[int, int]]:
    """Return ``[start, end)`` in ranges of at most ``max_records`` offsets, as even as may be."""
    size = end - start
    if max_records is None or size <= max_records:
        return [(start, end)]
    parts = -(-size // max_records)
    edges = [start + size * part // parts for part in range(parts + 1)]
    return list(pairwise(edges))


def split_tasks(
    tasks: Sequence[ScanTask],
    *,
    max_partition_bytes: int | None = None,
    min_partitions: int | None = None,
) -> list[ScanTask]:
    """Return the tasks, each cut into parts of about the same number of bytes.

    Parameters
    ----------
    tasks
        From the planner.
    max_partition_bytes
        Parts exceed it by a batch or an index interval at most; None for no limit.
    min_partitions
        How many parts to make at least; one for each batch if there are fewer.
    """
    total = sum(task.size_bytes for task in tasks)
    most = max_partition_bytes or max(1, total)
    if min_partitions is not None and total:
        most = max(1, min(most, -(-total // min_partitions)))
    parts = [part for task in tasks for part in _split(task, -(-task.size_bytes // most))]
    return parts if min_partitions is None else _halve_largest(parts, min_partitions)


def first_part(task: ScanTask, max_bytes: int) -> ScanTask:
    """Return the part of about ``max_bytes`` at a task's beginning, one batch at the least."""
    return next(_split_at(task, max_bytes))


def _halve_largest(parts: Sequence[ScanTask], wanted: int) -> list[ScanTask]:
    """Return the parts, the largest cut in two again and again until there are ``wanted``.

    Index entries are further apart than small batches, and a batch may be larger than a part was to
    be: then there are fewer parts than the bytes alone would give.
    """
    heap = [(-part.size_bytes, at, part.start_offset, part) for at, part in enumerate(parts)]
    heapq.heapify(heap)
    done: list[tuple[int, int, int, ScanTask]] = []
    while heap and len(heap) + len(done) < wanted:
        largest = heapq.heappop(heap)
        _, at, _, part = largest
        halves = _halves(part)
        if halves is None:
            done.append(largest)
            continue
        for half in halves:
            heapq.heappush(heap, (-half.size_bytes, at, half.start_offset, half))
    in_order = sorted(heap + done, key=lambda entry: entry[1:3])
    return [part for _, _, _, part in in_order]


def _halves(task: ScanTask) -> tuple[ScanTask, ScanTask] | None:
    """Return a task cut near the middle of its bytes; None if it holds a single batch."""
    middle, at = task.size_bytes // 2, 0
    while at < len(task.slices) - 1 and task.slices[at].size_bytes <= middle:
        middle -= task.slices[at].size_bytes
        at += 1
    before, segment_slice, after = task.slices[:at], task.slices[at], task.slices[at + 1 :]
    wanted = segment_slice.start_position + middle
    for by_index in (True, False) if task.directory.uses_indexes else (False,):
        cut = find_cut(segment_slice, wanted, uses_indexes=by_index)
        if cut is not None and task.start_offset < cut.offset < task.end_offset:
            head, rest = cut_slice(segment_slice, cut)
            return _cut_at(task, cut.offset, (*before, head), (rest, *after))
    # The slice is a single batch: between it and its neighbours.
    for edge in (at, at + 1):
        if 0 < edge < len(task.slices):
            offset = task.slices[edge].base_offset
            if task.start_offset < offset < task.end_offset:
                return _cut_at(task, offset, task.slices[:edge], task.slices[edge:])
    return None


def _cut_at(
    task: ScanTask, offset: int, head: tuple[SegmentSlice, ...], rest: tuple[SegmentSlice, ...]
) -> tuple[ScanTask, ScanTask]:
    return (
        replace(task, slices=head, end_offset=offset),
        replace(task, slices=rest, start_offset=offset),
    )


def _split(task: ScanTask, parts: int) -> Iterator[ScanTask]:
    if parts <= 1:
        yield task
        return
    yield from _split_at(task, -(-task.size_bytes // parts))


def _split_at(task: ScanTask, target: int) -> Iterator[ScanTask]:
    """Yield parts of about ``target`` bytes; each is looked for when it is asked for."""
    slices: list[SegmentSlice] = []
    start, taken = task.start_offset, 0
    for whole in task.slices:
        rest = whole
        while taken + rest.size_bytes > target:
            wanted = rest.start_position + target - taken
            cut = find_cut(rest, wanted, uses_indexes=task.directory.uses_indexes)
            if cut is None or not start < cut.offset < task.end_offset:
                break
            head, rest = cut_slice(rest, cut)
            yield replace(task, slices=(*slices, head), start_offset=start, end_offset=cut.offset)
            slices, start, taken = [], cut.offset, 0
        slices.append(rest)
        taken += rest.size_bytes
    yield replace(task, slices=tuple(slices), start_offset=start)


def cut_slice(
    segment_slice: SegmentSlice, cut: Cut, *, is_bound: bool = True
) -> tuple[SegmentSlice, SegmentSlice]:
    """Return the parts of a slice before and after a cut; their offsets are bound by it, or not."""
    head = replace(segment_slice, end_position=cut.position, runs_to_segment_end=False)
    rest = replace(segment_slice, start_position=cut.position, base_offset=cut.lowest_offset)
    if is_bound:
        head = replace(head, next_base_offset=cut.offset)
        rest = replace(rest, base_offset=cut.offset)
    return head, rest


def find_sound_cut(segment_slice: SegmentSlice, wanted: int) -> Cut | None:
    """Return a cut that changes nothing of what is read, not even what an error says.

    The index proves it, and it lies between two batches of v2 whose checksums are right.
    """
    try:
        with open_segment(
            segment_slice.path,
            segment_slice.file_id,
            leaves_page_cache=segment_slice.leaves_page_cache,
        ) as source:
            batch = _indexed_batch(source, segment_slice, wanted)
            before = None if batch is None else _batch_before(source, segment_slice, batch)
            if batch is None or before is None:
                return None
            if not all(each.header.magic == MAGIC_VALUE_V2 for each in (before, batch)):
                return None
            if not all(has_valid_checksum(source, each) for each in (before, batch)):
                return None
            return Cut(batch.position, batch.header.offset, before.header.next_offset)
    except (CorruptRecordError, InvalidRecordError, UnreadableFileError):
        return None  # its reader will report it


def find_cut(segment_slice: SegmentSlice, wanted: int, *, uses_indexes: bool) -> Cut | None:
    """Return a cut near byte ``wanted`` of the file, None if there is none inside the slice."""
    try:
        with open_segment(
            segment_slice.path,
            segment_slice.file_id,
            leaves_page_cache=segment_slice.leaves_page_cache,
        ) as source:
            batch = _indexed_batch(source, segment_slice, wanted) if uses_indexes else None
            batch = batch or _walked_batch(source, segment_slice, wanted)
            return None if batch is None else Cut(batch.position, _first_offset(source, batch))
    except (CorruptRecordError, InvalidRecordError, UnreadableFileError):
        return None  # its reader will report it


def _indexed_batch(
    source: ByteSource, segment_slice: SegmentSlice, wanted: int
) -> PositionedHeader | None:
    with _index_of(segment_slice) as index:
        entries = _entries(source, segment_slice, index)
        proved = entries.from_position(wanted, _INDEX_TRIES)
    return (
        None if proved is None else read_header(source, proved.position, segment_slice.end_position)
    )


def _batch_before(
    source: ByteSource, segment_slice: SegmentSlice, batch: PositionedHeader
) -> PositionedHeader | None:
    with _index_of(segment_slice) as index:
        entries = _entries(source, segment_slice, index)
        near = entries.before_offset(batch.header.offset - 1)
    headers = walk_headers(source, near.position, batch.position, lowest_offset=near.lowest_offset)
    for before in deque(headers, maxlen=1):
        if before.end_position == batch.position:
            return before
    return None


def _index_of(segment_slice: SegmentSlice) -> OffsetIndexEntries:
    return OffsetIndexEntries.open(
        segment_slice.path.replace(LOG_FILE_SUFFIX, INDEX_FILE_SUFFIX),
        segment_slice.segment_base_offset,
        leaves_page_cache=segment_slice.leaves_page_cache,
    )


def _entries(
    source: ByteSource, segment_slice: SegmentSlice, index: OffsetIndexEntries
) -> ProvedPositions:
    start = ProvedPosition(segment_slice.start_position, segment_slice.base_offset)
    return ProvedPositions(source, index, start, segment_slice.end_position)


def _walked_batch(
    source: ByteSource, segment_slice: SegmentSlice, wanted: int
) -> PositionedHeader | None:
    """Return the first batch from byte ``wanted`` on, else the last, by sizes from the beginning.

    It and the one before have right checksums, so that the one before does end there; offsets go
    up to the batch after it.
    """
    before = last = None
    headers = walk_headers(
        source,
        segment_slice.start_position,
        segment_slice.end_position,
        lowest_offset=segment_slice.base_offset,
    )
    for header in headers:
        before, last = last, header
        if before is not None and header.position >= wanted:
            next(headers, None)
            break
    if before is None or last is None:
        return None
    is_cut = has_valid_checksum(source, before) and has_valid_checksum(source, last)
    return last if is_cut else None


def _first_offset(source: ByteSource, batch: PositionedHeader) -> int:
    """Return the first offset of a batch; for a v0/v1 wrapper, by decompressing it."""
    if batch.header.base_offset is not None:
        return batch.header.base_offset
    if batch.header.size_bytes > _LARGEST_WRAPPER:
        reason = f"message set of {batch.header.size_bytes} bytes"
        raise InvalidRecordError(reason, source.path, batch.position)
    data = source.read_at(batch.position, batch.header.size_bytes)
    offsets = [record.offset for record in RecordBatch(memoryview(data)).records()]
    return offsets[0]  # all have been looked at: none counts if the wrapper breaks a rule

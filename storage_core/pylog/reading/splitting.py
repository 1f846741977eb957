"""Large tasks cut into smaller ones, at batches that the offset index knows.

A cut changes nothing about what is read: each part begins at a batch that the batches before and
after it prove, and knows the offsets that it may hold.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptRecordError, InvalidRecordError, UnreadableFileError
from pylog.files.file_names import INDEX_FILE_SUFFIX, LOG_FILE_SUFFIX
from pylog.files.offset_index import OffsetIndexEntries
from pylog.log_file.batch_walk import has_valid_checksum, read_header, walk_headers
from pylog.log_file.proved_position import ProvedPosition, ProvedPositions
from pylog.reading.log_segment_view import open_segment
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
    """Where a part begins: a byte of the file and the first offset there."""

    position: int
    offset: int


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
        How many parts to make at least, where there are enough batches.
    """
    total = sum(task.size_bytes for task in tasks)
    most = max_partition_bytes or max(1, total)
    if min_partitions is not None and total:
        most = max(1, min(most, -(-total // min_partitions)))
    return [part for task in tasks for part in _split(task, -(-task.size_bytes // most))]


def _split(task: ScanTask, parts: int) -> Iterator[ScanTask]:
    if parts <= 1:
        yield task
        return
    target = -(-task.size_bytes // parts)
    slices: list[SegmentSlice] = []
    start, taken = task.start_offset, 0
    for whole in task.slices:
        rest = whole
        while taken + rest.size_bytes > target:
            wanted = rest.start_position + target - taken
            cut = _find_cut(rest, wanted, uses_indexes=task.directory.uses_indexes)
            if cut is None or not start < cut.offset < task.end_offset:
                break
            head, rest = _cut(rest, cut)
            yield replace(task, slices=(*slices, head), start_offset=start, end_offset=cut.offset)
            slices, start, taken = [], cut.offset, 0
        slices.append(rest)
        taken += rest.size_bytes
    yield replace(task, slices=tuple(slices), start_offset=start)


def _cut(segment_slice: SegmentSlice, cut: Cut) -> tuple[SegmentSlice, SegmentSlice]:
    head = replace(
        segment_slice,
        end_position=cut.position,
        next_base_offset=cut.offset,
        runs_to_segment_end=False,
    )
    return head, replace(segment_slice, start_position=cut.position, base_offset=cut.offset)


def _find_cut(segment_slice: SegmentSlice, wanted: int, *, uses_indexes: bool) -> Cut | None:
    """Return a cut near byte ``wanted`` of the file, None if there is none inside the slice."""
    try:
        with open_segment(segment_slice.path, segment_slice.file_id) as source:
            batch = _indexed_batch(source, segment_slice, wanted) if uses_indexes else None
            batch = batch or _walked_batch(source, segment_slice, wanted)
            return None if batch is None else Cut(batch.position, _first_offset(source, batch))
    except (CorruptRecordError, InvalidRecordError, UnreadableFileError):
        return None  # its reader will report it


def _indexed_batch(
    source: ByteSource, segment_slice: SegmentSlice, wanted: int
) -> PositionedHeader | None:
    path = segment_slice.path.replace(LOG_FILE_SUFFIX, INDEX_FILE_SUFFIX)
    start = ProvedPosition(segment_slice.start_position, segment_slice.base_offset)
    with OffsetIndexEntries.open(path, segment_slice.segment_base_offset) as index:
        entries = ProvedPositions(source, index, start, segment_slice.end_position)
        proved = entries.from_position(wanted, _INDEX_TRIES)
    return (
        None if proved is None else read_header(source, proved.position, segment_slice.end_position)
    )


def _walked_batch(
    source: ByteSource, segment_slice: SegmentSlice, wanted: int
) -> PositionedHeader | None:
    """Return a batch that sizes lead to from the slice's beginning.

    It and the one before have right checksums, so that the one before does end there; offsets go
    up to the batch after it.
    """
    before = None
    headers = walk_headers(
        source,
        segment_slice.start_position,
        segment_slice.end_position,
        lowest_offset=segment_slice.base_offset,
    )
    for batch in headers:
        if before is not None and batch.position >= wanted:
            is_cut = has_valid_checksum(source, before) and has_valid_checksum(source, batch)
            next(headers, None)
            return batch if is_cut else None
        before = batch
    return None


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

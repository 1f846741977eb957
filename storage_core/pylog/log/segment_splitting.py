"""Splitting a segment whose offsets span more than 32 bits (KAFKA-5413, KAFKA-6264).

Brokers before 2.0 could compact segments into one with offsets that no index can express. Its
batches are copied into segments that can hold them, and those take its place (the table
of `pylog.log.segment_replacement` says what a crash leaves).

The new segments have no index files. So start-up, this one and any after a crash, takes them for
segments whose indexes are missing and recovers them. Only recovery knows which transactions were
aborted: it has the producers' state before the segment, and the old ``.txnindex`` is of no use,
since the recovery that found the overflow has emptied it.

Source: UnifiedLog.splitSegmentOnOffsetOverflow, LocalLog.splitOverflowedSegment (Kafka 4.3).
Differs from Kafka, which keeps the old files as ``.deleted`` for ``file.delete.delay.ms``,
and writes offset and time indexes, but no transaction indexes: where the new segments are not
recovered for another reason, it serves the records of their aborted transactions as
committed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pylog.errors import CorruptRecordError
from pylog.files.file_names import (
    CLEANED_FILE_SUFFIX,
    SegmentTarget,
)
from pylog.files.index_entries import MAX_RELATIVE_OFFSET
from pylog.locations import printable_location
from pylog.log.segment_replacement import replace_segments

if TYPE_CHECKING:
    from pylog.config import LogConfig
    from pylog.log.log_context import LogContext
    from pylog.log.log_segment import LogSegment
    from pylog.record.batch_header import BatchHeader

_LOGGER = logging.getLogger(__name__)


def split_overflowed_segment(
    segment: LogSegment, config: LogConfig, context: LogContext
) -> list[LogSegment]:
    """Put segments whose offsets fit in the place of one; return them, closed."""
    _LOGGER.info(
        "splitting %s: its offsets do not fit 32 bits", printable_location(segment.log.path)
    )
    made = _copy(segment, config, context)
    for new in made:
        new.log.trim()
        new.log.sync()
    replace_segments(made, [segment], context.io)
    for new in made:
        new.close_handlers()
    segment.delete_if_exists()
    return made


def _copy(segment: LogSegment, config: LogConfig, context: LogContext) -> list[LogSegment]:
    """Return new ``.log`` files with the batches of ``segment``; the first has its base offset."""

    def begin(base_offset: int) -> LogSegment:
        target = SegmentTarget(segment.directory, base_offset, CLEANED_FILE_SUFFIX)
        return context.open_segment(target, config, is_new=True)

    made = [begin(segment.base_offset)]
    copied, next_offset = 0, segment.base_offset
    for batch in segment.log.batches_from(0):
        header = batch.header
        if not made[-1].can_hold(header.last_offset):
            made.append(begin(_base_offset_of(header, next_offset)))
        data = segment.log.read_at(batch.position, header.size_bytes)
        made[-1].log.append(data)
        copied += len(data)
        next_offset = header.next_offset
    if copied != segment.size_bytes:
        reason = f"only {copied} of {segment.size_bytes} bytes are whole batches, cannot split"
        raise CorruptRecordError(reason, segment.log.path, copied)
    return made


def _base_offset_of(header: BatchHeader, next_offset: int) -> int:
    """Return the base offset of a segment that begins with a batch.

    Of a v0/v1 wrapper only the last offset is known; its first record lies neither below
    ``next_offset``, where the batch before it ends, nor further below its last one than a segment
    reaches. Differs from Kafka, which decompresses the wrapper for its first offset.
    """
    if header.base_offset is not None:
        return header.base_offset
    return max(next_offset, header.last_offset - MAX_RELATIVE_OFFSET)

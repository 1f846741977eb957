"""Splitting a segment whose offsets span more than 32 bits (KAFKA-5413, KAFKA-6264).

Brokers before 2.0 could compact segments into one with offsets that no index can express. Steps,
and what start-up does after a crash in them (`pylog.log.leftover_files`):

1. the batches are copied into new segments, files ``….cleaned``: they are removed;
2. the last new segment first, all are renamed to ``….swap``: while a ``.cleaned`` remains, the
   ``.swap`` files go, too; afterwards they count, and the old segment goes;
3. the old segment is renamed to ``….deleted`` and the suffix ``.swap`` dropped: completed.

Source: UnifiedLog.splitSegmentOnOffsetOverflow, LocalLog.splitOverflowedSegment (Kafka 4.3).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pylog.errors import CorruptRecordError
from pylog.files.file_names import CLEANED_FILE_SUFFIX, DELETED_FILE_SUFFIX, SWAP_FILE_SUFFIX
from pylog.log.log_segment import LogSegment, SegmentTarget
from pylog.log_file.batch_walk import PositionedHeader

if TYPE_CHECKING:
    from pylog.config import LogConfig
    from pylog.log.log_context import LogContext

_LOGGER = logging.getLogger(__name__)


def split_overflowed_segment(
    segment: LogSegment, config: LogConfig, context: LogContext
) -> list[LogSegment]:
    """Put segments whose offsets fit in the place of one; return them, closed.

    Raises
    ------
    KafkaStorageError
        The disk failed.
    CorruptRecordError
        Not all of the segment is whole batches; it stays as it was.
    """
    _LOGGER.info("splitting %s: its offsets do not fit 32 bits", segment.log.path)
    made: list[LogSegment] = []
    copied = 0
    for found in segment.log.batches_from(0):
        if not made or not made[-1].can_hold(found.header.last_offset):
            base_offset = found.header.base_offset
            if not made or base_offset is None:
                base_offset = segment.base_offset if not made else found.header.last_offset
            target = SegmentTarget(segment.directory, base_offset, CLEANED_FILE_SUFFIX)
            made.append(context.open_segment(target, config, is_new=True))
        data = segment.log.read_at(found.position, found.header.size_bytes)
        made[-1].append(data, [PositionedHeader(0, found.header)])
        copied += len(data)
    if copied != segment.size_bytes:
        reason = f"only {copied} of {segment.size_bytes} bytes are whole batches, cannot split"
        raise CorruptRecordError(reason, segment.log.path, copied)
    for new in made:
        new.on_become_inactive_segment()
        new.flush()
    for new in reversed(made):
        new.change_file_suffixes(CLEANED_FILE_SUFFIX, SWAP_FILE_SUFFIX)
    segment.change_file_suffixes("", DELETED_FILE_SUFFIX)
    segment.delete_if_exists()
    for new in made:
        new.change_file_suffixes(SWAP_FILE_SUFFIX, "")
        new.close_handlers()
    context.io.sync_directory(segment.directory)
    return made

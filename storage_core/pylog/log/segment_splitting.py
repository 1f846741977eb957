"""Splitting a segment whose offsets span more than 32 bits (KAFKA-5413, KAFKA-6264).

Brokers before 2.0 could compact segments into one with offsets that no index can express. After a
crash start-up (`pylog.log.leftover_files`) begins anew or completes what was begun:

==== ======================================== =====================================================
step what is done                             a crash after it
==== ======================================== =====================================================
1    the batches are copied into new files    the old segment is as it was; ``.cleaned`` files are
     ``….log.cleaned``, and synced            removed
2    directory synced                         the same; all ``.cleaned`` names are on the disk
3    all but the first are renamed            the same: as long as the first, which has the lowest
     to ``….swap``                            offset, is ``.cleaned``, no ``.swap`` counts
4    directory synced                         the same
5    the first is renamed to ``….swap``       the same, or, if that is on the disk: completed
6    directory synced                         completed: the ``.swap`` files count and are all there
7    the old segment is renamed to            completed
     ``….deleted``
8    directory synced                         completed
9    one new segment after the other, by      completed
     offset, drops ``.swap``; directory
     synced after each
10   the old segment is removed               completed
==== ======================================== =====================================================

The new segments have no index files. So start-up, this one and any after a crash, takes them for
segments whose indexes are missing and recovers them. Only recovery knows which transactions were
aborted: it has the producers' state before the segment, and the old ``.txnindex`` is of no use,
since the recovery that found the overflow has emptied it.

A power loss may keep a later rename and undo an earlier one, unless the directory was synced in
between. Without step 6 the old segment could be gone and the new ones ``.cleaned``; without step 4
the first new segment could count, and replace the old one, while others are ``.cleaned``; without
step 8 an index of the old segment could keep its name, and be taken for that of the first new one;
without the syncs of step 9 a segment that has its name already would lie between two ``.swap``
files, and be taken for one that they replace.

Source: UnifiedLog.splitSegmentOnOffsetOverflow, LocalLog.splitOverflowedSegment, replaceSegments
(Kafka 4.3). Differs from Kafka, which syncs the directory at the end only, keeps the old files as
``.deleted`` for ``file.delete.delay.ms``, and writes offset and time indexes, but no transaction
indexes: where the new segments are not recovered for another reason, it serves the records of
their aborted transactions as committed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pylog.errors import CorruptRecordError
from pylog.files.file_names import CLEANED_FILE_SUFFIX, DELETED_FILE_SUFFIX, SWAP_FILE_SUFFIX
from pylog.log.log_segment import LogSegment, SegmentTarget

if TYPE_CHECKING:
    from pylog.config import LogConfig
    from pylog.log.log_context import LogContext
    from pylog.record.batch_header import BatchHeader

_LOGGER = logging.getLogger(__name__)
_MAX_RELATIVE_OFFSET = 2**31 - 1


def split_overflowed_segment(
    segment: LogSegment, config: LogConfig, context: LogContext
) -> list[LogSegment]:
    """Put segments whose offsets fit in the place of one; return them, closed.

    They have no indexes and have to be recovered: see the module's docstring.

    Raises
    ------
    KafkaStorageError
        The disk failed.
    CorruptRecordError
        Not all of the segment is whole batches; it stays as it was.
    """
    _LOGGER.info("splitting %s: its offsets do not fit 32 bits", segment.log.path)
    made = _copy(segment, config, context)
    for new in made:
        new.log.trim()
        new.log.sync()
    first, *others = made
    context.io.sync_directory(segment.directory)
    for new in others:
        new.change_file_suffixes(CLEANED_FILE_SUFFIX, SWAP_FILE_SUFFIX)
    context.io.sync_directory(segment.directory)
    first.change_file_suffixes(CLEANED_FILE_SUFFIX, SWAP_FILE_SUFFIX)
    context.io.sync_directory(segment.directory)
    segment.change_file_suffixes("", DELETED_FILE_SUFFIX)
    context.io.sync_directory(segment.directory)
    for new in made:
        new.change_file_suffixes(SWAP_FILE_SUFFIX, "")
        new.close_handlers()
        context.io.sync_directory(segment.directory)
    segment.delete_if_exists()
    return made


def _copy(segment: LogSegment, config: LogConfig, context: LogContext) -> list[LogSegment]:
    """Return new ``.log`` files with the batches of ``segment``; the first has its base offset.

    The first stays empty if not even the first batch can be held at that offset: start-up knows by
    it that the old segment has been replaced.
    """

    def begin(base_offset: int) -> LogSegment:
        target = SegmentTarget(segment.directory, base_offset, CLEANED_FILE_SUFFIX)
        return context.open_segment(target, config, is_new=True)

    made = [begin(segment.base_offset)]
    copied, next_offset = 0, segment.base_offset
    for found in segment.log.batches_from(0):
        header = found.header
        if not made[-1].can_hold(header.last_offset):
            made.append(begin(_base_offset_of(header, next_offset)))
        data = segment.log.read_at(found.position, header.size_bytes)
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
    return max(next_offset, header.last_offset - _MAX_RELATIVE_OFFSET)

"""Cutting a log at a batch's boundary, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import OffsetInsideBatchError
from pylog.log.fetch_isolation import FetchIsolation
from pylog.record.batch_offsets import batch_offsets

if TYPE_CHECKING:
    from pylog.log.unified_log import UnifiedLog


def truncate_at_boundary(log: UnifiedLog, offset: int, *, takes_whole_batch: bool = False) -> None:
    """Remove everything from ``offset`` on, and nothing below it.

    Parameters
    ----------
    log
        Of which this is the only writer.
    offset
        First offset to remove; at or after the end of the log, nothing is removed.
    takes_whole_batch
        Whether a batch that holds records on both sides of ``offset`` goes as a whole, as in
        Kafka; the log then ends where it began.

    Raises
    ------
    OffsetInsideBatchError
        There is such a batch, and it is not to go. Nothing has been removed.
    CorruptRecordError, InvalidRecordError
        The batch there is of v0 or v1, and damaged.
    """
    if not log.log_start_offset <= offset < log.log_end_offset:
        log.truncate_to(offset)
        return
    fetched = log.read(offset, 1, FetchIsolation.LOG_END)
    if fetched.records:
        found = batch_offsets(memoryview(fetched.records))
        if found.are_cut_at(offset):
            if not takes_whole_batch:
                raise OffsetInsideBatchError(str(log.topic_partition), offset, *found)
            offset = found.first
    log.truncate_to(offset)

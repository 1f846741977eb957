"""Where the batch begins that holds an offset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.log.fetch_isolation import FetchIsolation
from pylog.record.batch_header import parse_batch_header

if TYPE_CHECKING:
    from pylog.log.unified_log import UnifiedLog


def first_offset_of_batch(log: UnifiedLog, offset: int) -> int:
    """Return the first offset of the batch that ``offset`` lies in.

    ``offset`` itself if it lies in none, or in a compressed batch of v0 or v1, whose header does
    not tell its first offset.
    """
    if not log.log_start_offset <= offset < log.log_end_offset:
        return offset
    fetched = log.read(offset, 1, FetchIsolation.LOG_END)
    if not fetched.records:
        return offset
    first = parse_batch_header(memoryview(fetched.records), 0).base_offset
    return offset if first is None else min(first, offset)

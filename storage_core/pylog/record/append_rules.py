"""What every builder of batches demands of a record's offset and timestamp.

Source: MemoryRecordsBuilder.appendWithOffset, recordWritten (Kafka 4.3).
"""

from __future__ import annotations

from pylog.model import NO_TIMESTAMP

MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1


def ensure_offset_rises(offset: int, next_offset: int, base_offset: int) -> None:
    """Raise ``ValueError`` unless the batch may go on with ``offset``.

    Parameters
    ----------
    offset
        Of the record to be added.
    next_offset
        The lowest it may have: the base offset, or the last record's plus 1.
    base_offset
        Of the batch; deltas to it are int32.
    """
    if offset < next_offset:
        msg = f"offset is {offset}, expected {next_offset} or more: offsets in a batch rise"
        raise ValueError(msg)
    if offset - base_offset > MAX_INT32:
        msg = f"offset {offset} is more than {MAX_INT32} above base offset {base_offset}"
        raise ValueError(msg)
    if offset > MAX_INT64:
        msg = f"offset is {offset}, expected {MAX_INT64} or less"
        raise ValueError(msg)


def ensure_timestamp(timestamp: int) -> None:
    """Raise ``ValueError`` unless it is an int64, and `NO_TIMESTAMP` where it is negative."""
    if not NO_TIMESTAMP <= timestamp <= MAX_INT64:
        msg = f"timestamp is {timestamp}, expected {NO_TIMESTAMP} to {MAX_INT64}"
        raise ValueError(msg)

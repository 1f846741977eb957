"""Intact batches that repeat offsets of those before them, as a copy of a run of batches does.

No broker looks at it, unless an index entry comes of such a batch. Java's consumer drops records
below its position. One that is built on librdkafka gets them again if they are in one answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import CorruptRecordError
from pylog.files.storage import open_file
from pylog.log_file.batch_walk import has_valid_checksum, walk_headers

if TYPE_CHECKING:
    from pylog.reading.damage import DamagedRange


def first_repeated(damaged: DamagedRange) -> int | None:
    """Return the first offset that comes again in a range; None if anything else is wrong there."""
    limit = damaged.end_offset
    # Where there is room for others, a lower base offset may be what is wrong, and at the start of
    # a file its name.
    has_room = limit is not None and not damaged.is_kept and limit > damaged.next_offset
    if limit is None or has_room or not damaged.position:
        return None
    first, end = damaged.next_offset, damaged.position
    try:
        with open_file(damaged.path) as source:
            for batch in walk_headers(source, end, damaged.end_position, lowest_offset=None):
                after = batch.header.next_offset
                # Of one that is kept under its own offsets the last ones are new.
                is_repeat = after == limit if damaged.is_kept else after <= damaged.next_offset
                if not is_repeat or not has_valid_checksum(source, batch):
                    return None
                first, end = min(first, batch.header.offset), batch.end_position
    except CorruptRecordError:
        return None
    is_all = end == damaged.end_position
    return first if is_all and first < damaged.next_offset else None

"""Whether a batch that its file's end cuts is a torn tail, or damage that looks like one.

A torn tail is normal after a crash. A size field that is too large looks the same and would hide
its batch and all after it. Two things give it away: the checksum fits the bytes that are there,
or another batch begins among them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pylog.lazy_modules import LazyModule
from pylog.log_file.batch_walk import PositionedHeader, has_valid_checksum
from pylog.record.batch_header import parse_batch_header, peek_entry_size
from pylog.record.batch_layout import (
    MAGIC_OFFSET,
    MIN_ENTRY_SIZE_V0,
    MIN_ENTRY_SIZES,
    RECORD_BATCH_OVERHEAD,
)

if TYPE_CHECKING:
    from pylog.files.byte_source import ByteSource
    from pylog.log_file import resynchronisation  # imports NumPy; `pylog ls` starts without
else:
    resynchronisation = LazyModule("pylog.log_file.resynchronisation")

SEARCHED_BYTES = 1 << 24
"""How far after a cut header to look for a batch."""


def find_tail_defect(source: ByteSource, position: int, end: int, next_offset: int) -> str | None:
    """Return why the entry at ``position``, cut by ``end``, is damage; None for a torn tail.

    Parameters
    ----------
    source
        A ``.log`` file.
    position, end
        Where the entry's header begins, and where the file ends.
    next_offset
        The offset after the last whole batch.
    """
    start = source.read_at(position, min(RECORD_BATCH_OVERHEAD, end - position))
    if len(start) < MIN_ENTRY_SIZE_V0 or not any(start):
        return None  # too little for anything to hide in it, or a preallocated tail
    size, length = peek_entry_size(start), end - position
    if _has_checksum_of_rest(source, position, start, length):
        return f"batch size is {size}, but its checksum is that of {length} bytes"
    following = resynchronisation.find_next_batch(
        source, position, end, lowest_offset=next_offset, searched_bytes=SEARCHED_BYTES
    )
    if following == end:
        return None
    return (
        f"batch of {size} bytes is cut short by the file's end after "
        f"{length}, but another one begins at byte {following}"
    )


def _has_checksum_of_rest(source: ByteSource, position: int, start: bytes, length: int) -> bool:
    """Whether a header whose size is wrong has the checksum of all that is there."""
    if length < MIN_ENTRY_SIZES[start[MAGIC_OFFSET]]:
        return False  # the header is cut, too
    header = replace(parse_batch_header(start), size_bytes=length)
    return has_valid_checksum(source, PositionedHeader(position, header))

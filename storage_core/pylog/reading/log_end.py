"""Where a log ends: after the last whole batch of its last segment.

A torn tail and a tail of zeros are normal ends (Kafka acknowledges before it forces to disk);
anything else is damage. A size field that is too large looks like a torn tail and would hide its
batch and all after it. Two things give it away: the checksum fits the bytes that are there, or
another batch begins among them.

A last batch with a wrong checksum is not noticed here, where an error would keep a user from all
before it, but when it is read; a reader that skips damage needs to know.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from pylog.errors import CorruptRecordError, UnreadableFileError
from pylog.lazy_modules import LazyModule
from pylog.log_file.batch_walk import (
    OFFSETS_IN_SEGMENT,
    PositionedHeader,
    WholeBatches,
    computed_checksum,
    find_whole_batches,
    has_valid_checksum,
    read_header,
    walk_headers,
)
from pylog.native.checksum import wrong_checksum
from pylog.reading.damage import DamageReport
from pylog.reading.task_range import SegmentSlice
from pylog.record.batch_header import (
    MAGIC_OFFSET,
    MIN_ENTRY_SIZE_V0,
    MIN_ENTRY_SIZES,
    RECORD_BATCH_OVERHEAD,
    parse_batch_header,
    peek_entry_size,
)

if TYPE_CHECKING:
    from pylog.files.byte_source import ByteSource
    from pylog.log_file import resynchronisation  # imports NumPy; `pylog ls` starts without
    from pylog.log_file.proved_positions import ProvedPosition
    from pylog.reading import checked_windows  # imports NumPy
    from pylog.reading.segments import LogSegmentView
else:
    resynchronisation = LazyModule("pylog.log_file.resynchronisation")
    checked_windows = LazyModule("pylog.reading.checked_windows")


SEARCHED_BYTES = 1 << 24
"""How far after a cut header to look for a batch."""


def find_tail_defect(source: ByteSource, position: int, end: int, next_offset: int) -> str | None:
    """Return why the entry at ``position``, cut by ``end``, is damage; None for a torn tail."""
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


_APPEND_SECONDS = 0.005
"""A broker that writes into a preallocated file needs less than this between header and end."""


def find_log_end(segment: LogSegmentView, *, skips_damage: bool = False) -> WholeBatches:
    """Return how far whole batches reach in the last segment of a log.

    Found from the last proved entry of the offset index on. With ``skips_damage`` there is never a
    defect: the end is that of the file where nothing intact follows the last damage, and ``last``
    is the last intact batch.
    """
    try:
        opened = segment.open_log()
    except UnreadableFileError:
        if not skips_damage:
            raise
        return WholeBatches(segment.size_bytes, None, None)  # its reader reports it
    with opened as source:
        size = source.size()
        # A walk over damage alone would find nothing before it that is sound.
        start = segment.last_indexed_position(source, size, is_sound=skips_damage)
        find_end = _sound_end if skips_damage else _whole_end
        batches = find_end(segment, source, start.position, size, lowest_offset=start.lowest_offset)
        batches = _with_tail_defect(source, segment, batches, size)
        if not skips_damage or batches.defect is None:
            return batches
        found = batches
        while found.defect is not None:
            found = _after_damage(source, segment, found, size)
        end = found.end_position
        return WholeBatches(end, _last_as_read(source, segment, start, end), None)


def find_end_before(segment: LogSegmentView, offset: int) -> WholeBatches:
    """Return how far batches reach that lie below an offset, at which a batch begins."""
    if segment.base_offset >= offset:
        return WholeBatches(0, None, None)
    with segment.open_log() as source:
        size = source.size()
        last = segment.find_batch(source, offset - 1, size)
        if last is None or last.header.next_offset > offset:  # there is a gap before the offset
            last = None
            for batch in walk_headers(source, 0, size, lowest_offset=segment.base_offset):
                if batch.header.next_offset > offset:
                    break
                last = batch
    return WholeBatches(0 if last is None else last.end_position, last, None)


def find_end_at(segment: LogSegmentView, position: int) -> WholeBatches | None:
    """Return how far batches reach that lie in front of damage; None if none ends there."""
    with segment.open_log() as source:
        found = find_whole_batches(source, 0, position, lowest_offset=segment.base_offset)
    is_found = found.defect is None and found.end_position == position
    return found if is_found else None


def continue_log_end(segment: LogSegmentView, known: WholeBatches) -> WholeBatches | None:
    """Return how far whole batches reach by now in a last segment whose end was known before.

    Only what was appended since is walked over. None if the last batch that was known is not there
    any more: the log was truncated.
    """
    if known.last is None or known.defect is not None:
        return find_log_end(segment)
    with segment.open_log() as source:
        size = source.size()
        if not holds_batch(source, known.last, size):
            return None
        following = known.last.header.next_offset
        position = known.end_position
        batches = _whole_end(segment, source, position, size, lowest_offset=following)
        if batches.last is None:
            batches = batches._replace(last=known.last)
        return _with_tail_defect(source, segment, batches, size)


def holds_batch(source: ByteSource, batch: PositionedHeader, end: int) -> bool:
    """Whether a file still has that batch at its place: the same header, checksum included."""
    try:
        return batch.end_position <= end and read_header(source, batch.position, end) == batch
    except CorruptRecordError:
        return False


def _with_tail_defect(
    source: ByteSource, segment: LogSegmentView, batches: WholeBatches, size: int
) -> WholeBatches:
    """Return ``batches``, with a defect if what looks like a torn tail is not one."""
    if batches.defect is not None or batches.end_position == size:
        return batches
    next_offset = _next_offset(batches, segment)
    return batches._replace(
        defect=find_tail_defect(source, batches.end_position, size, next_offset)
    )


def _next_offset(batches: WholeBatches, segment: LogSegmentView) -> int:
    return segment.base_offset if batches.last is None else batches.last.header.next_offset


def _whole_end(
    segment: LogSegmentView, source: ByteSource, start: int, size: int, *, lowest_offset: int
) -> WholeBatches:
    """Return the end of whole batches; a last offset that a segment cannot hold is a defect."""
    batches = find_whole_batches(source, start, size, lowest_offset=lowest_offset)
    limit = segment.base_offset + OFFSETS_IN_SEGMENT
    if batches.last is None or batches.last.header.last_offset < limit or segment.is_overlong():
        return batches
    return find_whole_batches(source, start, size, lowest_offset=lowest_offset, limit_offset=limit)


def _sound_end(
    segment: LogSegmentView, source: ByteSource, start: int, size: int, *, lowest_offset: int
) -> WholeBatches:
    """Return the end of whole batches; the first wrong checksum is its defect."""
    batches = _whole_end(segment, source, start, size, lowest_offset=lowest_offset)
    last = None
    try:
        for batch in walk_headers(source, start, batches.end_position, lowest_offset=lowest_offset):
            reason = _checksum_defect(source, batch)
            if reason is not None:
                return WholeBatches(batch.position, last, reason)
            last = batch
    except CorruptRecordError as error:
        position = start if last is None else last.end_position
        return WholeBatches(position, last, error.reason)
    return batches


def ensure_last_batch_is_sound(segment: LogSegmentView, last: PositionedHeader) -> None:
    """Raise `CorruptRecordError` if the last batch of a log has a wrong checksum."""
    with segment.open_log() as source:
        reason = _checksum_defect(source, last)
    if reason is not None:
        raise CorruptRecordError(reason, segment.file_path(), last.position)


def _checksum_defect(source: ByteSource, last: PositionedHeader) -> str | None:
    computed = computed_checksum(source, last)
    if computed != last.header.crc:
        time.sleep(_APPEND_SECONDS)  # is it just being written?
        computed = computed_checksum(source, last)
    if computed == last.header.crc:
        return None
    return wrong_checksum("batch", last.header.crc, computed)


def _last_as_read(
    source: ByteSource, segment: LogSegmentView, start: ProvedPosition, end: int
) -> PositionedHeader | None:
    """Return the last batch that a reader gives of the bytes from ``start`` on, where damage is."""
    segment_slice = SegmentSlice(
        segment.file_path(),
        start.lowest_offset,
        None,
        start.position,
        end,
        runs_to_segment_end=False,
        file_id=segment.file_id,
    )
    last = None
    report = DamageReport(is_logged=False)
    for window in checked_windows.CheckedWindows(source, segment_slice, damage=report):
        last = window.position_of(-1)
    return None if last is None else read_header(source, last, end)


def _after_damage(
    source: ByteSource, segment: LogSegmentView, batches: WholeBatches, size: int
) -> WholeBatches:
    """Return the end of the whole batches after the damage at ``batches.end_position``."""
    lowest = _next_offset(batches, segment)
    position = resynchronisation.find_next_batch(
        source, batches.end_position, size, lowest_offset=lowest
    )
    if position == size:
        return WholeBatches(size, batches.last, None)
    following = _sound_end(segment, source, position, size, lowest_offset=lowest)
    if following.last is None:
        following = following._replace(last=batches.last)
    return _with_tail_defect(source, segment, following, size)

"""Findings about ``.log`` files: damage, and what stands after the last batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.errors import CorruptRecordError, SegmentVanishedError, UnreadableFileError
from pylog.files.storage import open_file
from pylog.inspect.findings.finding import Finding
from pylog.inspect.findings.severity import Severity
from pylog.log_file.batch_walk import has_valid_checksum, is_zero, read_header
from pylog.record.batch_layout import RECORD_BATCH_OVERHEAD

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pylog.inspect.findings.log_walk import SegmentWalk
    from pylog.reading.damage import DamagedRange
    from pylog.reading.log_view import LogView
    from pylog.reading.segments import LogSegmentView
    from pylog.record.window import Window

DAMAGED = "damaged_batches"
MISNAMED = "misnamed_segment"
UNREADABLE = "unreadable"

MOST_SEGMENT_BYTES = 2**31 - 1
"""Positions in a ``.log`` file are int32 to a broker."""
MOST_RELATIVE_OFFSET = 2**31 - 1
"""So are offsets in an index, relative to the segment's."""


def damage_findings(view: LogView, damaged: Iterable[DamagedRange]) -> Iterator[Finding]:
    """Yield an error for each range that cannot be read."""
    places = {each.file_path(): index for index, each in enumerate(view.segments)}
    for each in damaged:
        code, message = DAMAGED, each.reason
        index = places.get(each.path)
        if each.position == 0 and index is not None:
            if not can_be_opened(view.segments[index]):
                # Its batches may well be sound: whoever may open the file can say.
                code = UNREADABLE
            elif (offset := _misnamed_offset(view, index)) is not None:
                code = MISNAMED
                name = view.segments[index].base_offset
                message = (
                    f"the first batch, which is sound, has offset {offset}, and the file's name "
                    f"says {name}"
                )
        yield Finding(
            Severity.ERROR,
            code,
            each.path,
            message,
            each.position,
            each.end_position,
            each.next_offset,
            each.end_offset,
        )


def can_be_opened(segment: LogSegmentView) -> bool:
    """Return whether the ``.log`` file can be opened, or is gone, which others notice."""
    try:
        segment.open_log().close()
    except UnreadableFileError:
        return False
    except SegmentVanishedError:
        pass
    return True


def _misnamed_offset(view: LogView, index: int) -> int | None:
    """Return the offset of a segment's first batch if that alone is wrong about it."""
    segment, limit = view.segments[index], view.next_base_offset(index)
    try:
        with segment.open_log() as source:
            batch = read_header(source, 0, source.size())
            if batch is None or not has_valid_checksum(source, batch):
                return None
    except (CorruptRecordError, SegmentVanishedError, UnreadableFileError):
        return None
    offset = batch.header.offset
    if segment.base_offset <= offset and (limit is None or offset < limit):
        return None
    return offset


def size_findings(walk: SegmentWalk) -> Iterator[Finding]:
    """Yield what no broker can open, or has to split."""
    segment = walk.segment
    if segment.size_bytes > MOST_SEGMENT_BYTES:
        message = f"file has {segment.size_bytes} bytes, expected at most {MOST_SEGMENT_BYTES}"
        yield Finding(Severity.ERROR, "oversized_segment", segment.file_path(), message)
    relative = walk.next_offset - 1 - segment.base_offset
    if relative > MOST_RELATIVE_OFFSET:
        message = (
            f"last offset is {walk.next_offset - 1}, {relative} above the base offset, expected at "
            f"most {MOST_RELATIVE_OFFSET} above it"
        )
        yield Finding(
            Severity.WARNING,
            "offset_overflow",
            segment.file_path(),
            message,
            next_offset=segment.base_offset,
            end_offset=walk.next_offset,
        )


def rest_findings(walk: SegmentWalk, damaged: Sequence[DamagedRange]) -> Iterator[Finding]:
    """Yield a warning if bytes follow the last batch of a segment that is not the last one.

    Parameters
    ----------
    walk
        The segment, once it has been walked.
    damaged
        Ranges of it that were left out: which are findings already.
    """
    segment, end = walk.segment, walk.end_position
    is_reported = any(each.end_position >= segment.size_bytes for each in damaged)
    if walk.slice.next_base_offset is None or end >= segment.size_bytes or is_reported:
        return
    rest = segment.size_bytes - end
    with open_file(segment.file_path()) as source:
        zero = "zero bytes" if is_zero(source, end, segment.size_bytes) else "bytes"
    yield Finding(
        Severity.WARNING,
        "segment_rest",
        segment.file_path(),
        f"the last whole batch is followed by {rest} {zero}, and another segment follows",
        end,
        segment.size_bytes,
        walk.next_offset,
        walk.next_offset,
    )


def empty_batch_findings(segment: LogSegmentView, window: Window) -> Iterator[Finding]:
    """Yield an error for each batch whose record count is 0 although it holds something.

    Kafka, and a reader here, pass over it: compaction leaves empty batches of a header alone.
    """
    headers = window.headers
    is_empty = headers.is_v2 & (headers.record_counts == 0) & (headers.codec_ids == 0)
    is_filled = headers.sizes_bytes > RECORD_BATCH_OVERHEAD
    for index in np.flatnonzero(is_empty & is_filled).tolist():
        size = int(headers.sizes_bytes[index])
        position = window.position_of(index)
        yield Finding(
            Severity.ERROR,
            "filled_empty_batch",
            segment.file_path(),
            f"batch has a record count of 0, but {size - RECORD_BATCH_OVERHEAD} bytes follow its "
            "header: no reader looks at them",
            position,
            position + size,
            int(headers.offsets[index]),
            int(headers.last_offsets[index]) + 1,
        )


def tail_findings(view: LogView) -> Iterator[Finding]:
    """Yield one if something other than damage stands after the last batch of a log."""
    if not view.segments:
        return
    segment = view.segments[-1]
    end = view.end.end_position
    if end >= segment.size_bytes:
        return
    path = segment.file_path()
    with open_file(path) as source:
        is_preallocated = is_zero(source, end, segment.size_bytes)
    rest = segment.size_bytes - end
    code, what = "torn_tail", f"{rest} bytes of a batch that was not written whole"
    if is_preallocated:
        code, what = "zero_tail", f"{rest} zero bytes: the file is preallocated, or has a hole"
    yield Finding(
        Severity.INFO,
        code,
        path,
        f"the last whole batch is followed by {what}",
        end,
        segment.size_bytes,
        view.log_end_offset,
    )

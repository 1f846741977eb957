"""Findings about ``.log`` files: damage, and what stands after the last batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.columnar.arrow_schema import record_schema
from pylog.files.storage import open_file
from pylog.inspect.findings.finding import Finding, Severity
from pylog.log_file.batch_walk import is_zero
from pylog.reading.damage import DamageReport, ReadMode
from pylog.reading.reader import TaskReader
from pylog.reading.scan_task import ScanTask
from pylog.reading.slicing import slice_of
from pylog.record.batch_layout import RECORD_BATCH_OVERHEAD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.log_file.segment_windows import SegmentWindow
    from pylog.reading.log_segment_view import LogSegmentView
    from pylog.reading.log_view import LogView

DAMAGED = "damaged_batches"


def damage_findings(view: LogView, max_decompressed_bytes: int) -> Iterator[Finding]:
    """Read a log from its first segment on; yield an error for each range that cannot be read.

    Parameters
    ----------
    view
        One that skips damage.
    max_decompressed_bytes
        As of `TaskReader`.
    """
    if not view.segments:
        return
    slices = tuple(
        slice_of(view, index)
        for index, segment in enumerate(view.segments)
        if view.segment_end(index) or segment.defect is not None
    )
    start, end = view.segments[0].base_offset, view.log_end_offset
    task = ScanTask(view.directory, slices, start, end)
    damage = DamageReport(is_logged=False)
    reader = TaskReader(
        task,
        record_schema([]),
        mode=ReadMode.DROPMALFORMED,
        damage=damage,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    for _ in reader.record_batches():  # decodes all records, so that none that is invalid hides
        pass
    for each in damage.ranges:
        yield Finding(
            Severity.ERROR,
            DAMAGED,
            each.path,
            each.reason,
            each.position,
            each.end_position,
            each.next_offset,
            each.end_offset,
        )


def empty_batch_findings(segment: LogSegmentView, window: SegmentWindow) -> Iterator[Finding]:
    """Yield an error for each batch whose record count is 0 although it holds something.

    Kafka, and a reader here, pass over it: compaction leaves empty batches of a header alone.
    """
    headers = window.scan.headers
    is_empty = headers.is_v2 & (headers.record_counts == 0) & (headers.codec_ids == 0)
    is_filled = headers.sizes_bytes > RECORD_BATCH_OVERHEAD
    for index in np.flatnonzero(is_empty & is_filled).tolist():
        size = int(headers.sizes_bytes[index])
        position = window.file_position + int(headers.positions[index])
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
    """Yield a note if something other than damage stands after the last batch of a log."""
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
        Severity.NOTE,
        code,
        path,
        f"the last whole batch is followed by {what}",
        end,
        segment.size_bytes,
        view.log_end_offset,
    )

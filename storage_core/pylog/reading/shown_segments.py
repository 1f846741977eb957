"""The table that a notebook shows of one log: its segments."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from pylog.reading.html_table import MOST_ROWS, html_table, shown_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pylog.reading.attempts import Attempts
    from pylog.reading.log_segment_view import LogSegmentView

_COLUMNS = ("base offset", "offsets", "bytes", "first timestamp (UTC)", "files")


def segments_html(
    title: str,
    segments: Sequence[LogSegmentView],
    end_offset: int | None,
    attempts: Attempts,
    *,
    opens_files: bool,
) -> str:
    """Return a table of segments.

    Parameters
    ----------
    title
        What is shown.
    segments
        In offset order.
    end_offset
        Where the last one ends, exclusive; None if it is not known.
    attempts
        What could not be read so far; the notes tell of it, and of what follows.
    opens_files
        Whether the header of the first batch is looked at for its timestamp.
    """
    rows = list(_rows(segments, end_offset, attempts, opens_files=opens_files))
    return html_table(title, _COLUMNS, rows, len(segments), notes=attempts.notes())


def _rows(
    segments: Sequence[LogSegmentView],
    end_offset: int | None,
    attempts: Attempts,
    *,
    opens_files: bool,
) -> Iterator[tuple[str | int | None, ...]]:
    shown = segments[: MOST_ROWS + 1]
    ends: list[int | None] = [after.base_offset for _, after in pairwise(shown)]
    if len(segments) <= MOST_ROWS:
        ends = [*ends, end_offset]
    for segment, end in zip(shown[:MOST_ROWS], ends, strict=True):
        stamp = attempts.read(partial(_first_timestamp, segment)) if opens_files else None
        yield (
            segment.base_offset,
            None if end is None else end - segment.base_offset,
            None if segment.defect else segment.size_bytes,
            shown_time(stamp),
            " ".join(sorted(segment.suffixes)),
        )


def _first_timestamp(segment: LogSegmentView) -> int | None:
    """Return the timestamp of a segment's first batch; None without one."""
    with segment.open_log() as source:
        batch = segment.find_batch(source, segment.base_offset, segment.size_bytes)
    return None if batch is None else batch.header.first_timestamp

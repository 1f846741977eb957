"""What a notebook shows of an object: a small table as HTML, whatever the object holds.

Every text is escaped: names of topics, paths and errors come from disk.
"""

from __future__ import annotations

import datetime as dt
from functools import partial
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from pylog.lazy_modules import LazyModule

if TYPE_CHECKING:
    import html
    from collections.abc import Iterable, Iterator, Sequence

    from pylog.reading.damage import Attempts
    from pylog.reading.segments import LogSegmentView
else:
    html = LazyModule("html")  # it has a table of 2,231 entities


MOST_ROWS = 20
_MOST_CHARACTERS = 500
_EPOCH = dt.datetime.fromtimestamp(0, dt.UTC)


def html_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str | int | None]],
    row_count: int,
    *,
    notes: Iterable[str] = (),
) -> str:
    """Return a table of the first rows, with a line that says how many there are after them."""
    head = "".join(f"<th>{_escaped(each)}</th>" for each in columns)
    body = "".join(
        f"<tr>{''.join(_cell(value) for value in row)}</tr>" for row in islice(rows, MOST_ROWS)
    )
    lines = list(notes)
    if row_count > MOST_ROWS:
        lines.insert(0, f"… {row_count - MOST_ROWS:,} more")
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    after = "".join(f"<div>{_escaped(each)}</div>" for each in lines)
    return f"<div><div><strong>{_escaped(title)}</strong></div>{table}{after}</div>"


def shown_time(milliseconds: int | None) -> str | None:
    """Return a Kafka timestamp in UTC, to the second; None for none."""
    if milliseconds is None:
        return None
    try:
        time = _EPOCH + dt.timedelta(milliseconds=milliseconds)
    except OverflowError:  # Kafka stores any 64-bit number
        return f"{milliseconds} ms"
    return f"{time:%Y-%m-%d %H:%M:%S}"


def _cell(value: str | int | None) -> str:
    if isinstance(value, int):
        return f'<td style="text-align:right">{value:,}</td>'
    return f'<td style="text-align:left">{_escaped(value or "")}</td>'


def _escaped(text: str) -> str:
    if len(text) > _MOST_CHARACTERS:
        text = f"{text[:_MOST_CHARACTERS]}…"
    # Names may hold bytes that are not UTF-8, which Python keeps as lone surrogates.
    return html.escape(text.encode("utf-8", "backslashreplace").decode("utf-8"))


_COLUMNS = ("base offset", "offsets", "bytes", "first timestamp (UTC)", "files")


def segments_html(
    title: str,
    segments: Sequence[LogSegmentView],
    end_offset: int | None,
    attempts: Attempts,
    *,
    opens_files: bool,
) -> str:
    """Return a table of segments."""
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

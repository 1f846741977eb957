r"""Records as lines for people: ``orders-0@57 12:30:05.123 user-42 {"a":1} [trace=7]``.

Partition and offset, the record's time in UTC, its key and value, then headers if it has any. Where
a line has no room for the date, one before it says it, as often as it changes. Bytes that are not
UTF-8, control characters and those that change the direction of text are escapes (``\x1b``), so
that a record is one line and nothing in it is a command to the terminal. Null is ``∅``, and what is
empty is ``""``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pylog
from pylog.cli.style import BOLD_RED, CYAN, DIM, GREEN, OutputTraits, padded, width_of
from pylog.text.instants import calendar_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa


class _Record(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[dict[str, object]] | None


class _Line(NamedTuple):
    date: str  # a line of its own, or ""
    columns: list[str]  # place, time and key
    rest: list[str]


_WIDTH_FOR_DATES = 120
_MOST_PADDED = (60, 24, 24)  # columns of a terminal for place, time and key
NULL, EMPTY, NO_TIME = "∅", '""', "-"


class RecordView:
    """Makes the lines of one output, in order: it knows which date was shown last.

    What ``found_by`` finds in keys and values stands out. With ``is_aligned``, values begin in one
    column, as far as the records up to then show.
    """

    def __init__(
        self,
        traits: OutputTraits,
        *,
        is_aligned: bool = False,
        found_by: pylog.RecordFilter | None = None,
    ) -> None:
        self._traits = traits
        self._has_dates = traits.width is None or traits.width >= _WIDTH_FOR_DATES
        self._date = ""
        self._is_aligned = is_aligned
        self._widths = [0] * len(_MOST_PADDED)
        self._found_by = found_by or pylog.RecordFilter()

    def line_format(self) -> pylog.jobs.LineFormat:
        """Return the function that formats record batches as lines."""
        return pylog.jobs.LineFormat(_Record._fields, self.lines_of)

    def lines_of(self, batch: pa.RecordBatch) -> Iterator[memoryview]:
        """Yield the lines of a record batch."""
        columns = (
            batch.column(name).cast("int64") if name == "timestamp" else batch.column(name)
            for name in _Record._fields
        )
        records = map(_Record, *(column.to_pylist() for column in columns))
        lines = list(map(self._line, records))
        if self._is_aligned:
            self._align(lines)
        texts = (f"{line.date}{' '.join([*line.columns, *line.rest])}\n" for line in lines)
        yield memoryview("".join(texts).encode())

    def _line(self, record: _Record) -> _Line:
        styled = self._traits.styled
        date, time = self._date_and_time(record.timestamp)
        place = pylog.jobs.printable(f"{record.topic}-{record.partition}@{record.offset}")
        headers = f"[{' '.join(map(_header, record.headers))}]" if record.headers else ""
        return _Line(
            date,
            [styled(place, CYAN), styled(time, DIM), self._text("key", record.key, GREEN)],
            [self._text("value", record.value, ""), *([styled(headers, DIM)] * bool(headers))],
        )

    def _align(self, lines: Sequence[_Line]) -> None:
        """Make the columns before the value as wide as any of them is, or was before."""
        for line in lines:
            for at, (cell, most) in enumerate(zip(line.columns, _MOST_PADDED, strict=True)):
                self._widths[at] = max(self._widths[at], min(width_of(cell), most))
        for line in lines:
            line.columns[:] = map(padded, line.columns, self._widths)

    def _date_and_time(self, timestamp: int) -> tuple[str, str]:
        """Return the line of a new date, or "", and the time as a record's line has it."""
        if timestamp == -1:
            return "", NO_TIME
        text = calendar_text(timestamp, 1000)
        if self._has_dates:
            return "", text
        date, time = text.rstrip("Z").split("T")
        if date == self._date:
            return "", time
        self._date = date
        return self._traits.styled(f"{date} UTC", DIM) + "\n", time

    def _text(self, column: str, content: bytes | None, style: str) -> str:
        if not content:
            return self._traits.styled(NULL if content is None else EMPTY, DIM)
        text = content.decode("utf-8", "surrogateescape")
        parts, at = [], 0
        for start, end in merged_spans(self._found_by.spans(column, text)):
            parts += [(text[at:start], style), (text[start:end], BOLD_RED)]
            at = end
        parts.append((text[at:], style))
        return "".join(self._traits.styled(shown(part), style) for part, style in parts)


def shown(text: str) -> str:
    """Return text for a terminal; what is left of bytes that are not UTF-8 becomes escapes."""
    content = text.encode("utf-8", "surrogateescape")
    return pylog.jobs.printable(content.decode("utf-8", "backslashreplace"))


def _header(header: dict[str, object]) -> str:
    value = header["value"]
    text = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else NULL
    return shown(f"{header['key']}={text}")


def merged_spans(spans: Iterable[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    """Yield the spans in order, those that overlap as one, and none that are empty."""
    start = end = 0
    for first, last in sorted(spans):
        if first > end:
            if end > start:
                yield start, end
            start = first
        end = max(end, last)
    if end > start:
        yield start, end

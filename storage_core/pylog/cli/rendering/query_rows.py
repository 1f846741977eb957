"""The rows of a query: as a table for people, as CSV, and as JSON lines; while they are found."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import itertools
import json
import math
from typing import TYPE_CHECKING, Any

import pylog
from pylog.cli.rendering.counted import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    Row = tuple[object, ...]

_ROWS_OF_WIDTHS = 1_000
"""The first rows decide how wide columns are; a wider cell after them moves those to its right."""


def rows_of(reader: pa.RecordBatchReader) -> Iterator[Row]:
    """Yield the rows of a reader as values of Python."""
    for batch in reader:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def table_lines(names: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of a table, its headings first, and how many rows it has at the end."""
    coming = iter(rows)
    first = list(itertools.islice(coming, _ROWS_OF_WIDTHS))
    heading = [pylog.printable(name) for name in names]
    head = [[_cell(value) for value in row] for row in first]
    widths = [max(map(len, column)) for column in zip(heading, *head, strict=True)]
    is_number = [
        all(isinstance(value, int | float | decimal.Decimal | None) for value in column)
        for column in zip(*first, strict=True)
    ] or [False] * len(heading)

    def line_of(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(cells, widths, is_number, strict=True)
        )
        return "  ".join(padded).rstrip()

    yield line_of(heading)
    yield from map(line_of, head)
    count = len(head)
    for row in coming:
        yield line_of([_cell(value) for value in row])
        count += 1
    yield counted(count, "row")


def csv_lines(
    names: Sequence[str], rows: Iterable[Row], *, escapes_controls: bool
) -> Iterator[str]:
    """Yield the lines of CSV, names first; null is an empty field, and empty text is ``""``."""
    for row in itertools.chain([tuple(names)], rows):
        cells = ("" if value is None else _quoted(_text(value)) for value in row)
        line = ",".join(cells)
        yield pylog.printable(line) if escapes_controls else line


def json_lines(names: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Yield a JSON object for each row; of columns with the same name, later ones get a number."""
    keys: list[str] = []
    for name in names:
        numbered = (f"{name}_{number}" for number in itertools.count(1))
        keys.append(next(key for key in itertools.chain([name], numbered) if key not in keys))
    for row in rows:
        document = {key: _json_value(value) for key, value in zip(keys, row, strict=True)}
        yield json.dumps(document, separators=(",", ":"))


def _cell(value: object) -> str:
    """Return a cell of the table; a backslash that is not an escape's is doubled."""
    match value:
        case None:
            return r"\N"
        case bytes():
            return pylog.printable(_text(value.replace(b"\\", rb"\\")))
        case str():
            return pylog.printable(value.replace("\\", r"\\"))
    return pylog.printable(_text(value))


def _text(value: object) -> str:
    """Return a value that is not null as people write it."""
    match value:
        case bytes():
            return value.decode("utf-8", "backslashreplace")
        case dt.datetime():
            return _time_text(value)
        case decimal.Decimal():
            return f"{value:f}"
        case (int(months), int(days), int(nanoseconds)) if hasattr(value, "nanoseconds"):
            return _interval_text(months, days, nanoseconds)
        case bool() | list() | tuple() | dict():
            return json.dumps(_json_value(value))
    return str(value)


def _quoted(text: str) -> str:
    if text and not any(sign in text for sign in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'


def _json_value(value: Any) -> Any:  # noqa: ANN401 - whatever a query gives
    """Return what JSON has for a value: text for bytes in UTF-8, base64 for others."""
    match value:
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                return {"base64": base64.b64encode(value).decode()}
        case float():
            return value if math.isfinite(value) else str(value)
        case decimal.Decimal():
            return int(value) if value == value.to_integral_value() else str(value)
        case dict():
            return {str(key): _json_value(each) for key, each in value.items()}
        case list() | tuple() if not hasattr(value, "nanoseconds"):
            return [_json_value(each) for each in value]
        case None | bool() | int() | str():
            return value
    return _text(value)


def _interval_text(months: int, days: int, nanoseconds: int) -> str:
    """Return an interval, which Arrow has in three numbers: ``3 days 02:04:00.500000``."""
    parts = [counted(months, "month")] * bool(months) + [counted(days, "day")] * bool(days)
    micros = abs(nanoseconds) // 1_000
    seconds, micros = divmod(micros, 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    sign = "-" if nanoseconds < 0 else ""
    parts.append(f"{sign}{hours:02}:{minutes:02}:{seconds:02}.{micros:06}")
    return " ".join(parts)


def _time_text(time: dt.datetime) -> str:
    """Return a time as ISO 8601 has it, ``Z`` for UTC; milliseconds if that is all it has."""
    timespec = "milliseconds" if time.microsecond % 1000 == 0 else "microseconds"
    return time.isoformat(timespec=timespec).replace("+00:00", "Z")

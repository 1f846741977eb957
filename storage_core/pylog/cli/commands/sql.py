"""``pylog sql``: queries of the records and of the structure of logs."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import itertools
import json
import math
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

import pylog
from pylog.cli import exit_status, options, progress
from pylog.cli.box_table import BoxColumn, box_lines
from pylog.cli.options import argument, command
from pylog.cli.progress import stopped_by
from pylog.cli.record_options import chosen_records, way_of_reading
from pylog.cli.style import OutputTraits
from pylog.cli.table import can_show_blocks
from pylog.cli.value_options import tell_undecodable, typed_values
from pylog.lazy_modules import LazyModule
from pylog.text.instants import calendar_text
from pylog.text.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from pylog.cli.record_options import ChosenRecords, WayOfReading
    from pylog.cli.value_options import TypedValues

    Row = tuple[object, ...]
    Cells = Sequence[str | None]
else:
    pa = LazyModule("pyarrow")


def _ensure_query(_context: click.Context, _parameter: click.Parameter, query: str) -> str:
    """Return what was given for the query, unless it is the path of a command without one."""
    if os.path.isdir(query):  # noqa: PTH112 - text
        example = "'SELECT count(*) FROM records'"
        raise click.UsageError(f"give a query after the path: pylog sql {query} {example}")
    return query


@command(
    "sql",
    'pylog sql /mnt/kafka-logs "SELECT topic, count(*) FROM records GROUP BY ALL"',
    "pylog sql /mnt/kafka-logs \"SELECT * FROM records WHERE key = 'user-7' \"",
    'pylog sql /mnt/kafka-logs "SELECT path FROM segments ORDER BY size_in_bytes DESC LIMIT 10"',
    "pylog sql /mnt/kafka-logs \"COPY (SELECT * FROM records) TO 'records.parquet'\"",
)
@chosen_records
@argument(
    "query",
    metavar="QUERY",
    help_text="A statement of DuckDB's SQL, in quotes for the shell.",
    is_eager=True,
    callback=_ensure_query,
)
@options.mode(
    "FAILFAST: damage is an error. DROPMALFORMED: each damaged range is left out and reported on "
    "stderr. The exit status is 1 in both cases."
)
@options.flag(
    "--check-crc",
    help="Let view batches verify checksums: its column is_valid_crc, otherwise null.",
)
@options.flag(
    "--check-keys",
    help="Let view cleaning read all records, twice, to show how much of a compacted topic is "
    "live.",
)
@options.server_properties
@options.trust_batch_timestamps("Where the query compares the column timestamp")
@options.flag("--csv", "as_csv", help="Print CSV, the names of columns first.")
@options.json_output("Print JSON lines, an object for each row.")
@typed_values
@way_of_reading
def sql(
    chosen: ChosenRecords,
    way: WayOfReading,
    typed: TypedValues,
    *,
    query: str,
    mode: str,
    check_crc: bool,
    check_keys: bool,
    server_properties: pylog.ServerProperties | None,
    trust_batch_timestamps: bool,
    as_csv: bool,
    as_json: bool,
) -> int:
    r"""Query records and the structure of logs in SQL.

    DuckDB runs the query (pip install '.[duckdb]' in a clone). The views are records, partitions,
    segments, batches, index_entries, transactions, producers, leader_epochs, cleaning, findings,
    latest and schemas. records has topic, partition, "offset", timestamp, timestampType, key, value
    and headers, and so has latest, for the last record of each key; docs/sql.md describes the
    others. Options choose what is in them; offsets, times and --isolation apply to records only;
    --end-offset and --end-timestamp also set the moment that latest shows.

    The query reads only what it needs: the columns that it names; the partitions, offsets,
    timestamps and keys that WHERE compares with constants; and no record after LIMIT. count(*)
    reads batch headers alone, and trusts them; count(key) reads all records and verifies all
    checksums.

    offset is a keyword of SQL: write "offset" in double quotes, or records.offset. A time is of UTC
    unless it names a zone.

    Keys and values are bytes. key_text and value_text are their text, value_json is for paths
    (value_json->>'$.user.id'); they are null where the bytes are no text, or no JSON. Each topic is
    a view of its name: SELECT * FROM orders. With --value-format, values of these views are
    structs by the schemas of a registry (SELECT value.status FROM orders), where a topic has one,
    and with one --topic those of latest, too; records keeps bytes.

    In a terminal, the table is a box with the types of its columns. If it has more than 40 rows,
    the first and the last 20 are shown, and columns that are too wide are cut: --csv, --json, a
    file and a pipe get all values. There, null is NULL.

    In the table, null is \N, control characters and bytes that are not UTF-8 are escaped (\n,
    \xff), and a backslash is doubled. In CSV only such bytes are escaped. In JSON, a value that is
    not UTF-8 is {"base64": ...}, so that nothing is lost.

    TIME is an ISO date or time (2026-11-01, 2026-11-01T12:30:00Z; UTC unless it names a zone), how
    long before now (-30s, -15m, -2h, -7d, -4w), or milliseconds since 1970-01-01 UTC. It is used to
    look up an offset, where a comparison in SQL filters.

    Exit status: 0 nothing wrong was seen, 1 damage was found, 2 wrong usage, a query that DuckDB
    refuses, or a path that cannot be read.
    """
    if as_csv and as_json:
        raise click.UsageError("give either --csv or --json, not both")
    if not query.strip():
        raise click.UsageError("the query is empty")
    try:
        database_of = pylog.duckdb.LogDatabase
    except ModuleNotFoundError as error:
        raise click.UsageError(str(error)) from error
    directory, choice = chosen.choice()
    if trust_batch_timestamps:
        choice["where"] = pylog.RecordFilter(trusts_batch_timestamps=True)
    checks = {
        "check_crc": check_crc,
        "check_keys": check_keys,
        "server_properties": server_properties,
    }
    formats = typed.arguments(chosen.paths)
    arguments = {**choice, **way.arguments(), **checks, **formats, "mode": mode}
    with database_of(directory, **arguments) as database:
        bar = progress.ProgressBar("querying", None)
        with stopped_by(database.interrupt), _drawing_of_errors(), bar:
            if progress.is_wanted():
                database.records.scanned.on_change = bar.show
            reader = database.query(query)
            for line in _lines(reader, as_csv=as_csv, as_json=as_json):
                sys.stdout.write(f"{line}\n")
        # Each range has been named on stderr when it was found.
        scans = [database.records, *database.typed.values()]
        undecodable = [tell_undecodable(each) for each in scans]
        is_sound = not any(undecodable) and not any(each.damage for each in scans)
        return exit_status.SOUND if is_sound else exit_status.FINDINGS


@contextmanager
def _drawing_of_errors() -> Iterator[None]:
    """Print the line of the query, and where DuckDB's error is in it, above the error."""
    try:
        yield
    except ValueError as error:
        _, found, drawing = str(error.__cause__ or "").partition("\nLINE ")
        for line in f"LINE {drawing}".splitlines() if found else ():
            sys.stderr.write(f"{pylog.jobs.printable(line)}\n")
        raise


def _lines(reader: pa.RecordBatchReader, *, as_csv: bool, as_json: bool) -> Iterator[str]:
    names: list[str] = reader.schema.names
    rows = rows_of(reader)
    if as_json:
        return json_lines(names, rows)
    if as_csv:
        return csv_lines(names, rows, escapes_controls=sys.stdout.isatty())
    traits = OutputTraits.of(sys.stdout)
    if names and traits.is_terminal and can_show_blocks(sys.stdout.encoding):
        cells = ([None if value is None else _cell(value) for value in row] for row in rows)
        return box_lines(list(map(_box_column, reader.schema)), cells, traits)
    return table_lines(names, rows)


_KINDS = {
    "string": "varchar",
    "large_string": "varchar",
    "binary": "blob",
    "large_binary": "blob",
    "bool": "boolean",
    "halffloat": "float16",
    "date32[day]": "date",
    "month_day_nano_interval": "interval",
}
"""What DuckDB's shell calls Arrow's types; all others by Arrow's own names."""


def _box_column(field: pa.Field) -> BoxColumn:
    is_number = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return BoxColumn(
        pylog.jobs.printable(field.name),
        pylog.jobs.printable(_kind(field.type)),
        is_right=any(is_of(field.type) for is_of in is_number),
    )


def _kind(kind: pa.DataType) -> str:
    """Return a type as DuckDB's shell has it."""
    types = pa.types
    if types.is_timestamp(kind):
        return "timestamp with time zone" if kind.tz else "timestamp"
    if types.is_time(kind):
        return "time"
    if types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if types.is_list(kind) or types.is_large_list(kind):
        return f"{_kind(kind.value_type)}[]"
    if types.is_map(kind):
        return f"map({_kind(kind.key_type)}, {_kind(kind.item_type)})"
    if types.is_struct(kind):
        return f"struct({', '.join(f'{each.name} {_kind(each.type)}' for each in kind)})"
    return _KINDS.get(str(kind), str(kind))


_DAY_SECONDS = 86_400
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_ROWS_OF_WIDTHS = 1_000
"""The first rows decide how wide columns are; a wider cell after them moves those to its right."""


def rows_of(reader: pa.RecordBatchReader) -> Iterator[Row]:
    """Yield the rows of a reader as values of Python."""
    for batch in reader:
        yield from zip(*map(_values, batch.columns), strict=True)


def _values(column: pa.Array) -> list[Any]:
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):  # a time that Python's calendar does not have
        return [_value(scalar) for scalar in column]


def _value(scalar: pa.Scalar) -> Any:  # noqa: ANN401 - whatever a query gives
    """Return a scalar as a value of Python, a time or a day in the far future as text."""
    if isinstance(scalar, pa.StructScalar) and scalar.is_valid:
        return {name: _value(each) for name, each in scalar.items()}
    if isinstance(scalar, pa.ListScalar) and scalar.is_valid:
        return [_value(each) for each in scalar.values]
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        if isinstance(scalar, pa.Date32Scalar):
            return calendar_text(scalar.value * _DAY_SECONDS, 1).partition("T")[0]
        if not isinstance(scalar, pa.TimestampScalar):
            raise
        return calendar_text(scalar.value, _PER_SECOND[scalar.type.unit])


def table_lines(names: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of a table, its headings first, and how many rows it has at the end."""
    coming = iter(rows)
    first = list(itertools.islice(coming, _ROWS_OF_WIDTHS))
    heading = [pylog.jobs.printable(name) for name in names]
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
        yield pylog.jobs.printable(line) if escapes_controls else line


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
            return pylog.jobs.printable(_text(value.replace(b"\\", rb"\\")))
        case str():
            return pylog.jobs.printable(value.replace("\\", r"\\"))
    return pylog.jobs.printable(_text(value))


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

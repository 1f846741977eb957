"""``pylog sql``: queries of the records and of the structure of logs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

import pylog
from pylog.cli import exit_status
from pylog.cli.command_help import argument, command
from pylog.cli.interruption import stopped_by
from pylog.cli.record_options import chosen_records, way_of_reading
from pylog.cli.rendering import progress
from pylog.cli.rendering.compile_notice import announce_compilation
from pylog.cli.rendering.query_rows import csv_lines, json_lines, rows_of, table_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pylog.cli.record_options import ChosenRecords, WayOfReading


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
)
@click.option(
    "--mode",
    type=click.Choice(["FAILFAST", "DROPMALFORMED"]),
    default="FAILFAST",
    help="FAILFAST: damage is an error. DROPMALFORMED: each damaged range is left out and reported "
    "on stderr. The exit status is 1 in both cases.",
)
@click.option(
    "--check-crc",
    is_flag=True,
    help="View batches computes checksums, for its column is_valid_crc, which is null else.",
)
@click.option(
    "--check-keys",
    is_flag=True,
    help="View cleaning reads all records, twice, and so says how much of a compacted topic is "
    "live.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, the names of columns first.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines, an object for each row.")
@way_of_reading
def sql(
    chosen: ChosenRecords,
    way: WayOfReading,
    *,
    query: str,
    mode: str,
    check_crc: bool,
    check_keys: bool,
    as_csv: bool,
    as_json: bool,
) -> int:
    r"""Query records and the structure of logs in SQL.

    DuckDB runs the query (pip install 'pyspark-pylog[duckdb]'). There are views with the names
    records, partitions, segments, batches, index_entries, transactions, producers, leader_epochs,
    cleaning and findings. records has topic, partition, "offset", timestamp, timestampType, key,
    value and headers; docs/tables.md tells of the others. Options choose what is in them; offsets,
    times and --isolation are about records alone.

    Only what the query needs is read: the columns that it names; of partitions, offsets, timestamps
    and keys those that WHERE compares with constants; and nothing after LIMIT. count(*) reads batch
    headers alone, and trusts them; count(key) reads all records and verifies all checksums.

    offset is a keyword of SQL: write "offset" in double quotes, or records.offset. A time is of UTC
    unless it names a zone. Keys and values are bytes: decode(value) is their text, and
    decode(value)->>'$.user.id' looks into JSON.

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
        msg = "give either --csv or --json, not both"
        raise click.UsageError(msg)
    if not query.strip():
        msg = "the query is empty"
        raise click.UsageError(msg)
    try:
        database_of = pylog.LogDatabase
    except ModuleNotFoundError as error:
        raise click.UsageError(str(error)) from error
    directory, choice = chosen.choice()
    checks = {"check_crc": check_crc, "check_keys": check_keys}
    with database_of(directory, **choice, **way.arguments(), **checks, mode=mode) as database:
        announce_compilation()
        with stopped_by(database.interrupt), progress.ProgressBar("querying", None) as bar:
            if progress.is_wanted():
                database.records.scanned.on_change = bar.show
            reader = database.query(query)
            for line in _lines(reader, as_csv=as_csv, as_json=as_json):
                sys.stdout.write(f"{line}\n")
        # Each range has been named on stderr when it was found.
        return exit_status.FINDINGS if database.records.damage else exit_status.SOUND


def _lines(reader: pa.RecordBatchReader, *, as_csv: bool, as_json: bool) -> Iterator[str]:
    names: list[str] = reader.schema.names
    rows = rows_of(reader)
    if as_json:
        return json_lines(names, rows)
    if as_csv:
        return csv_lines(names, rows, escapes_controls=sys.stdout.isatty())
    return table_lines(names, rows)

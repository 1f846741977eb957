"""``pylog export``: records into files of other formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import pylog
from pylog.cli import exit_status, options, progress
from pylog.cli.options import command
from pylog.cli.output import read_masking, tell_of_masking, write_summary
from pylog.cli.record_options import (
    advice_on_damage,
    chosen_records,
    of_times,
    way_of_reading,
)
from pylog.cli.value_options import tell_undecodable, tell_without_schema, typed_values
from pylog.text.words import counted, format_bytes

if TYPE_CHECKING:
    from pylog.cli.record_options import ChosenRecords, WayOfReading
    from pylog.cli.value_options import TypedValues

_COLUMNS = ("topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers")


@command(
    "export",
    "pylog export /mnt/kafka-logs --topic orders --to orders.parquet",
    "pylog export /mnt/kafka-logs --to '/tmp/{topic}.jsonl'",
)
@chosen_records
@options.own_timestamps
@options.file(
    "--to",
    required=True,
    help="The file to write; .parquet, .arrow, .csv or .jsonl at its end says what it becomes. "
    "With {topic} in its name, each topic has a file of its own.",
)
@click.option(
    "--columns",
    metavar="NAME[,NAME...]",
    help="Only these columns, in this order: topic, partition, offset, timestamp, timestampType, "
    "key, value, headers, batch. Default: all but batch. Not for .jsonl, which has all.",
)
@click.option(
    "--values",
    type=click.Choice(pylog.jobs.VALUE_FORMATS),
    help="How .csv and .jsonl have keys, values and headers' values. text: as UTF-8; other bytes "
    'are {"base64": ...} in .jsonl and an error in .csv. Default: text.',
)
@click.option(
    "--compression",
    type=click.Choice(["zstd", "lz4", "none"]),
    help="Codec of .parquet and .arrow. Default: zstd.",
)
@options.mask
@options.flag("--overwrite", help="Replace an existing file.")
@options.mode(
    "FAILFAST: damage is an error, and no file is written. DROPMALFORMED: each damaged range is "
    "left out and reported on stderr, and everything intact is written. The exit status is 1 in "
    "both cases."
)
@options.as_json
@typed_values
@way_of_reading
def export(
    chosen: ChosenRecords,
    way: WayOfReading,
    typed: TypedValues,
    *,
    min_timestamp: int | None,
    max_timestamp: int | None,
    to: str,
    columns: str | None,
    values: str | None,
    compression: str | None,
    mask: str | None,
    overwrite: bool,
    mode: str,
    as_json: bool,
) -> int:
    """Write records to a file: Parquet, Arrow, CSV or JSON lines.

    Records come partition by partition, in offset order, with the columns of Spark's kafka source.
    A file is written beside its place and renamed when it is complete, so that there is never a
    part of one; an existing file is an error unless --overwrite is given.

    .csv has headers as a JSON array and an empty field for null, where an empty value is "".
    .jsonl has the lines that pylog cat prints, which pylog append reads.

    With --value-format, values are columns of a struct by the schemas of a registry, and JSON in
    .csv and .jsonl. What cannot be decoded is an error, or left out with DROPMALFORMED.

    TIME is an ISO date or time (2026-11-01, 2026-11-01T12:30:00Z; UTC unless it names a zone), how
    long before now (-30s, -15m, -2h, -7d, -4w), or milliseconds since 1970-01-01 UTC. It is used to
    look up an offset and does not filter, as --min-timestamp and --max-timestamp do.

    Exit status: 0 the files are written, 1 damage was found, 2 wrong usage, a path that cannot be
    read or a file that cannot be written.
    """
    is_lines = to.endswith(".jsonl")
    if is_lines and columns is not None:
        raise click.UsageError("--columns is not for .jsonl, whose lines have all of them")
    if values is not None and not to.endswith((".csv", ".jsonl")):
        raise click.UsageError("--values is for .csv and .jsonl")
    if compression is not None and not to.endswith((".parquet", ".arrow")):
        raise click.UsageError("--compression is for .parquet and .arrow")
    names: tuple[str, ...] = _COLUMNS
    if is_lines:
        names = pylog.jobs.LineFormat.json().columns
    elif columns is not None:
        names = tuple(name.strip() for name in columns.split(",") if name.strip())
    if typed.columns and (mask is not None or values is not None):
        raise click.UsageError("--value-format and --key-format are without --mask and --values")
    masking = read_masking(mask)
    is_each = is_lines or "{topic}" in to
    topics = "each" if is_each else None if chosen.names else "typed"
    scan = chosen.scan(
        way,
        columns=names,
        mode=mode,
        timestamp_unit="ms",
        where=of_times(min_timestamp, max_timestamp),
        **typed.arguments(chosen.paths, topics=topics),
    )
    if topics == "each":
        tell_without_schema(scan)
    with advice_on_damage(mode), progress.ProgressBar("exporting", None) as bar:
        files = pylog.export(
            scan,
            to,
            values=values or pylog.jobs.VALUE_FORMATS[0],
            compression=compression or "zstd",
            overwrite=overwrite,
            masking=masking,
            progress=bar.show if progress.is_seen() else None,
        )
    tell_of_masking(masking)
    document = {
        "files": pylog.jobs.document_of(files, {"rows": "records"}),
        "damagedRanges": len(scan.damage),
    }
    lines = [
        f"{each.path}: {counted(each.rows, 'record')}, {format_bytes(each.size_bytes)}"
        for each in files
    ]
    write_summary(document, lines, as_json=as_json)
    # Each has been named on stderr when it was found.
    return exit_status.FINDINGS if tell_undecodable(scan) or scan.damage else exit_status.SOUND

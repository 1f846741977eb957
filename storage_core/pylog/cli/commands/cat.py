"""``pylog cat``: the records of a log directory."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

import pylog
from pylog.cli import exit_status, options
from pylog.cli.command_help import command
from pylog.cli.rendering import progress
from pylog.cli.rendering.compile_notice import announce_compilation
from pylog.cli.rendering.record_json import JSON_COLUMNS, json_lines
from pylog.cli.rendering.record_text import TEXT_COLUMNS, text_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

ROWS_AT_ONCE = 8192
"""Records that are formatted before they are written: some megabytes of text."""

_FORMATS: dict[str, tuple[tuple[str, ...], Callable[[pa.RecordBatch], bytes]]] = {
    "jsonl": (JSON_COLUMNS, json_lines),
    "text": (TEXT_COLUMNS, text_lines),
}


@command("cat")
@options.paths
@click.option(
    "--topic",
    "topics",
    metavar="T[,T...]",
    multiple=True,
    help="Only these topics; may be given several times. Default: all but internal ones (a PATH "
    "that is a partition directory is read whatever its topic).",
)
@click.option(
    "--partition",
    "partitions",
    metavar="N",
    multiple=True,
    type=click.IntRange(min=0),
    help="Only this partition of each topic; may be given several times.",
)
@click.option(
    "--isolation",
    type=click.Choice([level.name.lower() for level in pylog.IsolationLevel]),
    default="read_uncommitted",
    help="read_committed leaves out aborted transactions, and everything from the first open "
    "transaction on.",
)
@click.option(
    "--start-offset",
    metavar="N",
    type=click.IntRange(min=0),
    help="First offset to print (inclusive), in every partition read. Default: the earliest.",
)
@click.option(
    "--end-offset",
    metavar="N",
    type=click.IntRange(min=0),
    help="Offset before which to stop (exclusive). Default: the end of the log.",
)
@click.option(
    "--start-timestamp",
    metavar="MS",
    type=click.IntRange(min=0),
    help="Begin at the first record whose timestamp is MS or later (inclusive). Milliseconds since "
    "1970-01-01 UTC. A partition without such a record prints nothing.",
)
@click.option(
    "--end-timestamp",
    metavar="MS",
    type=click.IntRange(min=0),
    help="Stop before the first record whose timestamp is MS or later (exclusive). Milliseconds "
    "since 1970-01-01 UTC.",
)
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in pylog.ReadMode]),
    default=pylog.ReadMode.FAILFAST.value,
    help="FAILFAST: the first damage met ends the program with file, position and cause; what was "
    "printed before it is sound. DROPMALFORMED: each damaged range is left out and named on "
    "stderr, everything sound is printed. PERMISSIVE: the same, as no row stands for damage here. "
    "Exit status 1 in each case.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(options.LINE_FORMATS),
    default="jsonl",
    help="jsonl: one JSON object a line. text: key, tab, value. See above.",
)
@click.option(
    "--ignore-indexes",
    is_flag=True,
    help="Open no .index, .timeindex or .txnindex file: everything is looked up by walking through "
    "the .log files. Slower; the records are the same unless an index file was forged.",
)
@click.option(
    "--max-decompressed-bytes",
    metavar="BYTES",
    type=click.IntRange(min=1),
    default=pylog.DEFAULT_MAX_DECOMPRESSED_BYTES,
    help="Most bytes that the records of one batch may have, decompressed; a batch that has more "
    "counts as damage. Reading a batch takes at most four times as much memory.",
)
def cat(
    paths: tuple[str, ...],
    *,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    isolation: str,
    start_offset: int | None,
    end_offset: int | None,
    start_timestamp: int | None,
    end_timestamp: int | None,
    mode: str,
    output_format: str,
    ignore_indexes: bool,
    max_decompressed_bytes: int,
) -> int:
    r"""Print records, as JSON lines or as text.

    Partition by partition, in offset order: what Kafka's own consumer returns. Control records
    and records below the log start offset are not printed. Timestamps given are look-ups of
    offsets, as in Kafka, and not filters: where timestamps are out of order, the range may hold
    earlier and later ones.

    jsonl has the keys topic, partition, offset, timestamp (ms), timestampType (-1 none, 0
    CreateTime, 1 LogAppendTime), leaderEpoch (or null), key and value (base64 or null), headers
    ([[name, base64 or null], ...]).

    text reads keys and values as UTF-8. A null is \N, an empty one is empty; bytes that are not
    UTF-8 and control characters are escaped (\t \n \r \x1b \u0085), a backslash is doubled.

    Exit status: 0 sound, 1 damage was met, 2 wrong usage or a path that cannot be read.
    """
    start = _position("start", start_offset, start_timestamp, "earliest")
    end = _position("end", end_offset, end_timestamp, "latest")
    columns, lines_of = _FORMATS[output_format]
    has_bar = progress.is_wanted()
    if has_bar:
        columns = tuple(dict.fromkeys([*columns, *pylog.PlannedBytes.COLUMNS]))
    directory = pylog.open_directory(*paths)
    names = [name for text in topics for name in text.split(",") if name]
    scan = pylog.scan(
        directory,
        assign=pylog.choose_partitions(directory, names, partitions),
        start=start,
        end=end,
        isolation=isolation,
        columns=columns,
        # No row stands for a damaged range here, so PERMISSIVE prints what DROPMALFORMED does.
        mode="FAILFAST" if mode == "FAILFAST" else "DROPMALFORMED",
        timestamp_unit="ms",
        use_indexes=not ignore_indexes,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    announce_compilation()
    planned = pylog.PlannedBytes(scan.plan())
    output = sys.stdout.buffer
    with progress.ProgressBar("reading", planned.total) as bar:
        for batch in scan.to_batches():
            for part in _parts(batch):
                output.write(lines_of(part))
            if has_bar:
                bar.show(planned.before_end_of(batch))
    # Each has been named on stderr when it was met.
    return exit_status.FINDINGS if scan.damage.ranges else exit_status.SOUND


def _position(
    which: str, offset: int | None, timestamp: int | None, default: str
) -> str | int | pylog.Timestamp:
    if offset is not None and timestamp is not None:
        msg = f"give either --{which}-offset or --{which}-timestamp, not both"
        raise click.UsageError(msg)
    if timestamp is not None:
        return pylog.Timestamp(timestamp, if_missing="latest")
    return default if offset is None else offset


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, ROWS_AT_ONCE):
        yield batch.slice(start, ROWS_AT_ONCE)

"""``pylog cat``: the records of a log directory."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

import pylog
from pylog.cli import exit_status, options
from pylog.cli.command_help import argument, command
from pylog.cli.parameter_types import FILE, TIME
from pylog.cli.rendering import progress
from pylog.cli.rendering.compile_notice import announce_compilation
from pylog.cli.rendering.scan_note import nothing_matched
from pylog.cli.rendering.whole_output import write_whole
from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.lazy_modules import LazyModule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from pylog.cli.rendering import record_json, record_text

    LinesOf = Callable[[pa.RecordBatch], memoryview]
else:  # which load Arrow; help does without
    record_json = LazyModule("pylog.cli.rendering.record_json")
    record_text = LazyModule("pylog.cli.rendering.record_text")

BYTES_AT_ONCE = 2 << 20
"""Arrow data of the records that are formatted, then written, at once; the text has about as many
bytes, and stays in the processor's cache meanwhile."""


@command("cat")
@argument(
    "paths",
    metavar="PATH",
    nargs=-1,
    required=True,
    type=FILE,
    help_text="Log directories (entries of a broker's log.dirs), <topic>-<partition> directories, "
    "or single .log files in them.",
)
@options.topics(
    "Only these topics; may be given several times. Default: all but internal ones (a PATH that is "
    "a partition directory is read whatever its topic)."
)
@click.option(
    "--pattern",
    metavar="REGEX",
    help="Only topics in whose name this regular expression is found; ^ and $ stand for the "
    "name's start and end. Internal topics are left out.",
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
    type=click.Choice([level.name.lower() for level in pylog.IsolationLevel], case_sensitive=False),
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
    metavar="TIME",
    type=TIME,
    help="Begin at the first record whose timestamp is TIME or later (inclusive). TIME: see above. "
    "A partition without such a record prints nothing.",
)
@click.option(
    "--end-timestamp",
    metavar="TIME",
    type=TIME,
    help="Stop before the first record whose timestamp is TIME or later (exclusive).",
)
@click.option(
    "--key",
    "keys",
    metavar="TEXT",
    multiple=True,
    help="Only records whose key is exactly this text (in UTF-8); may be given several times.",
)
@click.option(
    "--last",
    metavar="N",
    type=click.IntRange(min=1),
    help="Only the last N records of each partition, of those that the other options let through.",
)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    help="Stop after N records in all.",
)
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in pylog.ReadMode]),
    default=pylog.ReadMode.FAILFAST.value,
    help="FAILFAST: the program ends at the first damage and reports file, position and cause; "
    "what was printed before is sound. DROPMALFORMED: each damaged range is left out and reported "
    "on stderr, and everything sound is printed. PERMISSIVE: the same, since no line stands for "
    "damage here. The exit status is 1 in each case.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(options.LINE_FORMATS),
    default="jsonl",
    help="jsonl: one JSON object per line. text: key, tab, value. See above.",
)
@click.option(
    "--values",
    type=click.Choice(options.VALUE_FORMATS),
    help="With jsonl: how keys, values and headers' values are printed, see above. "
    "Default: base64.",
)
@click.option(
    "--ignore-indexes",
    is_flag=True,
    help="Do not open .index, .timeindex and .txnindex files: everything is looked up in the .log "
    "files. This is slower; the records are the same unless an index file was forged.",
)
@click.option(
    "--threads",
    metavar="N",
    type=click.IntRange(min=1),
    help="How many threads decompress and decode records. Default: what the environment variable "
    "PYLOG_NUM_THREADS says, else 1. The output does not depend on it.",
)
@click.option(
    "--leave-page-cache",
    is_flag=True,
    help="Leave the system's page cache as it was: what is read of .log files does not stay there, "
    "and so does not evict what a broker on this host serves from. An error where the system "
    "cannot do it.",
)
@click.option(
    "--max-decompressed-bytes",
    metavar="BYTES",
    type=click.IntRange(min=1),
    default=pylog.DEFAULT_MAX_DECOMPRESSED_BYTES,
    help="The most bytes that the records of one batch may have after decompression; a batch with "
    "more counts as damage. Reading a batch takes at most four times as much memory.",
)
def cat(
    paths: tuple[str, ...],
    *,
    topics: tuple[str, ...],
    pattern: str | None,
    partitions: tuple[int, ...],
    isolation: str,
    start_offset: int | None,
    end_offset: int | None,
    start_timestamp: int | None,
    end_timestamp: int | None,
    keys: tuple[str, ...],
    last: int | None,
    limit: int | None,
    mode: str,
    output_format: str,
    values: str | None,
    ignore_indexes: bool,
    threads: int | None,
    leave_page_cache: bool,
    max_decompressed_bytes: int,
) -> int:
    r"""Print records, as JSON lines or as text.

    Records come partition by partition, in offset order, as Kafka's own consumer returns them.
    Control records and records below the log start offset are not printed.

    TIME is an ISO date or time (2026-11-01, 2026-11-01T12:30:00Z; UTC unless it names a zone), how
    long before now (-30s, -15m, -2h, -7d, -4w), or milliseconds since 1970-01-01 UTC. As in Kafka,
    it is used to look up an offset and does not filter: where timestamps are out of order, the
    range may hold earlier and later ones.

    jsonl has the keys topic, partition, offset, timestamp (ms), timestampType (-1 none, 0
    CreateTime, 1 LogAppendTime), leaderEpoch (or null), key and value (base64 or null), headers
    ([[name, base64 or null], ...]). With --values text, there is "values":"text", and keys, values
    and headers' values are text; bytes that are not UTF-8 are {"base64": ...}.

    text reads keys and values as UTF-8. A null is \N, and an empty one is empty. Bytes that are not
    UTF-8, control characters and those that change the direction of text are escaped (\t \n \r
    \x1b \u202e), and a backslash is doubled.

    Exit status: 0 nothing wrong was seen, 1 damage was found, 2 wrong usage or a path that cannot
    be read.
    """
    names = options.names_in(topics, pattern)
    if values is not None and output_format == "text":
        msg = "--values is for --format jsonl; text has always text"
        raise click.UsageError(msg)
    start = _position("start", start_offset, start_timestamp, "earliest")
    end = _position("end", end_offset, end_timestamp, "latest")
    columns, lines_of = _format(output_format, values)
    if progress.is_wanted():
        columns = tuple(dict.fromkeys([*columns, *pylog.PlannedBytes.COLUMNS]))
    directory = pylog.open_directory(*paths, takes_segment_files=True)
    scan = pylog.scan(
        directory,
        assign=pylog.choose_partitions(directory, names, partitions, pattern=pattern),
        start=start,
        end=end,
        isolation=isolation,
        columns=columns,
        # No row stands for a damaged range here, so PERMISSIVE prints what DROPMALFORMED does.
        mode="FAILFAST" if mode == "FAILFAST" else "DROPMALFORMED",
        timestamp_unit="ms",
        use_indexes=not ignore_indexes,
        max_decompressed_bytes=max_decompressed_bytes,
        where=_filter(keys),
        threads=threads,
        leave_page_cache=leave_page_cache,
    )
    announce_compilation()
    with _advice_on_damage(mode):
        if last is not None:
            scan = scan.last(last)
        row_count = _print(scan, lines_of, limit)
    is_restricted = bool(keys) or (start, end) != ("earliest", "latest")
    if not row_count and is_restricted:
        sys.stderr.write(f"pylog: note: {nothing_matched(scan)}\n")
    # Each has been named on stderr when it was found.
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


def _format(output_format: str, values: str | None) -> tuple[tuple[str, ...], LinesOf]:
    """Return the columns that the lines need, and what makes lines of them."""
    if output_format == "text":
        return record_text.TEXT_COLUMNS, record_text.text_lines
    if values == "text":
        return record_json.JSON_COLUMNS, record_json.json_lines_of_text
    return record_json.JSON_COLUMNS, record_json.json_lines


def _filter(keys: tuple[str, ...]) -> pylog.RecordFilter | None:
    if not keys:
        return None
    # An argument that is not UTF-8 is taken as the bytes that it was.
    wanted = frozenset(key.encode("utf-8", "surrogateescape") for key in keys)
    return pylog.RecordFilter(keys=wanted)


@contextmanager
def _advice_on_damage(mode: str) -> Iterator[None]:
    """Let an error about damage name the mode that reads what is sound."""
    try:
        yield
    except (CorruptRecordError, InvalidRecordError) as error:
        if mode == pylog.ReadMode.FAILFAST:
            error.add_note(
                "--mode DROPMALFORMED leaves out exactly what is damaged, names it on stderr, and "
                "prints everything sound"
            )
        raise


def _print(scan: pylog.Scan, lines_of: LinesOf, limit: int | None) -> int:
    """Print a scan's records, with a progress bar where one is wanted; return how many."""
    row_count = 0
    has_bar = progress.is_wanted()
    planned = pylog.PlannedBytes(scan.plan())
    output = sys.stdout.buffer
    with progress.ProgressBar("reading", planned.total) as bar:
        for batch in _limited(scan.to_batches(), limit):
            row_count += batch.num_rows
            for part in _parts(batch):
                write_whole(output, lines_of(part))
            if has_bar:
                bar.show(planned.before_end_of(batch))
    return row_count


def _limited(batches: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Yield batches until ``limit`` rows have come; nothing after them is read."""
    if limit is None:
        yield from batches
        return
    rest = limit
    for batch in batches:
        yield batch.slice(0, rest)
        rest -= batch.num_rows
        if rest <= 0:
            return


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    rows = max(1, batch.num_rows * BYTES_AT_ONCE // max(1, batch.nbytes))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)

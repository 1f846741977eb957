"""``pylog cat``: the records of a log directory."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

import pylog
from pylog.cli import exit_status, progress
from pylog.cli.compile_notice import announce_compilation
from pylog.cli.partition_choice import choose_partitions
from pylog.cli.record_json import JSON_COLUMNS, json_lines
from pylog.cli.record_text import TEXT_COLUMNS, text_lines
from pylog.scan.log_directory import open_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from pylog.scan.offset_spec import OffsetSpec

ROWS_AT_ONCE = 8192
"""Records that are formatted before they are written: some megabytes of text."""


class Isolation(StrEnum):
    """Which records of transactions are read."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class Mode(StrEnum):
    """What happens at damage."""

    FAILFAST = "FAILFAST"


class Format(StrEnum):
    """How records are printed."""

    JSONL = "jsonl"
    TEXT = "text"


_FORMATS: dict[Format, tuple[tuple[str, ...], Callable[[pa.RecordBatch], bytes]]] = {
    Format.JSONL: (JSON_COLUMNS, json_lines),
    Format.TEXT: (TEXT_COLUMNS, text_lines),
}


def cat(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Log directories (entries of a broker's log.dirs) or <topic>-<partition> "
            "directories.",
        ),
    ],
    topics: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="T[,T...]",
            help="Only these topics; may be given several times. Default: all but internal ones "
            "(a PATH that is a partition directory is read whatever its topic).",
        ),
    ] = None,
    partitions: Annotated[
        list[int] | None,
        typer.Option(
            "--partition",
            metavar="N",
            min=0,
            help="Only this partition of each topic; may be given several times.",
        ),
    ] = None,
    isolation: Annotated[
        Isolation,
        typer.Option(
            help="read_committed leaves out aborted transactions, and everything from the first "
            "open transaction on."
        ),
    ] = Isolation.READ_UNCOMMITTED,
    start_offset: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="First offset to print (inclusive), in every partition read. Default: the "
            "earliest.",
        ),
    ] = None,
    end_offset: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Offset before which to stop (exclusive). Default: the end of the log.",
        ),
    ] = None,
    start_timestamp: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="MS",
            help="Begin at the first record whose timestamp is MS or later (inclusive). "
            "Milliseconds since 1970-01-01 UTC. A partition without such a record prints nothing.",
        ),
    ] = None,
    end_timestamp: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="MS",
            help="Stop before the first record whose timestamp is MS or later (exclusive). "
            "Milliseconds since 1970-01-01 UTC.",
        ),
    ] = None,
    mode: Annotated[
        Mode,
        typer.Option(
            help="FAILFAST: the first damage met ends the program with file, position and cause, "
            "and exit status 1; what was printed before it is sound.",
        ),
    ] = Mode.FAILFAST,
    output_format: Annotated[
        Format,
        typer.Option(
            "--format",
            help="jsonl: one JSON object a line. text: key, tab, value. See above.",
        ),
    ] = Format.JSONL,
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
        columns = tuple(dict.fromkeys([*columns, *progress.PROGRESS_COLUMNS]))
    directory = open_directory(*paths)
    chosen = choose_partitions(directory, topics or (), partitions or ())
    scan = pylog.scan(
        directory,
        assign=chosen,
        start=start,
        end=end,
        isolation=isolation.value,
        columns=columns,
        timestamp_unit="ms",
    )
    announce_compilation()
    planned = progress.PlannedBytes(scan.plan())
    output = sys.stdout.buffer
    with progress.ProgressBar("reading", planned.total) as bar:
        for batch in scan.to_batches():
            for piece in _pieces(batch):
                output.write(lines_of(piece))
            if has_bar:
                bar.show(planned.before_end_of(batch))
    return exit_status.SOUND


def _position(which: str, offset: int | None, timestamp: int | None, default: str) -> OffsetSpec:
    if offset is not None and timestamp is not None:
        msg = f"give either --{which}-offset or --{which}-timestamp, not both"
        raise typer.BadParameter(msg)
    if timestamp is not None:
        return pylog.Timestamp(timestamp, if_missing="latest")
    return default if offset is None else offset


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, ROWS_AT_ONCE):
        yield batch.slice(start, ROWS_AT_ONCE)

"""The arguments of ``pylog cat``: types and help texts."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from pylog.reading.damage import ReadMode


class Isolation(StrEnum):
    """Which records of transactions are read."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class Format(StrEnum):
    """How records are printed."""

    JSONL = "jsonl"
    TEXT = "text"


Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="Log directories (entries of a broker's log.dirs) or <topic>-<partition> directories.",
    ),
]

Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="T[,T...]",
        help="Only these topics; may be given several times. Default: all but internal ones "
        "(a PATH that is a partition directory is read whatever its topic).",
    ),
]

Partitions = Annotated[
    list[int] | None,
    typer.Option(
        "--partition",
        metavar="N",
        min=0,
        help="Only this partition of each topic; may be given several times.",
    ),
]

IsolationOption = Annotated[
    Isolation,
    typer.Option(
        help="read_committed leaves out aborted transactions, and everything from the first "
        "open transaction on."
    ),
]

StartOffset = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="First offset to print (inclusive), in every partition read. Default: the earliest.",
    ),
]

EndOffset = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="Offset before which to stop (exclusive). Default: the end of the log.",
    ),
]

StartTimestamp = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="MS",
        help="Begin at the first record whose timestamp is MS or later (inclusive). "
        "Milliseconds since 1970-01-01 UTC. A partition without such a record prints nothing.",
    ),
]

EndTimestamp = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="MS",
        help="Stop before the first record whose timestamp is MS or later (exclusive). "
        "Milliseconds since 1970-01-01 UTC.",
    ),
]

ModeOption = Annotated[
    ReadMode,
    typer.Option(
        help="FAILFAST: the first damage met ends the program with file, position and cause; what "
        "was printed before it is sound. DROPMALFORMED: each damaged range is left out and named "
        "on stderr, everything sound is printed. PERMISSIVE: the same, as no row stands for "
        "damage here. Exit status 1 in each case.",
    ),
]

IgnoreIndexes = Annotated[
    bool,
    typer.Option(
        "--ignore-indexes",
        help="Open no .index, .timeindex or .txnindex file: everything is looked up by walking "
        "through the .log files. Slower; the records are the same unless an index file was forged.",
    ),
]

MaxDecompressedBytes = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="BYTES",
        help="Most bytes that the records of one batch may have, decompressed; a batch that has "
        "more counts as damage. Reading a batch takes at most four times as much memory.",
    ),
]

FormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        help="jsonl: one JSON object a line. text: key, tab, value. See above.",
    ),
]

"""``pylog append``: records from lines of text into a topic."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from pylog.cli import exit_status, progress
from pylog.cli.cat_options import Format
from pylog.cli.compile_notice import announce_compilation
from pylog.cli.interruption import Interruption
from pylog.cli.line_source import STANDARD_INPUT, LineSource
from pylog.cli.owned_directory import owned_directory, write_summary
from pylog.cli.write_options import AsJson, Directory  # noqa: TC001 - typer reads them

if TYPE_CHECKING:
    from pylog.cli.line_appender import LineAppender


def append(
    directory: Directory,
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="The lines. Default, and -: standard input.")
    ] = STANDARD_INPUT,
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic", metavar="T", help="The topic. Default, with jsonl: the one each line names."
        ),
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option(
            "--partition",
            metavar="N",
            min=0,
            help="The partition of records whose line names none. Default: by key, as Kafka's "
            "producers choose; records without a key are spread.",
        ),
    ] = None,
    compression: Annotated[
        str,
        typer.Option(
            metavar="C",
            help="none, gzip, snappy, lz4 or zstd. A topic with a compression.type of its own has "
            "that.",
        ),
    ] = "none",
    level: Annotated[
        int | None, typer.Option(metavar="L", help="The codec's level. Default: Kafka's.")
    ] = None,
    batch_size: Annotated[
        int,
        typer.Option(
            metavar="BYTES", min=1, help="Most bytes of a batch of records before compression."
        ),
    ] = 16_384,
    input_format: Annotated[
        Format,
        typer.Option("--format", help="jsonl: one JSON object a line. text: key, tab, value."),
    ] = Format.JSONL,
    as_json: AsJson = False,
) -> int:
    r"""Append records to a topic, from JSON lines or text.

    jsonl reads what pylog cat prints, so that pylog cat A | pylog append B copies a topic: key and
    value (base64 or null), headers ([[name, base64 or null], ...]), timestamp (ms; without it,
    now), partition and topic; offset, leaderEpoch and timestampType are the log's business. text
    reads what pylog cat --format text prints: \N is null, and a backslash begins an escape.

    A topic that is not there is made with its first records, and has the partitions that lines
    name, else one. A malformed line ends the command once the lines before it have been appended.
    Ctrl-C ends it in order, too: what was appended is kept, status 130.

    Exit status: 0 all appended, 1 a malformed line, or damage in the directory, 2 wrong usage, a
    record that the topic refuses, or the directory is locked or cannot be written.
    """
    # Not at the head of the file: Arrow and NumPy take their time, and --help needs neither.
    from pylog.cli.line_appender import AppendOptions, LineAppender  # noqa: PLC0415
    from pylog.cli.record_line import parse_json_line, parse_text_line  # noqa: PLC0415

    if topic is None and input_format is Format.TEXT:
        msg = "--format text needs --topic"
        raise typer.BadParameter(msg)
    options = AppendOptions(topic, partition, compression, level, batch_size)
    parse = parse_json_line if input_format is Format.JSONL else parse_text_line
    source_name = "standard input" if file == STANDARD_INPUT else file
    appender: LineAppender | None = None
    is_interrupted = False
    try:
        with (
            Interruption() as interruption,
            LineSource(file, interruption) as lines,
            owned_directory(directory, must_exist=False) as manager,
        ):
            announce_compilation()
            appender = LineAppender(manager, options, parse, source_name)
            is_interrupted = not _append_all(appender, lines)
    finally:
        if appender is not None:
            document = {**appender.to_json(), "isInterrupted": is_interrupted}
            write_summary(document, appender.text_lines(), as_json=as_json)
    return exit_status.INTERRUPTED if is_interrupted else exit_status.SOUND


def _append_all(appender: LineAppender, lines: LineSource) -> bool:
    """Append all lines, with a progress bar; return False if Ctrl-C came before their end."""
    has_bar = sys.stderr is not None and sys.stderr.isatty()
    with progress.ProgressBar("appending", lines.total_bytes) as bar:
        try:
            for some in lines:
                appender.append(some)
                if has_bar:
                    bar.show(lines.read_bytes)
        except KeyboardInterrupt:
            return False
    return True

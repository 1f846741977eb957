"""``pylog dump``: what kafka-dump-log prints, of files, partitions and topics."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

import pylog
from pylog.cli import exit_status, options, progress
from pylog.cli.options import FILE, command, stored_paths
from pylog.cli.output import printable_lines, tell, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable

_STRING_DECODER = "StringDecoder"
_DECODERS = {
    "offsets": "__consumer_offsets: committed offsets and group metadata",
    "transaction-log": "__transaction_state: transactions",
    "cluster-metadata": "__cluster_metadata: records of the controllers",
    "remote-log-metadata": "__remote_log_metadata: segments in a remote store",
    "share-group-state": "__share_group_state: the state of share groups",
    "mm2-checkpoints": "<cluster>.checkpoints.internal: groups in a mirror of MirrorMaker 2",
    "mm2-offset-syncs": "mm2-offset-syncs.<cluster>.internal: where mirrored records are",
    "mm2-heartbeats": "heartbeats of MirrorMaker 2",
    "connect": "Kafka Connect: offsets, configurations and status, which are JSON",
}
"""The tool's, in the order in which they win if several are given, and more."""


def _decoder_options(function: Callable[..., int]) -> Callable[..., int]:
    for name, what in reversed(_DECODERS.items()):
        function = options.flag(f"--{name}-decoder", help=f"Keys and values are of {what}.")(
            function
        )
    return function


@command(
    "dump",
    "pylog dump --print-data-log /mnt/kafka-logs/orders-0/00000000000000000000.log",
    "pylog dump --deep-iteration /mnt/kafka-logs/orders-0",
    "pylog dump --print-data-log /mnt/kafka-logs --topic orders --partition 0 --offset 4711",
)
@stored_paths(
    type=FILE,
    required=False,
    help_text="Files (.log, .index, .timeindex, .txnindex, .snapshot, .checkpoint), "
    "<topic>-<partition> directories, or log directories (entries of a broker's log.dirs).",
)
@click.option(
    "--files",
    metavar="FILE[,FILE...]",
    multiple=True,
    help="Files, as kafka-dump-log takes them.",
)
@options.topics(
    "Of directories, only these topics; may be given several times. Default: all but internal ones "
    "(a PATH that is a partition directory is dumped whatever its topic)."
)
@options.partitions(
    "Of directories, only this partition of each topic; may be given several times."
)
@options.flag(
    "--print-data-log",
    help="Print keys and values, as text. Implies --deep-iteration; a decoder implies this.",
)
@options.flag("--deep-iteration", help="Print a line for each record, not only for each batch.")
@options.flag(
    "--skip-record-metadata",
    help="Print keys and values alone, without the rest of a record's line; the line of a control "
    "record is empty.",
)
@options.number("--max-bytes", metavar="BYTES", help="Read only the first BYTES of each .log file.")
@options.number(
    "--max-message-size",
    at_least=1,
    metavar="BYTES",
    default=5 << 20,
    help="How many bytes after an entry's position are read to verify it.",
)
@options.flag(
    "--verify-index-only",
    help="Verify .index and .timeindex files, without printing their entries.",
)
@options.flag(
    "--index-sanity-check",
    help="Only make the check that a broker makes of .index and .timeindex files at its start.",
)
@click.option(
    "--key-decoder-class",
    metavar="CLASS",
    help=f"Accepted for compatibility; only {_STRING_DECODER} (UTF-8) is available.",
)
@click.option("--value-decoder-class", metavar="CLASS", help="The same for values.")
@_decoder_options
@click.option(
    "--kafka-version",
    metavar="VERSION",
    default=str(max(pylog.KafkaVersion)),
    help="Print the text of this version's tool: 3.9 to 4.4.",
)
@options.number("--offset", help="Only the record with this offset, and its batch.")
@options.number(
    "--start-offset", help="Only records from this offset on (inclusive), and their batches."
)
@options.number(
    "--end-offset", help="Only records below this offset (exclusive), and their batches."
)
@options.instant(
    "--start-timestamp",
    help="Only records whose timestamp is TIME or later (inclusive). TIME: see above.",
)
@options.instant("--end-timestamp", help="Only records whose timestamp is before TIME (exclusive).")
@options.json_output("Print JSON objects, one a line; see above.")
@click.option(
    "--values",
    type=click.Choice(pylog.jobs.VALUE_FORMATS),
    help="With --json: how keys and values are printed. Default: text.",
)
@options.threads("threads decompress, decode and make text")
@options.max_decompressed_bytes()
def dump(
    paths: tuple[str, ...],
    *,
    files: tuple[str, ...],
    topics: tuple[str, ...],
    key_decoder_class: str | None,
    value_decoder_class: str | None,
    offset: int | None,
    as_json: bool,
    values: str | None,
    **of_library: Any,  # noqa: ANN401 - options that `pylog.dump` has, too, and decoders
) -> int:
    r"""Print what kafka-dump-log prints: batches, records, index entries, producers.

    The text equals the output of Kafka's tool line for line, and the command takes all its options.
    It also takes directories, and ranges of offsets and timestamps. For a directory, every
    supported file is dumped, in name order; with a range, its .log files.

    In a terminal, control characters in names, keys and values are escaped (\x1b), which Kafka's
    tool does not do. A file or a pipe gets them as they are.

    A damaged file ends where the tool would end, and the next one follows. Problems are listed on
    stderr at the end: damage, indexes that do not agree with their log and, as in Kafka's tool,
    records whose offsets do not follow each other, which is normal for compacted topics and
    transactions.

    TIME is an ISO date or time (2026-11-01, 2026-11-01T12:30:00Z; UTC unless it names a zone), how
    long before now (-30s, -15m, -2h, -7d, -4w), or milliseconds since 1970-01-01 UTC. Records are
    compared by their own timestamps. Without --deep-iteration, it prints the batches that may have
    such a record by their headers.

    JSON objects have the names that the text has; "type" is file, batch, record, indexEntry,
    timeIndexEntry, abortedTransaction or producer, and for problems error, indexMismatch,
    timestampMismatch, timestampOutOfOrder, offsetNotFound or offsetGap. Keys and values are text or
    null, or {"base64": ...} if they are not UTF-8; with --values base64, "values" is "base64", and
    they are base64 or null. What a decoder makes is an object.

    Exit status: 0 nothing wrong was seen, 1 damage was found, or an index does not agree with its
    log, 2 wrong usage or nothing that can be read.
    """
    if values is not None and not as_json:
        raise click.UsageError("--values is for --json; the text has what Kafka's tool prints")
    _ensure_known_classes(key_decoder_class, value_decoder_class)
    if offset is not None:
        if of_library["start_offset"] is not None or of_library["end_offset"] is not None:
            raise click.UsageError("give either --offset, or --start-offset and --end-offset")
        of_library |= {"start_offset": offset, "end_offset": offset + 1}
    # The first decoder that was asked for, in the order of the tool.
    asked = {name: of_library.pop(f"{name.replace('-', '_')}_decoder") for name in _DECODERS}
    dumped = pylog.dump(
        *_named(paths, files),
        topics=options.names_in(topics, None),
        decoder=next((name for name in pylog.DECODER_NAMES if asked[name]), None),
        output="jsonl" if as_json else "text",
        values="base64" if values == "base64" else "text",
        **of_library,
    )
    _print(dumped)
    return _report(dumped, as_json=as_json)


def _named(paths: tuple[str, ...], files: tuple[str, ...]) -> list[str]:
    """Return the paths, those first that are arguments."""
    named = [*paths, *(name for text in files for name in text.split(",") if name)]
    if not named:
        raise click.UsageError("give a PATH, or --files")
    return named


def _ensure_known_classes(*names: str | None) -> None:
    for name in names:
        if name is not None and name.rpartition(".")[2] != _STRING_DECODER:
            raise click.UsageError(f"decoder class {name!r}: classes of Java cannot be loaded here")


def _print(dumped: pylog.results.Dump) -> None:
    """Print all lines, with a progress bar where one is wanted."""
    is_terminal = sys.stdout.isatty()
    has_bar = progress.is_wanted()
    with progress.ProgressBar("dumping", dumped.planned_bytes() if has_bar else None) as bar:
        for lines in dumped:
            write_whole(sys.stdout.buffer, printable_lines(lines) if is_terminal else lines)
            if has_bar:
                bar.show(dumped.done_bytes)


def _report(dumped: pylog.results.Dump, *, as_json: bool) -> int:
    """Say on stderr what is wrong, and return the exit status."""
    sys.stdout.flush()
    for report in dumped.reports:
        tell("error", *report.errors)
    if not as_json:
        for text in dumped.texts():
            sys.stderr.write(f"{pylog.jobs.printable(text)}\n")
    if not dumped.is_readable:
        return exit_status.UNUSABLE
    return exit_status.SOUND if dumped.is_sound else exit_status.FINDINGS

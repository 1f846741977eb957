"""``pylog extract``: a part of some logs becomes a log directory of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import pylog
from pylog.cli import exit_status, options, progress
from pylog.cli.options import command
from pylog.cli.output import tell, write_summary
from pylog.cli.record_options import position
from pylog.cli.record_tests import filtered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.results import CutTransaction, ExtractedPartition, Extraction

_OPTIONS = pylog.jobs.extract_options()
_SHOWN = 20


@command(
    "extract",
    "pylog extract /mnt/kafka-logs --to part --topic orders --start-timestamp -2h",
    "pylog extract /mnt/kafka-logs --to part --topic orders --partition 0 --start-offset 1000 "
    "--end-offset 2000 --exact",
    "pylog extract /mnt/kafka-logs --to part --end-timestamp 2026-11-01T09:10Z --dry-run",
    "pylog extract /mnt/kafka-logs --to part --topic orders --header deploy=412 --exclude",
)
@options.paths
@options.new_directory(_OPTIONS)
@options.topics(_OPTIONS["topic"].help)
@options.pattern("; ^ and $ stand for the name's start and end. Internal topics are left out.")
@options.partitions()
@options.number("--start-offset", help=_OPTIONS["start-offset"].help)
@options.number("--end-offset", help=_OPTIONS["end-offset"].help)
@options.instant("--start-timestamp", help=_OPTIONS["start-timestamp"].help)
@options.instant("--end-timestamp", help=_OPTIONS["end-timestamp"].help)
@options.passed_on(_OPTIONS)
@filtered
@options.flag(
    "--exclude",
    help="Leave out the records that pass the tests, and keep all others.",
)
@options.of_several_disks
@options.dry_run
@options.as_json
def extract(
    paths: tuple[str, ...],
    *,
    topics: tuple[str, ...],
    pattern: str | None,
    start_offset: int | None,
    end_offset: int | None,
    start_timestamp: int | None,
    end_timestamp: int | None,
    include_stray: bool,
    replica: str | None,
    exclude: bool,
    where: pylog.RecordFilter | None,
    as_json: bool,
    **of_library: Any,  # noqa: ANN401 - options that the function has, too
) -> int:
    """Copy a part of some logs into a new log directory, at the same offsets.

    The part is topics, partitions, a range of offsets or times, or the records that pass tests. DIR
    gets what a broker needs to start on it: segments, indexes, leader epochs, producer snapshots,
    checkpoints, topic ids and meta.properties. The PATHs are not changed; no broker should be
    working on them.

    Batches are copied whole, byte for byte. Where the range starts inside a batch, the log start
    offset hides the records before it; where it ends inside one, the copy ends after that batch.
    --exact writes such a batch anew, so that DIR has the range and nothing else.

    A transaction that the end cuts has no marker in the copy: a consumer that reads committed
    records waits before it. It is named, with status 1. --transactions include copies up to its
    marker; --transactions abort appends a marker, at an offset that the source may have for another
    record.

    Tests such as --key and --json-path are the same as in search: a record passes if it passes all
    of them. Records that pass are kept, or with --exclude all other records. Batches that lose
    records are written anew, and the ends of the range are cut exactly. Offsets stay, and so do
    markers and the headers of batches that lose all records, from which producers and transactions
    are known.

    A damaged range is refused: save what is intact with pylog doctor --repair-to first. What an
    interrupted call has left in DIR keeps brokers from starting there, and the next call replaces
    it. With --dry-run nothing is written.

    Offsets of the range that the source has lost, as where a segment is gone, are named, with
    status 1.

    Exit status: 0 done, 1 done and a transaction is cut or records are lost, 2 refused or wrong
    usage.
    """
    if exclude and where is None:
        raise click.UsageError("--exclude goes with a test, such as --key or --json-path")
    directory = pylog.open_directory(*paths, include_stray=include_stray, replica=replica)
    try:
        with progress.bar_or_lines("copying") as bar:
            done = pylog.jobs.extract(
                directory,
                topics=options.names_in(topics, pattern),
                pattern=pattern,
                start=position("start", start_offset, start_timestamp, "earliest"),
                end=position("end", end_offset, end_timestamp, "latest"),
                where=None if exclude else where,
                exclude=where if exclude else None,
                progress=bar.show,
                **of_library,
            )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    write_summary(pylog.jobs.document_of(done), _lines(done), as_json=as_json)
    warnings = [line for each in done.partitions for line in _missing_lines(each)][:_SHOWN]
    if of_library["transactions"] != "abort":
        warnings += [f"cut: {_cut_line(each)}" for each in done.cut_transactions[:_SHOWN]]
    if warnings:
        tell("warning", *warnings)
    return exit_status.FINDINGS if warnings else exit_status.SOUND


def _lines(done: Extraction) -> Iterator[str]:
    for each in done.partitions[:_SHOWN]:
        yield _partition_line(each)
    more = len(done.partitions) - _SHOWN
    if more > 0:
        yield f"and {pylog.jobs.counted(more, 'more partition')}"
    if done.cut_transactions:
        count = pylog.jobs.counted(len(done.cut_transactions), "transaction")
        yield f"{count} cut by the end of the range"
    if done.is_written:
        yield f"written: {done.to}"
    else:
        yield "nothing was written (--dry-run)"


def _partition_line(each: ExtractedPartition) -> str:
    offsets = pylog.jobs.offsets_text(each.start_offset, each.end_offset)
    size = pylog.jobs.format_bytes(each.size_bytes)
    line = f"{each.topic}-{each.partition}: {offsets}, {size}, from {each.source}"
    if each.rewritten_batches:
        count = pylog.jobs.counted(each.rewritten_batches, "batch", "batches")
        line += f"; {count} written anew"
    if each.left_out_records:
        line += f"; {_left_out(each)}"
    if each.aborted_at:
        places = ", ".join(map(str, each.aborted_at))
        line += f"; ABORT markers appended at {places}"
    return line


def _missing_lines(each: ExtractedPartition) -> Iterator[str]:
    for start, end in each.missing:
        lost = pylog.jobs.offsets_text(start, end)
        yield f"{each.topic}-{each.partition}: {lost} missing, in the source already"


def _left_out(each: ExtractedPartition) -> str:
    line = f"{pylog.jobs.counted(each.left_out_records, 'record')} left out"
    if each.left_out_of_transactions:
        line += f", {each.left_out_of_transactions} of them in transactions, whose markers stay"
    return line


def _cut_line(each: CutTransaction) -> str:
    line = (
        f"{each.topic}-{each.partition}: the transaction of producer {each.producer_id} that "
        f"begins at offset {each.first_offset} "
    )
    if each.marker_offset is None:
        return line + "has more records after the end, and no marker in the source"
    return line + f"was {each.state} at offset {each.marker_offset}, after the end"

"""``pylog merge``: one log of each partition from damaged replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import pylog
from pylog.cli import exit_status, options
from pylog.cli.options import command
from pylog.cli.output import tell, write_summary
from pylog.errors import DivergedReplicasError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.results import MergedPartition, MergeSummary, MergeTransaction

_OPTIONS = pylog.jobs.merge_options()
_SHOWN = 20


@command(
    "merge",
    "pylog merge /mnt/node1/orders-0 /mnt/node2/orders-0 /mnt/node3/orders-0 --to /mnt/merged",
    "pylog merge /mnt/node1 /mnt/node2 /mnt/node3 --to /mnt/merged --topic orders --partition 0",
    "pylog merge /mnt/node1 /mnt/node2 --to /mnt/merged --metadata /mnt/controller",
    "pylog merge /mnt/node1 /mnt/node2 --to /mnt/merged --until 2026-11-01T09:10Z",
)
@options.paths
@options.new_directory(_OPTIONS)
@options.topics(_OPTIONS["topic"].help)
@options.partitions()
@click.option("--metadata", metavar="COPY", type=options.DIRECTORY, help=_OPTIONS["metadata"].help)
@click.option("--prefer", metavar="PATH", type=options.DIRECTORY, help=_OPTIONS["prefer"].help)
@click.option(
    "--until",
    metavar="TIME|OFFSET",
    type=options.OFFSET_OR_TIME,
    help=_OPTIONS["until"].help,
)
@options.passed_on(_OPTIONS)
@options.dry_run
@options.as_json
def merge(
    paths: tuple[str, ...],
    *,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    as_json: bool,
    **of_library: Any,  # noqa: ANN401 - options that the function has, too
) -> int:
    """Write one log of each partition from damaged replicas, batch for batch.

    Each PATH has replicas: a partition directory, or a log directory. They are only read. Batches
    are copied as they are, with offsets and leader epochs, from whichever replica has them intact.
    DIR becomes a log directory: doctor, cat and adopt work on it.

    Replicas may have different histories, after an unclean election. Only the last leader's history
    is taken, and never two in one log: the cluster's metadata says who led last, else the highest
    leader epoch does. What other leaders wrote is listed. Where nothing tells which history is the
    log's, nothing is written, and both are shown: --prefer decides.

    Records that no replica has any more leave a gap in the offsets, which consumers skip. Each gap
    is listed with what every replica has there. In compacted replicas, nobody can tell whether they
    were cleaned or lost.

    With --until the result is as it was then, or at that offset. Transactions are whole across
    partitions: one that was committed is committed in all of them, and gets its COMMIT marker where
    that came later; any other one that is open at the end gets an ABORT marker. Groups whose
    positions are after the new end of a partition are put at that end, and named.
    __transaction_state is left out.

    With --dry-run nothing is written, and positions of groups are not checked.

    Exit status: 0 complete, 1 there are gaps, 2 it is not clear which history is the log's, or
    refused, or wrong usage.
    """
    try:
        done = pylog.jobs.merge(
            *paths,
            topics=options.names_in(topics, None) or None,
            partitions=partitions or None,
            **of_library,
        )
    except DivergedReplicasError as error:
        tell("error", *error.divergences)
        tell("note", "nothing was written; name the replica to follow with --prefer PATH")
        return exit_status.UNUSABLE
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    write_summary(_document(done), _lines(done), as_json=as_json)
    return exit_status.SOUND if done.is_complete else exit_status.FINDINGS


def _document(done: MergeSummary) -> dict[str, Any]:
    document: dict[str, Any] = pylog.jobs.document_of(done)
    return document | {"isComplete": done.is_complete}


def _lines(done: MergeSummary) -> Iterator[str]:
    for each in done.partitions:
        yield from _partition_lines(each)
    for moved in done.groups[:_SHOWN]:
        yield (
            f"group {moved.group_id} in {moved.topic}-{moved.partition}: from offset "
            f"{moved.before} back to {moved.offset}"
        )
    if len(done.groups) > _SHOWN:
        more = pylog.jobs.counted(len(done.groups) - _SHOWN, "more group")
        yield f"and {more} (--json has all)"
    yield from (f"note: {each}" for each in done.notes)
    partitions = pylog.jobs.counted(len(done.partitions), "partition")
    with_gaps = sum(not each.is_complete for each in done.partitions)
    what = "complete" if not with_gaps else f"{with_gaps} with gaps"
    if done.to is None:
        yield f"{partitions}, {what}; nothing was written (--dry-run)"
    else:
        yield f"{partitions} written to {done.to}: {what}"


def _partition_lines(merged: MergedPartition) -> Iterator[str]:
    span = pylog.jobs.offsets_text(merged.start_offset, merged.end_offset)
    size = pylog.jobs.format_bytes(merged.size_bytes)
    if merged.leader is None:
        yield f"{merged.topic}-{merged.partition}: no replica has an intact batch"
    else:
        proof = "" if merged.is_proven else " (not proven)"
        yield (
            f"{merged.topic}-{merged.partition}: {span}, {size}; last leader: {merged.leader}, "
            f"epoch {merged.epoch}{proof}"
        )
    ranges = [
        f"{pylog.jobs.offsets_text(each.start_offset, each.end_offset)} from {each.source} "
        f"({each.rule})"
        for each in merged.ranges
    ]
    gaps = [
        line
        for each in merged.gaps
        for line in (
            f"missing: {pylog.jobs.offsets_text(each.start_offset, each.end_offset)}"
            + (", cleaned or lost" if each.is_cleaned_or_lost else ""),
            *(f"  {cause.source}: {cause.found}" for cause in each.causes),
        )
    ]
    branches = [f"left out: {each}" for each in merged.branches]
    cut = []
    if merged.cut is not None:
        left_out = pylog.jobs.counted(merged.cut.left_out_records, "record")
        cut.append(f"ends before offset {merged.cut.end_offset}: {left_out} left out")
    transactions = [_transaction_line(each) for each in merged.transactions]
    for lines in (ranges, cut, gaps, branches, transactions):
        yield from (f"  {line}" for line in lines[:_SHOWN])
        if len(lines) > _SHOWN:
            more = pylog.jobs.counted(len(lines) - _SHOWN, "more line")
            yield f"  and {more} (--json has all)"
    yield from (f"  note: {each}" for each in merged.notes)


def _transaction_line(each: MergeTransaction) -> str:
    text = f"transaction of producer {each.producer_id} from offset {each.first_offset} on"
    if each.appended is not None:
        at = "" if each.appended_at is None else f" at offset {each.appended_at}"
        return f"{text}: {each.appended} marker appended{at}"
    text = f"open {text}: readers of committed records stop there"
    if each.marker is None:
        return text
    return (
        f"{text}. Its {each.marker} marker was lost with its leader: it is at offset "
        f"{each.marker_offset} of {each.marker_source} (--append-markers)"
    )

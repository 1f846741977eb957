"""``pylog diff``: what logs have in common, and where they differ first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import pylog
from pylog.cli import exit_status, options
from pylog.cli.options import command
from pylog.cli.output import write_summary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.results import Difference, DiffSummary, PartitionDiff

_OPTIONS = pylog.jobs.diff_options()
_SHOWN = 10


@command(
    "diff",
    "pylog diff /mnt/node1/kafka-logs /mnt/node2/kafka-logs --topic orders",
    "pylog diff /mnt/node1/orders-0 /mnt/node2/orders-0 --headers",
    "pylog diff /mnt/old/orders-0 /mnt/new/orders-0 --as copies --offset-map offsets.csv",
)
@options.paths
@options.topics(_OPTIONS["topic"].help)
@options.partitions()
@options.passed_on(_OPTIONS)
@click.option(
    "--offset-map",
    metavar="FILE",
    type=options.FILE,
    help="Write the offsets of records that a log and its copy have to this CSV file, which "
    "restore-groups reads.",
)
@options.as_json
def diff(paths: tuple[str, ...], *, as_json: bool, **of_library: Any) -> int:  # noqa: ANN401 - options that the function has, too
    """Compare logs: replicas, a topic and its copy, or compacted logs.

    Each other PATH is compared with the first: log directories partition by partition, or two
    partition directories. Batch headers come first; records are compared where those differ, or all
    of them where offsets differ. Nothing is written but the map of offsets.

    Each difference is named with its offsets: only-left, only-right, damaged-left, damaged-right,
    record (another key, value, timestamp or header), batch (the same records in other batches),
    epoch, latest. Where leader epochs say which of two histories is right, that is said, too.

    Exit status: 0 alike, 1 different, 2 a path cannot be read, or wrong usage.
    """
    topics, partitions = of_library.pop("topics"), of_library.pop("partitions")
    try:
        found = pylog.jobs.diff(
            *paths,
            topics=options.names_in(topics, None) or None,
            partitions=partitions or None,
            **of_library,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    document: dict[str, Any] = pylog.jobs.document_of(found)
    write_summary(document | {"isAlike": found.is_alike}, _lines(found), as_json=as_json)
    return exit_status.SOUND if found.is_alike else exit_status.FINDINGS


def _lines(found: DiffSummary) -> Iterator[str]:
    for each in found.partitions:
        yield from _partition_lines(each)
    different = sum(not each.is_alike for each in found.partitions)
    pairs = pylog.jobs.counted(len(found.partitions), "pair")
    yield f"{pairs} of logs: " + (f"{different} different" if different else "alike")


def _partition_lines(each: PartitionDiff) -> Iterator[str]:
    name = f"{each.topic}-{each.partition}"
    what = "keys" if each.mode == "compacted" else "records"
    if each.left is None or each.right is None:
        yield f"{name}: only in {each.left or each.right}"
        return
    if each.is_alike:
        yield f"{name}: alike, {each.records} {what} ({each.mode})"
    else:
        counts = ", ".join(f"{count} {kind}" for kind, count in each.counts.items())
        yield f"{name}: different from offset {each.first_offset} on ({each.mode}): {counts}"
        yield f"  left: {each.left}"
        yield f"  right: {each.right}"
    for one in each.differences[:_SHOWN]:
        yield f"  {_difference_line(one)}"
    if len(each.differences) > _SHOWN:
        more = pylog.jobs.counted(len(each.differences) - _SHOWN, "more range")
        yield f"  and {more} (--json has more)"
    yield from (f"  note: {note}" for note in each.notes)


def _difference_line(one: Difference) -> str:
    detail = f": {one.detail}" if one.detail else ""
    there = "" if one.other_offset is None else f" (right: {one.other_offset})"
    span = pylog.jobs.offsets_text(one.start_offset, one.end_offset)
    return f"{one.kind}: {span}{there}{detail}"

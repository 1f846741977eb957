"""``pylog groups``: consumer groups, what they have committed, and their lag."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

import pylog
from pylog.cli import exit_status, options
from pylog.cli.command_help import command
from pylog.cli.parameter_types import TIME
from pylog.cli.rendering import progress
from pylog.cli.rendering.group_text import (
    csv_lines,
    group_document,
    group_lines,
    left_out_lines,
    note_lines,
)
from pylog.cli.rendering.output_traits import OutputTraits
from pylog.cli.rendering.summary import write_json

if TYPE_CHECKING:
    from collections.abc import Callable


@command(
    "groups",
    "pylog groups /mnt/kafka-logs",
    "pylog groups /mnt/kafka-logs --group billing --members",
    "pylog groups /mnt/kafka-logs --at -2h --csv > offsets.csv",
)
@options.paths
@click.option(
    "--group",
    "group_ids",
    metavar="G",
    multiple=True,
    help="Only this group; may be given several times. Default: all.",
)
@click.option(
    "--at",
    "at_ms",
    metavar="TIME",
    type=TIME,
    help="Show what had been committed by TIME, and count lag to where the logs ended then. TIME: "
    "an ISO date or time, how long before now (-2h, -7d), or milliseconds since 1970-01-01 UTC.",
)
@click.option(
    "--isolation",
    type=click.Choice([level.name.lower() for level in pylog.IsolationLevel], case_sensitive=False),
    default="read_uncommitted",
    help="read_committed counts lag to the last stable offset, and not to the end of the log.",
)
@click.option("--members", "shows_members", is_flag=True, help="List members, not offsets.")
@click.option(
    "--csv",
    "as_csv",
    is_flag=True,
    help="Print lines of group, topic, partition and offset, as kafka-consumer-groups "
    "--reset-offsets --from-file reads them.",
)
@options.threads("partitions of __consumer_offsets are read side by side")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def groups(
    paths: tuple[str, ...],
    *,
    group_ids: tuple[str, ...],
    at_ms: int | None,
    isolation: str,
    shows_members: bool,
    as_csv: bool,
    threads: int | None,
    as_json: bool,
) -> int:
    """List consumer groups: committed offsets, lag, members.

    Groups are read from the partitions of __consumer_offsets under the PATHs; a group is in one of
    them, so those of other brokers are not listed. Columns are those of kafka-consumer-groups
    --describe: the committed offset, the end of the log, the lag between them, and the member that
    has the partition, if one has; "-" is not known here. Offsets that were committed in a
    transaction count once it is committed.

    The lag of a partition whose log is not under the PATHs is not known, nor is that of a topic
    that has been deleted and made again since.

    With --at, records up to TIME count. Compaction keeps the last commit of each partition: where
    it has removed what had been committed by TIME, the offset is "?", and --csv leaves it out.
    Groups that have been deleted since then may be missing.

    Exit status: 0 nothing wrong was seen, 1 a log could not be read, or records of groups are not
    understood, 2 wrong usage or a path that cannot be read.
    """
    if sum((shows_members, as_csv, as_json)) > 1:
        msg = "give one of --members, --csv and --json"
        raise click.UsageError(msg)
    with progress.ProgressBar("reading groups", None) as bar:
        show: Callable[[int, int], None] | None = bar.show if progress.is_seen() else None
        listing = pylog.groups(
            *paths,
            groups=group_ids or None,
            at_ms=at_ms,
            isolation=isolation,
            threads=threads,
            progress=show,
        )
    if as_json:
        write_json(group_document(listing))
    elif as_csv:
        sys.stdout.writelines(f"{line}\n" for line in csv_lines(listing))
    else:
        lines = group_lines(
            listing,
            shows_members=shows_members,
            is_past=at_ms is not None,
            width=OutputTraits.of(sys.stdout).width,
        )
        sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()
    for line in note_lines(listing):
        sys.stderr.write(f"pylog: note: {line}\n")
    for line in left_out_lines(listing):
        sys.stderr.write(f"pylog: warning: {pylog.printable(line)}\n")
    is_sound = not listing.errors and not listing.unreadable_records
    return exit_status.SOUND if is_sound else exit_status.FINDINGS

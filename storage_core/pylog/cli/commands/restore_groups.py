"""``pylog restore-groups``: groups go on where they were, in another log directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import pylog
from pylog.cli import exit_status, options
from pylog.cli.options import command
from pylog.cli.output import tell, write_summary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.results import RestoredGroups

_SHOWN = 20


@command(
    "restore-groups",
    "pylog restore-groups /mnt/old/kafka-logs --to /var/lib/kafka --dry-run",
    "pylog restore-groups /mnt/old/kafka-logs --to /var/lib/kafka --group billing",
    "pylog restore-groups /mnt/old/kafka-logs --to /var/lib/kafka --offset-map offsets.csv",
)
@options.paths
@click.option(
    "--to",
    metavar="DIR",
    type=options.DIRECTORY,
    required=True,
    help="The log directory that gets them, of a stopped node.",
)
@click.option(
    "--group",
    "groups",
    metavar="G",
    multiple=True,
    help="Only this group; may be given several times. Default: all.",
)
@options.instant(
    "--at",
    "at_ms",
    help="Write what had been committed by TIME: an ISO date or time, how long before now (-2h, "
    "-7d), or milliseconds since 1970-01-01 UTC.",
)
@click.option(
    "--offset-map",
    metavar="FILE|DIR",
    type=options.FILE,
    help="A CSV file of topic, partition, old and new offset, for logs whose records have other "
    "offsets now; or a log directory with the offset syncs of MirrorMaker 2. Partitions that "
    "it lacks are left out.",
)
@click.option(
    "--prefix",
    "topic_prefix",
    metavar="TEXT",
    default="",
    help="What the topics' names begin with there, such as old. of MirrorMaker 2.",
)
@options.flag("--replace", "replaces", help="Replace positions that these groups have in DIR.")
@options.dry_run
@options.as_json
def restore_groups(
    paths: tuple[str, ...],
    *,
    groups: tuple[str, ...],
    as_json: bool,
    **of_library: Any,  # noqa: ANN401 - options that the function has, too
) -> int:
    """Write what groups had committed to another log directory.

    The positions are read from __consumer_offsets under the PATHs, and written to DIR's, in the
    partition that answers for the group there. If DIR has a cluster's metadata, that partition has
    to be in it. Clients continue there, whichever protocol they use.

    With MirrorMaker 2's offset syncs, a group continues where MirrorMaker would let it: it may get
    some records again, and misses none.

    A position after the last record of the map becomes the end of the map. No leader epoch is
    written, and the commit has the time of now.

    Positions that these groups have in DIR already are left alone: if one differs, nothing is
    written, unless --replace is given. With --dry-run nothing is written.

    Exit status: 0 done, 1 done and what is left out is named, 2 refused or wrong usage.
    """
    done = pylog.jobs.restore_groups(*paths, groups=groups or None, **of_library)
    write_summary(pylog.jobs.document_of(done), _lines(done), as_json=as_json)
    tell("warning", *(f"left out: {each}" for each in done.losses))
    return exit_status.FINDINGS if done.losses else exit_status.SOUND


def _lines(done: RestoredGroups) -> Iterator[str]:
    for each in done.offsets[:_SHOWN]:
        before = "" if each.before == each.offset else f", which was {each.before}"
        yield f"{each.group_id}: {each.topic}-{each.partition} at offset {each.offset}{before}"
    if len(done.offsets) > _SHOWN:
        yield f"and {len(done.offsets) - _SHOWN} more"
    positions = pylog.jobs.counted(len(done.offsets), "position")
    if done.is_written:
        yield f"{positions} written to {done.to}"
    else:
        yield f"{positions} for {done.to}; nothing was written (--dry-run)"

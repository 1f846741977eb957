"""``pylog adopt``: topics on old disks are served by another cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import pylog
from pylog.cli import exit_status, options, progress
from pylog.cli.options import command
from pylog.cli.output import document_of, tell, write_summary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.results import AdoptionSummary

_SHOWN_PARTITIONS = 20


def _renames(
    context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    found = {}
    for text in texts:
        old, _, new = text.partition("=")
        if not old or not new:
            msg = f"{text!r} is not of the form OLD=NEW"
            raise click.BadParameter(msg, context, parameter)
        found[old] = new
    return found


@command(
    "adopt",
    "pylog adopt /mnt/old/kafka-logs --into /var/lib/kafka --dry-run",
    "pylog adopt /mnt/old --into /var/lib/kafka --topic orders --rename orders=old-orders",
    "pylog adopt --into /var/lib/kafka --resume",
)
@options.stored_paths(
    type=options.DIRECTORY,
    required=False,
    help_text="Log directories of the old nodes, or <topic>-<partition> directories of them.",
)
@click.option(
    "--into",
    metavar="DIR",
    type=options.DIRECTORY,
    multiple=True,
    required=True,
    help="A log directory of the stopped node that is to serve the topics; give each of its "
    "log.dirs, and those of other nodes that are to have partitions or vote.",
)
@options.topics("Adopt only this topic; may be given several times.")
@click.option(
    "--rename",
    metavar="OLD=NEW",
    multiple=True,
    callback=_renames,
    help="Give a topic a new name, and with it a new id.",
)
@click.option(
    "--brokers",
    metavar="IDS",
    callback=options.node_ids,
    help="Ids of the nodes that get partitions, such as 4 or 4,5, where some of --into are "
    "controllers alone and have never run. Default: those that have registered as brokers.",
)
@options.flag(
    "--no-access", help="Leave the old cluster's ACLs, SCRAM users, quotas and defaults behind."
)
@options.flag("--resume", help="End a call that was interrupted.")
@options.flag("--undo", help="Take back a call that was interrupted.")
@options.dry_run
@options.as_json
def adopt(
    paths: tuple[str, ...],
    *,
    into: tuple[str, ...],
    no_access: bool,
    resume: bool,
    undo: bool,
    topics: tuple[str, ...],
    as_json: bool,
    **of_library: Any,  # noqa: ANN401 - options that `pylog.adopt` has, too
) -> int:
    """Give a stopped node of a cluster the topics that other disks have.

    A broker sets directories aside as -stray that its metadata do not know. This copies the
    partitions into the node's log directories, and writes the records that make them known: at the
    end of its log of the metadata, or as a snapshot where the node was formatted and has never run.
    The PATHs are not changed. All nodes have to be stopped.

    Topics keep their ids, records their offsets, and groups go on where they were if the new
    cluster has no __consumer_offsets yet. Where the old metadata are on the disks, topics keep
    their configurations, and ACLs, SCRAM users, quotas and the defaults of brokers come along. Each
    partition is copied as doctor --repair-to does: what is damaged is left out and named.

    Of several replicas, that of the highest leader epoch is taken, the longest of equals. It leads,
    and others follow it. Most controllers of the cluster have to be among the nodes of --into.

    An interrupted call leaves .pylog-adoption in these directories: no broker starts there until
    --resume ends it, or --undo takes it back. With --dry-run nothing is written.

    Exit status: 0 done, 1 done and the losses are named, 2 refused or wrong usage.
    """
    if resume or undo:
        if paths or (resume and undo):
            msg = "give --resume or --undo with --into alone"
            raise click.UsageError(msg)
        is_done = pylog.jobs.end_adoption(into, undo=undo)
        said = "ended: the topics are adopted" if is_done else "taken back: DIR is as before"
        write_summary({"isAdopted": is_done}, [said], as_json=as_json)
        return exit_status.SOUND
    if not paths:
        msg = "give the log directories of the old nodes"
        raise click.UsageError(msg)
    try:
        with progress.bar_or_lines("copying") as bar:
            found = pylog.adopt(
                *paths,
                into=into,
                topics=options.names_in(topics, None) or None,
                with_access=not no_access,
                progress=bar.show,
                **of_library,
            )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    write_summary(document_of(found), _lines(found), as_json=as_json)
    tell("warning", *(f"lost: {each}" for each in found.losses))
    return exit_status.FINDINGS if found.losses else exit_status.SOUND


def _lines(found: AdoptionSummary) -> Iterator[str]:
    yield f"cluster {found.cluster_id}: {', '.join(found.into)}"
    for each in found.partitions[:_SHOWN_PARTITIONS]:
        place = ", ".join(map(str, each.replicas))
        yield (
            f"{each.topic}-{each.partition}: from {each.source or 'nowhere, empty'}, "
            f"to offset {each.end_offset}, on node {place}, leader epoch {each.leader_epoch}"
        )
    more = len(found.partitions) - _SHOWN_PARTITIONS
    if more > 0:
        yield f"and {more} more partitions"
    if found.snapshot is not None:
        yield f"the metadata get the snapshot {found.snapshot}"
    if found.appended is not None:
        base_offset, records, size = found.appended
        yield f"the metadata get {records} records at offset {base_offset} ({size} B)"
    yield from (f"note: {each}" for each in found.notes)
    if found.is_written:
        yield "done: start the node"
    else:
        yield "nothing was written (--dry-run); without this, a broker makes them -stray"

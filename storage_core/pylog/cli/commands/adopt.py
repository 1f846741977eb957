"""``pylog adopt``: topics on old disks are served by another cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import pylog
from pylog.cli import exit_status, options, progress
from pylog.cli.options import command
from pylog.cli.output import tell, write_summary
from pylog.text.words import counted, named

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


_OF_CLUSTER: dict[str, options.Decorator] = {
    "cluster_id": click.option(
        "--cluster-id",
        metavar="ID",
        help="With --as-cluster: the cluster's new id. Default: the id with which the directories "
        "were formatted, or the old cluster's id.",
    ),
    "nodes": options.node_ids(
        "--nodes",
        help="With --as-cluster: ids of the nodes that go on, in the order of --into. Default: "
        "all.",
    ),
    "voters": options.node_ids(
        "--voters",
        help="With --as-cluster: ids of the controllers that vote from now on. Default: as before.",
    ),
    "endpoints": options.endpoints(
        "With --as-cluster: the new addresses of controllers whose addresses change."
    ),
}
"""Options of `pylog.jobs.adopt_cluster` alone, by the names of its arguments."""


@command(
    "adopt",
    "pylog adopt /mnt/old/kafka-logs --into /var/lib/kafka --dry-run",
    "pylog adopt /mnt/old --into /var/lib/kafka --topic orders --rename orders=old-orders",
    "pylog adopt /mnt/n1 /mnt/n2 /mnt/n3 --as-cluster --nodes 1 --into /var/lib/kafka",
    "pylog adopt --into /var/lib/kafka --resume",
)
@options.stored_paths(
    type=options.DIRECTORY,
    required=False,
    help_text="Log directories of the old nodes, or <topic>-<partition> directories in them.",
)
@click.option(
    "--into",
    metavar="DIR",
    type=options.DIRECTORY,
    multiple=True,
    required=True,
    help="A log directory of the stopped node that is to serve the topics. Give all its log.dirs, "
    "and the log.dirs of other nodes that are to get partitions or that vote.",
)
@options.topics("Adopt only this topic; may be given several times.")
@click.option(
    "--rename",
    metavar="OLD=NEW",
    multiple=True,
    callback=_renames,
    help="Give a topic a new name, and with it a new id.",
)
@options.node_ids(
    "--brokers",
    help="Ids of the nodes that get partitions, such as 4 or 4,5: needed if some nodes of --into "
    "are controllers alone and have never run. Default: the nodes that have registered as brokers.",
)
@options.flag(
    "--no-access", help="Leave the old cluster's ACLs, SCRAM users, quotas and defaults behind."
)
@options.flag(
    "--as-cluster",
    help="Move the whole cluster: each --into is the directory of a node that continues.",
)
@options.together(*_OF_CLUSTER.values())
@click.option(
    "--plan-for-running",
    metavar="DIR",
    type=options.DIRECTORY,
    multiple=True,
    help="Change no cluster: make the partitions ready, in --into, for the running broker whose "
    "log directory this is, and print the order of steps.",
)
@options.flag("--resume", help="Finish a call that was interrupted.")
@options.flag("--undo", help="Take back a call that was interrupted.")
@options.dry_run
@options.as_json
def adopt(
    paths: tuple[str, ...],
    *,
    into: tuple[str, ...],
    resume: bool,
    undo: bool,
    as_json: bool,
    as_cluster: bool,
    plan_for_running: str | None,
    no_access: bool,
    **chosen: Any,  # noqa: ANN401 - options of `pylog.adopt`, or of `pylog.jobs.adopt_cluster`
) -> int:
    """Give a stopped node of a cluster the topics that other disks have.

    A broker renames partition directories that its metadata does not know to -stray. This command
    copies the partitions into the node's log directories, and writes the metadata records that
    declare them: at the end of the node's metadata log, or as a snapshot if the node was formatted
    and has never run. The PATHs are not changed. All nodes must be stopped.

    Topics keep their ids, and records keep their offsets. Groups continue where they were if the
    new cluster has no __consumer_offsets yet. If the old metadata is on the disks, topics keep
    their configurations, and ACLs, SCRAM users, quotas and broker defaults are copied, too. Each
    partition is copied as doctor --repair-to copies it: damaged batches are left out, and the
    losses are named.

    If a partition has several replicas, the command copies the one with the highest leader epoch,
    or the longest one if epochs are equal. This replica leads, and the others follow it. Most
    controllers of the cluster must be among the nodes of --into.

    --as-cluster moves the whole cluster: to other hosts and ports, under another id, or onto fewer
    nodes. Give the log directories of all nodes that are left, and a directory with --into for each
    node that continues. That directory must not exist, be empty, or be formatted for the node. All
    metadata is copied. Partitions of the other nodes are copied to those that continue. The last
    lines say which settings change.

    --plan-for-running changes no cluster. Its DIR is a log directory of the running broker. The
    command writes partition directories to --into, and prints the steps: make the topics with
    Kafka's own tools, stop the broker, and move the directories into its log directory.

    An interrupted call leaves .pylog-adoption in the directories of --into: no broker starts there
    until --resume finishes the call, or --undo takes it back. With --dry-run nothing is written.

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
            chosen |= {"into": into, "progress": bar.show}
            found = _adopted(
                paths, chosen, plan_for_running, as_cluster=as_cluster, no_access=no_access
            )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    write_summary(
        pylog.jobs.document_of(found), _lines(found), as_json=as_json, copied=_steps(found)
    )
    tell("warning", *(f"lost: {each}" for each in found.losses))
    return exit_status.FINDINGS if found.losses else exit_status.SOUND


def _adopted(
    paths: tuple[str, ...],
    chosen: dict[str, Any],
    running: str | None,
    *,
    as_cluster: bool,
    no_access: bool,
) -> AdoptionSummary:
    of_cluster = {name: chosen.pop(name) for name in _OF_CLUSTER}
    topics = chosen.pop("topics")
    if as_cluster:
        if (
            running
            or topics
            or no_access
            or chosen.pop("rename")
            or chosen.pop("brokers") is not None
        ):
            msg = "--as-cluster moves all: give it without the options for some topics"
            raise click.UsageError(msg)
        return pylog.jobs.adopt_cluster(*paths, **chosen, **of_cluster)
    given = [name for name, value in of_cluster.items() if value]
    if given:
        msg = f"--{given[0].replace('_', '-')} goes with --as-cluster"
        raise click.UsageError(msg)
    topics = options.names_in(topics, None) or None
    if running:
        into = chosen.pop("into")
        if len(into) > 1 or no_access or chosen.pop("brokers"):
            msg = "--plan-for-running goes with one --into, and without --brokers and --no-access"
            raise click.UsageError(msg)
        return pylog.jobs.plan_for_running(
            *paths, running=running, into=into[0], topics=topics, **chosen
        )
    return pylog.adopt(*paths, topics=topics, with_access=not no_access, **chosen)


def _lines(found: AdoptionSummary) -> Iterator[str]:
    yield f"cluster {found.cluster_id}: {', '.join(found.into)}"
    for each in found.partitions[:_SHOWN_PARTITIONS]:
        nodes = "node" if len(each.replicas) == 1 else "nodes"
        place = f"{nodes} {named(list(map(str, each.replicas)))}"
        yield (
            f"{each.topic}-{each.partition}: from {each.source or 'nowhere, empty'}, "
            f"to offset {each.end_offset}, on {place}, leader epoch {each.leader_epoch}"
        )
    more = len(found.partitions) - _SHOWN_PARTITIONS
    if more > 0:
        yield f"and {counted(more, 'more partition')}"
    if found.snapshot is not None:
        yield f"the metadata gets the snapshot {found.snapshot}"
    if found.appended is not None:
        base_offset, records, size = found.appended
        yield f"the metadata gets {counted(records, 'record')} at offset {base_offset} ({size} B)"
    yield from (f"note: {each}" for each in found.notes)
    if found.steps:
        yield "written; what is left:" if found.is_written else "nothing was written; the steps:"
    elif found.is_written:
        yield "done: start the node"
    else:
        yield "nothing was written (--dry-run)"


def _steps(found: AdoptionSummary) -> Iterator[str]:
    yield from (f"  {number}. {step}" for number, step in enumerate(found.steps, start=1))

"""``pylog first-aid``: a node that starts again although most of the voters are gone."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

import pylog
from pylog.cli import exit_status, options
from pylog.cli.options import command
from pylog.cli.output import tell, write_summary
from pylog.results import Fate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.results import FirstAid


@command(
    "first-aid",
    "pylog first-aid /mnt/node1/kafka-logs --to /mnt/first-aid --voters 1",
    "pylog first-aid /mnt/node1/kafka-logs /mnt/node2/kafka-logs --to /mnt/first-aid --voters 1,2",
    "pylog first-aid /mnt/node1/kafka-logs --to /mnt/first-aid --endpoints 1=k1:9093,2=k2:9093",
)
@options.paths
@click.option(
    "--to",
    metavar="COPY",
    type=options.DIRECTORY,
    required=True,
    help="The directory to be made; it must not exist, or be empty.",
)
@options.node_ids(
    "--voters",
    help="Ids of the controllers that vote from now on, such as 1 or 1,2. Default: as before.",
)
@options.endpoints("Where the other nodes reach the controllers whose addresses have changed.")
@click.option(
    "--use",
    metavar="PATH",
    type=options.DIRECTORY,
    help="Take the metadata of this PATH, though another copy goes further or cannot be read.",
)
@options.node_ids(
    "--lost",
    help="Ids of brokers that do not come back. Default: the voters that --voters leaves out.",
)
@click.option(
    "--elect",
    type=click.Choice(["unclean"]),
    help="Make a broker that was not in sync the leader where no other one is left.",
)
@options.flag("--reassign", help="Move partitions without a replica, empty, to this node.")
@options.flag("--with-partitions", help="Copy all other files of the log directory, too.")
@options.dry_run
@options.as_json
def first_aid(
    paths: tuple[str, ...],
    *,
    elect: str | None,
    reassign: bool,
    as_json: bool,
    **of_library: Any,  # noqa: ANN401 - options that `pylog.first_aid` has, too
) -> int:
    """Write a copy with which a node starts although most voters are gone.

    A controller that does not find most of the voters never serves. First aid appends to a copy of
    its metadata log who votes from now on, and which brokers lead the partitions of lost ones. Stop
    all nodes first. Nothing is changed in place: the last lines say how to put the copy in place.

    The copy is for the node of the first PATH. Give the log directories of all nodes that are left:
    the copy of the metadata that goes furthest is taken, even if it is a broker's. Where the
    configuration names the voters (kraft.version 0), the setting to change is printed.

    Each partition with a lost replica is listed with what becomes of it: a broker in sync, or
    eligible (ELR), becomes the leader, and no acknowledged record is lost; one that was not in sync
    needs --elect unclean, or Kafka's own tool after the start; without a replica the records are
    gone, and --reassign makes the partition empty on this node.

    Of each partition that a given node is to lead, its disks are looked at: a missing directory, a
    log that ends too early, and what the metadata does not know are losses, too. Logs are not read
    otherwise: pylog doctor does that.

    With --dry-run nothing is written.

    Exit status: 0 done, 1 done and the losses are named, 2 refused or wrong usage.
    """
    try:
        found = pylog.first_aid(
            *paths,
            elects_unclean=elect is not None,
            reassigns=reassign,
            **of_library,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    write_summary(_document(found), _lines(found), as_json=as_json, copied=_steps(found))
    tell("warning", *(f"lost or not served: {each}" for each in found.losses))
    return exit_status.FINDINGS if found.losses else exit_status.SOUND


def _document(found: FirstAid) -> dict[str, Any]:
    document: dict[str, Any] = pylog.jobs.document_of(found, {"voter_id": "id", "data": None})
    for fields, append in zip(document["appended"], found.appended, strict=True):
        fields |= {"sizeInBytes": len(append.data), "hex": append.data.hex()}
    return document


_SERVED = (Fate.UNTOUCHED, Fate.IN_SYNC, Fate.ELIGIBLE)
_SHOWN_BYTES = 256


def _lines(found: FirstAid) -> Iterator[str]:
    yield f"cluster {found.cluster_id}, node {found.node_id}"
    yield f"seed: {found.seed}, which ends at offset {found.seed_end_offset}"
    for each in found.appended:
        size = len(each.data)
        records = pylog.jobs.counted(each.records, "record")
        yield f"append at offset {each.base_offset}: {each.text} ({records}, {size} B)"
        if size <= _SHOWN_BYTES:
            yield f"  {each.data.hex()}"
    fates = Counter(each.fate for each in found.partitions)
    for fate in Fate:
        if fates[fate]:
            yield f"partitions {fate}: {fates[fate]}"
    for partition in found.partitions:
        if partition.fate not in _SERVED:
            beyond = (
                ""
                if partition.missing is None
                else f", {pylog.jobs.counted(partition.missing, 'offset')} beyond it"
            )
            yield f"  {partition.topic}-{partition.partition}: {partition.fate}{beyond}"
    yield from (f"note: {each}" for each in found.notes)
    if found.to is None:
        yield "nothing was written (--dry-run)"
    else:
        yield f"written: {found.to}. To put it in place, with all nodes stopped:"


def _steps(found: FirstAid) -> Iterator[str]:
    steps = found.steps if found.to is not None else []
    yield from (f"  {number}. {step}" for number, step in enumerate(steps, start=1))

"""``pylog info``: whose disks these are, which Kafka starts on them, and who has to run."""

from __future__ import annotations

import sys
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pylog
from pylog.cli import exit_status, options
from pylog.cli.options import command
from pylog.cli.output import known, tell, wrapped, write_json
from pylog.cli.style import OutputTraits
from pylog.text.instants import calendar_text
from pylog.text.words import counted, format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pylog.results import ClusterInfo, RegisteredBroker


@command(
    "info",
    "pylog info /mnt/kafka-logs",
    "pylog info /mnt/node1/kafka-logs /mnt/node2/kafka-logs --json",
)
@options.paths
@options.as_json_document
def info(paths: tuple[str, ...], *, as_json: bool) -> int:
    """Show whose disks these are, which versions of Kafka start, and who must run.

    Give the log directories of one node, or of several nodes of a cluster. The command shows the
    cluster and node ids, the levels of features, and the Kafka versions that start on the first
    node's disks, with the reason why others do not.

    From the copies of __cluster_metadata-0 (each controller and each KRaft broker has one), it
    shows how far each goes, which one is the seed for a recovery, which controllers vote, how many
    of them have to run, the registered brokers, ACLs, users, quotas, and brokers' configurations.
    Secrets are never shown: of SCRAM users only names and mechanisms, and only the names of
    configurations that may be passwords.

    Exit status: 0 everything was read, 1 a copy of the metadata or a log is damaged, 2 wrong usage
    or a path that cannot be read.
    """
    found = pylog.info(*paths)
    if as_json:
        write_json(_document(found))
    else:
        width = OutputTraits.of(sys.stdout).width
        for line in map(pylog.jobs.printable, _lines(found)):
            sys.stdout.writelines(f"{each}\n" for each in wrapped(line, width))
        sys.stdout.flush()
    tell("warning", *found.errors)
    return exit_status.FINDINGS if found.errors else exit_status.SOUND


_NAMES = {"voter_id": "id"}


def _document(found: ClusterInfo) -> dict[str, Any]:
    document: dict[str, Any] = pylog.jobs.document_of(found, _NAMES)
    return document


def _lines(found: ClusterInfo) -> Iterator[str]:
    yield f"Cluster: {found.cluster_id or '-'}  Node: {known(found.node_id)}"
    release = found.metadata_release or "-"
    levels = {"kraft.version": found.kraft_version, **found.features}
    features = ", ".join(f"{name}={level}" for name, level in levels.items() if level is not None)
    yield f"Metadata version: {release}  Features: {features or '-'}"
    yield f"Starts on Kafka: {', '.join(found.starts_on) or 'none'}"
    for reason, same in groupby(found.does_not_start_on, key=lambda each: each.reason):
        yield f"  not on {', '.join(each.version for each in same)}: {reason}"
    yield from _lines_about_quorum(found)
    yield from _lines_about_nodes(found)
    yield from _lines_about_the_cluster(found)


def _lines_about_quorum(found: ClusterInfo) -> Iterator[str]:
    yield f"Quorum: {found.quorum_text}"
    for each in found.voters:
        yield (
            f"  voter {each.voter_id}  directory {each.directory_id or '-'}  "
            f"{_endpoints(each.endpoints)}"
            f"{'' if each.voter_id in found.quorum.has else ' (not given)'}"
        )
    for copy in found.metadata_copies:
        what = "the seed" if copy.is_seed else f"same as the seed below offset {copy.same_up_to}"
        yield (
            f"  copy of node {known(copy.node_id)}: ends at offset {copy.end_offset}, epoch "
            f"{copy.last_epoch}: {what}  {copy.path}"
        )


def _lines_about_nodes(found: ClusterInfo) -> Iterator[str]:
    for node in found.nodes:
        yield (
            f"Node {known(node.node_id)}: formatted with {node.formatted_with or '-'}, last run by "
            f"Kafka {node.last_run_by or '-'}"
        )
        for each in node.log_directories:
            stopped = {True: ", stopped cleanly", False: ", not stopped cleanly", None: ""}
            times = ""
            if each.first_timestamp is not None and each.last_timestamp is not None:
                first, last = (
                    calendar_text(time, 1000)
                    for time in (each.first_timestamp, each.last_timestamp)
                )
                times = f", records from {first} to {last}"
            yield (
                f"  {each.path}: directory {each.directory_id or '-'}, "
                f"{counted(each.partitions, 'partition')}, {format_bytes(each.size_bytes)}"
                f"{stopped[each.was_stopped_cleanly]}{times}"
            )


def _lines_about_the_cluster(found: ClusterInfo) -> Iterator[str]:
    if found.topics is not None:
        partitions = counted(found.partitions or 0, "partition")
        yield f"Metadata: {counted(found.topics, 'topic')}, {partitions}"
    yield from (f"  broker {_registered(each)}" for each in found.brokers)
    for controller in found.controllers:
        yield (
            f"  controller {controller.node_id}: Kafka {controller.kafka_version or '-'}, "
            f"{_endpoints(controller.endpoints)}"
        )
    for acl in found.acls:
        yield (
            f"  ACL: {acl.permission} {acl.principal} {acl.operation} on {acl.resource_type} "
            f"{acl.pattern_type} {acl.resource_name} from {acl.host}"
        )
    for user in found.users:
        yield f"  user {user.name}: {user.mechanism}"
    for quota in found.quotas:
        entity = ", ".join(f"{kind} {name or '<default>'}" for kind, name in quota.entity.items())
        limits = ", ".join(f"{name}={limit:g}" for name, limit in quota.limits.items())
        yield f"  quota of {entity}: {limits}"
    for settings in found.broker_configs:
        shown = [f"{name}={value}" for name, value in settings.configs.items()]
        shown += [f"{name}=(hidden)" for name in settings.hidden]
        of = f"broker {settings.broker}" if settings.broker else "all brokers"
        yield f"  configuration of {of}: {', '.join(shown)}"


def _registered(node: RegisteredBroker) -> str:
    state = " (stale: fenced, nothing assigned)" if node.is_stale else ""
    fenced = " fenced," if node.is_fenced and not state else ""
    return (
        f"{node.node_id}: Kafka {node.kafka_version or '-'},{fenced} "
        f"{counted(node.replicas, 'replica')}, leads {node.leaderships}, "
        f"{_endpoints(node.endpoints)}{state}"
    )


def _endpoints(endpoints: Iterable[Any]) -> str:
    return ",".join(f"{each.name}://{each.host}:{each.port}" for each in endpoints) or "-"

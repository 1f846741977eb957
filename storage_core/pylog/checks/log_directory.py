"""Findings about log directories: what lies beside the partitions, and what they say together."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from pylog.checks.absent_partitions import (
    LOADED,
    RECORDED,
    Held,
    absent_partitions,
    gone,
    loaded,
    never_seen,
    offsets_in,
    recorded_offsets,
)
from pylog.checks.files import stored_topic_id, unreadable_checkpoints
from pylog.checks.future_logs import future_findings
from pylog.checks.not_live import NotLiveDirectory
from pylog.checks.permissions import is_before_loading, is_not_listed, with_own_limits
from pylog.checks.quorum_states import forgotten_leaders
from pylog.config.stored_topic_configs import TOPIC_CONFIGS, read_topic_configs
from pylog.errors import (
    CorruptCheckpointError,
    LogDirectoryError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files import disk
from pylog.files.clean_shutdown import has_clean_shutdown
from pylog.files.file_names import (
    CLEAN_SHUTDOWN,
    DELETE_DIR_SUFFIX,
    META_PROPERTIES,
    METADATA_SNAPSHOT,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    REMOTE_LOG_INDEX_CACHE,
    STRAY_DIR_SUFFIX,
    find_partition_directory_name,
    find_segment_file_name,
)
from pylog.files.ledger import ensure_intact
from pylog.files.looks import lasting
from pylog.files.meta_properties import read_meta_properties
from pylog.files.partition_metadata import format_uuid
from pylog.files.storage import is_folder, list_directory
from pylog.findings import kinds
from pylog.findings.finding import Effect, Finding, Severity
from pylog.locations import is_remote, join, printable_location
from pylog.reading.discovery import PartitionDirectory, directory_identity
from pylog.reading.internal_logs import CLUSTER_METADATA
from pylog.reading.log_view import LogView
from pylog.writing.node import nodes_now
from pylog.writing.node_disks import HIGHEST_VERSION, RESERVED_IDS

if TYPE_CHECKING:
    import uuid
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from pylog.checks.permissions import BrokerUsers
    from pylog.files.file_user import FileUser
    from pylog.files.meta_properties import MetaProperties
    from pylog.files.storage import DirectoryEntry
    from pylog.findings.finding import FindingKind
    from pylog.reading.log_directory import LogDirectory
    from pylog.writing.node import Node
    from pylog.writing.node_metadata import NodeProblem


_NOT_LIVE = {
    DELETE_DIR_SUFFIX: (kinds.DELETED_DIRECTORY, "is being deleted"),
    STRAY_DIR_SUFFIX: (kinds.STRAY_DIRECTORY, "is not owned by its broker"),
}
_NO_LOG = "the directory holds no log"
_STARTS_WITHOUT = "it takes this log directory offline, and starts without it"


class LogDirectoryCheck(NamedTuple):
    """What is wrong with a log directory, the partitions in it left out."""

    path: str  # the directory
    is_clean: bool  # whether the marker of a clean stop is in it
    meta: MetaProperties | None  # whose directory it is; None where that is not known
    findings: list[Finding]  # about its own files first, then about what lies in it
    is_of_a_controller: bool = False  # whether its node is no broker: it has no such marker
    lacks_metadata: bool = False  # whether it is a KRaft node's, and has no log of the metadata
    is_loaded: bool = True  # whether a node looks at its partitions; it goes without it otherwise
    is_passed_over: bool = False  # whether it does so, though the log of the metadata may be there


def log_directories_of(directory: LogDirectory) -> list[str]:
    """Return the log directories that were given, sorted; none of partitions that were."""
    return sorted({each.log_directory for each in directory.directories if not each.is_named})


def held_partitions(
    directories: Iterable[PartitionDirectory], nodes: Mapping[str, Node]
) -> set[Held]:
    """Return which partitions nodes have, each in whichever of their directories."""
    return {
        (nodes[each.log_directory], each.topic_partition)
        for each in directories
        if each.state in LOADED
    }


def check_log_directories(
    directory: LogDirectory,
    nodes: Mapping[str, Node],
    held: Container[Held],
    users: BrokerUsers,
) -> list[LogDirectoryCheck]:
    """Return what is wrong with the log directories that were given, sorted by path."""
    known = directory.directories
    checks = []
    for path in log_directories_of(directory):
        here = [each for each in known if each.log_directory == path]
        check = check_log_directory(path, nodes[path], here, held, users.of(path))
        denied = users.directory_findings(path)
        disks = nodes[path].disks
        is_passed_over = len(disks.metas) > 1 and is_not_listed(path, denied)
        if is_passed_over:
            denied = [denied[0]._replace(own_effect=Effect.UNSERVED, own_action=_STARTS_WITHOUT)]
        is_loaded = not (disks.is_offline(path) or any(map(is_before_loading, denied)))
        check = check._replace(
            findings=with_own_limits([*denied[:1], *check.findings]),
            is_loaded=is_loaded,
            is_passed_over=is_passed_over,
        )
        checks.append(check)
    return checks


def check_log_directory(
    path: str,
    node: Node,
    known: Sequence[PartitionDirectory],
    held: Container[Held] = (),
    user: FileUser | None = None,
) -> LogDirectoryCheck:
    """Return what is wrong with the directory ``path`` and the files right in it."""
    meta, findings = _check_meta_properties(path, node)
    configs_path = join(path, TOPIC_CONFIGS)
    try:
        read_topic_configs(configs_path)
    except (CorruptCheckpointError, UnreadableFileError) as error:
        findings.append(kinds.DAMAGED_TOPIC_CONFIGS.found(configs_path, str(error.reason)))
    try:
        ensure_intact(path)
    except (CorruptCheckpointError, LogDirectoryError) as error:
        where = str(error.path)
        findings.append(kinds.DAMAGED_LEDGER.found(where, str(error.reason)))
    findings += unreadable_checkpoints(path)
    is_clean = has_clean_shutdown(path)
    try:
        entries = list_directory(path)
    except LogDirectoryError as error:
        findings.append(kinds.UNREADABLE.found(path, error.reason))
        return LogDirectoryCheck(path, is_clean, meta, findings)
    for entry in entries:
        is_known = entry.name == REMOTE_LOG_INDEX_CACHE or _is_removed_as_marker(entry)
        if not is_known and find_partition_directory_name(entry.name) is None and is_folder(entry):
            message = "directory is not named <topic>-<partition>"
            findings.append(kinds.MISNAMED_DIRECTORY.found(entry.path, message))
    findings += _not_live(known)
    recorded = {each for name in RECORDED for each in offsets_in(path, name)}
    here = loaded(entry.name for entry in entries)
    absent = [each for each in recorded if each not in here and (node, each) not in held]
    findings += absent_partitions(path, node, absent, is_clean=is_clean)
    logs = {each.path for each in known}
    others = [each for each in entries if each.path not in logs]
    findings += _empty_partitions(path, node, others, user, is_clean=is_clean)
    names = {entry.name for entry in entries}
    found = map(find_partition_directory_name, names)
    partitions = {each.topic_partition for each in found if each is not None}
    is_of_a_controller = partitions == {CLUSTER_METADATA} and RECOVERY_POINT_CHECKPOINT not in names
    return LogDirectoryCheck(
        path, is_clean, meta, findings, is_of_a_controller, node.lacks_metadata
    )


def _check_meta_properties(path: str, node: Node) -> tuple[MetaProperties | None, list[Finding]]:
    meta_path = join(path, META_PROPERTIES)
    try:
        meta = read_meta_properties(meta_path)
    except (CorruptCheckpointError, UnreadableFileError) as error:
        return None, [_damaged_meta_properties(meta_path, str(error.reason), path, node)]
    except SegmentVanishedError:
        reason = node.missing_meta_properties(path)
        if reason is None:  # of a broker before 0.8.2, or a copy of partitions alone
            return None, []
        message = f"the file is missing, and {reason}"
        return None, [kinds.MISSING_META_PROPERTIES.found(meta_path, message)]
    if meta.is_empty:
        message = "the file names neither a node nor a cluster"
        return None, [kinds.DAMAGED_META_PROPERTIES.found(meta_path, message)]
    if meta.version > HIGHEST_VERSION:
        reason = f"version {meta.version} is unknown to Kafka {node.kafka_version}"
        return None, [_damaged_meta_properties(meta_path, reason, path, node)]
    reason = _refused_meta_properties(meta) if node.is_kraft else None
    if reason is None:
        return meta, []
    return meta, [kinds.DAMAGED_META_PROPERTIES.found(meta_path, reason)]


def _damaged_meta_properties(meta_path: str, reason: str, path: str, node: Node) -> Finding:
    found = kinds.DAMAGED_META_PROPERTIES.found(meta_path, reason)
    if not node.disks.is_offline(path):
        return found
    return found._replace(own_effect=Effect.UNSERVED, own_action=_STARTS_WITHOUT)


def _refused_meta_properties(meta: MetaProperties) -> str | None:
    """Return why a KRaft node does not accept what a ``meta.properties`` says.

    Source: KafkaRaftServer.initializeLogDirs, DirectoryId.reserved (Kafka 4.3).
    """
    if meta.node_id is None:
        return "the file names no node: a KRaft node needs node.id"
    if meta.cluster_id is None:
        return "the file names no cluster: a KRaft node needs cluster.id"
    if meta.directory_id is not None and meta.directory_id.int < RESERVED_IDS:
        return f"directory.id {format_uuid(meta.directory_id)} is reserved, and no directory's"
    return None


def _is_removed_as_marker(entry: DirectoryEntry) -> bool:
    """Whether a broker takes an entry for the marker of a clean stop, and removes it at once.

    Source: LogManager.loadLogs, CleanShutdownFileHandler.delete, Files.deleteIfExists (Kafka 4.4).
    """
    return entry.name == CLEAN_SHUTDOWN and is_folder(entry) and not list_directory(entry.path)


def _empty_partitions(
    path: str,
    node: Node,
    entries: Iterable[DirectoryEntry],
    user: FileUser | None,
    *,
    is_clean: bool,
) -> Iterator[Finding]:
    """Yield a finding for each directory that has the name of a partition and holds none.

    A broker loads it all the same, and ends if it cannot.
    """
    named_entries = [(find_partition_directory_name(entry.name), entry) for entry in entries]
    empty = {
        entry.path: (found, entry)
        for found, entry in named_entries
        if found is not None and is_folder(entry) and not _has_log(entry.path)
    }
    if not is_clean:  # a broker may have just made them
        empty = lasting(empty, lambda: {each for each in empty if not _has_log(each)}, [path])
    for found, entry in empty.values():
        if found.topic_partition == CLUSTER_METADATA:
            message = "the log of the cluster's metadata is gone"
            yield kinds.MISSING_METADATA_LOG.found(entry.path, message)
            continue
        start, end = recorded_offsets(path, found.topic_partition)
        if not found.state and end:
            yield gone(kinds.EMPTY_PARTITION, entry.path, _NO_LOG, start, end)
        elif not found.state:
            yield kinds.EMPTY_PARTITION.found(entry.path, _NO_LOG, severity=Severity.WARNING)
        view = LogView(PartitionDirectory(found.topic_partition, entry.path, found.state))
        of_log = NotLiveDirectory(view, has_live=False, user=user).findings()
        yield from (each for each in of_log if each.refuses_start)
        if found.state in LOADED:
            yield from map(_of_node, node.problems(found.topic_partition, entry.path))


def _has_log(path: str) -> bool:
    """Whether files of segments, or snapshots of the metadata, are in a directory."""
    try:
        names = [each.name for each in list_directory(path)]
    except LogDirectoryError:
        return True  # which is a finding
    return any(find_segment_file_name(name) or METADATA_SNAPSHOT.fullmatch(name) for name in names)


def _not_live(known: Iterable[PartitionDirectory]) -> Iterator[Finding]:
    for each in known:
        if each.state in _NOT_LIVE:
            kind, what = _NOT_LIVE[each.state]
            yield kind.found(each.path, f"partition {each.topic_partition} {what}")


def node_findings(
    views: Iterable[LogView], nodes: Mapping[str, Node]
) -> Iterator[tuple[LogView, Finding]]:
    """Yield what a node does with partitions at its start, apart from loading their logs.

    Strays are looked at again: a live broker makes a partition's directory before the file in it,
    and topics while the metadata is read.
    """
    found = _node_findings(views, nodes)
    if any(kind == kinds.STRAY_PARTITION for _, kind in found):
        places = [view for [(view, _), *_] in found.values()]

        def look() -> Container[tuple[str, FindingKind]] | None:
            now = nodes_now(nodes)
            if now is None:
                return None
            still = [
                each
                for each in places
                if not (each.directory.was_moved() or each.directory.was_deleted())
            ]
            return _node_findings(still, now)

        found = lasting(found, look, nodes)
    yield from chain.from_iterable(found.values())


def _node_findings(
    views: Iterable[LogView], nodes: Mapping[str, Node]
) -> dict[tuple[str, FindingKind], list[tuple[LogView, Finding]]]:
    """Return findings by their place and kind."""
    found: dict[tuple[str, FindingKind], list[tuple[LogView, Finding]]] = {}
    for view in views:
        place = view.directory
        if place.state not in LOADED:
            continue
        for each in nodes[place.log_directory].problems(view.topic_partition, place.path):
            [finding] = with_own_limits([_of_node(each)])
            found.setdefault((place.path, finding.kind), []).append((view, finding))
    return found


def _of_node(problem: NodeProblem) -> Finding:
    effect = None if problem.is_certain else Effect.UNKNOWN
    return problem.kind.found(problem.path, problem.reason, own_effect=effect)


def findings_between(
    directories: Iterable[LogDirectoryCheck],
    views: Sequence[LogView],
    not_live: Sequence[LogView],
    nodes: Mapping[str, Node],
) -> Iterator[tuple[str, Finding]]:
    """Yield what log directories, and partitions, contradict each other in; by log directory."""
    directories = list(directories)
    metas = {each.path: each.meta for each in directories}
    yield from _same_directory_ids(metas)
    yield from _several_clusters(metas)
    yield from _twice(nodes)
    yield from _of_other_nodes(nodes)
    yield from forgotten_leaders(nodes)
    for path, node in nodes.items():
        if path == node.disks.first and node.is_kraft:
            for each in node.disks.problems():
                yield path, _of_node(each)
    if directories:
        yield from future_findings([*views, *not_live], nodes)
        yield from never_seen({each.path: each.is_clean for each in directories}, nodes)
    yield from _between_partitions(views, not_live, metas, nodes)


def _twice(nodes: Mapping[str, Node]) -> Iterator[tuple[str, Finding]]:
    """Yield log directories that were given twice, by a link."""
    seen: dict[object, str] = {}
    for path, node in nodes.items():
        other = seen.setdefault(directory_identity(path), path)
        if other != path and node.is_kraft:
            message = f"this is the log directory {printable_location(other)}, under another name"
            where = join(path, META_PROPERTIES)
            yield other, kinds.META_PROPERTIES_DISAGREE.found(where, message)


def _of_other_nodes(nodes: Mapping[str, Node]) -> Iterator[tuple[str, Finding]]:
    """Yield log directories that the metadata has as those of another node.

    Source: MetaPropertiesEnsemble.verify, ClusterControlManager.registerBroker (Kafka 4.3).
    """
    owners: dict[uuid.UUID | None, _Owner] = {
        directory_id: (node.cluster_id, node_id)
        for node in nodes.values()
        for node_id, ids in node.registrations.items()
        for directory_id in ids
    }
    for path, node in nodes.items():
        meta = node.disks.metas[path]
        said = node.cluster_id, node.node_id
        owner = owners.get(None if meta is None else meta.directory_id, said)
        if owner != said:
            message = (
                f"the file says node {said[1]} of cluster {said[0]}, and the cluster's metadata "
                f"has this log directory as one of node {owner[1]} of cluster {owner[0]}"
            )
            where = join(path, META_PROPERTIES)
            found = kinds.META_PROPERTIES_OF_ANOTHER.found(where, message)
            # One that has other log directories now may have registered with them before.
            has_moved = _has_moved(owner, nodes, owners)
            yield path, found._replace(own_effect=Effect.UNKNOWN) if has_moved else found


_Owner = tuple[str | None, int | None]


def _has_moved(
    owner: _Owner, nodes: Mapping[str, Node], owners: Mapping[uuid.UUID | None, _Owner]
) -> bool:
    """Whether a node was given, and the metadata has none of its log directories as another's."""
    of_owner = [each for each in nodes.values() if (each.cluster_id, each.node_id) == owner]
    ids = {
        meta.directory_id
        for node in of_owner
        for meta in node.disks.metas.values()
        if meta is not None
    }
    return bool(ids) and all(owners.get(each, owner) == owner for each in ids)


def _between_partitions(
    views: Sequence[LogView],
    not_live: Sequence[LogView],
    metas: Mapping[str, MetaProperties | None],
    nodes: Mapping[str, Node],
) -> Iterator[tuple[str, Finding]]:
    owners: dict[object, str] = {}
    twice: dict[str, tuple[PartitionDirectory, str]] = {}
    topic_ids: dict[tuple[str | None, str], list[tuple[LogView, uuid.UUID]]] = defaultdict(list)
    for view, is_live in [*((each, True) for each in views), *((each, False) for each in not_live)]:
        log_directory = view.directory.log_directory
        meta = metas.get(log_directory)
        if view.directory.state in LOADED:
            owner: object = log_directory
            if meta is not None and meta.node_id is not None:
                owner = meta.cluster_id, meta.node_id
            what = owner, view.directory.state, view.topic_partition
            other = owners.setdefault(what, view.directory.path)
            if other != view.directory.path:
                twice[view.directory.path] = view.directory, other
        topic_id = stored_topic_id(view)
        if topic_id is not None and is_live:
            cluster_id = None if meta is None else meta.cluster_id
            topic_ids[cluster_id, view.topic].append((view, topic_id))
    for each, other in _still_twice(twice).values():
        yield each.log_directory, _duplicate(each, other)
    yield from _topic_ids_that_disagree(topic_ids.values(), nodes)
    yield from _topic_ids_used_twice(topic_ids.items())


def _still_twice(
    twice: dict[str, tuple[PartitionDirectory, str]],
) -> dict[str, tuple[PartitionDirectory, str]]:
    """Leave out partitions that a live broker has moved from one to the other."""
    return lasting(
        twice,
        lambda: [
            path
            for path, (_, other) in twice.items()
            if is_remote(path) or (disk.lexists(path) and disk.lexists(other))
        ],
        {each.log_directory for each, _ in twice.values()},
    )


def _duplicate(directory: PartitionDirectory, other: str) -> Finding:
    """Return that a broker takes a directory for the partition that another one is, too.

    Source: LogManager.loadLog ("Duplicate log directories"); a number in a name may begin with
    zeros (LocalLog.parseTopicPartitionName).
    """
    message = (
        f"directory is partition {directory.topic_partition}, as {printable_location(other)} of "
        "the same broker is"
    )
    return kinds.DUPLICATE_PARTITION.found(directory.path, message)


def _same_directory_ids(
    metas: dict[str, MetaProperties | None],
) -> Iterator[tuple[str, Finding]]:
    seen: dict[uuid.UUID, str] = {}
    for path, meta in metas.items():
        if meta is None or meta.directory_id is None:
            continue
        other = seen.setdefault(meta.directory_id, path)
        if other != path:
            message = f"directory.id is that of {printable_location(other)}, too"
            where = join(path, META_PROPERTIES)
            yield path, kinds.META_PROPERTIES_DISAGREE.found(where, message)


def _several_clusters(metas: dict[str, MetaProperties | None]) -> Iterator[tuple[str, Finding]]:
    first: tuple[str, str] | None = None
    for path, meta in metas.items():
        if meta is None or meta.cluster_id is None:
            continue
        first = first or (path, meta.cluster_id)
        if meta.cluster_id != first[1] and meta.cluster_id.strip() == first[1].strip():
            has_blanks = path if meta.cluster_id != meta.cluster_id.strip() else first[0]
            message = (
                f"cluster.id is {meta.cluster_id!r}, and {first[1]!r} in "
                f"{printable_location(first[0])}: blanks are part of it"
            )
            where = join(has_blanks, META_PROPERTIES)
            yield has_blanks, kinds.DAMAGED_META_PROPERTIES.found(where, message)
        elif meta.cluster_id != first[1]:
            message = (
                f"the directory is of cluster {meta.cluster_id}, and "
                f"{printable_location(first[0])} of cluster {first[1]}: they have nothing to do "
                "with each other"
            )
            yield path, kinds.SEVERAL_CLUSTERS.found(join(path, META_PROPERTIES), message)


def _topic_ids_that_disagree(
    partitions_by_topic: Iterable[list[tuple[LogView, uuid.UUID]]], nodes: Mapping[str, Node]
) -> Iterator[tuple[str, Finding]]:
    for partitions in partitions_by_topic:
        (usual, _), *rest = Counter(topic_id for _, topic_id in partitions).most_common()
        if not rest:
            continue
        for view, topic_id in partitions:
            if topic_id != usual:
                message = (
                    f"topic id is {format_uuid(topic_id)}, but other partitions of the topic have "
                    f"{format_uuid(usual)}"
                )
                of_cluster = nodes[view.directory.log_directory].topic_id(view.topic)
                if of_cluster is not None:
                    message += f", and the cluster's metadata {format_uuid(of_cluster)}"
                path = join(view.directory.path, PARTITION_METADATA)
                yield view.directory.log_directory, kinds.TOPIC_IDS_DISAGREE.found(path, message)


def _topic_ids_used_twice(
    topics: Iterable[tuple[tuple[str | None, str], list[tuple[LogView, uuid.UUID]]]],
) -> Iterator[tuple[str, Finding]]:
    users: dict[tuple[str | None, uuid.UUID], str] = {}
    for (cluster_id, topic), partitions in topics:
        for topic_id in dict.fromkeys(each for _, each in partitions):
            other = users.setdefault((cluster_id, topic_id), topic)
            if other != topic:
                view = next(view for view, each in partitions if each == topic_id)
                message = f"topic id {format_uuid(topic_id)} is that of topic {other}, too"
                path = join(view.directory.path, PARTITION_METADATA)
                yield view.directory.log_directory, kinds.DUPLICATE_TOPIC_ID.found(path, message)

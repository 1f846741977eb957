"""`info`: whose disks these are, which Kafka starts on them, and who has to run for a quorum."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pylog.checks.log_directory import check_log_directory
from pylog.errors import LogDirectoryError, LogStorageError
from pylog.files.clean_shutdown import has_clean_shutdown
from pylog.files.file_names import META_PROPERTIES, find_partition_directory_name
from pylog.files.partition_metadata import format_uuid
from pylog.files.storage import list_directory
from pylog.findings.finding import Effect
from pylog.internal_topics.metadata_image import ConfigResourceType, MetadataImage
from pylog.internal_topics.versions import METADATA_VERSION, SUPPORTED_FEATURES, metadata_release
from pylog.locations import join, location, name_of, parent_of, printable_location
from pylog.reading.damage import Attempts
from pylog.reading.disk_use import disk_use
from pylog.reading.html_table import html_table
from pylog.reading.internal_logs import CLUSTER_METADATA, bootstrap_image
from pylog.reading.log_directory import LogDirectory, open_directory, open_each
from pylog.reading.log_view import first_timestamp, read_unless_deleted
from pylog.recovery.metadata_copies import (
    cut_metadata,
    find_copies,
    furthest_metadata,
    seed_of,
    shared_end,
)
from pylog.recovery.starting_versions import (
    NotStarting,
    release_of,
    versions_that_do_not_start,
)
from pylog.text.words import counted, named
from pylog.writing.node import nodes_of
from pylog.writing.node_disks import is_of_a_broker
from pylog.writing.node_metadata import BOOTSTRAP_CHECKPOINT

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pylog.internal_topics.access_image import AccessControlEntry, ClientQuota, ScramUser
    from pylog.internal_topics.metadata_image import Endpoint
    from pylog.reading.internal_logs import CommittedMetadata
    from pylog.reading.log_view import LogView
    from pylog.recovery.metadata_copies import MetadataCopy
    from pylog.writing.node import Node


class QuorumVoter(NamedTuple):
    """A controller that votes.

    Attributes
    ----------
    voter_id
        Its node id.
    directory_id
        Of the log directory with its copy of the metadata: the voter is both ids together. None
        where the nodes' configuration names the voters (kraft.version 0).
    endpoints
        Where the others reach it.
    """

    voter_id: int
    directory_id: str | None
    endpoints: tuple[Endpoint, ...]


class Quorum(NamedTuple):
    """How many voters have to run, and of which a copy was given.

    Attributes
    ----------
    needs
        How many; None where nothing tells who the voters are.
    has
        Ids of those whose copies were given.
    """

    needs: int | None
    has: tuple[int, ...]

    @property
    def is_met(self) -> bool:
        """Whether enough voters were given for a quorum."""
        return self.needs is not None and len(self.has) >= self.needs


class InfoMetadataCopy(NamedTuple):
    """A copy of the log of the cluster's metadata.

    Attributes
    ----------
    path
        Its directory.
    node_id
        Whose it is.
    end_offset, last_epoch
        After its last record, and the epoch of that.
    snapshot
        Its newest snapshot.
    same_up_to
        Up to which offset it is the same as the seed.
    is_seed
        Whether it goes furthest of all.
    """

    path: str
    node_id: int | None
    end_offset: int
    last_epoch: int
    snapshot: str | None
    same_up_to: int
    is_seed: bool


class NodeLogDirectory(NamedTuple):
    """A log directory of a node.

    Attributes
    ----------
    path, directory_id
        Where it is, and its id since Kafka 3.7.
    partitions, size_bytes
        How many partition directories it has, and the length of all files.
    first_timestamp, last_timestamp
        Of records, in ms; None without one.
    was_stopped_cleanly
        None where only a controller has used it, which leaves no mark.
    """

    path: str
    directory_id: str | None
    partitions: int
    size_bytes: int
    first_timestamp: int | None
    last_timestamp: int | None
    was_stopped_cleanly: bool | None


class InfoNode(NamedTuple):
    """A node of which log directories were given.

    Attributes
    ----------
    formatted_with
        The level of metadata.version that ``kafka-storage format`` wrote, by its name.
    last_run_by
        The version of Kafka that last registered.
    """

    node_id: int | None
    formatted_with: str | None
    last_run_by: str | None
    log_directories: tuple[NodeLogDirectory, ...]


class RegisteredController(NamedTuple):
    """A controller, as it last registered; ``is_given``: whether its disk was given."""

    node_id: int
    endpoints: tuple[Endpoint, ...]
    kafka_version: str | None
    is_given: bool


class RegisteredBroker(NamedTuple):
    """A broker, as it last registered.

    Attributes
    ----------
    kafka_version
        Which it had then.
    replicas, leaderships
        Of how many partitions it has a replica, and leads them.
    is_given
        Whether one of its log directories was given.
    is_stale
        Whether it is fenced, and nothing is assigned to it.
    """

    node_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    kafka_version: str | None
    is_fenced: bool
    replicas: int
    leaderships: int
    is_given: bool
    is_stale: bool


class BrokerSettings(NamedTuple):
    """The dynamic configuration of a broker; of all brokers if ``broker`` is empty.

    Attributes
    ----------
    configs
        Values of those that can hold no secret.
    hidden
        The names of the others.
    """

    broker: str
    configs: dict[str, str]
    hidden: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """What `pylog.info` returns. It has no secret: no credential, no value that may be one.

    Attributes
    ----------
    cluster_id, node_id
        As ``meta.properties`` of the first log directory says.
    kraft_version
        0: the configuration of the nodes names the voters. 1: the log does.
    metadata_version, metadata_release
        The level, and its name, such as 4.3-IV0.
    features
        All features that are finalised, with their levels.
    voters, quorum
        Who votes, how many of them have to run, and of which a copy was given.
    seed
        The copy of the metadata that goes furthest; all below is from it.
    committed_end_offset
        Up to where its records are known to be agreed on.
    starts_on
        Versions of Kafka, from 3.3 on, that start on the first node's log directories, as far as
        these and the metadata tell: `doctor` looks into the logs of partitions, too.
    does_not_start_on
        The others, each with a reason.
    errors
        What could not be read.
    """

    cluster_id: str | None
    node_id: int | None
    kraft_version: int | None
    metadata_version: int | None
    metadata_release: str | None
    features: dict[str, int]
    voters: list[QuorumVoter]
    quorum: Quorum
    seed: str | None
    committed_end_offset: int | None
    starts_on: list[str]
    does_not_start_on: list[NotStarting]
    metadata_copies: list[InfoMetadataCopy]
    nodes: list[InfoNode]
    topics: int | None
    partitions: int | None
    brokers: list[RegisteredBroker]
    controllers: list[RegisteredController]
    acls: list[AccessControlEntry]
    users: list[ScramUser]
    quotas: list[ClientQuota]
    broker_configs: list[BrokerSettings]
    errors: list[LogStorageError] = field(default_factory=list)

    @property
    def quorum_text(self) -> str:
        """The voters that have to run, in words."""
        if self.quorum.needs is None:
            return "nothing here tells which controllers vote"
        ids = ", ".join(str(each.voter_id) for each in self.voters)
        has = ", ".join(map(str, self.quorum.has)) or "none"
        if len(self.voters) == 1:
            return f"controller {ids} is the only voter; given: {has}"
        return f"{self.quorum.needs} of {len(self.voters)} voters ({ids}) have to run; given: {has}"

    def _repr_html_(self) -> str:
        rows = [
            (each.node_id, each.path, each.end_offset, each.last_epoch, each.same_up_to)
            for each in self.metadata_copies
        ]
        columns = ("node", "copy of the metadata", "end", "epoch", "same up to")
        notes = [f"starts on {', '.join(self.starts_on) or 'no version'}", *map(str, self.errors)]
        return html_table(f"cluster {self.cluster_id}", columns, rows, len(rows), notes=notes)


def info(*paths: str | os.PathLike[str]) -> ClusterInfo:
    """Return whose log directories these are, which Kafka starts on them, and what it needs.

    Parameters
    ----------
    *paths
        Log directories of one cluster, of one node or several. `ClusterInfo.node_id` and
        `ClusterInfo.starts_on` are about the node of the first one.

    Raises
    ------
    LogStorageError
        A path cannot be read, or is no log directory, or the paths are of two clusters.
    ValueError
        No path was given.

    Examples
    --------
    >>> found = pylog.info("kafka/intact")
    >>> found.metadata_release, found.starts_on
    ('4.3-IV0', ['4.3', '4.4'])
    """
    if not paths:
        msg = "give at least one log directory"
        raise ValueError(msg)
    attempts = Attempts()
    views = dict(opened(paths))
    by_path = nodes_of(views)
    nodes = list(dict.fromkeys(by_path.values()))
    ensure_one_cluster(by_path)
    copies, errors = find_copies(nodes)
    seed, metadata = furthest_metadata(copies, errors)
    first = nodes[0]
    own = next((each for each in copies if each.node is first), None)
    image = MetadataImage() if metadata is None else metadata.image
    read = first.metadata_or_error if metadata is None else metadata
    of_log = {} if read is None or isinstance(read, LogStorageError) else read.image.features
    features = of_log or _bootstrap_features(first)
    refused = _why_refused(first, views)
    blocked = versions_that_do_not_start(first, own, metadata, features, refused)
    level = features.get(METADATA_VERSION)
    voters = _voters(metadata)
    given = {each.node_id for each in nodes}
    return ClusterInfo(
        cluster_id=first.cluster_id,
        node_id=first.node_id,
        kraft_version=None if metadata is None else metadata.kraft_version,
        metadata_version=level,
        metadata_release=metadata_release(level),
        features=dict(sorted(features.items())),
        voters=voters,
        quorum=_quorum(voters, copies),
        seed=None if seed is None else printable_location(seed.directory),
        committed_end_offset=None if metadata is None else metadata.committed_end_offset,
        starts_on=sorted(
            set(SUPPORTED_FEATURES) - {each.version for each in blocked},
            key=list(SUPPORTED_FEATURES).index,
        ),
        does_not_start_on=blocked,
        metadata_copies=[_described_copy(each, seed or seed_of(copies)) for each in copies],
        nodes=[_described_node(each, views, image, attempts) for each in nodes],
        topics=None if metadata is None else len(image.topics),
        partitions=None if metadata is None else sum(len(each.partitions) for each in image.topics),
        brokers=_brokers(image, given),
        controllers=_controllers(image, given),
        acls=image.access.acls,
        users=image.access.users,
        quotas=image.access.quotas,
        broker_configs=_broker_configs(image),
        errors=[*errors, *_lost_metadata(nodes, views, copies), *attempts.errors],
    )


def opened(paths: Iterable[str | os.PathLike[str]]) -> list[tuple[str, LogDirectory]]:
    """Return log directories, and the logs in them; that of a partition, if one was given."""
    listed = [_log_directory_of(path) for path in paths]
    filled = sorted(
        {
            directory
            for directory, names in listed
            if META_PROPERTIES not in names or any(map(find_partition_directory_name, names))
        }
    )
    held = dict(zip(filled, open_each(filled) if filled else (), strict=True))
    return [(each, held[each] if each in held else LogDirectory([])) for each, _ in listed]


def log_directory_of(path: str | os.PathLike[str]) -> str:
    """Return the log directory that a path is, or that the partition at a path is in."""
    directory, names = _log_directory_of(path)
    if META_PROPERTIES not in names:
        open_directory(directory)  # raises if it is none
    return directory


def _log_directory_of(path: str | os.PathLike[str]) -> tuple[str, set[str]]:
    directory = location(path).rstrip("/") or "/"
    names = {each.name for each in list_directory(directory)}
    if _is_partition(directory, names):
        directory = parent_of(directory)
        names = {each.name for each in list_directory(directory)}
    return directory, names


def _is_partition(directory: str, names: Collection[str]) -> bool:
    """Whether it is one partition's, and no log directory with a name such as ``disk-1``."""
    if META_PROPERTIES in names or any(map(find_partition_directory_name, names)):
        return False
    return find_partition_directory_name(name_of(directory)) is not None


def ensure_one_cluster(nodes: dict[str, Node]) -> None:
    """Raise `LogDirectoryError` unless all are of one cluster."""
    clusters = {
        node.cluster_id: path for path, node in nodes.items() if node.cluster_id is not None
    }
    if len(clusters) > 1:
        shown = ", ".join(
            f"{printable_location(path)} is of {each}" for each, path in clusters.items()
        )
        reason = f"these are log directories of {len(clusters)} clusters: {shown}"
        raise LogDirectoryError(reason, printable_location(next(iter(nodes))))


def _why_refused(node: Node, views: Mapping[str, LogDirectory]) -> str | None:
    """Return why a node starts on none of its log directories; None if it may."""
    if len(node.disks.metadata_logs) > 1:
        shown = named(list(map(printable_location, node.disks.metadata_logs)))
        return f"{shown} have a log of the cluster's metadata each"
    for path in node.disks.metas:
        directory = views.get(path, LogDirectory([]))
        known = [*(each.directory for each in directory), *directory.others]
        for each in check_log_directory(path, node, known).findings:
            if each.effect is Effect.REFUSES:
                return f"{printable_location(each.path)}: {each.message}"
    return None


def _lost_metadata(
    nodes: Iterable[Node], views: Mapping[str, LogDirectory], copies: Sequence[MetadataCopy]
) -> Iterator[LogStorageError]:
    """Yield where metadata were, and are not there any more."""
    empty = {copy.node for copy in copies} - {copy.node for copy in copies if copy.end_offset}
    for copy in copies:
        yield from map(LogDirectoryError, cut_metadata(copy))
    for node in nodes:
        count = sum(
            each.topic_partition != CLUSTER_METADATA
            for path in node.disks.metas
            for each in views.get(path, ())
        )
        if count and node.is_kraft and (node in empty or node.disks.has_lost_metadata):
            reason = (
                "the log of the cluster's metadata is empty or gone, and "
                f"{counted(count, 'partition')} would be set aside as -stray"
            )
            yield LogDirectoryError(reason, printable_location(node.disks.first))


def _bootstrap_features(node: Node) -> dict[str, int]:
    """Return the features in ``bootstrap.checkpoint``: an empty log starts with them."""
    for path in node.disks.metas:
        with suppress(LogStorageError):
            return bootstrap_image(join(path, BOOTSTRAP_CHECKPOINT)).features
    return {}


def _voters(metadata: CommittedMetadata | None) -> list[QuorumVoter]:
    if metadata is None:
        return []
    if metadata.voter_set:
        return sorted(
            QuorumVoter(each.voter_id, format_uuid(each.directory_id), each.endpoints)
            for each in metadata.voter_set
        )
    controllers = metadata.image.controllers
    return [
        QuorumVoter(each, None, controllers[each].endpoints if each in controllers else ())
        for each in sorted(metadata.voters or controllers)
    ]


def _quorum(voters: Sequence[QuorumVoter], copies: Sequence[MetadataCopy]) -> Quorum:
    """Return who is there; a voter with another directory id than the log says is none."""
    given = {(each.node.node_id, _directory_id(each.node, each.log_directory)) for each in copies}
    ids = {node_id for node_id, _ in given}
    has = tuple(
        each.voter_id
        for each in voters
        if (
            each.voter_id in ids
            if each.directory_id is None
            else (each.voter_id, each.directory_id) in given
        )
    )
    return Quorum(len(voters) // 2 + 1 if voters else None, has)


def _directory_id(node: Node, log_directory: str) -> str | None:
    meta = node.disks.metas.get(log_directory)
    return None if meta is None or meta.directory_id is None else format_uuid(meta.directory_id)


def _described_copy(copy: MetadataCopy, seed: MetadataCopy) -> InfoMetadataCopy:
    epoch, end_offset = copy.position
    return InfoMetadataCopy(
        printable_location(copy.directory),
        copy.node.node_id,
        end_offset,
        epoch,
        copy.snapshot,
        shared_end(copy, seed),
        copy is seed,
    )


def _described_node(
    node: Node, views: dict[str, LogDirectory], image: MetadataImage, attempts: Attempts
) -> InfoNode:
    node_id = -1 if node.node_id is None else node.node_id
    registration = image.brokers.get(node_id) or image.controllers.get(node_id)
    return InfoNode(
        node.node_id,
        metadata_release(_bootstrap_features(node).get(METADATA_VERSION)),
        release_of(registration),
        tuple(
            _described_directory(node, path, views.get(path, ()), attempts)
            for path in node.disks.metas
        ),
    )


def _described_directory(
    node: Node, path: str, views: Iterable[LogView], attempts: Attempts
) -> NodeLogDirectory:
    partitions = [each for each in views if each.topic_partition != CLUSTER_METADATA]
    firsts = [
        attempts.read(partial(read_unless_deleted, each, first_timestamp, None))
        for each in partitions
    ]
    lasts = [
        attempts.read(partial(read_unless_deleted, each, _last_timestamp, None))
        for each in partitions
    ]
    use = disk_use(path)
    return NodeLogDirectory(
        printable_location(path),
        _directory_id(node, path),
        len(partitions),
        use.total,
        min(_known(firsts), default=None),
        max(_known(lasts), default=None),
        has_clean_shutdown(path) if partitions or is_of_a_broker(path) else None,
    )


def _last_timestamp(view: LogView) -> int | None:
    last = view.end.last if view.segments else None
    return None if last is None else last.header.max_timestamp


def _known(timestamps: Iterable[int | None]) -> list[int]:
    return [each for each in timestamps if each is not None and each >= 0]


def _brokers(image: MetadataImage, given: set[int | None]) -> list[RegisteredBroker]:
    partitions = [each for topic in image.topics for each in topic.partitions.values()]
    replicas = Counter(node for each in partitions for node in each.replicas)
    leaderships = Counter(each.leader for each in partitions)
    return [
        RegisteredBroker(
            each.node_id,
            each.endpoints,
            each.rack,
            release_of(each),
            each.is_fenced,
            replicas[each.node_id],
            leaderships[each.node_id],
            each.node_id in given,
            each.is_fenced and not replicas[each.node_id],
        )
        for _, each in sorted(image.brokers.items())
    ]


def _controllers(image: MetadataImage, given: set[int | None]) -> list[RegisteredController]:
    return [
        RegisteredController(each.node_id, each.endpoints, release_of(each), each.node_id in given)
        for _, each in sorted(image.controllers.items())
    ]


_WITHOUT_SECRETS = re.compile(
    r"log\.[a-z.]+|num\.[a-z.]+\.threads?(\.per\.data\.dir)?|background\.threads"
    r"|compression\.[a-z0-9.]+|message\.max\.bytes|min\.insync\.replicas"
    r"|unclean\.leader\.election\.enable|max\.connection(s|\.creation\.rate)[a-z.]*"
    r"|(leader|follower)\.replication\.throttled\.(rate|replicas)"
    r"|replica\.alter\.log\.dirs\.io\.max\.bytes\.per\.second|(advertised\.)?listeners"
    r"|listener\.security\.protocol\.map|transaction\.[a-z.]+|producer\.id\.[a-z.]+"
    r"|remote\.(log\.(index|manager|reader)|fetch|list)\.[a-z.]+|cordoned\.log\.dirs"
)
"""Broker properties that are no password. Kafka hides others, unknown ones among them, too."""


def _broker_configs(image: MetadataImage) -> list[BrokerSettings]:
    found = []
    for resource in image.configured:
        if resource.type is ConfigResourceType.BROKER:
            configs = image.configs_of(resource)
            shown = {
                name: value for name, value in configs.items() if _WITHOUT_SECRETS.fullmatch(name)
            }
            hidden = tuple(name for name in configs if name not in shown)
            found.append(BrokerSettings(resource.name, shown, hidden))
    return found

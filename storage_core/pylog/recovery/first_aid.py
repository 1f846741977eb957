"""`first_aid`: a copy of a node's metadata with which a cluster without a quorum starts again.

The source is never changed. The copy is made beside its place, and takes it at once:

==== ============================================ ==============================================
step what is done                                 what a crash after it leaves
==== ============================================ ==============================================
1    ``<to>.pylog-unfinished`` is made            that directory: a node that starts on it ends,
                                                  for want of ``meta.properties``, and the next
                                                  call refuses until it is removed
2    what is copied is written there, synced      the same
3    ``meta.properties`` is written there         the same, and a whole copy under that name
4    it is renamed to ``<to>``                    the copy
==== ============================================ ==============================================

Source: KafkaRaftClient, PartitionListener, LeaderState (Kafka 4.4); KIP-853, KIP-966, KIP-1347.
"""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pylog.checks.repair import copy_file
from pylog.errors import LogDirectoryError, LogStorageError
from pylog.files.directory_lock import LOCK_FILE, ensure_not_in_use
from pylog.files.durable_io import DurableIO
from pylog.files.file_names import (
    META_PROPERTIES,
)
from pylog.files.free_space import NeededSpace, ensure_space
from pylog.files.partition_metadata import format_uuid
from pylog.files.quorum_state import (
    QUORUM_STATE,
)
from pylog.files.storage import list_directory, stat_file
from pylog.internal_topics.versions import LATEST_KAFKA_VERSION
from pylog.locations import is_remote, join, parent_of, printable_location
from pylog.model import TopicPartition
from pylog.reading.internal_logs import CLUSTER_METADATA, Voter
from pylog.recovery.adoption_target import ensure_nothing_unfinished
from pylog.recovery.cluster_info import QuorumVoter, ensure_one_cluster, log_directory_of
from pylog.recovery.given_logs import GivenLogs
from pylog.recovery.in_sync_minimum import MIN_IN_SYNC, minimum_record, too_high_minimums
from pylog.recovery.metadata_batches import BatchAppender, MetadataAppend, metadata_record
from pylog.recovery.metadata_copies import (
    cut_metadata,
    find_copies,
    metadata_of,
    seed_of,
    shared_end,
)
from pylog.recovery.metadata_copy_writer import quorum_state_after, write_metadata_copy
from pylog.recovery.partition_plan import Fate, LostBrokers, PlannedPartition, plan_partitions
from pylog.recovery.voter_addresses import (
    given_endpoint,
    known_endpoints,
    quorum_setting,
    shown_voters,
)
from pylog.scheduling.clock import SystemClock
from pylog.text.words import counted, named
from pylog.writing.new_log_directory import UNFINISHED, ensure_empty
from pylog.writing.node import nodes_of
from pylog.writing.node_metadata import refused_configs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pylog.files.storage import DirectoryEntry
    from pylog.internal_topics.metadata_image import Endpoint
    from pylog.reading.internal_logs import CommittedMetadata
    from pylog.recovery.metadata_copies import MetadataCopy
    from pylog.writing.node import Node

_SHOWN_PARTITIONS = 5
_ONLY_ENDS = (
    "of the logs of partitions only the ends were looked at: pylog doctor says what is damaged in "
    "them, and what a start would cut"
)


@dataclass(frozen=True, slots=True)
class FirstAid:
    """What `pylog.first_aid` returns.

    Attributes
    ----------
    to
        The copy; None after a dry run.
    cluster_id, node_id
        Whose it is.
    seed
        The copy of the metadata that was taken.
    seed_end_offset
        Where that ends.
    kraft_version
        0: the configuration of the nodes has to name the voters. 1: the copy does.
    voters
        Who votes then.
    appended
        The batches at the end of the copy's log, in order.
    partitions
        What becomes of each partition.
    losses
        What is lost or not served, in sentences; empty if nothing is.
    notes
        What else is worth knowing.
    steps
        How the copy is put in place, a step each.
    """

    to: str | None
    cluster_id: str | None
    node_id: int | None
    seed: str
    seed_end_offset: int
    kraft_version: int
    voters: list[QuorumVoter]
    appended: list[MetadataAppend]
    partitions: list[PlannedPartition]
    losses: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)


def first_aid(  # noqa: PLR0913 - keyword-only options, one for each thing a user may say
    *paths: str | os.PathLike[str],
    to: str | os.PathLike[str],
    voters: Iterable[int] | None = None,
    endpoints: Mapping[int, str] | None = None,
    use: str | os.PathLike[str] | None = None,
    lost: Iterable[int] | None = None,
    elects_unclean: bool = False,
    reassigns: bool = False,
    with_partitions: bool = False,
    dry_run: bool = False,
) -> FirstAid:
    """Write a copy of a node's metadata with which it starts although most voters are gone.

    Parameters
    ----------
    *paths
        Log directories of stopped nodes of one cluster. The copy is for the node of the first one;
        the others are compared with it, and the copy of the metadata that goes furthest is taken.
    to
        The directory to be made: it does not exist, or is empty. It gets ``meta.properties`` and
        ``__cluster_metadata-0``.
    voters
        Ids of the controllers that vote from now on, that of the node among them. None for the
        voters that there are.
    endpoints
        By node id, ``host:port`` where the other nodes reach its controller; for those that change.
    use
        The log directory whose copy of the metadata is taken, although another one goes further or
        cannot be read.
    lost
        Ids of brokers that do not come back. None for the voters that are left out.
    elects_unclean
        Whether a broker that was not in sync becomes the leader where no other one is left.
    reassigns
        Whether a partition without a replica is moved, empty, to the node.
    with_partitions
        Whether the copy gets all other files of the log directory, too.
    dry_run
        Whether nothing is written.

    Raises
    ------
    LogDirectoryError
        Refused: ``to`` is not empty or has not enough space, a copy of the metadata cannot be read,
        or something that is needed is not known. Nothing was written.
    LogLockedError
        A broker runs on one of the log directories.
    KafkaStorageError
        The copy could not be written; ``to`` does not exist then.
    ValueError
        The arguments contradict each other.

    Examples
    --------
    >>> aid = pylog.first_aid("kafka/intact", to="first-aid", endpoints={1: "host-1:9093"})
    >>> [(each.base_offset, each.text) for each in aid.appended], aid.losses
    ([(236, 'voters: 1 at host-1:9093')], [])
    """
    if not paths:
        msg = "give at least one log directory"
        raise ValueError(msg)
    place = ensure_empty(to, apart_from=paths)
    log_directories = dict.fromkeys(map(log_directory_of, paths))
    for path in log_directories:
        if not is_remote(path):
            ensure_not_in_use(path)
            ensure_nothing_unfinished(path)
    by_path = nodes_of(log_directories)
    ensure_one_cluster(by_path)
    source = _Source(list(dict.fromkeys(by_path.values())), use)
    chosen = _chosen_voters(source, voters, dict(endpoints or {}))
    if with_partitions and len(source.node.disks.metas) > 1:
        reason = "with partitions, a copy can be made of a node with one log directory only"
        raise LogDirectoryError(reason, printable_location(source.log_directory))
    gone = source.voter_ids - {each.voter_id for each in chosen} if lost is None else set(lost)
    planned, values = plan_partitions(
        source.metadata.image,
        LostBrokers(
            frozenset(gone),
            source.node_id,
            source.partitions_directory_id(reassigns=reassigns),
            elects_unclean,
            reassigns,
        ),
        source.logs.ends,
        source.logs.lacks,
    )
    lowered, minimums = _lowered_minimums(source, gone, planned)
    appender = _appended(source, chosen, values)
    appender.append_records(minimums, f"{MIN_IN_SYNC} of {named(lowered)} is lowered")
    aid = FirstAid(
        to=None if dry_run else place,
        cluster_id=source.node.cluster_id,
        node_id=source.node_id,
        seed=printable_location(source.seed.directory),
        seed_end_offset=source.seed.end_offset,
        kraft_version=source.metadata.kraft_version,
        voters=[_described(each, is_in_log=bool(source.metadata.kraft_version)) for each in chosen],
        appended=appender.appended,
        partitions=planned,
        losses=[*source.losses(), *_losses_of(planned), *_losses_on_disks(source, planned)],
        notes=source.notes(),
        steps=_steps(source, place, chosen, planned),
    )
    if not dry_run:
        state = _quorum_state(source, chosen)
        _write(source, appender.appended, state, place, with_partitions=with_partitions)
    return aid


class _Source:
    """The disks that were given: the node, the seed, and what it says."""

    def __init__(self, nodes: Sequence[Node], use: str | os.PathLike[str] | None) -> None:
        self.nodes = nodes
        self.node = nodes[0]
        found, errors = find_copies(nodes)
        self.copies = [each for each in found if each.end_offset]
        self.seed = self._chosen_seed(use, errors)
        try:
            self.metadata: CommittedMetadata = metadata_of(self.seed, self.copies)
        except LogStorageError as error:
            raise self._refusal(f"the copy to be taken cannot be read: {error}") from error
        own = self.node.disks.metadata_logs
        self.log_directory = own[0] if own else self.node.disks.first
        meta = self.node.disks.metas.get(self.log_directory)
        if meta is None or meta.node_id is None or not self.node.is_kraft:
            reason = f"{META_PROPERTIES} is missing, cannot be read, or is not of a KRaft node"
            raise LogDirectoryError(reason, printable_location(self.log_directory))
        self.node_id = meta.node_id
        self.directory_id = meta.directory_id
        self.logs = GivenLogs(nodes, self.metadata.image)

    @property
    def voter_ids(self) -> set[int]:
        """The ids of those that vote until now."""
        return set(self.metadata.voters or self.metadata.image.controllers)

    def partitions_directory_id(self, *, reassigns: bool) -> uuid.UUID | None:
        """Return the id of a log directory of the node in which partitions may be."""
        registration = self.metadata.image.brokers.get(self.node_id)
        if registration is None:
            if reassigns:
                raise self._refusal(f"node {self.node_id} is no broker: it gets no partitions")
            return None
        metas = self.node.disks.metas.values()
        given = [each.directory_id for each in metas if each is not None]
        there = [each for each in given if each in registration.log_directories]
        return next(iter([*there, *sorted(registration.log_directories)]), None)

    def _chosen_seed(
        self, use: str | os.PathLike[str] | None, errors: Sequence[LogStorageError]
    ) -> MetadataCopy:
        if use is not None:
            wanted = log_directory_of(use)
            for each in self.copies:
                if os.path.realpath(each.log_directory) == os.path.realpath(wanted):
                    return each
            raise self._refusal(f"{use} is not one of the log directories with a copy")
        if errors:
            reason = f"a copy cannot be read, so how far it goes is not known: {errors[0]}. "
            raise self._refusal(f"{reason}Name the one to take with use (--use)")
        if not self.copies:
            raise self._refusal("none of the log directories has a copy of the metadata")
        return seed_of(self.copies)

    def _refusal(self, reason: str) -> LogDirectoryError:
        return LogDirectoryError(reason, printable_location(self.node.disks.first))

    def losses(self) -> list[str]:
        """Return what the seed lacks that another copy has."""
        best = seed_of(self.copies)
        if best.position <= self.seed.position:
            return []
        start = shared_end(self.seed, best)
        text = (
            f"changes of the metadata from offset {start} to {best.end_offset}, which only the "
            f"copy of node {best.node.node_id} has"
        )
        try:
            topics = metadata_of(best, self.copies).image.topics
        except LogStorageError:
            return [f"{text}; it cannot be read"]
        known = {each.topic_id for each in self.metadata.image.topics}
        new = [each.name for each in topics if each.topic_id not in known]
        if not new:
            return [text]
        return [f"{text}: a broker sets the partitions of topics {named(new)} aside as -stray"]

    def notes(self) -> list[str]:
        """Return what else is worth knowing of the copies."""
        found = [
            *cut_metadata(self.seed),
            *self.logs.incomplete(),
            *refused_configs(self.metadata.image, LATEST_KAFKA_VERSION),
            _ONLY_ENDS,
        ]
        given = {each.node.node_id for each in self.copies} & self.voter_ids
        needed = len(self.voter_ids) // 2 + 1
        if len(given) < needed:
            found.append(
                f"only {len(given)} of {counted(len(self.voter_ids), 'voter')} were given: "
                "whether the others had agreed on more cannot be known"
            )
        elif len(self.voter_ids) > 1:
            found.append(
                f"{len(given)} of {counted(len(self.voter_ids), 'voter')} were given: with their "
                "old addresses they are a quorum, and start without this"
            )
        for each in self.copies:
            if each is not self.seed and each.position < self.seed.position:
                start = shared_end(each, self.seed)
                if start < each.end_offset:
                    found.append(
                        f"the copy of node {each.node.node_id} parts from the seed at offset "
                        f"{start}: what only it has was not agreed on"
                    )
        return found


def _chosen_voters(
    source: _Source, voters: Iterable[int] | None, endpoints: Mapping[int, str]
) -> list[Voter]:
    ids = sorted(source.voter_ids if voters is None else set(voters))
    if not ids:
        msg = "nothing tells who votes: name the voters"
        raise ValueError(msg)
    if source.node_id not in ids:
        msg = f"node {source.node_id}, for which the copy is, has to be one of the voters"
        raise ValueError(msg)
    unknown = sorted(set(endpoints) - set(ids))
    if unknown:
        msg = f"an endpoint is given for node {unknown[0]}, which is no voter"
        raise ValueError(msg)
    return [
        Voter(each, _directory_id(source, each), _endpoints(source, each, endpoints.get(each)))
        for each in ids
    ]


def _directory_id(source: _Source, voter_id: int) -> uuid.UUID:
    """Return the id of the directory in which a voter has its copy; all zeros if it needs none."""
    known = {each.voter_id: each.directory_id for each in source.metadata.voter_set}
    for each in source.copies:
        meta = each.node.disks.metas.get(each.log_directory)
        if meta is not None and meta.node_id is not None and meta.directory_id is not None:
            known[meta.node_id] = meta.directory_id
    if source.directory_id is not None:
        known[source.node_id] = source.directory_id
    if voter_id in known:
        return known[voter_id]
    if source.metadata.kraft_version:
        reason = f"nothing tells the directory id of voter {voter_id}: give its log directory, too"
        raise LogDirectoryError(reason, printable_location(source.log_directory))
    return uuid.UUID(int=0)


def _endpoints(source: _Source, voter_id: int, given: str | None) -> tuple[Endpoint, ...]:
    if given is not None:
        return (given_endpoint(source.metadata, voter_id, given),)
    endpoints = known_endpoints(source.metadata, voter_id)
    if not endpoints and source.metadata.kraft_version:
        reason = f"nothing tells where voter {voter_id} listens: give its endpoint"
        raise LogDirectoryError(reason, printable_location(source.log_directory))
    return endpoints


def _described(voter: Voter, *, is_in_log: bool) -> QuorumVoter:
    directory_id = format_uuid(voter.directory_id) if is_in_log else None
    return QuorumVoter(voter.voter_id, directory_id, voter.endpoints)


def _appended(source: _Source, voters: Sequence[Voter], changes: Sequence[bytes]) -> BatchAppender:
    epoch, end_offset = source.seed.position
    appender = BatchAppender(end_offset, epoch, SystemClock().milliseconds())
    if source.metadata.image.is_in_transaction:
        record = metadata_record("AbortTransactionRecord", 0, {"reason": "pylog first-aid"})
        appender.append_records([record], "the metadata transaction that is open is aborted")
    if source.metadata.kraft_version and set(voters) != set(source.metadata.voter_set):
        appender.append_voters(voters, f"voters: {shown_voters(voters)}")
    appender.append_records(changes, "leaders and in-sync replicas of partitions")
    return appender


_LOSSES = (
    (Fate.UNCLEAN, "elected unclean, and records that only lost brokers had are lost"),
    (Fate.NEEDS_ELECTION, "without a leader until an unclean election, which can lose records"),
    (Fate.REASSIGNED, "lost but for what other disks have, and empty on this node"),
    (Fate.LOST, "lost but for what other disks have, and no leader is left"),
)


def _losses_of(planned: Sequence[PlannedPartition]) -> list[str]:
    found = []
    for fate, text in _LOSSES:
        partitions = [each for each in planned if each.fate is fate]
        if partitions:
            names = [_lost_text(each) for each in partitions]
            found.append(f"{named(names, _SHOWN_PARTITIONS)}: {text}")
    return found


def _losses_on_disks(source: _Source, planned: Sequence[PlannedPartition]) -> list[str]:
    """Return what the disks lack of partitions that their nodes are to lead."""
    topics = {each.name: each for each in source.metadata.image.topics}
    empty: dict[str, list[str]] = {}
    short = []
    for each in planned:
        if each.leader is None or each.fate is Fate.REASSIGNED:
            continue
        place = TopicPartition(each.topic, each.partition)
        why = source.logs.lacks(each.leader, topics[each.topic], each.partition)
        if why is not None:
            empty.setdefault(why, []).append(str(place))
        elif (text := source.logs.shortened(each.leader, place)) is not None:
            short.append(text)
    found = [
        f"{named(names, _SHOWN_PARTITIONS)}: {why}, and a broker begins with an empty log"
        for why, names in empty.items()
    ]
    unknown = list(source.logs.unknown())
    if unknown:
        found.append(
            f"{named(unknown, _SHOWN_PARTITIONS)}: the metadata that is taken does not know the "
            "partition, and a broker sets the directory aside as -stray"
        )
    return [*found, *short]


def _lost_text(planned: PlannedPartition) -> str:
    name = f"{planned.topic}-{planned.partition}"
    if planned.missing is None:
        return name
    return f"{name} ({counted(planned.missing, 'offset')} on other disks beyond it)"


def _steps(
    source: _Source,
    place: str,
    voters: Sequence[Voter],
    planned: Sequence[PlannedPartition],
) -> list[str]:
    metadata = join(source.log_directory, str(CLUSTER_METADATA))
    shown = printable_location
    steps = [  # all of them: a node with two logs of the metadata does not start
        f"mv {shown(join(each, str(CLUSTER_METADATA)))} {shown(each.rstrip('/'))}.metadata-before"
        for each in source.node.disks.metadata_logs
    ]
    steps += [f"cp -a {place}/{CLUSTER_METADATA} {shown(metadata)}"]
    setting = quorum_setting(source.metadata, voters)
    steps.append(f"set {setting} in server.properties of this node, and of all that follow it")
    others = ", ".join(str(each.voter_id) for each in voters if each.voter_id != source.node_id)
    disks = " ".join(map(printable_location, source.node.disks.metas))
    steps.append(f"pylog doctor {disks}")
    steps.append(
        f"start node {source.node_id}" + (f", then the controllers {others}" if others else "")
    )
    steps.append(f"{_tool('kafka-metadata-quorum')} describe --status")
    steps += [
        f"{_tool('kafka-leader-election')} --election-type UNCLEAN --topic {each.topic} "
        f"--partition {each.partition}"
        for each in planned
        if each.fate is Fate.NEEDS_ELECTION
    ]
    return steps


def _lowered_minimums(
    source: _Source, gone: Collection[int], planned: Sequence[PlannedPartition]
) -> tuple[list[str], list[bytes]]:
    """Return whose minimum of replicas in sync is lowered to those that are left, and the records.

    Kept, partitions would take no records; and they would show none beyond the last high watermark,
    also once it was lowered, until the next one is appended.
    """
    image = source.metadata.image
    counts = {
        TopicPartition(topic.name, number): len(set(one.replicas) - set(gone))
        for topic in image.topics
        for number, one in topic.partitions.items()
    }
    for each in planned:
        if each.fate is Fate.REASSIGNED:
            counts[TopicPartition(each.topic, each.partition)] = 1
    names, values = [], []
    for resource, value in too_high_minimums(image, counts):
        names.append(resource.name or "the default of all brokers")
        values.append(minimum_record(resource, value))
    return names, values


def _tool(name: str) -> str:
    return f"{name}.sh --bootstrap-server HOST:PORT"


def _quorum_state(source: _Source, voters: Sequence[Voter]) -> bytes:
    is_dynamic = bool(source.metadata.kraft_version)
    ids = None if is_dynamic else [each.voter_id for each in voters]
    return quorum_state_after(source.seed, [source.node], ids)


def _write(
    source: _Source,
    appended: Sequence[MetadataAppend],
    state: bytes,
    place: str,
    *,
    with_partitions: bool,
) -> None:
    copied = [*list_directory(source.seed.directory)]
    if with_partitions:
        copied += [each for each in list_directory(source.log_directory) if not _is_own(each.name)]
    ensure_space(
        NeededSpace(place, stat_file(each).st_size, each.path) for each in _files_below(copied)
    )
    io = DurableIO()
    unfinished = f"{place}{UNFINISHED}"
    io.make_directory(unfinished)
    try:
        metadata = join(unfinished, str(CLUSTER_METADATA))
        write_metadata_copy(io, source.seed, appended, metadata)
        io.write_atomically(join(metadata, QUORUM_STATE), state)
        if with_partitions:
            _copy_others(io, source.log_directory, unfinished)
        copy_file(
            io, join(source.log_directory, META_PROPERTIES), join(unfinished, META_PROPERTIES)
        )
        io.replace(unfinished, place)
        io.sync_directory(parent_of(place) or os.curdir)
    except BaseException as error:  # Ctrl-C among them
        error.add_note(f"the copy is not finished: remove {unfinished}, and start no broker on it")
        raise


def _is_own(name: str) -> bool:
    """Whether the copy gets another file of that name, or none."""
    return name in (str(CLUSTER_METADATA), META_PROPERTIES, LOCK_FILE)


def _files_below(entries: Iterable[DirectoryEntry]) -> Iterator[DirectoryEntry]:
    for entry in entries:
        if entry.is_dir():
            yield from _files_below(list_directory(entry.path))
        else:
            yield entry


def _copy_others(io: DurableIO, source: str, target: str) -> None:
    """Copy what is beside the metadata: partitions, checkpoints, markers."""
    for entry in list_directory(source):
        if _is_own(entry.name):
            continue
        _copy_tree(io, entry.path, join(target, entry.name), is_directory=entry.is_dir())


def _copy_tree(io: DurableIO, source: str, target: str, *, is_directory: bool) -> None:
    if not is_directory:
        copy_file(io, source, target)
        return
    io.make_directory(target)
    for entry in list_directory(source):
        _copy_tree(io, entry.path, join(target, entry.name), is_directory=entry.is_dir())
    io.sync_directory(target)

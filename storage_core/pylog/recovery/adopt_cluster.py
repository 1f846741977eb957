"""`adopt_cluster`: a whole cluster goes on in other directories, and as fewer nodes if need be.

Each node that goes on gets the copy of the metadata that goes furthest, with records at its end:
who votes and where, which replicas are left, and which brokers are gone. The partitions come along
as repaired copies (`pylog.checks.repair`).

Source: KafkaRaftClient (Kafka 4.4); KIP-853, KIP-858, KIP-966.
"""

from __future__ import annotations

import os
import uuid
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from pylog.checks.repair import space_of_copy, write_repaired_copy
from pylog.errors import LogDirectoryError
from pylog.files.checkpoint_file import read_offset_checkpoint, write_offset_checkpoint
from pylog.files.durable_io import DurableIO
from pylog.files.file_names import META_PROPERTIES
from pylog.files.free_space import ensure_space
from pylog.files.partition_metadata import format_uuid, new_topic_id, parse_uuid
from pylog.files.quorum_state import QUORUM_STATE
from pylog.locations import join, parent_of, printable_location
from pylog.reading.internal_logs import CLUSTER_METADATA, Voter
from pylog.recovery.adopted_topics import (
    OldDisks,
    ensure_all_copied,
    followers_foreseen,
    foreseen_losses,
    has_holes,
    left_out_notes,
)
from pylog.recovery.adoption_steps import CHECKPOINTS, write_empty_partition
from pylog.recovery.adoption_summary import AdoptedPartition, AdoptionSummary, AppendedRecords
from pylog.recovery.cluster_places import ClusterPlaces, place_for_node
from pylog.recovery.cluster_plan import ClusterPlan
from pylog.recovery.metadata_batches import (
    FIRST_LEVEL_WITH_DIRECTORIES,
    BatchAppender,
    bytes_of,
    metadata_record,
)
from pylog.recovery.metadata_copies import seed_of
from pylog.recovery.metadata_copy_writer import quorum_state_after, write_metadata_copy
from pylog.recovery.voter_addresses import (
    given_endpoint,
    known_endpoints,
    quorum_setting,
    shown_voters,
)
from pylog.scheduling.clock import SystemClock
from pylog.text.words import counted, named, offsets_text
from pylog.writing.new_log_directory import ensure_apart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pylog.internal_topics.metadata_image import Endpoint
    from pylog.model import TopicPartition
    from pylog.recovery.cluster_plan import ClusterPartition
    from pylog.writing.node import Node


def adopt_cluster(  # noqa: PLR0913 - keyword-only options, one for each thing a user may say
    *paths: str | os.PathLike[str],
    into: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    cluster_id: str | None = None,
    nodes: Iterable[int] | None = None,
    voters: Iterable[int] | None = None,
    endpoints: Mapping[int, str] | None = None,
    threads: int | None = None,
    dry_run: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> AdoptionSummary:
    """Write log directories with which a whole cluster goes on at other places.

    Parameters
    ----------
    *paths
        All log directories of the old nodes that are left, stopped. They are not changed.
    into
        A directory for each node that goes on, in their order: it does not exist, is empty, or was
        formatted for the node and has not been used.
    cluster_id
        The new one. None for that of directories that were formatted, or the old one.
    nodes
        Ids of the nodes that go on; None for all that were given. What only the others have goes
        to these.
    voters
        Ids of the controllers that vote from now on. None for those of the nodes that vote until
        now, or all where none does.
    endpoints
        By node id, ``host:port`` where the other nodes reach its controller; for those that change.
    threads
        As of `doctor`.
    dry_run
        Whether nothing is written.
    progress
        As of `doctor`, for each old log directory in turn.

    Returns
    -------
    AdoptionSummary
        What was done, or would be.

    Raises
    ------
    LogDirectoryError
        Refused: a directory is in use, the metadata cannot be read or are not there, or something
        that is needed is not known. Nothing was written.
    LogLockedError
        A broker runs on one of the log directories.
    KafkaStorageError
        A copy could not be written; ``into`` is as before.
    ValueError
        The arguments contradict each other.

    Examples
    --------
    >>> found = pylog.jobs.adopt_cluster("kafka/intact", into="moved", dry_run=True)
    >>> found.losses, found.steps[-1]
    ([], 'start node 1')
    """
    if not paths:
        msg = "give at least one log directory"
        raise ValueError(msg)
    given_places = [into] if isinstance(into, str | os.PathLike) else list(into)
    source = OldDisks(paths, None, reads_followers=False)
    move = _Move(source, given_places, nodes, cluster_id)
    for path in paths:
        for each in move.places.values():
            ensure_apart(each, os.fspath(path))
            ensure_apart(os.fspath(path), each)
    move.choose_voters(voters, dict(endpoints or {}))
    move.plan()
    if dry_run:
        move.foresee(threads)
    else:
        move.write(threads, progress)
    return move.summary(is_written=not dry_run)


class _Formatted(NamedTuple):
    """What ``meta.properties`` of a node says from now on."""

    cluster_id: str
    node_id: int
    directory_id: uuid.UUID | None

    def text(self) -> str:
        lines = ["version=1", f"cluster.id={self.cluster_id}", f"node.id={self.node_id}"]
        if self.directory_id is not None:
            lines.append(f"directory.id={format_uuid(self.directory_id)}")
        return "".join(f"{each}\n" for each in lines)


class _Move:
    """A cluster on its way."""

    def __init__(
        self,
        source: OldDisks,
        into: Sequence[str | os.PathLike[str]],
        nodes: Iterable[int] | None,
        cluster_id: str | None,
    ) -> None:
        self._source = source
        self._given: dict[int, Node] = {
            each.node_id: each for each in source.nodes if each.node_id is not None
        }
        self._first = printable_location(source.nodes[0].disks.first)
        if source.errors:
            raise self._refusal(
                f"a copy of the metadata cannot be read, so how far it goes is not known: "
                f"{source.errors[0]}. Leave that log directory out"
            )
        if source.metadata is None:
            raise self._refusal(
                "none of these disks has the metadata of the cluster: let a new cluster adopt the "
                "topics, without --as-cluster"
            )
        unnamed = [each.disks.first for each in source.nodes if each.node_id is None]
        if unnamed:
            reason = f"nothing tells whose it is: {META_PROPERTIES} is missing, or names no node"
            raise LogDirectoryError(reason, printable_location(unnamed[0]))
        self._seed = seed_of(source.copies)
        self._metadata = source.metadata
        self._image = self._metadata.image
        self.nodes = list(self._given) if nodes is None else list(dict.fromkeys(nodes))
        unknown = [each for each in self.nodes if each not in self._given]
        if unknown:
            msg = f"node {unknown[0]} is to go on, and none of its log directories was given"
            raise ValueError(msg)
        self.places: dict[int, str] = {}
        self._formatted = self._places_of(into, cluster_id)
        self.voters: list[Voter] = []

    def _refusal(self, reason: str) -> LogDirectoryError:
        return LogDirectoryError(reason, self._first)

    def _places_of(
        self, into: Sequence[str | os.PathLike[str]], cluster_id: str | None
    ) -> dict[int, _Formatted]:
        """Choose a directory for each node, and the ids with which it is formatted."""
        if len(into) != len(self.nodes):
            shown = named(list(map(str, self.nodes)))
            msg = (
                f"{counted(len(self.nodes), 'node')} go on ({shown}), and "
                f"{counted(len(into), 'directory')} to go on in: give one for each"
            )
            raise ValueError(msg)
        found = dict(map(place_for_node, into))
        ids = {each.cluster_id for each in found.values() if each is not None}
        if cluster_id is not None:
            _ensure_cluster_id(cluster_id)
            ids.add(cluster_id)
        if len(ids) > 1:
            shown = named(sorted(map(str, ids)))
            raise self._refusal(f"the directories to go on in have different cluster ids: {shown}")
        chosen = next(iter(ids), None) or self._source.nodes[0].cluster_id or ""
        left = [each for each in self.nodes if each not in {m.node_id for m in found.values() if m}]
        formatted: dict[int, _Formatted] = {}
        for place, meta in found.items():
            node_id = left.pop(0) if meta is None and left else (meta and meta.node_id)
            if node_id is None or node_id not in self.nodes or node_id in self.places:
                reason = (
                    f"it is formatted for node {node_id}, and the nodes that go on are "
                    f"{named(list(map(str, self.nodes)))}: format one for each"
                )
                raise LogDirectoryError(reason, place)
            self.places[node_id] = place
            directory_id = self._directory_id(node_id) if meta is None else meta.directory_id
            formatted[node_id] = _Formatted(chosen, node_id, directory_id)
        return formatted

    def _directory_id(self, node_id: int) -> uuid.UUID | None:
        """Return the id of a node's new directory: the old one's, where there was one alone."""
        metas = [each for each in self._given[node_id].disks.metas.values() if each is not None]
        if len(metas) == 1 and metas[0].directory_id is not None:
            return metas[0].directory_id
        has_ids = (self._image.metadata_version or 0) >= FIRST_LEVEL_WITH_DIRECTORIES
        return new_topic_id() if has_ids else None

    # Who votes.

    def choose_voters(self, voters: Iterable[int] | None, endpoints: Mapping[int, str]) -> None:
        """Take who votes from now on."""
        before = self._metadata.voters or set(self._image.controllers)
        kept = [each for each in self.nodes if each in before]
        ids = sorted(kept or self.nodes) if voters is None else sorted(set(voters))
        for each in ids:
            if each not in self.nodes:
                msg = f"node {each} is to vote, and is none of those that go on"
                raise ValueError(msg)
        unknown = sorted(set(endpoints) - set(ids))
        if unknown:
            msg = f"an endpoint is given for node {unknown[0]}, which is no voter"
            raise ValueError(msg)
        self.voters = [
            Voter(
                each,
                self._formatted[each].directory_id or uuid.UUID(int=0),
                self._endpoints(each, endpoints.get(each)),
            )
            for each in ids
        ]

    def _endpoints(self, voter_id: int, given: str | None) -> tuple[Endpoint, ...]:
        if given is not None:
            return (given_endpoint(self._metadata, voter_id, given),)
        found = known_endpoints(self._metadata, voter_id)
        if not found and self._metadata.kraft_version:
            reason = f"nothing tells where voter {voter_id} listens: give its endpoint"
            raise self._refusal(reason)
        return found

    # What is written.

    def plan(self) -> None:
        """Choose what each node gets."""
        brokers = set(self._image.brokers) & set(self.nodes)
        if not brokers:
            raise self._refusal("none of the nodes that go on is a broker: it gets no partitions")
        node_of = {
            place: each.node_id
            for place, each in enumerate(self._source.nodes)
            if each.node_id is not None
        }
        directories = {
            each: self._formatted[each].directory_id for each in self.nodes if each in brokers
        }
        self._plan = ClusterPlan(self._image, self._source.topics, node_of, directories)
        self._missing: dict[TopicPartition, list[tuple[int, int]]] = {}
        self._left_out: list[str] = []
        self._foreseen: list[str] = []
        self._ends = {
            each.topic_partition: 0 if each.first is None else each.first.end_offset
            for each in self._plan.partitions
        }
        self._appender = self._appended()

    def _appended(self) -> BatchAppender:
        epoch, end_offset = self._seed.position
        appender = BatchAppender(end_offset, epoch, SystemClock().milliseconds())
        if self._image.is_in_transaction:
            record = metadata_record("AbortTransactionRecord", 0, {"reason": "pylog adopt"})
            appender.append_records([record], "the metadata transaction that is open is aborted")
        is_dynamic = bool(self._metadata.kraft_version)
        if is_dynamic and set(self.voters) != set(self._metadata.voter_set):
            appender.append_voters(self.voters, f"voters: {shown_voters(self.voters)}")
        appender.append_records(self._plan.values, "partitions, brokers, configurations")
        return appender

    def foresee(self, threads: int | None) -> None:
        """Find out what the copies will lack, without making them."""
        firsts = {
            each.topic_partition: each.first
            for each in self._plan.partitions
            if each.first is not None
        }
        missing = foreseen_losses(firsts.values(), threads)
        for place, replica in firsts.items():
            self._missing[place] = missing.get(replica.view.directory.path, [])
        self._foreseen += followers_foreseen(
            sum(replica is not None for replica in each.copies.values())
            for each in self._plan.partitions
        )

    def write(self, threads: int | None, progress: Callable[[int, int], None] | None) -> None:
        """Write all, and put it in place."""
        ensure_space(
            (
                space_of_copy(self.places[node_id], replica.view)
                for each in self._plan.partitions
                for node_id, replica in each.copies.items()
                if replica is not None
            ),
            "the copies",
        )
        io = DurableIO()
        is_dynamic = bool(self._metadata.kraft_version)
        ids = None if is_dynamic else [each.voter_id for each in self.voters]
        state = quorum_state_after(self._seed, self._source.nodes, ids)
        with ClusterPlaces([self.places[each] for each in self.nodes]) as places:
            places.begin()
            for node_id in self.nodes:
                place = self.places[node_id]
                new = places.new_in(place)
                working = places.working_place_in(place)
                self._copy_partitions(io, node_id, new, working, threads, progress)
                metadata = join(new, str(CLUSTER_METADATA))
                write_metadata_copy(io, self._seed, self._appender.appended, metadata)
                io.write_atomically(join(metadata, QUORUM_STATE), state)
                text = self._formatted[node_id].text()
                io.write_atomically(join(new, META_PROPERTIES), text.encode())
            places.end()

    def _copy_partitions(
        self,
        io: DurableIO,
        node_id: int,
        new: str,
        working: str,
        threads: int | None,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        together: dict[str, list[ClusterPartition]] = defaultdict(list)
        for each in self._plan.partitions:
            replica = each.copies.get(node_id)
            if replica is not None:
                together[replica.view.directory.log_directory].append(each)
            elif next(iter(each.copies)) == node_id:
                directory = join(new, str(each.topic_partition))
                write_empty_partition(io, directory, each.topic_id)
        offsets: dict[str, dict[TopicPartition, int]] = defaultdict(dict)
        for number, group in enumerate(together.values()):
            here = {each.topic_partition: each for each in group}
            paths = [
                replica.view.directory.path
                for each in group
                if (replica := each.copies[node_id]) is not None
            ]
            copy = join(working, f"copy-{number}")
            summary = write_repaired_copy(paths, copy, threads=threads, progress=progress)
            ensure_all_copied(summary)
            for repaired in summary.partitions:
                place = repaired.topic_partition
                if next(iter(here[place].copies)) == node_id:
                    self._missing[place] = repaired.missing
                    self._ends[place] = repaired.end_offset
                elif has_holes(repaired):
                    self._left_out.append(f"{place} of node {node_id}")
                    continue
                log_directory = parent_of(repaired.path)
                for name in CHECKPOINTS:
                    stored = read_offset_checkpoint(join(log_directory, name))
                    offsets[name] |= {at: stored[at] for at in stored if at == place}
                io.replace(repaired.path, join(new, str(place)))
        for name, entries in offsets.items():
            write_offset_checkpoint(io, join(new, name), entries)

    # What is said of it.

    def summary(self, *, is_written: bool) -> AdoptionSummary:
        """Return what was done, or would be."""
        appended = self._appender.appended
        return AdoptionSummary(
            into=[self.places[each] for each in self.nodes],
            cluster_id=self._formatted[self.nodes[0]].cluster_id,
            is_written=is_written,
            topic_ids={each.name: format_uuid(each.topic_id) for each in self._image.topics},
            partitions=[self._described(each) for each in self._plan.partitions],
            appended=AppendedRecords(
                self._seed.end_offset, sum(each.records for each in appended), bytes_of(appended)
            )
            if appended
            else None,
            snapshot=None,
            losses=self._losses(),
            notes=self._notes(),
            steps=self._steps(),
        )

    def _described(self, planned: ClusterPartition) -> AdoptedPartition:
        first = planned.first
        return AdoptedPartition(
            planned.topic_partition.topic,
            planned.topic_partition.partition,
            None if first is None else printable_location(first.view.directory.path),
            list(planned.copies),
            [join(self.places[each], str(planned.topic_partition)) for each in planned.copies],
            planned.leader_epoch,
            self._ends[planned.topic_partition],
            self._missing.get(planned.topic_partition, []),
        )

    def _losses(self) -> list[str]:
        found = list(self._plan.losses())
        for partition, missing in self._missing.items():
            shown = [offsets_text(start, end) for start, end in missing]
            if shown:
                found.append(f"{partition}: {named(shown)} are lost")
        return found

    def _notes(self) -> list[str]:
        found = [*self._source.notes(), *self._plan.notes()]
        found += [*self._foreseen, *left_out_notes(self._left_out)]
        found += self._source.groups_behind(self._ends)
        voters = set(self._metadata.voters or self._image.controllers)
        given = {each.node.node_id for each in self._source.copies} & voters
        if len(given) < len(voters) // 2 + 1:
            found.append(
                f"only {len(given)} of {counted(len(voters), 'voter')} were given: whether the "
                "others had agreed on more cannot be known"
            )
        new = self._formatted[self.nodes[0]].cluster_id
        old = self._source.nodes[0].cluster_id
        if new == old:
            found.append(
                f"the cluster keeps its id, {old}: never run it beside the old one (--cluster-id)"
            )
        return found

    def _steps(self) -> list[str]:
        setting = quorum_setting(self._metadata, self.voters)
        voters = {each.voter_id for each in self.voters}
        steps = []
        for node_id in self.nodes:
            is_role = {"broker": node_id in self._image.brokers, "controller": node_id in voters}
            roles = ",".join(name for name, has in is_role.items() if has)
            steps.append(
                f"in server.properties of node {node_id}, set process.roles={roles}, "
                f"node.id={node_id}, log.dirs={self.places[node_id]} and {setting}"
            )
        first = [each for each in self.nodes if each in voters]
        later = [each for each in self.nodes if each not in voters]
        return [*steps, *(f"start node {each}" for each in [*first, *later])]


def _ensure_cluster_id(text: str) -> None:
    try:
        parse_uuid(text)
    except ValueError as error:
        msg = f"cluster id {text!r} is none: take what kafka-storage.sh random-uuid prints"
        raise ValueError(msg) from error

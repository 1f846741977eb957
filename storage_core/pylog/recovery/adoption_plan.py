"""What an adoption copies where, and the records that make it known.

A partition's leader is the node that gets its best replica, and it alone is in sync. Its leader
epoch is above that of each batch. The next producer id is above all in the logs: a new producer
that got one of them would be refused.

Source: ReplicationControlManager, ProducerIdControlManager (Kafka 4.4); KIP-630, KIP-858.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.checks.repair import space_of_copy, write_repaired_copy
from pylog.errors import LogDirectoryError
from pylog.files import disk
from pylog.files.checkpoint_file import known_offset_checkpoint
from pylog.files.free_space import ensure_space
from pylog.files.partition_metadata import format_uuid, new_topic_id
from pylog.internal_topics.metadata_image import NO_LEADER
from pylog.locations import join, parent_of, printable_location
from pylog.model import TopicPartition
from pylog.reading.group_records import CONSUMER_OFFSETS_TOPIC
from pylog.reading.transactional_ids import TRANSACTION_STATE_TOPIC
from pylog.recovery.adopted_topics import (
    ensure_all_copied,
    followers_foreseen,
    foreseen_losses,
    has_holes,
    is_unproven,
    left_out_notes,
    open_transactions,
    unproven_text,
)
from pylog.recovery.adoption_steps import CHECKPOINTS, Adoption, MovedPartition
from pylog.recovery.adoption_summary import AdoptedPartition, AdoptionSummary, AppendedRecords
from pylog.recovery.metadata_batches import (
    FIRST_LEVEL_OF_KAFKA_4,
    FIRST_LEVEL_WITH_DIRECTORIES,
    bytes_of,
    metadata_record,
    partition_record,
    topic_config_record,
)
from pylog.text.words import counted, named, offsets_text
from pylog.writing.node_metadata import LEAST_SEGMENT_BYTES, SEGMENT_BYTES, too_small_segments

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from pylog.recovery.adopted_topics import AdoptedTopic, OldDisks, OldReplica
    from pylog.recovery.adoption_target import AdoptionTarget, TargetDisk

_PRODUCER_ID_BLOCK = 1000
_HIGHEST_EPOCH = 2**31 - 2
_INTERNAL = "__"


class _Copied(NamedTuple):
    """A replica, and the log directory that its copy is for."""

    replica: OldReplica | None
    disk: TargetDisk


class _Planned(NamedTuple):
    """A partition: where its copies go, the leader's first."""

    topic: AdoptedTopic
    name: str  # that the topic has then
    topic_id: uuid.UUID
    partition: int
    copies: list[_Copied]
    leader_epoch: int

    @property
    def target(self) -> TopicPartition:
        return TopicPartition(self.name, self.partition)


class AdoptionPlan:
    """What is copied where, and the records that make it known."""

    def __init__(
        self,
        source: OldDisks,
        target: AdoptionTarget,
        rename: dict[str, str],
        topics: Iterable[str] | None,
        *,
        with_access: bool,
    ) -> None:
        self._source, self._target = source, target
        self._notes: list[str] = []
        self._is_chosen = topics is not None
        self.partitions = list(self._partitions(rename))
        if not self.partitions:
            reason = "these log directories have no topic that the cluster does not have"
            raise LogDirectoryError(reason, target.log_directories[0])
        self._missing: dict[TopicPartition, list[tuple[int, int]]] = {}
        self._ends = {
            each.target: 0 if each.copies[0].replica is None else each.copies[0].replica.end_offset
            for each in self.partitions
        }
        access = source.access_records(target.values) if with_access else []
        self.values = [*self._records(), *access]
        self._tell(access)

    # The topics, and where their partitions go.

    def _partitions(self, rename: dict[str, str]) -> Iterator[_Planned]:
        unknown = sorted(set(rename) - {each.name for each in self._source.topics})
        if unknown:
            msg = f"topic {unknown[0]} is to be renamed, and is none of those that are adopted"
            raise ValueError(msg)
        names = {each.name for each in self._target.image.topics}
        ids = {each.topic_id: each.name for each in self._target.image.topics}
        left_out = []
        loads: Counter[str] = Counter()
        for topic in self._source.topics:
            name = rename.get(topic.name, topic.name)
            if name in names and name.startswith(_INTERNAL) and not self._is_chosen:
                left_out.append(name)
                continue
            topic_id = topic.topic_id if name == topic.name else None
            self._ensure_new(name, topic_id, names, ids)
            names.add(name)
            topic_id = new_topic_id() if topic_id is None else topic_id
            ids[topic_id] = name
            yield from self._partitions_of(topic, name, topic_id, loads)
        if left_out:
            self._notes.append(
                f"the cluster has {named(left_out)} already: those of the old cluster are left out"
            )

    def _ensure_new(
        self,
        name: str,
        topic_id: uuid.UUID | None,
        names: Collection[str],
        ids: Mapping[uuid.UUID, str],
    ) -> None:
        reason = None
        advice = f"adopt it under a new name with rename (--rename {name}=NEW)"
        if name in names:
            reason = f"the cluster has a topic {name}: {advice}"
        elif topic_id is not None and topic_id in ids:
            reason = (
                f"the cluster has the id of topic {name}, {format_uuid(topic_id)}, in topic "
                f"{ids[topic_id]}: {advice}, which gives it a new id"
            )
        if reason is not None:
            raise LogDirectoryError(reason, printable_location(self._target.log_directories[0]))

    def _partitions_of(
        self, topic: AdoptedTopic, name: str, topic_id: uuid.UUID, loads: Counter[str]
    ) -> Iterator[_Planned]:
        for number, replicas in topic.replicas.items():
            copies: list[_Copied] = []
            candidates: list[OldReplica | None] = [*replicas] or [None]
            self._ensure_absent(TopicPartition(name, number))
            for replica in candidates:
                place = 0 if replica is None else replica.node
                broker = self._target.brokers[place % len(self._target.brokers)]
                if any(each.disk.node_id == broker for each in copies):
                    continue
                disk = self._emptiest(broker, loads)
                loads[disk.path] += 1 + (0 if replica is None else replica.view.size_bytes)
                copies.append(_Copied(replica, disk))
            highest = max((each.highest_epoch for each in replicas), default=-1)
            epoch = min(max(highest, -1) + 1, _HIGHEST_EPOCH)
            yield _Planned(topic, name, topic_id, number, copies, epoch)

    def _ensure_absent(self, place: TopicPartition) -> None:
        """Refuse to put a partition beside what its broker has under that name."""
        for each in self._target.partition_disks:
            path = join(each.path, str(place))
            if disk.lexists(path):
                reason = (
                    "is in the way: the metadata of the cluster does not know it. Move it away, "
                    f"or adopt the topic under a new name (--rename {place.topic}=NEW)"
                )
                raise LogDirectoryError(reason, path)

    def _emptiest(self, broker: int, loads: Counter[str]) -> TargetDisk:
        disks = [each for each in self._target.partition_disks if each.node_id == broker]
        return min(disks, key=lambda each: loads[each.path])

    # The records.

    def _records(self) -> list[bytes]:
        values: list[bytes] = []
        by_name: dict[str, list[_Planned]] = defaultdict(list)
        for each in self.partitions:
            by_name[each.name].append(each)
        for name, planned in by_name.items():
            topic_id = planned[0].topic_id
            values.append(metadata_record("TopicRecord", 0, {"name": name, "topicId": topic_id}))
            values += [self._partition_record(each) for each in planned]
            image = planned[0].topic.image
            configs = {} if image is None else self._usable(name, image.configs)
            values += [topic_config_record(name, *each) for each in configs.items()]
        wanted = self._source.highest_producer_id + 1
        if wanted > self._target.next_producer_id():
            fields = {
                "brokerId": -1,
                "brokerEpoch": -1,
                "nextProducerId": wanted + _PRODUCER_ID_BLOCK,
            }
            values.append(metadata_record("ProducerIdsRecord", 0, fields))
        return values

    def _usable(self, name: str, configs: dict[str, str]) -> dict[str, str]:
        """Return configurations with which a broker of the cluster starts."""
        size = too_small_segments(configs)
        if size is None or self._target.level < FIRST_LEVEL_OF_KAFKA_4:
            return configs
        self._notes.append(
            f"{name} has {SEGMENT_BYTES}={size}, with which Kafka 4 does not start: it gets "
            f"{LEAST_SEGMENT_BYTES}"
        )
        return {**configs, SEGMENT_BYTES: str(LEAST_SEGMENT_BYTES)}

    def _partition_record(self, planned: _Planned) -> bytes:
        nodes = [each.disk.node_id for each in planned.copies]
        fields: dict[str, Any] = {
            "partitionId": planned.partition,
            "topicId": planned.topic_id,
            "replicas": nodes,
            "isr": nodes[:1],
            "removingReplicas": [],
            "addingReplicas": [],
            "leader": NO_LEADER if self._is_elected(planned) else nodes[0],
            "leaderEpoch": planned.leader_epoch,
            "partitionEpoch": 0,
        }
        level = self._target.level
        if level >= FIRST_LEVEL_WITH_DIRECTORIES:
            ids = [each.disk.directory_id for each in planned.copies]
            if None in ids:
                reason = "nothing tells the directory.id of a log directory: start the node once"
                raise LogDirectoryError(reason, planned.copies[0].disk.path)
            fields["directories"] = ids
        return partition_record(level, fields)

    def _is_elected(self, planned: _Planned) -> bool:
        """Whether the controller has to elect the leader, so that the others follow it.

        A follower of Kafka 3 that learns of its leader before that has registered looks for it once
        only, until the leader changes. Kafka 4 changes it as it registers, and elects none that it
        does not remember.
        """
        is_of_kafka_3 = self._target.level < FIRST_LEVEL_OF_KAFKA_4
        return self._target.is_new and is_of_kafka_3 and len(planned.copies) > 1

    def _tell(self, access: Sequence[bytes]) -> None:
        source = self._source
        self._notes += [f"a copy of the old metadata is not used: {each}" for each in source.errors]
        self._notes += source.notes()
        self._notes += source.left_behind(self._target.image.features)
        self._notes += self._open_transactions()
        self._notes += self._target.notes()
        if source.image is None:
            self._notes.append(
                "these disks have no metadata of the old cluster: topics have the defaults of "
                "the new one for retention, clean-up and all else, until you set them, and a topic "
                "has as many partitions as its highest number says"
            )
        elif access:
            self._notes.append(
                "ACLs, users, quotas and defaults of brokers come along "
                f"({counted(len(access), 'record')}): what was revoked after the old metadata end "
                "is valid again"
            )
        for each in self.partitions:
            others = each.topic.replicas[each.partition][1:]
            further = [other for other in others if other.end_offset > self._ends[each.target]]
            if further:
                self._notes.append(
                    f"{each.target}: {printable_location(further[0].view.directory.path)} goes "
                    f"further, to offset {further[0].end_offset}, in an older leader epoch: its "
                    "records after the leader changed are not taken"
                )
        is_grouped = any(each.name == CONSUMER_OFFSETS_TOPIC for each in self.partitions)
        if is_grouped and (expiring := self._source.expiring_groups()):
            self._notes.append(
                f"committed offsets of {named(expiring)} are older than offsets.retention.minutes: "
                "a broker deletes them soon after its start, unless this is raised before, or they "
                "are committed anew"
            )
        if is_grouped:
            same = [each for each in self.partitions if each.name == each.topic.name]
            self._notes += source.groups_behind({e.target: self._ends[e.target] for e in same})
        if self._target.is_new and not self._target.voters:
            self._notes.append(
                "if other controllers vote in this cluster, give their log directories, too"
            )

    def _open_transactions(self) -> list[str]:
        """Return sentences about transactions that no coordinator of the cluster will end."""
        leaders = {each.target: each.copies[0].replica for each in self.partitions}
        states = [each for at, each in leaders.items() if at.topic == TRANSACTION_STATE_TOPIC]
        are_known = bool(states) and None not in states
        return open_transactions(
            leaders,
            [
                each.target
                for each in self.partitions
                if not are_known or each.name != each.topic.name
            ],
        )

    # Doing it.

    def foresee(self, threads: int | None) -> None:
        """Find out what the copies will lack, without making them."""
        firsts = {
            each.target: each.copies[0].replica
            for each in self.partitions
            if each.copies[0].replica is not None
        }
        missing = foreseen_losses(firsts.values(), threads)
        for target, replica in firsts.items():
            self._missing[target] = missing.get(replica.view.directory.path, [])
        self._notes += followers_foreseen(len(each.copies) for each in self.partitions)

    def write(self, threads: int | None, progress: Callable[[int, int], None] | None) -> None:
        """Copy the partitions, and make them known."""
        ensure_space(
            (
                space_of_copy(copy.disk.path, copy.replica.view)
                for each in self.partitions
                for copy in each.copies
                if copy.replica is not None
            ),
            "the copies",
        )
        with Adoption(self._target.log_directories) as adoption:
            adoption.begin()
            moved = self._copied(adoption, threads, progress)
            ids = {each.topic_id for each in self.partitions}
            adoption.end(moved, self.values, ids)

    def _copied(
        self,
        adoption: Adoption,
        threads: int | None,
        progress: Callable[[int, int], None] | None,
    ) -> list[MovedPartition]:
        moved: list[MovedPartition] = []
        left_out: list[str] = []
        together: dict[tuple[str, str], list[_Planned]] = defaultdict(list)
        for planned in self.partitions:
            for copied in planned.copies:
                if copied.replica is None:
                    directory = join(adoption.place_in(copied.disk.path), str(planned.target))
                    adoption.write_empty(directory, planned.topic_id)
                    moved.append(_moved(directory, copied, planned, {}))
                else:
                    log_directory = copied.replica.view.directory.log_directory
                    together[log_directory, copied.disk.path].append(planned)
        for number, ((log_directory, place_of_disk), group) in enumerate(together.items()):
            copies = {
                str(each.topic.name) + f"-{each.partition}": (each, copied)
                for each in group
                for copied in each.copies
                if copied.disk.path == place_of_disk
                and copied.replica is not None
                and copied.replica.view.directory.log_directory == log_directory
            }
            paths = [
                copied.replica.view.directory.path
                for _, copied in copies.values()
                if copied.replica is not None
            ]
            place = join(adoption.place_in(place_of_disk), str(number))
            summary = write_repaired_copy(paths, place, threads=threads, progress=progress)
            ensure_all_copied(summary)
            for repaired in summary.partitions:
                planned, copied = copies[str(repaired.topic_partition)]
                topic_id = format_uuid(planned.topic_id)
                if repaired.topic_id != topic_id:
                    adoption.set_topic_id(repaired.path, planned.topic_id)
                if copied is planned.copies[0]:
                    self._missing[planned.target] = repaired.missing
                    self._ends[planned.target] = repaired.end_offset
                elif has_holes(repaired):
                    left_out.append(f"{planned.target} of node {copied.disk.node_id}")
                    continue
                offsets = _checkpoints(parent_of(repaired.path), repaired.topic_partition)
                moved.append(_moved(repaired.path, copied, planned, offsets))
        self._notes += left_out_notes(left_out)
        return moved

    def _appended(self) -> AppendedRecords:
        batches = self._target.batches_of(self.values, 0)
        return AppendedRecords(batches[0].base_offset, len(self.values), bytes_of(batches))

    def summary(self, *, is_written: bool) -> AdoptionSummary:
        """Return what was done, or would be."""
        target = self._target
        return AdoptionSummary(
            into=target.log_directories,
            cluster_id=target.cluster_id,
            is_written=is_written,
            topic_ids={each.name: format_uuid(each.topic_id) for each in self.partitions},
            partitions=[self._described(each) for each in self.partitions],
            appended=None if target.is_new else self._appended(),
            snapshot=next(target.metadata_files(self.values, 0)).path if target.is_new else None,
            losses=self._losses(),
            notes=self._notes,
        )

    def _described(self, planned: _Planned) -> AdoptedPartition:
        first = planned.copies[0].replica
        return AdoptedPartition(
            planned.name,
            planned.partition,
            None if first is None else printable_location(first.view.directory.path),
            [each.disk.node_id for each in planned.copies],
            [join(each.disk.path, str(planned.target)) for each in planned.copies],
            planned.leader_epoch,
            self._ends[planned.target],
            self._missing.get(planned.target, []),
        )

    def _losses(self) -> list[str]:
        found = [
            f"{each.target}: no disk has it, and it begins empty"
            for each in self.partitions
            if each.copies[0].replica is None
        ]
        unproven = [
            each for each in self.partitions if is_unproven(each.topic.replicas[each.partition])
        ]
        found += [unproven_text([str(each.target) for each in unproven])] if unproven else []
        for partition, missing in self._missing.items():
            shown = [offsets_text(start, end) for start, end in missing]
            if shown:
                found.append(f"{partition}: {named(shown)} are lost")
        return found


def _moved(
    path: str, copied: _Copied, planned: _Planned, offsets: dict[str, int]
) -> MovedPartition:
    return MovedPartition(path, join(copied.disk.path, str(planned.target)), offsets)


def _checkpoints(log_directory: str, topic_partition: TopicPartition) -> dict[str, int]:
    found = {}
    for name in CHECKPOINTS:
        offset = known_offset_checkpoint(join(log_directory, name)).get(topic_partition)
        if offset is not None:
            found[name] = offset
    return found

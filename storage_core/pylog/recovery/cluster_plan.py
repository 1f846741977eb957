"""What becomes of a cluster's partitions where other hosts, or fewer nodes, go on with it.

=========================== ===================================================================
the disks given have        what is done
=========================== ===================================================================
a replica in sync           it leads on the node that goes on; where that node is not among them,
                            its copy goes to one that is; the old leader's, unless it is damaged
one that is eligible (ELR)  the same: it has all records that were acknowledged (KIP-966)
others                      the one of the highest leader epoch, the longest of equals, is elected
                            unclean, and that is named as a loss
none                        the partition begins empty, and is named as a loss
=========================== ===================================================================

Nodes keep their ids. A partition of which nothing changes keeps its record.

Source: ReplicationControlManager, ClusterControlManager (Kafka 4.4).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.internal_topics.versions import LATEST_KAFKA_VERSION
from pylog.locations import printable_location
from pylog.model import TopicPartition
from pylog.reading.transactional_ids import TRANSACTION_STATE_TOPIC
from pylog.recovery.adopted_topics import open_transactions, unproven_text
from pylog.recovery.in_sync_minimum import MIN_IN_SYNC, minimum_record, too_high_minimums
from pylog.recovery.metadata_batches import (
    FIRST_LEVEL_OF_KAFKA_4,
    FIRST_LEVEL_WITH_DIRECTORIES,
    metadata_record,
    partition_change,
    topic_config_record,
)
from pylog.text.words import named
from pylog.writing.node_metadata import (
    LEAST_SEGMENT_BYTES,
    SEGMENT_BYTES,
    refused_configs,
    too_small_segments,
)

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator, Mapping, Sequence

    from pylog.internal_topics.metadata_image import MetadataImage, PartitionRegistration
    from pylog.recovery.adopted_topics import AdoptedTopic, OldReplica

_RECOVERING = 1
_SHOWN = 5


class ClusterPartition(NamedTuple):
    """A partition of a cluster that goes on elsewhere.

    Attributes
    ----------
    copies
        What each of its nodes gets, the leader first; None for a log that begins empty.
    is_changed
        Whether a record says who leads it from now on.
    is_unclean
        Whether no replica was given that has all acknowledged records for sure.
    """

    topic_partition: TopicPartition
    topic_id: uuid.UUID
    copies: dict[int, OldReplica | None]
    leader_epoch: int
    is_changed: bool
    is_unclean: bool

    @property
    def first(self) -> OldReplica | None:
        """The replica that leads."""
        return next(iter(self.copies.values()))


class ClusterPlan:
    """The partitions, and the records that say where they are.

    Parameters
    ----------
    image
        What the old metadata says.
    topics
        What the old disks have.
    node_of
        The id of the node that each of the old nodes, by its place, is.
    directories
        The id of the log directory that each broker has from now on.
    """

    def __init__(
        self,
        image: MetadataImage,
        topics: Sequence[AdoptedTopic],
        node_of: Mapping[int, int],
        directories: Mapping[int, uuid.UUID | None],
    ) -> None:
        self._image = image
        self._node_of = node_of
        self._directories = directories
        self._loads = Counter(dict.fromkeys(directories, 0))
        self._found = {each.name: each for each in topics}
        self.partitions: list[ClusterPartition] = []
        self.values: list[bytes] = []
        self.lowered: list[str] = []
        self.raised: list[str] = []
        for topic in image.topics:
            for number in sorted(topic.partitions):
                place = TopicPartition(topic.name, number)
                self._plan(place, topic.topic_id, topic.partitions[number])
        self.values += [*self._unregistered(), *self._lowered(), *self._raised()]

    def _plan(
        self, place: TopicPartition, topic_id: uuid.UUID, registration: PartitionRegistration
    ) -> None:
        best, is_unclean = self._best(place, registration)
        kept = [each for each in registration.replicas if each in self._directories]
        own = {node: self._given(place).get(node) for node in kept}
        if best is not None and self._node_of[best.node] in own:
            leader = self._node_of[best.node]
        elif kept:
            leader = registration.leader if registration.leader in kept else kept[0]
        else:
            leader = min(self._directories, key=lambda each: (self._loads[each], each))
        copies = {leader: best, **{node: each for node, each in own.items() if node != leader}}
        for node, each in copies.items():
            self._loads[node] += 1 + (0 if each is None else each.view.size_bytes)
        change = self._change(registration, list(copies), is_unclean=is_unclean)
        if change:
            ids = {"topicId": topic_id, "partitionId": place.partition}
            level = self._image.metadata_version or 0
            self.values.append(partition_change(level, {**ids, **change}))
        epoch = registration.leader_epoch + ("leader" in change)
        partition = ClusterPartition(place, topic_id, copies, epoch, bool(change), is_unclean)
        self.partitions.append(partition)

    def _given(self, place: TopicPartition) -> dict[int, OldReplica]:
        """Return the replicas that were given, by the id of their node, the best one first."""
        topic = self._found.get(place.topic)
        replicas = [] if topic is None else topic.replicas.get(place.partition, [])
        found: dict[int, OldReplica] = {}
        for each in replicas:
            found.setdefault(self._node_of[each.node], each)
        return found

    def _best(
        self, place: TopicPartition, registration: PartitionRegistration
    ) -> tuple[OldReplica | None, bool]:
        """Return the replica that is to lead, and whether records may be lost by that."""
        given = {
            node: each for node, each in self._given(place).items() if node in registration.replicas
        }
        in_sync = [each for each in given if each in registration.isr]
        eligible = [each for each in given if each in registration.eligible_leader_replicas]
        if registration.leader in in_sync:
            leader = given[registration.leader]
            of_equals = [given[each] for each in in_sync if given[each].rank > leader.rank]
            return next(iter(of_equals), leader) if leader.is_doubtful else leader, False
        for chosen in (in_sync, eligible):
            if chosen:
                of_kept = [each for each in chosen if each in self._directories]
                return given[(of_kept or chosen)[0]], False
        return next(iter(given.values()), None), True

    def _change(
        self, registration: PartitionRegistration, nodes: list[int], *, is_unclean: bool
    ) -> dict[str, Any]:
        """Return the fields of a record that makes it so; {} where nothing has to change."""
        leader, level = nodes[0], self._image.metadata_version or 0
        replicas = sorted(nodes, key=lambda each: _place(registration.replicas, each))
        ids = [self._directories[each] for each in replicas]
        change: dict[str, Any] = {}
        is_same = replicas == list(registration.replicas) and registration.leader == leader
        is_moving = bool(registration.adding_replicas or registration.removing_replicas)
        if not is_same or is_moving or is_unclean:
            change |= {
                "isr": [leader],
                "leader": leader,
                "replicas": replicas,
                "removingReplicas": [],
                "addingReplicas": [],
            }
        if is_unclean:
            change["leaderRecoveryState"] = _RECOVERING
        has_directories = level >= FIRST_LEVEL_WITH_DIRECTORIES and None not in ids
        if has_directories and (change or ids != list(registration.directories)):
            change["directories"] = ids
        return change

    def _unregistered(self) -> Iterator[bytes]:
        for node, broker in sorted(self._image.brokers.items()):
            if node not in self._directories:
                fields = {"brokerId": node, "brokerEpoch": broker.epoch}
                yield metadata_record("UnregisterBrokerRecord", 0, fields)

    def _lowered(self) -> Iterator[bytes]:
        """Lower what would keep fewer replicas from taking records."""
        counts = {each.topic_partition: len(each.copies) for each in self.partitions}
        for resource, value in too_high_minimums(self._image, counts):
            self.lowered.append(resource.name or "the default of all brokers")
            yield minimum_record(resource, value)

    def _raised(self) -> Iterator[bytes]:
        """Raise what keeps brokers of a level of Kafka 4 from starting."""
        if (self._image.metadata_version or 0) < FIRST_LEVEL_OF_KAFKA_4:
            return
        for topic in self._image.topics:
            if too_small_segments(topic.configs) is not None:
                self.raised.append(topic.name)
                yield topic_config_record(topic.name, SEGMENT_BYTES, str(LEAST_SEGMENT_BYTES))

    def losses(self) -> Iterator[str]:
        """Yield sentences about records that are lost, or may be."""
        for each in self.partitions:
            if each.first is None:
                only = next(iter(self._given(each.topic_partition).values()), None)
                where = "no disk has it" if only is None else _of_no_replica(only)
                yield f"{each.topic_partition}: {where}, and it begins empty"
        unclean = [
            str(each.topic_partition)
            for each in self.partitions
            if each.is_unclean and each.first is not None
        ]
        if unclean:
            yield unproven_text(unclean)

    def notes(self) -> Iterator[str]:
        """Yield other sentences for the user."""
        leaders = {each.topic_partition: each.first for each in self.partitions}
        states = [each for at, each in leaders.items() if at.topic == TRANSACTION_STATE_TOPIC]
        if None in states or not states:
            yield from open_transactions(leaders, leaders)
        if self.lowered:
            yield f"{MIN_IN_SYNC} of {named(self.lowered)} is lowered to the replicas that are left"
        if self.raised:
            yield (
                f"{SEGMENT_BYTES} of {named(self.raised)} is raised to {LEAST_SEGMENT_BYTES}: "
                "Kafka 4 does not start with less"
            )
        else:
            yield from refused_configs(self._image, LATEST_KAFKA_VERSION)
        known = {each.name for each in self._image.topics}
        others = [each.name for each in self._found.values() if each.name not in known]
        if others:
            yield f"{named(others, _SHOWN)}: not in the metadata (deleted, or stray), and left out"


def _of_no_replica(found: OldReplica) -> str:
    path = printable_location(found.view.directory.path)
    return f"only {path} has it, whose node is no replica of it by the metadata"


def _place(replicas: Sequence[int], node: int) -> int:
    return replicas.index(node) if node in replicas else len(replicas)

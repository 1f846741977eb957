"""Topics, partitions, brokers and configurations as records of ``__cluster_metadata`` leave them.

Records between the beginning and the end of a metadata transaction count when it ends, and not at
all if it is aborted or has not ended. Records of a type that is not known are left out and counted:
a new version of Kafka brings new types, which say nothing of topics and their configurations.

Source: TopicsDelta, PartitionRegistration.merge, ClusterDelta, ConfigurationsDelta,
MetadataBatchLoader (Kafka 4.3); KIP-631, KIP-858, KIP-868, KIP-966.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.internal_topics.access_image import AccessImage
from pylog.internal_topics.api_message import UnknownTypeError
from pylog.internal_topics.cluster_metadata import read_metadata_record
from pylog.internal_topics.versions import METADATA_VERSION
from pylog.model import TopicPartition

if TYPE_CHECKING:
    import uuid

    from pylog.internal_topics.api_message import ApiMessage

NO_LEADER = -1
_NO_LEADER_CHANGE = -2


class ConfigResourceType(IntEnum):
    """Of what a configuration is (Kafka: ConfigResource.Type); only those that are asked for."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


class ConfigResource(NamedTuple):
    """What a configuration is of: a topic, a group, or a broker by its id as text, "" for all."""

    type: ConfigResourceType
    name: str


_RESOURCE_TYPES = frozenset(ConfigResourceType)


@dataclass(frozen=True, slots=True)
class PartitionRegistration:
    """One partition in the cluster's metadata (Kafka: PartitionRegistration)."""

    partition: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    # The id of the log directory of each replica, in their order; empty before Kafka 3.7.
    directories: tuple[uuid.UUID, ...] = ()

    def directory_of(self, node_id: int) -> uuid.UUID | None:
        """Return the id of the log directory that a node's replica is assigned to, if there is."""
        assigned = dict(zip(self.replicas, self.directories, strict=False))
        return assigned.get(node_id)


@dataclass(slots=True)
class TopicImage:
    """A topic in the cluster's metadata (Kafka: TopicImage)."""

    name: str
    topic_id: uuid.UUID
    partitions: dict[int, PartitionRegistration] = field(default_factory=dict)
    configs: dict[str, str] = field(default_factory=dict)


class Endpoint(NamedTuple):
    """The address at which a broker or a controller listens."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class NodeRegistration:
    """How a broker or a controller last registered (Kafka: BrokerRegistration)."""

    node_id: int
    endpoints: tuple[Endpoint, ...]
    features: dict[str, tuple[int, int]]
    """The lowest and the highest level of each feature that its version of Kafka can use."""
    epoch: int = -1
    rack: str | None = None
    is_fenced: bool = False
    log_directories: frozenset[uuid.UUID] = frozenset()


class MetadataImage:
    """What the records that were given say; one thread."""

    def __init__(self) -> None:
        self.deleted: list[TopicImage] = []
        self.unknown_topic_ids: set[uuid.UUID] = set()
        self.unknown_types: Counter[int] = Counter()
        """How many records of types that a later version of Kafka has brought: left out."""
        self.features: dict[str, int] = {}
        """The level of each feature that is finalised."""
        self.access = AccessImage()
        self.changed: set[ConfigResource] = set()
        self.moved: set[TopicPartition] = set()
        self.brokers: dict[int, NodeRegistration] = {}
        """The brokers that have registered, by id."""
        self.unknown_brokers: set[int] = set()
        """Brokers that records change, and none has registered: a part is missing."""
        self.controllers: dict[int, NodeRegistration] = {}
        """The controllers that have registered, by id; since Kafka 3.7."""
        self._topics: dict[uuid.UUID, TopicImage] = {}
        self._configs: dict[ConfigResource, dict[str, str]] = {}
        self._with_elr: dict[str, set[uuid.UUID]] = {}
        """Topics that may have eligible leader replicas, by name: there is often none."""
        self._in_transaction: list[ApiMessage] | None = None

    @property
    def is_in_transaction(self) -> bool:
        """Whether a metadata transaction has begun and not ended: its records do not count yet."""
        return self._in_transaction is not None

    @property
    def metadata_version(self) -> int | None:
        """The level of the feature of that name; None before Kafka 3.3 has stored one."""
        return self.features.get(METADATA_VERSION)

    @property
    def log_directories(self) -> dict[int, frozenset[uuid.UUID]]:
        """By broker, the ids of the log directories that it last registered with, since 3.7."""
        return {broker: each.log_directories for broker, each in self.brokers.items()}

    @property
    def topics(self) -> list[TopicImage]:
        """The topics that there are, sorted by name."""
        return [
            replace(each, configs=self.configs_of(_topic_resource(each.name)))
            for each in sorted(self._topics.values(), key=lambda topic: topic.name)
        ]

    @property
    def configured(self) -> list[ConfigResource]:
        """The resources that have properties of their own, sorted."""
        return sorted(resource for resource, configs in self._configs.items() if configs)

    def configs_of(self, resource: ConfigResource) -> dict[str, str]:
        """Return the properties that something has of its own, sorted."""
        return dict(sorted(self._configs.get(resource, {}).items()))

    def apply(self, value: bytes | None) -> None:
        """Take in the next record's value."""
        try:
            record = read_metadata_record(value)
        except UnknownTypeError as error:
            self.unknown_types[error.type_id] += 1
            return
        match record.message.name:
            case "BeginTransactionRecord":
                self._in_transaction = []
            case "AbortTransactionRecord":
                self._in_transaction = None
            case "EndTransactionRecord":
                ended, self._in_transaction = self._in_transaction or [], None
                for each in ended:
                    self._apply(each)
            case _ if self._in_transaction is not None:
                self._in_transaction.append(record)
            case _:
                self._apply(record)

    def _apply(self, record: ApiMessage) -> None:
        fields = record.fields
        match record.message.name:
            case "TopicRecord":
                topic_id = fields["topicId"]
                self._topics[topic_id] = TopicImage(fields["name"], topic_id)
                self.changed.add(_topic_resource(fields["name"]))
            case "PartitionRecord":
                if (topic := self._topic(fields["topicId"])) is not None:
                    self._register(topic, _registration(fields))
            case "PartitionChangeRecord":
                self._change(fields)
            case "RemoveTopicRecord":
                self._remove(fields["topicId"])
            case "ConfigRecord" if fields["resourceType"] in _RESOURCE_TYPES:
                self._configure(fields)
            case "FeatureLevelRecord":
                self.features[fields["name"]] = fields["featureLevel"]
                if not fields["featureLevel"]:
                    del self.features[fields["name"]]
            case "ClearElrRecord":
                self._clear_elr(fields["topicName"])
            case _:
                self._apply_registration(record.message.name, fields)

    def _apply_registration(self, name: str, fields: dict[str, Any]) -> None:
        match name:
            case "RegisterBrokerRecord":
                self.brokers[fields["brokerId"]] = _node(fields["brokerId"], fields)
            case "BrokerRegistrationChangeRecord":
                self._change_broker(fields["brokerId"], fields)
            case "FenceBrokerRecord" | "UnfenceBrokerRecord":
                fenced = 1 if name == "FenceBrokerRecord" else -1
                self._change_broker(fields["id"], {"fenced": fenced})
            case "UnregisterBrokerRecord":
                self.brokers.pop(fields["brokerId"], None)
            case "RegisterControllerRecord":
                self.controllers[fields["controllerId"]] = _node(fields["controllerId"], fields)
            case "UnregisterControllerRecord":
                self.controllers.pop(fields["controllerId"], None)
            case _:
                self.access.apply(name, fields)

    def _change_broker(self, broker: int, fields: dict[str, Any]) -> None:
        before = self.brokers.get(broker)
        if before is None:
            self.unknown_brokers.add(broker)
            return
        is_fenced = {1: True, -1: False}.get(fields.get("fenced", 0), before.is_fenced)
        directories = frozenset(fields.get("logDirs") or before.log_directories)
        self.brokers[broker] = replace(before, is_fenced=is_fenced, log_directories=directories)

    def _topic(self, topic_id: uuid.UUID) -> TopicImage | None:
        topic = self._topics.get(topic_id)
        if topic is None:
            self.unknown_topic_ids.add(topic_id)
        return topic

    def _change(self, fields: dict[str, Any]) -> None:
        topic = self._topic(fields["topicId"])
        number = fields["partitionId"]
        if topic is not None and number in topic.partitions:
            self._register(topic, _merged(topic.partitions[number], fields))

    def _register(self, topic: TopicImage, registration: PartitionRegistration) -> None:
        before = topic.partitions.get(registration.partition)
        if before is None or (before.replicas, before.directories) != (
            registration.replicas,
            registration.directories,
        ):
            self.moved.add(TopicPartition(topic.name, registration.partition))
        topic.partitions[registration.partition] = registration
        if registration.eligible_leader_replicas or registration.last_known_elr:
            self._with_elr.setdefault(topic.name, set()).add(topic.topic_id)

    def _remove(self, topic_id: uuid.UUID) -> None:
        topic = self._topic(topic_id)
        if topic is None:
            return
        del self._topics[topic_id]
        resource = _topic_resource(topic.name)
        self.changed.add(resource)
        topic.configs = dict(sorted(self._configs.pop(resource, {}).items()))
        self.deleted.append(topic)

    def _configure(self, fields: dict[str, Any]) -> None:
        kind = ConfigResourceType(fields["resourceType"])
        resource = ConfigResource(kind, fields["resourceName"])
        self.changed.add(resource)
        configs = self._configs.setdefault(resource, {})
        if fields["value"] is None:
            configs.pop(fields["name"], None)
        else:
            configs[fields["name"]] = fields["value"]

    def _clear_elr(self, name: str) -> None:
        """Forget the eligible leader replicas of a topic, of all if the name is empty."""
        for each_name in [name] if name else list(self._with_elr):
            for topic_id in self._with_elr.pop(each_name, ()):
                topic = self._topics.get(topic_id)
                if topic is not None:
                    topic.partitions = {
                        number: replace(each, eligible_leader_replicas=(), last_known_elr=())
                        for number, each in topic.partitions.items()
                    }


def _topic_resource(name: str) -> ConfigResource:
    return ConfigResource(ConfigResourceType.TOPIC, name)


def _node(node_id: int, fields: dict[str, Any]) -> NodeRegistration:
    return NodeRegistration(
        node_id,
        tuple(endpoint_of(each) for each in fields["endPoints"]),
        {
            each["name"]: (each["minSupportedVersion"], each["maxSupportedVersion"])
            for each in fields["features"]
        },
        fields.get("brokerEpoch", -1),
        fields.get("rack"),
        fields.get("fenced", False),
        frozenset(fields.get("logDirs") or ()),
    )


def endpoint_of(fields: dict[str, Any]) -> Endpoint:
    """Return an endpoint in a record's fields."""
    return Endpoint(fields["name"], fields["host"], fields["port"])


def _registration(fields: dict[str, Any]) -> PartitionRegistration:
    return PartitionRegistration(
        partition=fields["partitionId"],
        leader=fields["leader"],
        leader_epoch=fields["leaderEpoch"],
        partition_epoch=fields["partitionEpoch"],
        replicas=tuple(fields["replicas"]),
        isr=tuple(fields["isr"]),
        adding_replicas=tuple(fields["addingReplicas"]),
        removing_replicas=tuple(fields["removingReplicas"]),
        eligible_leader_replicas=tuple(fields.get("eligibleLeaderReplicas") or ()),
        last_known_elr=tuple(fields.get("lastKnownElr") or ()),
        directories=tuple(fields.get("directories") or ()),
    )


_LISTS = {
    "isr": "isr",
    "replicas": "replicas",
    "addingReplicas": "adding_replicas",
    "removingReplicas": "removing_replicas",
    "eligibleLeaderReplicas": "eligible_leader_replicas",
    "lastKnownElr": "last_known_elr",
    "directories": "directories",
}


def _merged(before: PartitionRegistration, fields: dict[str, Any]) -> PartitionRegistration:
    changes: dict[str, Any] = {
        attribute: tuple(fields[name]) for name, attribute in _LISTS.items() if name in fields
    }
    leader = fields.get("leader", _NO_LEADER_CHANGE)
    if leader != _NO_LEADER_CHANGE:
        changes |= {"leader": leader, "leader_epoch": before.leader_epoch + 1}
    return replace(before, partition_epoch=before.partition_epoch + 1, **changes)

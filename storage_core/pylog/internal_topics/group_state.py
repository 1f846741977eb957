"""Groups as their coordinator's records leave them: members, state, committed offsets.

Source: GroupMetadataManager, ClassicGroup, ConsumerGroup and
StreamsGroup.maybeUpdateGroupState (Kafka 4.3); offsetExpirationCondition and isSubscribedToTopic of
these groups, OffsetExpirationConditionImpl (Kafka 4.4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.errors import InvalidRecordError
from pylog.internal_topics import consumer_offsets

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Mapping

    from pylog.internal_topics.coordinator_record import CoordinatorRecord

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
_STABLE_MEMBER = 0


class StoredOffset(NamedTuple):
    """An offset that a group has committed for a partition; None where its version has no such."""

    offset: int
    leader_epoch: int | None
    metadata: str
    commit_timestamp: int
    topic_id: uuid.UUID | None
    expire_timestamp: int | None = None  # of version 1 alone

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> StoredOffset:
        """Return what the value of an offset's record says."""
        leader_epoch = value.get("leaderEpoch", -1)
        expire_timestamp = value.get("expireTimestamp", -1)
        return cls(
            value["offset"],
            None if leader_epoch < 0 else leader_epoch,
            value["metadata"],
            value["commitTimestamp"],
            value.get("topicId"),
            None if expire_timestamp == -1 else expire_timestamp,
        )


@dataclass(slots=True)
class StoredMember:
    """A member: who it is, and what it is assigned."""

    member_id: str
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    assigned: dict[str | uuid.UUID, list[int]] = field(default_factory=dict)
    epoch: int | None = None
    state: int = _STABLE_MEMBER
    topics: frozenset[str] = frozenset()  # that it has subscribed to by name
    pattern: str | None = None  # or by a regular expression that the broker resolves


@dataclass(slots=True)
class GroupState:
    """A group; what no record has said is None."""

    group_id: str
    kind: str = CLASSIC
    protocol_type: str | None = None
    protocol: str | None = None
    epoch: int | None = None
    assignment_epoch: int | None = None
    members: dict[str, StoredMember] = field(default_factory=dict)
    offsets: dict[tuple[str, int], StoredOffset] = field(default_factory=dict)
    known_state: str | None = None  # where no record says it
    shared: dict[uuid.UUID, list[int]] = field(default_factory=dict)  # of a share group, by topic
    topology_epoch: int | None = None  # of a streams group
    validated_topology_epoch: int | None = None  # for which all topics exist
    empty_since: int | None = None  # of a classic group: since when it is in its state
    is_subscription_known: bool = True
    matching: dict[str, frozenset[str]] = field(default_factory=dict)  # topics by pattern
    topology_topics: frozenset[str] = frozenset()

    @property
    def latest_commit(self) -> int:
        """When an offset was committed last, in ms; -1 if none was."""
        return max((each.commit_timestamp for each in self.offsets.values()), default=-1)

    @property
    def state(self) -> str:
        """The state that a coordinator gives the group when it loads these records."""
        if self.known_state is not None:
            return self.known_state
        if not self.members:
            return "Empty"
        if self.kind == STREAMS and self.topology_epoch != self.validated_topology_epoch:
            return "NotReady"
        if self.kind in (CLASSIC, SHARE):
            return "Stable"
        if (self.epoch or 0) > (self.assignment_epoch or 0):
            return "Assigning"
        for member in self.members.values():
            if member.state != _STABLE_MEMBER or member.epoch != self.assignment_epoch:
                return "Reconciling"
        return "Stable"

    def expires(
        self, topic: str, stored: StoredOffset, now_ms: int, retention_ms: int
    ) -> bool | None:
        """Whether a coordinator that loads the group now deletes an offset for its age.

        None if that depends on whether members come back: whoever sends no heartbeat is removed
        before the offsets are looked at.
        """
        if self.kind != CLASSIC:
            is_old = _is_old(stored, stored.commit_timestamp, now_ms, retention_ms)
            return None if is_old and self.members and self._subscribes(topic) else is_old
        if not self.members:
            since = stored.commit_timestamp
            if self.protocol_type and self.empty_since is not None:
                since = self.empty_since
            return _is_old(stored, since, now_ms, retention_ms)
        is_spared = (
            self.protocol_type != consumer_offsets.CONSUMER_PROTOCOL_TYPE
            or not self.is_subscription_known
            or self._subscribes(topic)
        )
        is_old = _is_old(stored, stored.commit_timestamp, now_ms, retention_ms)
        return None if is_old and not is_spared else False

    def _subscribes(self, topic: str) -> bool:
        return topic in self.topology_topics or any(
            topic in each.topics or topic in self.matching.get(each.pattern or "", ())
            for each in self.members.values()
        )


def _is_old(stored: StoredOffset, since_ms: int, now_ms: int, retention_ms: int) -> bool:
    if stored.expire_timestamp is not None:
        return now_ms >= stored.expire_timestamp
    return now_ms - since_ms >= retention_ms


def group_states(records: Iterable[CoordinatorRecord]) -> dict[str, GroupState]:
    """Return the groups, by id, that the last record of each key tells of; none is a tombstone.

    The records are in the order of their offsets. A group that was of several kinds is of the last.
    """
    records = list(records)
    kinds = {_group_id(each): _KIND_OF[each.type_id] for each in records if each.type_id in _NAMING}
    groups: dict[str, GroupState] = {}
    for record in records:
        take = _TAKERS.get(record.type_id)
        if take is None or record.value is None:
            continue
        kind = _KIND_OF.get(record.type_id)
        if kind is not None and kind != kinds.get(_group_id(record), kind):
            continue
        group_id = _group_id(record)
        group = groups.setdefault(group_id, GroupState(group_id))
        take(group, record.key, record.value)
    return groups


def _group_id(record: CoordinatorRecord) -> str:
    found: str = record.key.get("group", record.key.get("groupId", ""))
    return found


def _take_offset(group: GroupState, key: dict[str, Any], value: dict[str, Any]) -> None:
    group.offsets[key["topic"], key["partition"]] = StoredOffset.of(value)


def _take_classic(group: GroupState, _key: dict[str, Any], value: dict[str, Any]) -> None:
    group.protocol_type = value["protocolType"]
    group.protocol = value["protocol"]
    group.epoch = value["generation"]
    since = value.get("currentStateTimestamp", -1)
    group.empty_since = None if since == -1 else since
    group.is_subscription_known = not value["members"] or value["protocol"] is not None
    for each in value["members"]:
        member = StoredMember(
            each["memberId"], each.get("groupInstanceId"), each["clientId"], each["clientHost"]
        )
        if group.protocol_type == consumer_offsets.CONSUMER_PROTOCOL_TYPE:
            member.assigned.update(_assigned(each["assignment"]))
            topics = _subscribed(each["subscription"])
            group.is_subscription_known &= topics is not None
            member.topics = topics or frozenset()
        group.members[member.member_id] = member


def _assigned(assignment: bytes) -> dict[str, list[int]]:
    try:
        fields = consumer_offsets.read_assignment(assignment)
    except InvalidRecordError:
        return {}  # another protocol's: the broker does not look at it either
    return {each["topic"]: each["partitions"] for each in fields["assignedPartitions"]}


def _subscribed(subscription: bytes) -> frozenset[str] | None:
    try:
        return frozenset(consumer_offsets.read_subscription(subscription)["topics"])
    except InvalidRecordError:
        return None  # nor does the broker know it


def _take_epoch(kind: str) -> Any:  # noqa: ANN401 - see `_TAKERS`
    def take(group: GroupState, _key: dict[str, Any], value: dict[str, Any]) -> None:
        group.kind = kind
        group.epoch = value["epoch"]

    return take


def _take_streams(group: GroupState, key: dict[str, Any], value: dict[str, Any]) -> None:
    _take_epoch(STREAMS)(group, key, value)
    group.validated_topology_epoch = value.get("validatedTopologyEpoch", -1)


def _take_topology(group: GroupState, _key: dict[str, Any], value: dict[str, Any]) -> None:
    group.topology_epoch = value["epoch"]
    group.topology_topics = frozenset(
        topic
        for each in value["subtopologies"]
        for topic in (
            *each["sourceTopics"],
            *(source["name"] for source in each["repartitionSourceTopics"]),
        )
    )


def _take_pattern(group: GroupState, key: dict[str, Any], value: dict[str, Any]) -> None:
    group.matching[key["regularExpression"]] = frozenset(value["topics"])


def _take_member(group: GroupState, key: dict[str, Any], value: dict[str, Any]) -> None:
    member = _member(group, key["memberId"])
    member.instance_id = value.get("instanceId")
    member.client_id = value["clientId"]
    member.client_host = value["clientHost"]
    member.topics = frozenset(value.get("subscribedTopicNames", ()))
    member.pattern = value.get("subscribedTopicRegex")


def _take_assignment_epoch(group: GroupState, _key: dict[str, Any], value: dict[str, Any]) -> None:
    group.assignment_epoch = value["assignmentEpoch"]


def _take_assignment(group: GroupState, key: dict[str, Any], value: dict[str, Any]) -> None:
    member = _member(group, key["memberId"])
    member.epoch = value["memberEpoch"]
    member.state = value["state"]
    for each in value.get("assignedPartitions", ()):
        member.assigned[each["topicId"]] = each["partitions"]


def _take_shared(group: GroupState, _key: dict[str, Any], value: dict[str, Any]) -> None:
    group.kind = SHARE
    for each in value["initializedTopics"]:
        group.shared[each["topicId"]] = each["partitions"]


def _member(group: GroupState, member_id: str) -> StoredMember:
    return group.members.setdefault(member_id, StoredMember(member_id))


_TAKERS = {
    consumer_offsets.LEGACY_OFFSET_COMMIT: _take_offset,
    consumer_offsets.OFFSET_COMMIT: _take_offset,
    consumer_offsets.GROUP_METADATA: _take_classic,
    consumer_offsets.CONSUMER_GROUP_METADATA: _take_epoch(CONSUMER),
    consumer_offsets.CONSUMER_GROUP_MEMBER_METADATA: _take_member,
    consumer_offsets.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: _take_assignment_epoch,
    consumer_offsets.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: _take_assignment,
    consumer_offsets.CONSUMER_GROUP_REGULAR_EXPRESSION: _take_pattern,
    consumer_offsets.SHARE_GROUP_METADATA: _take_epoch(SHARE),
    consumer_offsets.SHARE_GROUP_MEMBER_METADATA: _take_member,
    consumer_offsets.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT: _take_assignment,
    consumer_offsets.SHARE_GROUP_STATE_PARTITION_METADATA: _take_shared,
    consumer_offsets.STREAMS_GROUP_METADATA: _take_streams,
    consumer_offsets.STREAMS_GROUP_MEMBER_METADATA: _take_member,
    consumer_offsets.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: _take_assignment_epoch,
    consumer_offsets.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: _take_assignment,
    consumer_offsets.STREAMS_GROUP_TOPOLOGY: _take_topology,
}

_KINDS = {
    CLASSIC: (consumer_offsets.GROUP_METADATA,),
    CONSUMER: (
        consumer_offsets.CONSUMER_GROUP_METADATA,
        consumer_offsets.CONSUMER_GROUP_MEMBER_METADATA,
        consumer_offsets.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
        consumer_offsets.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        consumer_offsets.CONSUMER_GROUP_REGULAR_EXPRESSION,
    ),
    SHARE: (
        consumer_offsets.SHARE_GROUP_METADATA,
        consumer_offsets.SHARE_GROUP_MEMBER_METADATA,
        consumer_offsets.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        consumer_offsets.SHARE_GROUP_STATE_PARTITION_METADATA,
    ),
    STREAMS: (
        consumer_offsets.STREAMS_GROUP_METADATA,
        consumer_offsets.STREAMS_GROUP_MEMBER_METADATA,
        consumer_offsets.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA,
        consumer_offsets.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        consumer_offsets.STREAMS_GROUP_TOPOLOGY,
    ),
}
_KIND_OF = {type_id: kind for kind, types in _KINDS.items() for type_id in types}
_NAMING = {types[0] for types in _KINDS.values()}
"""Records that say of which kind a group is."""

"""`ConsumerProtocolGroup`: members that share partitions by the consumer protocol (KIP-848).

The server decides who reads what. Each change of members or topics begins a new group epoch with a
target assignment, and each member goes there on its own, heartbeat by heartbeat::

    Stable ──── partitions to give up ────▶ UnrevokedPartitions
      ▲  │                                          │ it owns them no longer
      │  └── partitions that others still own ──┐   ▼
      └──────── they have been released ── UnreleasedPartitions

A partition is assigned when no other member owns it: never to two at a time.

Differs from Kafka: a heartbeat that brings a regular expression is answered when the expression has
been resolved. Members of the classic protocol are not taken into such a group
(``group.consumer.migration.policy=disabled``).

Source: ConsumerGroup, ConsumerGroupMember, CurrentAssignmentBuilder, TopicRegexResolver,
GroupMetadataManager.consumerGroup… (Kafka 4.4); KIP-848.
"""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from pylog.internal_topics.message_writer import EachOf
from pylog.server.assignors import ASSIGNORS, DEFAULT_ASSIGNOR, MemberSubscription
from pylog.server.group_config import GroupError
from pylog.server.group_memory import (
    MEMBER_BYTES,
    NAME_BYTES,
    GroupMemory,
    size_of_assignments,
    size_of_names,
)
from pylog.server.protocol import Errors
from pylog.server.rate_limited_log import server_logger
from pylog.server.subscriptions import Subscriptions, those_known

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pylog.server.assignors import Assignment, Assignor
    from pylog.server.group_config import (
        CoordinatorTimer,
        GroupCoordinatorConfig,
    )
    from pylog.server.metadata_cache import MetadataCache
    from pylog.server.protocol import RequestContext, Response

_LOGGER = server_logger(__name__)

JOIN_EPOCH = 0
LEAVE_STATIC_EPOCH = -2
_FIRST_EPOCH = 1
"""Of a new group; its first assignment is of the next one."""
_CONSUMER_MEMBER = 1
"""A member's type: of the consumer protocol."""
_FIRST_VERSION_WITH_CLIENT_MEMBER_ID = 1
_FIRST_OFFSET_COMMIT_VERSION = 9
_ASSIGNED_AT_ONCE = 5_000
"""Members times partitions: more are assigned in a thread, and told with the next heartbeat."""


class MemberState(Enum):
    """How far a member is on its way to the target assignment."""

    STABLE = "stable"
    UNREVOKED_PARTITIONS = "unrevoked_partitions"
    UNRELEASED_PARTITIONS = "unreleased_partitions"


@dataclass(slots=True, eq=False)
class ConsumerGroupMember:
    """A member, its partitions, and the ones that it has still to give up."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str = ""
    kept_bytes: int = 0  # of what `GroupMemory` counts
    resolved_at_ms: int = 0
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Assignment = field(default_factory=dict)
    pending_revocation: Assignment = field(default_factory=dict)

    @property
    def wishes(self) -> tuple[object, ...]:
        """The subscription and the assignor that the member asks for."""
        return self.subscribed_topic_names, self.subscribed_topic_regex, self.server_assignor

    @property
    def size_bytes(self) -> int:
        """Memory that the member takes, estimated."""
        names = (self.member_id, self.instance_id, self.rack_id, self.client_id)
        return (
            MEMBER_BYTES
            + size_of_names(*names, self.subscribed_topic_regex, *self.subscribed_topic_names)
            + size_of_assignments((self.assigned, self.pending_revocation))
        )

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether the member owns all that an epoch assigns to it."""
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    def move_to(
        self,
        state: MemberState,
        epoch: int,
        assigned: Assignment,
        pending_revocation: Assignment | None = None,
    ) -> None:
        """Set where the member is now."""
        # Of its last step, and so the same epoch if that was a step within one.
        self.previous_member_epoch, self.member_epoch = self.member_epoch, epoch
        self.state = state
        self.assigned = assigned
        self.pending_revocation = pending_revocation or {}


class ConsumerProtocolGroup:
    """A group of the consumer protocol. One thread, that of the event loop.

    Invariant: no partition is assigned to, or still owned by, two members.
    """

    kind = "consumer"
    protocol_type = "consumer"

    def __init__(  # noqa: PLR0913 - keyword-only options
        self,
        group_id: str,
        config: GroupCoordinatorConfig,
        timer: CoordinatorTimer,
        image: MetadataCache,
        *,
        epoch: int = _FIRST_EPOCH,
        assign_later: Callable[[ConsumerProtocolGroup], None] = lambda group: (
            group.wanted_assignment().make()
        ),
        kept: GroupMemory | None = None,
    ) -> None:
        self.group_id = group_id
        self.epoch = epoch
        self.assignment_epoch = epoch
        self.members: dict[str, ConsumerGroupMember] = {}
        self._config = config
        self._timer = timer
        self._image = image
        self._assign_later = assign_later
        self._kept = kept or GroupMemory(config.max_group_bytes)
        self._kept_bytes = 0  # besides the members'
        self._subscriptions = Subscriptions()
        self._static_members: dict[str, str] = {}
        self._target: dict[str, Assignment] = {}
        self._target_bytes = 0
        self._partition_counts: dict[uuid.UUID, int] = {}
        self._has_lost_members = False  # since partitions were counted
        self._refresh_at_ms = 0

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    is_unused = is_empty

    @property
    def state_name(self) -> str:
        """The state as tools show it."""
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        if all(each.is_reconciled_to(self.assignment_epoch) for each in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def assignor_name(self) -> str:
        """The assignor that most members ask for."""
        votes = Counter(each.server_assignor for each in self.members.values())
        del votes[None]
        return str(votes.most_common(1)[0][0]) if votes else DEFAULT_ASSIGNOR

    def described(self) -> Response:
        """Return the group for ConsumerGroupDescribe."""
        return {
            "groupId": self.group_id,
            "groupState": self.state_name,
            "groupEpoch": self.epoch,
            "assignmentEpoch": self.assignment_epoch,
            "assignorName": self.assignor_name,
            "members": EachOf(self._described, list(self.members.values())),
        }

    def _described(self, member: ConsumerGroupMember) -> Response:
        return {
            "memberId": member.member_id,
            "instanceId": member.instance_id,
            "rackId": member.rack_id,
            "memberEpoch": member.member_epoch,
            "clientId": member.client_id,
            "clientHost": member.client_host,
            "subscribedTopicNames": sorted(member.subscribed_topic_names),
            "subscribedTopicRegex": member.subscribed_topic_regex,
            # What it has still to give up is shown, too.
            "assignment": self._named(_union(member.assigned, member.pending_revocation)),
            "targetAssignment": self._named(self._target.get(member.member_id, {})),
            "memberType": _CONSUMER_MEMBER,
        }

    def _named(self, assignment: Assignment) -> Response:
        names = {topic_id: self._image.topic_name(topic_id) for topic_id in assignment}
        return {
            "topicPartitions": [
                {"topicId": topic_id, "topicName": name, "partitions": sorted(assignment[topic_id])}
                for topic_id, name in names.items()
                if name is not None
            ]
        }

    def subscribed_topics(self) -> frozenset[str]:
        """Return the existing topics that members read."""
        return self._subscriptions.topics(self._image.topic_names())

    def validate_offset_commit(self, request: Response, version: int) -> None:
        """Raise `GroupError` unless this member may commit offsets now."""
        epoch = request["generationIdOrMemberEpoch"]
        if epoch < 0 and not self.members:
            return  # by hand: whoever assigns its partitions itself, or an operator
        member = self._member(request["memberId"])
        if version < _FIRST_OFFSET_COMMIT_VERSION:
            message = (
                "OffsetCommit version 9 or above must be used by members using the modern group "
                "protocol"
            )
            raise GroupError(Errors.UNSUPPORTED_VERSION, message)
        _ensure_epoch(member, epoch)

    def validate_offset_fetch(self, member_id: str | None, epoch: int) -> None:
        """Raise `GroupError` unless a member, or nobody in particular, may ask for offsets."""
        if member_id is None and epoch < 0:
            return
        _ensure_epoch(self._member(member_id or ""), epoch)

    # ConsumerGroupHeartbeat

    def unresolved_regex(self, request: Response) -> str:
        """Return the regular expression whose topics a heartbeat needs; none if they are known."""
        member = self.members.get(request["memberId"])
        asked: str | None = request["subscribedTopicRegex"]
        if member is None:
            return asked or ""
        regex = member.subscribed_topic_regex if asked is None else asked
        age_ms = self._timer.milliseconds() - member.resolved_at_ms
        is_due = age_ms >= self._config.consumer_regex_refresh_interval_ms
        return regex if is_due or regex != member.subscribed_topic_regex else ""

    def heartbeat(
        self,
        request: Response,
        context: RequestContext,
        matching_topics: frozenset[str] | None = None,
    ) -> Response:
        """Return the answer to a heartbeat of a valid form that does not leave the group.

        ``matching_topics`` are those of its `unresolved_regex`.
        """
        member_id = request["memberId"]
        if len(self.members) >= self._config.group_max_size and member_id not in self.members:
            message = (
                "The consumer group has reached its maximum capacity of "
                f"{self._config.group_max_size} members."
            )
            raise GroupError(Errors.GROUP_MAX_SIZE_REACHED, message)
        member = self._joined_or_known(request)
        earlier, is_joining = member.assigned, request["memberEpoch"] == JOIN_EPOCH
        has_changed = self._update_subscription(member, request, context)
        if matching_topics is not None and member.subscribed_topic_regex:
            self._subscriptions.set_matching(member.subscribed_topic_regex, matching_topics)
            member.resolved_at_ms = self._timer.milliseconds()
        self._maybe_refresh(has_changed=has_changed)
        if self.epoch > self.assignment_epoch:
            if len(self.members) * sum(self._known_counts().values()) > _ASSIGNED_AT_ONCE:
                self._assign_later(self)
            else:
                self.wanted_assignment().make()
        self._reconcile(member, request["topicPartitions"], has_changed=has_changed)
        is_other = member.assigned is not earlier or matching_topics is not None
        if has_changed or is_joining or is_other or request["rackId"]:
            self._count(member)
            self._count_shared()
        self._timer.schedule(
            self._key("session", member.member_id),
            self._config.consumer_session_timeout_ms,
            lambda: self._expire(member, "no heartbeat"),
        )
        is_full = (
            request["rebalanceTimeoutMs"] != -1
            and request["topicPartitions"] is not None
            and (
                request["subscribedTopicNames"] is not None
                or request["subscribedTopicRegex"] is not None
            )
        )
        answer: Response = {
            "memberId": member.member_id,
            "memberEpoch": member.member_epoch,
            "heartbeatIntervalMs": self._config.consumer_heartbeat_interval_ms,
        }
        if is_joining or is_full or member.assigned != earlier:
            answer["assignment"] = {
                "topicPartitions": [
                    {"topicId": topic_id, "partitions": sorted(partitions)}
                    for topic_id, partitions in member.assigned.items()
                ]
            }
        return answer

    def _joined_or_known(self, request: Response) -> ConsumerGroupMember:
        """Return the member of a heartbeat, which may be a new one."""
        member_id, instance_id = request["memberId"], request["instanceId"]
        is_joining = request["memberEpoch"] == JOIN_EPOCH
        if not is_joining:
            member = (
                self._member(member_id)
                if instance_id is None
                else self._static_member(instance_id, member_id)
            )
            _ensure_heartbeat_epoch(member, request["memberEpoch"], request["topicPartitions"])
            return member
        if instance_id is not None and instance_id in self._static_members:
            return self._replaced(self.members[self._static_members[instance_id]], member_id)
        if member_id in self.members:
            return self.members[member_id]  # it has been fenced, or has not got the answer
        member = ConsumerGroupMember(member_id or str(uuid.uuid4()), instance_id)
        self.members[member.member_id] = member
        if instance_id is not None:
            self._static_members[instance_id] = member.member_id
        _LOGGER.info("group %s: member %s joins", self.group_id, member.member_id)
        return member

    def _replaced(self, member: ConsumerGroupMember, member_id: str) -> ConsumerGroupMember:
        """Return a static member that comes back under a new id, with what it had."""
        if member.member_epoch != LEAVE_STATIC_EPOCH:
            message = (
                f"Static member {member_id} with instance id {member.instance_id} cannot join the "
                f"group because the instance id is owned by {member.member_id} member."
            )
            raise GroupError(Errors.UNRELEASED_INSTANCE_ID, message)
        self._cancel_timers(member.member_id)
        del self.members[member.member_id]
        target = self._target.pop(member.member_id, {})
        member.member_id = member_id or str(uuid.uuid4())
        member.member_epoch = member.previous_member_epoch = 0
        self.members[member.member_id] = member
        self._target[member.member_id] = target
        self._static_members[str(member.instance_id)] = member.member_id
        return member

    def _update_subscription(
        self, member: ConsumerGroupMember, request: Response, context: RequestContext
    ) -> bool:
        """Take in what a heartbeat says about a member; return whether it wants something else."""
        before = member.wishes
        subscribed = member.subscribed_topic_names, member.subscribed_topic_regex
        if request["rackId"] is not None:
            member.rack_id = request["rackId"]
        if request["rebalanceTimeoutMs"] != -1:
            member.rebalance_timeout_ms = request["rebalanceTimeoutMs"]
        if request["serverAssignor"] is not None:
            member.server_assignor = request["serverAssignor"]
        if request["subscribedTopicNames"] is not None:
            member.subscribed_topic_names = frozenset(request["subscribedTopicNames"])
        if request["subscribedTopicRegex"] is not None:
            member.subscribed_topic_regex = request["subscribedTopicRegex"]
        if request["memberEpoch"] == JOIN_EPOCH:
            # Differs from Kafka: a client id that changes later would take memory uncounted.
            member.client_id = context.client_id or ""
        member.client_host = f"/{context.client_host}"
        has_changed = before != member.wishes
        if has_changed:
            self._subscriptions.add(member.subscribed_topic_names, member.subscribed_topic_regex)
            self._subscriptions.remove(*subscribed)
        return has_changed

    def _count(self, member: ConsumerGroupMember) -> None:
        """Have what a member takes count, after it may have changed."""
        before, member.kept_bytes = member.kept_bytes, member.size_bytes
        self._kept.total += member.kept_bytes - before

    def _count_shared(self) -> None:
        """Have what members share count."""
        before = self._kept_bytes
        topics = NAME_BYTES * len(self._partition_counts)
        self._kept_bytes = topics + self._target_bytes + self._subscriptions.size_bytes
        self._kept.total += self._kept_bytes - before

    def _maybe_refresh(self, *, has_changed: bool) -> None:
        """Begin a new epoch if there are other members, subscriptions or partitions."""
        now_ms = self._timer.milliseconds()
        if not (has_changed or now_ms >= self._refresh_at_ms):
            return
        self._refresh_at_ms = now_ms + self._config.consumer_metadata_refresh_interval_ms
        before, now = self._known_counts(), self._counts()
        if has_changed or now != before:
            self._partition_counts = now
            self.epoch += 1

    def _known_counts(self) -> dict[uuid.UUID, int]:
        """Return the partitions of this epoch."""
        if self._has_lost_members:
            self._partition_counts, self._has_lost_members = self._counts(), False
        return self._partition_counts

    def _counts(self) -> dict[uuid.UUID, int]:
        """Return how many partitions the topics have that members read."""
        ids = {name: self._image.topic_id(name) for name in sorted(self.subscribed_topics())}
        return {
            topic_id: self._image.partition_count(name)
            for name, topic_id in ids.items()
            if topic_id is not None
        }

    def _topics_of(self, member: ConsumerGroupMember) -> frozenset[str]:
        """Return the existing topics that a member reads."""
        matching = self._subscriptions.matching(member.subscribed_topic_regex)
        return matching | those_known(member.subscribed_topic_names, self._image.topic_names())

    def _topic_ids_of(self, member: ConsumerGroupMember) -> frozenset[uuid.UUID]:
        ids = map(self._image.topic_id, self._topics_of(member))
        return frozenset(each for each in ids if each is not None)

    def wanted_assignment(self) -> WantedAssignment:
        """Return what the target assignment of this epoch is made of."""
        matching = self._subscriptions.matching
        members = [
            (
                each,
                each.subscribed_topic_names,
                matching(each.subscribed_topic_regex),
                self._target.get(name, {}),
            )
            for name, each in self.members.items()
        ]
        counts = self._known_counts()
        ids = {self._image.topic_name(each): each for each in counts}
        return WantedAssignment(
            self, self.epoch, ASSIGNORS[self.assignor_name], members, ids, counts
        )

    def set_target(self, epoch: int, target: dict[str, Assignment]) -> None:
        """Have members go to a target assignment, unless there is a later one."""
        if epoch > self.assignment_epoch:
            self._target, self.assignment_epoch = target, epoch
            self._target_bytes = size_of_assignments(target.values())
            self._count_shared()
            _LOGGER.info("group %s, epoch %d: %d members", self.group_id, epoch, len(self.members))

    # A member's way to its target

    def _reconcile(
        self,
        member: ConsumerGroupMember,
        owned: list[Response] | None,
        *,
        has_changed: bool,
    ) -> None:
        """Go one step, as far as what the member and others still own allows."""
        is_stuck = member.state is MemberState.UNREVOKED_PARTITIONS and _owns_any(
            owned, member.pending_revocation
        )
        if is_stuck or member.is_reconciled_to(self.assignment_epoch):
            if has_changed:
                self._drop_unsubscribed(member, owned)
            return
        subscribed = self._topic_ids_of(member)
        target = {
            topic_id: partitions
            for topic_id, partitions in self._target.get(member.member_id, {}).items()
            if topic_id in subscribed
        }
        kept = _intersection(member.assigned, target)
        revoked = _difference(member.assigned, kept)
        if revoked and _owns_any(owned, revoked):
            member.move_to(MemberState.UNREVOKED_PARTITIONS, member.member_epoch, kept, revoked)
            self._schedule_revocation(member)
            return
        wanted = _difference(target, kept)
        free = _difference(wanted, self._owned_by_others(member, wanted))
        is_complete = free == wanted
        state = MemberState.STABLE if is_complete else MemberState.UNRELEASED_PARTITIONS
        assigned = target if is_complete else _union(kept, free)  # then both share their sets
        member.move_to(state, self.assignment_epoch, assigned)
        self._timer.cancel(self._key("revocation", member.member_id))

    def _drop_unsubscribed(self, member: ConsumerGroupMember, owned: list[Response] | None) -> None:
        """Take topics away at once that a member does not want any more."""
        subscribed = self._topic_ids_of(member)
        kept = {each: it for each, it in member.assigned.items() if each in subscribed}
        dropped = {each: it for each, it in member.assigned.items() if each not in subscribed}
        if not dropped:
            return
        pending = _union(member.pending_revocation, dropped)
        if _owns_any(owned, pending):
            state = MemberState.UNREVOKED_PARTITIONS
            member.move_to(state, member.member_epoch, kept, pending)
            self._schedule_revocation(member)
        else:
            member.move_to(member.state, member.member_epoch, kept, member.pending_revocation)

    def _owned_by_others(self, member: ConsumerGroupMember, wanted: Assignment) -> Assignment:
        """Return the partitions that others own, of the topics in ``wanted``."""
        owned: dict[uuid.UUID, set[int]] = {each: set() for each in wanted}
        for other in self.members.values():
            if other is member:
                continue
            for assignment in (other.assigned, other.pending_revocation):
                for topic_id in assignment.keys() & owned.keys():
                    owned[topic_id] |= assignment[topic_id]
        return {topic_id: frozenset(partitions) for topic_id, partitions in owned.items()}

    def _schedule_revocation(self, member: ConsumerGroupMember) -> None:
        epoch = member.member_epoch

        def expire() -> None:
            if member.member_epoch == epoch:
                self._expire(member, f"not past epoch {epoch} in time")

        self._timer.schedule(
            self._key("revocation", member.member_id), member.rebalance_timeout_ms, expire
        )

    # Members that go

    def leave(self, request: Response) -> Response:
        """Return the answer to a heartbeat that leaves the group, for good or for a restart."""
        member_id, epoch = request["memberId"], request["memberEpoch"]
        instance_id = request["instanceId"]
        if instance_id is None:
            self._remove(self._member(member_id))
        else:
            member = self._static_member(instance_id, member_id)
            if epoch == LEAVE_STATIC_EPOCH:
                member.member_epoch = LEAVE_STATIC_EPOCH
                member.pending_revocation = {}
                self._count(member)
            else:
                self._remove(member)
        _LOGGER.info("group %s: member %s leaves", self.group_id, member_id)
        return {"memberId": member_id, "memberEpoch": epoch}

    def _expire(self, member: ConsumerGroupMember, reason: str) -> None:
        if self.members.get(member.member_id) is member:
            _LOGGER.info(
                "group %s: member %s is removed: %s", self.group_id, member.member_id, reason
            )
            self._remove(member)

    def _remove(self, member: ConsumerGroupMember) -> None:
        self._cancel_timers(member.member_id)
        del self.members[member.member_id]
        self._subscriptions.remove(member.subscribed_topic_names, member.subscribed_topic_regex)
        self._kept.total -= member.kept_bytes
        self._target_bytes -= size_of_assignments([self._target.pop(member.member_id, {})])
        if member.instance_id is not None:
            del self._static_members[member.instance_id]
        self._has_lost_members = True
        self.epoch += 1
        if not self.members:
            self._partition_counts = {}
            self.assignment_epoch = self.epoch
        self._count_shared()

    def close(self) -> None:
        """Forget all members and timers."""
        for member in self.members.values():
            self._cancel_timers(member.member_id)
            self._kept.total -= member.kept_bytes
        self._kept.total -= self._kept_bytes
        self.members.clear()

    def _cancel_timers(self, member_id: str) -> None:
        self._timer.cancel(self._key("session", member_id))
        self._timer.cancel(self._key("revocation", member_id))

    def _key(self, what: str, member_id: str) -> tuple[str, str, str]:
        return (what, self.group_id, member_id)

    def _member(self, member_id: str) -> ConsumerGroupMember:
        member = self.members.get(member_id)
        if member is None:
            message = f"Member {member_id} is not a member of group {self.group_id}."
            raise GroupError(Errors.UNKNOWN_MEMBER_ID, message)
        return member

    def _static_member(self, instance_id: str, member_id: str) -> ConsumerGroupMember:
        current = self._static_members.get(instance_id)
        if current is None:
            message = f"Instance id {instance_id} is unknown."
            raise GroupError(Errors.UNKNOWN_MEMBER_ID, message)
        if current != member_id:
            message = (
                f"Static member {member_id} with instance id {instance_id} was fenced by member "
                f"{current}."
            )
            raise GroupError(Errors.FENCED_INSTANCE_ID, message)
        return self.members[current]


class WantedAssignment(NamedTuple):
    """What a target assignment is made of, in any thread."""

    group: ConsumerProtocolGroup
    epoch: int
    assignor: Assignor
    members: list[tuple[ConsumerGroupMember, frozenset[str], frozenset[str], Assignment]]
    topic_ids: dict[str | None, uuid.UUID]
    partition_counts: dict[uuid.UUID, int]

    def find(self) -> dict[str, Assignment]:
        """Return it; takes long for many members that want different topics."""
        known = self.topic_ids.keys()
        subscriptions = {
            member.member_id: MemberSubscription(
                frozenset(
                    self.topic_ids[each]
                    for each in those_known(names, known) | those_known(matching, known)
                ),
                target,
                member.instance_id,
            )
            for member, names, matching, target in self.members
        }
        return self.assignor(subscriptions, self.partition_counts)

    def make(self) -> None:
        """Find it, and give it to the group."""
        self.group.set_target(self.epoch, self.find())


def ensure_valid_heartbeat(request: Response, version: int) -> None:
    """Raise `GroupError` for a heartbeat that breaks the protocol's rules, whatever the group."""
    epoch = request["memberEpoch"]
    needs_member_id = version >= _FIRST_VERSION_WITH_CLIENT_MEMBER_ID or epoch != JOIN_EPOCH
    empty = [
        name
        for name, is_needed in (
            ("MemberId", needs_member_id),
            ("GroupId", True),
            ("InstanceId", request["instanceId"] is not None),
            ("RackId", request["rackId"] is not None),
        )
        if is_needed and not (request[name[0].lower() + name[1:]] or "").strip()
    ]
    problem = None
    if empty:
        problem = f"{empty[0]} can't be empty."
    elif epoch == JOIN_EPOCH:
        problem = _problem_with_joining(request)
    elif epoch == LEAVE_STATIC_EPOCH and request["instanceId"] is None:
        problem = "InstanceId can't be null."
    elif epoch < LEAVE_STATIC_EPOCH:
        problem = "MemberEpoch is invalid."
    if problem is not None:
        raise GroupError(Errors.INVALID_REQUEST, problem)
    assignor = request["serverAssignor"]
    if assignor is not None and assignor not in ASSIGNORS:
        message = (
            f"ServerAssignor {assignor} is not supported. Supported assignors: "
            f"{', '.join(ASSIGNORS)}."
        )
        raise GroupError(Errors.UNSUPPORTED_ASSIGNOR, message)


def _problem_with_joining(request: Response) -> str | None:
    if request["rebalanceTimeoutMs"] == -1:
        return "RebalanceTimeoutMs must be provided in first request."
    if request["topicPartitions"] is None or request["topicPartitions"]:
        return "TopicPartitions must be empty when (re-)joining."
    if request["subscribedTopicNames"] is None and request["subscribedTopicRegex"] is None:
        return (
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining."
        )
    return None


def _ensure_heartbeat_epoch(
    member: ConsumerGroupMember, epoch: int, owned: list[Response] | None
) -> None:
    """Raise `GroupError` unless the epoch is the member's, or its last if an answer was lost."""
    if epoch == member.member_epoch:
        return
    if (
        epoch == member.previous_member_epoch < member.member_epoch
        and owned is not None
        and not _difference(_owned(owned), member.assigned)
    ):
        return
    than = "greater" if epoch > member.member_epoch else "smaller"
    message = (
        f"The consumer group member has a {than} member epoch ({epoch}) than the one known by the "
        f"group coordinator ({member.member_epoch}). The member must abandon all its partitions "
        "and rejoin."
    )
    raise GroupError(Errors.FENCED_MEMBER_EPOCH, message)


def _ensure_epoch(member: ConsumerGroupMember, epoch: int) -> None:
    if epoch != member.member_epoch:
        message = (
            f"The received member epoch {epoch} does not match the expected member epoch "
            f"{member.member_epoch}."
        )
        raise GroupError(Errors.STALE_MEMBER_EPOCH, message)


def _owned(topics: list[Response]) -> Assignment:
    return {each["topicId"]: frozenset(each["partitions"]) for each in topics}


def _owns_any(owned: list[Response] | None, assignment: Assignment) -> bool:
    """Whether a member has one of these partitions; one that does not say has them all."""
    return owned is None or bool(_intersection(_owned(owned), assignment))


def _intersection(one: Assignment, other: Assignment) -> Assignment:
    return _not_empty({each: one[each] & other[each] for each in one.keys() & other.keys()})


def _difference(one: Assignment, other: Assignment) -> Assignment:
    return _not_empty({each: one[each] - other.get(each, frozenset()) for each in one})


def _union(one: Assignment, other: Assignment) -> Assignment:
    topics = [*one, *(each for each in other if each not in one)]
    empty = frozenset[int]()
    return _not_empty({each: one.get(each, empty) | other.get(each, empty) for each in topics})


def _not_empty(assignment: Mapping[uuid.UUID, frozenset[int]]) -> Assignment:
    return {topic_id: partitions for topic_id, partitions in assignment.items() if partitions}

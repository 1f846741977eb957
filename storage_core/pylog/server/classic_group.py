"""`ClassicGroup`: members that share the partitions of topics by the classic protocol.

One member, the leader, makes the assignment; the group only brings members together::

    Empty ── first member ──▶ PreparingRebalance ── all have joined, or time is up ──┐
      ▲                        ▲   ▲                                                 ▼
      │ the last member leaves │   └── members join, leave, fail ── CompletingRebalance
      └────────────────────────┤                                                     │
                               └── members join, leave, fail ── Stable ◀── the leader's assignment

Differs from Kafka: where a rule leaves a choice to the order of a hash table (the next leader, a
protocol among those with most votes), the member that joined first counts.

Source: ClassicGroup, ClassicGroupMember, GroupMetadataManager.classicGroup… (Kafka 4.4); KIP-62,
KIP-134, KIP-345, KIP-394, KIP-559, KIP-814.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from pylog.errors import InvalidRecordError
from pylog.internal_topics.consumer_offsets import CONSUMER_PROTOCOL_TYPE, read_subscription
from pylog.internal_topics.message_writer import EachOf
from pylog.server.group_config import GroupError
from pylog.server.group_memory import MEMBER_BYTES, PENDING_BYTES, GroupMemory, size_of_names
from pylog.server.protocol import Errors
from pylog.server.rate_limited_log import server_logger
from pylog.server.request_limits import MOST_ELEMENTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.server.group_config import CoordinatorTimer, GroupCoordinatorConfig
    from pylog.server.protocol import RequestContext, Response

    Respond = Callable[[Response], None]

_LOGGER = server_logger(__name__)
UNKNOWN_MEMBER_ID = ""
_FIRST_VERSION_WITH_KNOWN_MEMBER_ID = 4  # of JoinGroup
_FIRST_VERSION_THAT_SKIPS_ASSIGNMENT = 9


class ClassicGroupState(Enum):
    """The state of a group between two assignments."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


_EMPTY, _PREPARING, _COMPLETING, _STABLE = ClassicGroupState


@dataclass(slots=True, eq=False)
class ClassicGroupMember:
    """A member; ``protocols`` in the order in which it prefers them.

    ``respond_to_join`` and ``respond_to_sync`` answer requests that wait.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: list[tuple[str, bytes]]
    assignment: bytes = b""
    respond_to_join: Respond | None = None
    respond_to_sync: Respond | None = None
    is_new: bool = True

    protocol_names: frozenset[str] = frozenset()
    kept_bytes: int = 0  # of what `GroupMemory` counts

    def __post_init__(self) -> None:
        self.set_protocols(self.protocols)

    def set_protocols(self, protocols: list[tuple[str, bytes]]) -> None:
        """Replace the protocols."""
        self.protocols = protocols
        self.protocol_names = frozenset(name for name, _ in protocols)

    @property
    def size_bytes(self) -> int:
        """Memory that the member takes, estimated."""
        names = (self.member_id, self.group_instance_id, self.client_id, self.protocol_type)
        given = (each for protocol in self.protocols for each in protocol)
        return MEMBER_BYTES + size_of_names(*names, self.assignment, *given)

    def metadata(self, protocol_name: str | None) -> bytes:
        """Return what the member gives the leader of a protocol."""
        return next(data for name, data in self.protocols if name == protocol_name)

    def described(self, protocol_name: str | None) -> Response:
        """Return the member for DescribeGroups; of no protocol without its metadata."""
        return {
            "memberId": self.member_id,
            "groupInstanceId": self.group_instance_id,
            "clientId": self.client_id,
            "clientHost": self.client_host,
            "memberMetadata": b"" if protocol_name is None else self.metadata(protocol_name),
            "memberAssignment": self.assignment,
        }


class ClassicGroup:
    """A group of the classic protocol. One thread, that of the event loop.

    Invariant: whoever waits for an answer to JoinGroup gets it by the end of a rebalance, to
    SyncGroup by the leader's assignment or the next rebalance, at the latest when a timer says so.
    """

    kind = "classic"

    def __init__(
        self,
        group_id: str,
        config: GroupCoordinatorConfig,
        timer: CoordinatorTimer,
        *,
        protocol_type: str | None = None,
        generation_id: int = 0,
        kept: GroupMemory | None = None,
    ) -> None:
        self.group_id = group_id
        self.protocol_type = protocol_type
        self.protocol_name: str | None = None
        self.generation_id = generation_id
        self.leader_id: str | None = None
        self.members: dict[str, ClassicGroupMember] = {}
        self.state = _EMPTY
        self._is_initial_rebalance = False
        self._config = config
        self._timer = timer
        self._kept = kept or GroupMemory(config.max_group_bytes)
        self._static_members: dict[str, str] = {}
        self._pending_join: set[str] = set()
        self._pending_sync: set[str] = set()
        self._has_new_member = False
        # Of this generation; None if nothing is known of its members.
        self._subscriptions: list[bytes] | None = None if protocol_type is None else []

    @property
    def is_empty(self) -> bool:
        """Whether there are no members, nor are any about to join."""
        return self.state is _EMPTY

    @property
    def is_unused(self) -> bool:
        """Whether nobody is known to care for the group."""
        return self.is_empty and not self._pending_join

    @property
    def state_name(self) -> str:
        """The state as tools show it."""
        return self.state.value

    def described(self) -> Response:
        """Return the group for DescribeGroups."""
        protocol_name = self.protocol_name if self.state is _STABLE else None
        return {
            "groupId": self.group_id,
            "groupState": self.state_name,
            "protocolType": self.protocol_type or "",
            "protocolData": protocol_name or "",
            "members": EachOf(
                lambda each: each.described(protocol_name), list(self.members.values())
            ),
        }

    def subscribed_topics(self) -> frozenset[str] | None:
        """Return what members read; None for whatever it may be, if their metadata does not say."""
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return frozenset()
        if self._subscriptions is None:
            return None
        topics: set[str] = set()
        try:
            for each in self._subscriptions:
                rest = MOST_ELEMENTS - len(topics)
                topics.update(read_subscription(each, max_elements=rest)["topics"])
        except InvalidRecordError as error:
            _LOGGER.warning(
                "group %s: a subscription cannot be read: %s", self.group_id, error.reason
            )
            return None
        return frozenset(topics)

    def _begin_subscriptions(self) -> None:
        """Remember what the members of a new generation read."""
        self._subscriptions = [each.metadata(self.protocol_name) for each in self.members.values()]

    # JoinGroup

    def join(self, request: Response, context: RequestContext, respond: Respond) -> None:
        """Answer JoinGroup, now or when the rebalance ends."""
        member_id = request["memberId"]
        if not self._accepts(member_id):
            self._remove(member_id)
            respond(_join_error(UNKNOWN_MEMBER_ID, Errors.GROUP_MAX_SIZE_REACHED))
        elif not self._supports(request):
            respond(_join_error(member_id, Errors.INCONSISTENT_GROUP_PROTOCOL))
        elif member_id == UNKNOWN_MEMBER_ID:
            self._join_new(request, context, respond)
        elif member_id in self._pending_join and request["groupInstanceId"] is None:
            self._add_member(request, context, member_id, respond)
        else:
            self._join_existing(request, respond)

    def _accepts(self, member_id: str) -> bool:
        """Return whether the group has room for a member."""
        if len(self._pending_join) >= self._config.group_max_size:
            return member_id in self._pending_join or member_id in self.members
        if self.state is _EMPTY:
            return True
        member = self.members.get(member_id)
        if self.state is _PREPARING:
            if member is not None and member.respond_to_join is not None:
                return True
            return self._waiting_count < self._config.group_max_size
        return member is not None or len(self.members) < self._config.group_max_size

    def _supports(self, request: Response) -> bool:
        """Whether the group and the member have a protocol in common."""
        names = [each["name"] for each in request["protocols"]]
        if self.state is _EMPTY:
            return bool(request["protocolType"] and names)
        is_of_type: bool = self.protocol_type == request["protocolType"]
        return is_of_type and (not self.members or not self._common_protocols().isdisjoint(names))

    def _common_protocols(self) -> frozenset[str]:
        """Return the protocols that all members have."""
        names = [member.protocol_names for member in self.members.values()]
        return frozenset.intersection(*names)

    def _join_new(self, request: Response, context: RequestContext, respond: Respond) -> None:
        instance_id = request["groupInstanceId"]
        prefix = context.client_id if instance_id is None else instance_id
        member_id = f"{prefix or ''}-{uuid.uuid4()}"
        if instance_id is not None:
            earlier = self._static_members.get(instance_id)
            if earlier is None:
                self._add_member(request, context, member_id, respond)
            else:
                self._replace_static_member(request, context, (earlier, member_id), respond)
        elif context.version >= _FIRST_VERSION_WITH_KNOWN_MEMBER_ID:
            self._pending_join.add(member_id)
            self._kept.total += _size_of_pending(member_id)
            self._schedule_heartbeat(member_id, request["sessionTimeoutMs"])
            respond(_join_error(member_id, Errors.MEMBER_ID_REQUIRED))
        else:
            self._add_member(request, context, member_id, respond)

    def _join_existing(self, request: Response, respond: Respond) -> None:
        member_id = request["memberId"]
        try:
            member = self._validated(member_id, request["groupInstanceId"])
        except GroupError as refusal:
            respond(_join_error(member_id, refusal.error) | {"protocolName": None})
            return
        is_same = member.protocols == _protocols(request)
        if is_same and (
            self.state is _COMPLETING or (self.state is _STABLE and member_id != self.leader_id)
        ):
            respond(self._joined(member))  # it has not got the answer to its last JoinGroup
        else:
            self._update_member(member, request, respond)
            self._maybe_prepare_rebalance(f"member {member_id} joins again")

    def _add_member(
        self, request: Response, context: RequestContext, member_id: str, respond: Respond
    ) -> None:
        member = ClassicGroupMember(
            member_id,
            request["groupInstanceId"],
            context.client_id or "",
            f"/{context.client_host}",
            _rebalance_timeout_ms(request),
            request["sessionTimeoutMs"],
            request["protocolType"],
            _protocols(request),
            respond_to_join=respond,
        )
        if self.state is _PREPARING and self._is_initial_rebalance:
            self._has_new_member = True
        if not self.members:
            self.protocol_type = member.protocol_type
        if member.group_instance_id is not None:
            self._static_members[member.group_instance_id] = member_id
        if self.leader_id is None:
            self.leader_id = member_id
        self.members[member_id] = member
        self._count(member)
        self._forget_pending(member_id)
        # Until its first rebalance has ended the member sends no heartbeats.
        self._schedule_heartbeat(member_id, self._config.group_new_member_join_timeout_ms)
        self._maybe_prepare_rebalance(f"member {member_id} joins")

    def _update_member(
        self, member: ClassicGroupMember, request: Response, respond: Respond
    ) -> None:
        member.set_protocols(_protocols(request))
        member.rebalance_timeout_ms = _rebalance_timeout_ms(request)
        member.session_timeout_ms = request["sessionTimeoutMs"]
        self._count(member)
        earlier, member.respond_to_join = member.respond_to_join, respond
        if earlier is not None:
            # Its client has given up the connection that this one waits on.
            earlier(_join_error(member.member_id, Errors.REBALANCE_IN_PROGRESS))

    def _replace_static_member(
        self,
        request: Response,
        context: RequestContext,
        ids: tuple[str, str],
        respond: Respond,
    ) -> None:
        """Give a static member that was restarted a new id; the old one is fenced."""
        old_id, new_id = ids
        member = self.members[old_id]
        fenced = _join_error(old_id, Errors.FENCED_INSTANCE_ID) | {"protocolName": None}
        self._complete_join(member, fenced)
        self._complete_sync(member, {"errorCode": Errors.FENCED_INSTANCE_ID})
        self._timer.cancel(self._heartbeat_key(old_id))
        # In its place: the order of members says who leads next.
        self.members = {
            (new_id if key == old_id else key): each for key, each in self.members.items()
        }
        leader_id = self.leader_id
        member.member_id = new_id
        member.is_new = False
        self._static_members[request["groupInstanceId"]] = new_id
        if leader_id == old_id:
            self.leader_id = new_id
        if old_id in self._pending_sync:
            self._pending_sync.remove(old_id)
            self._pending_sync.add(new_id)
        self._schedule_heartbeat(new_id, member.session_timeout_ms)
        self._update_member(member, request, respond)
        if self.state is _STABLE and self._selected_protocol() == self.protocol_name:
            # No rebalance: it goes on where it was, with the assignment that it had.
            answer = self._joined(member)
            if context.version >= _FIRST_VERSION_THAT_SKIPS_ASSIGNMENT:
                answer["skipAssignment"] = new_id == self.leader_id
            else:
                answer |= {"leader": leader_id, "members": []}
            self._complete_join(member, answer)
        elif self.state is _PREPARING:
            self._maybe_complete_join()
        else:
            self._prepare_rebalance(f"static member {new_id} joins again")

    def _count(self, member: ClassicGroupMember) -> None:
        """Have what a member takes count, after it has changed."""
        before, member.kept_bytes = member.kept_bytes, member.size_bytes
        self._kept.total += member.kept_bytes - before

    def _forget_pending(self, member_id: str) -> None:
        if member_id in self._pending_join:
            self._pending_join.remove(member_id)
            self._kept.total -= _size_of_pending(member_id)

    # The rebalance

    def _maybe_prepare_rebalance(self, reason: str) -> None:
        if self.state is _PREPARING:
            self._maybe_complete_join()
        else:
            self._prepare_rebalance(reason)

    def _prepare_rebalance(self, reason: str) -> None:
        if self.state is _COMPLETING:
            for member in self.members.values():
                member.assignment = b""
                self._count(member)
            self._propagate_assignment(Errors.REBALANCE_IN_PROGRESS)
        self._pending_sync.clear()
        self._timer.cancel(self._sync_key)
        self._is_initial_rebalance = self.state is _EMPTY
        self.state = _PREPARING
        _LOGGER.info(
            "group %s, generation %d: a rebalance begins: %s",
            self.group_id,
            self.generation_id,
            reason,
        )
        if self._is_initial_rebalance:
            delay_ms = self._config.group_initial_rebalance_delay_ms
            remaining_ms = max(self.rebalance_timeout_ms - delay_ms, 0)
            self._schedule_initial_join(delay_ms, remaining_ms)
        elif self._have_all_joined:
            self._complete_rebalance_join()
        else:
            self._timer.schedule(
                self._join_key, self.rebalance_timeout_ms, self._complete_rebalance_join
            )

    def _schedule_initial_join(self, delay_ms: int, remaining_ms: int) -> None:
        """Wait for more members, and again after each that came, until time is up."""

        def complete() -> None:
            if self._has_new_member and remaining_ms > 0:
                self._has_new_member = False
                following_ms = min(self._config.group_initial_rebalance_delay_ms, remaining_ms)
                self._schedule_initial_join(following_ms, max(remaining_ms - delay_ms, 0))
            else:
                self._complete_rebalance_join()

        self._timer.schedule(self._join_key, delay_ms, complete)

    @property
    def rebalance_timeout_ms(self) -> int:
        """Time for which a rebalance waits for members."""
        return max((each.rebalance_timeout_ms for each in self.members.values()), default=0)

    @property
    def _waiting_count(self) -> int:
        return sum(each.respond_to_join is not None for each in self.members.values())

    @property
    def _have_all_joined(self) -> bool:
        return not self._pending_join and self._waiting_count == len(self.members)

    def _maybe_complete_join(self) -> None:
        if self.state is _PREPARING and not self._is_initial_rebalance and self._have_all_joined:
            self._complete_rebalance_join()

    def _complete_rebalance_join(self) -> None:
        """Begin the next generation with the members that have joined."""
        self._timer.cancel(self._join_key)
        late = [
            each.member_id
            for each in self.members.values()
            if each.respond_to_join is None and each.group_instance_id is None
        ]
        for member_id in late:
            self._remove(member_id)
        if late:
            _LOGGER.info(
                "group %s: members %s have not joined in time", self.group_id, ", ".join(late)
            )
        if self.members and not self._elect_joined_leader():
            # Only static members are left, and none of them is back.
            self._timer.schedule(
                self._join_key, self.rebalance_timeout_ms, self._complete_rebalance_join
            )
            return
        self.generation_id += 1
        self._pending_sync.clear()
        self._is_initial_rebalance = self._has_new_member = False
        if not self.members:
            self.protocol_name = None
            self.state = _EMPTY
            self._begin_subscriptions()
            _LOGGER.info("group %s, generation %d: no members", self.group_id, self.generation_id)
            return
        self.protocol_name = self._selected_protocol()
        self.state = _COMPLETING
        self._begin_subscriptions()
        _LOGGER.info(
            "group %s, generation %d: %d members, led by %s",
            self.group_id,
            self.generation_id,
            len(self.members),
            self.leader_id,
        )
        for member in self.members.values():
            self._complete_join(member, self._joined(member))
            self._schedule_heartbeat(member.member_id, member.session_timeout_ms)
            member.is_new = False
            self._pending_sync.add(member.member_id)
        generation_id = self.generation_id
        self._timer.schedule(
            self._sync_key, self.rebalance_timeout_ms, lambda: self._expire_sync(generation_id)
        )

    def _elect_joined_leader(self) -> bool:
        """Make a member that has joined the leader, if there is one."""
        joined = [each for each, it in self.members.items() if it.respond_to_join is not None]
        if joined and self.leader_id not in joined:
            self.leader_id = joined[0]
        return bool(joined)

    def _selected_protocol(self) -> str:
        """Return the protocol that most members prefer, of those that all have."""
        votes: dict[str, int] = {}
        common = self._common_protocols()
        for member in self.members.values():
            choice = next(name for name, _ in member.protocols if name in common)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def _joined(self, member: ClassicGroupMember) -> Response:
        """Return the answer to JoinGroup; the leader is told who the members are."""
        members = []
        if member.member_id == self.leader_id:
            members = [
                {
                    "memberId": each.member_id,
                    "groupInstanceId": each.group_instance_id,
                    "metadata": each.metadata(self.protocol_name),
                }
                for each in self.members.values()
            ]
        return {
            "errorCode": Errors.NONE,
            "generationId": self.generation_id,
            "protocolType": self.protocol_type,
            "protocolName": self.protocol_name,
            "leader": self.leader_id,
            "memberId": member.member_id,
            "members": members,
        }

    def _complete_join(self, member: ClassicGroupMember, answer: Response) -> None:
        respond, member.respond_to_join = member.respond_to_join, None
        if respond is not None:
            respond(answer)

    def _complete_sync(self, member: ClassicGroupMember, answer: Response) -> bool:
        respond, member.respond_to_sync = member.respond_to_sync, None
        if respond is not None:
            respond(answer)
        return respond is not None

    # SyncGroup

    def sync(self, request: Response, respond: Respond) -> None:
        """Answer SyncGroup, now or when the leader has given the assignment."""
        member_id = request["memberId"]
        try:
            member = self._validated_sync(request)
        except GroupError as refusal:
            respond({"errorCode": refusal.error})
            return
        self._pending_sync.discard(member_id)
        if not self._pending_sync:
            self._timer.cancel(self._sync_key)
        if self.state is _STABLE:
            respond(self._synced(member))
            return
        earlier, member.respond_to_sync = member.respond_to_sync, respond
        if earlier is not None:
            earlier({"errorCode": Errors.REBALANCE_IN_PROGRESS})
        if member_id == self.leader_id:
            given = {each["memberId"]: each["assignment"] for each in request["assignments"]}
            for each in self.members.values():
                each.assignment = given.get(each.member_id, b"")
                self._count(each)
            self.state = _STABLE
            self._propagate_assignment(Errors.NONE)

    def _validated_sync(self, request: Response) -> ClassicGroupMember:
        if self.is_empty:
            raise GroupError(Errors.UNKNOWN_MEMBER_ID)
        member = self._validated(request["memberId"], request["groupInstanceId"])
        if request["generationId"] != self.generation_id:
            raise GroupError(Errors.ILLEGAL_GENERATION)
        for given, own in (
            (request["protocolType"], self.protocol_type),
            (request["protocolName"], self.protocol_name),
        ):
            if given is not None and own is not None and given != own:
                raise GroupError(Errors.INCONSISTENT_GROUP_PROTOCOL)
        if self.state is _PREPARING:
            raise GroupError(Errors.REBALANCE_IN_PROGRESS)
        return member

    def _synced(self, member: ClassicGroupMember) -> Response:
        return {
            "errorCode": Errors.NONE,
            "protocolType": self.protocol_type,
            "protocolName": self.protocol_name,
            "assignment": member.assignment,
        }

    def _propagate_assignment(self, error: Errors) -> None:
        for member in self.members.values():
            answer = {"errorCode": error} if error else self._synced(member)
            if self._complete_sync(member, answer):
                self._schedule_heartbeat(member.member_id, member.session_timeout_ms)

    def _expire_sync(self, generation_id: int) -> None:
        """Begin a rebalance without the members that have not asked for their assignment."""
        if generation_id != self.generation_id or self.state in (_EMPTY, _PREPARING):
            return
        missing = sorted(self._pending_sync)
        for member_id in missing:
            self._remove(member_id)
        if missing:
            self._prepare_rebalance(f"members {', '.join(missing)} have not sent SyncGroup in time")

    # Heartbeat, LeaveGroup, OffsetCommit

    def heartbeat(self, request: Response) -> Errors:
        """Return the error code that answers Heartbeat."""
        member = self._validated(request["memberId"], request["groupInstanceId"])
        if request["generationId"] != self.generation_id:
            raise GroupError(Errors.ILLEGAL_GENERATION)
        if self.state is _EMPTY:
            raise GroupError(Errors.UNKNOWN_MEMBER_ID)
        self._schedule_heartbeat(member.member_id, member.session_timeout_ms)
        return Errors.REBALANCE_IN_PROGRESS if self.state is _PREPARING else Errors.NONE

    def leave(self, identities: list[Response]) -> list[Response]:
        """Remove members; return what LeaveGroup says of each."""
        answers = []
        has_left = False
        for identity in identities:
            member_id, instance_id = identity["memberId"], identity["groupInstanceId"]
            error = Errors.NONE
            try:
                self._remove(self._leaving(member_id, instance_id))
                has_left = True
            except GroupError as refusal:
                error = refusal.error
            answers.append(
                {"memberId": member_id, "groupInstanceId": instance_id, "errorCode": error}
            )
        if has_left and self.state is not _EMPTY:
            self._maybe_prepare_rebalance("members leave")
        return answers

    def _leaving(self, member_id: str, instance_id: str | None) -> str:
        if member_id in self._pending_join:
            return member_id
        if member_id == UNKNOWN_MEMBER_ID and instance_id is not None:
            member_id = self._static_members.get(instance_id, member_id)
        return self._validated(member_id, instance_id).member_id

    def validate_offset_commit(self, request: Response) -> None:
        """Raise `GroupError` unless this member may commit offsets now."""
        member_id, instance_id = request["memberId"], request["groupInstanceId"]
        generation_id = request["generationIdOrMemberEpoch"]
        if generation_id < 0 and self.state is _EMPTY:
            return  # by hand: whoever assigns its partitions itself, or an operator
        if generation_id < 0 and not member_id and instance_id is None:
            raise GroupError(Errors.UNKNOWN_MEMBER_ID)
        member = self._validated(member_id, instance_id)
        if generation_id != self.generation_id:
            raise GroupError(Errors.ILLEGAL_GENERATION)
        if self.state is _COMPLETING:
            raise GroupError(Errors.REBALANCE_IN_PROGRESS)
        self._schedule_heartbeat(member_id, member.session_timeout_ms)

    def _validated(self, member_id: str, instance_id: str | None) -> ClassicGroupMember:
        """Return a member; `GroupError` says why there is none of this name."""
        if instance_id is not None:
            current = self._static_members.get(instance_id)
            if current is not None and current != member_id:
                raise GroupError(Errors.FENCED_INSTANCE_ID)
            if current is None:
                raise GroupError(Errors.UNKNOWN_MEMBER_ID)
        member = self.members.get(member_id)
        if member is None:
            raise GroupError(Errors.UNKNOWN_MEMBER_ID)
        return member

    # Members that go

    def _schedule_heartbeat(self, member_id: str, timeout_ms: int) -> None:
        self._timer.schedule(
            self._heartbeat_key(member_id), timeout_ms, lambda: self._expire_member(member_id)
        )

    def _expire_member(self, member_id: str) -> None:
        if member_id in self._pending_join:
            self._remove(member_id)
            self._maybe_complete_join()
            return
        member = self.members.get(member_id)
        if member is None:
            return
        is_waiting = member.respond_to_join is not None or member.respond_to_sync is not None
        if is_waiting and not member.is_new:
            return  # it sends no heartbeats while it waits
        _LOGGER.info("group %s: no heartbeat of member %s", self.group_id, member_id)
        self._remove(member_id)
        if self.state is not _EMPTY:
            self._maybe_prepare_rebalance(f"no heartbeat of member {member_id}")

    def _remove(self, member_id: str) -> None:
        """Forget a member, pending or not; the caller sees to the rebalance."""
        self._timer.cancel(self._heartbeat_key(member_id))
        self._forget_pending(member_id)
        self._pending_sync.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._kept.total -= member.kept_bytes
        if member.group_instance_id is not None:
            self._static_members.pop(member.group_instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        unknown = _join_error(UNKNOWN_MEMBER_ID, Errors.UNKNOWN_MEMBER_ID)
        self._complete_join(member, unknown)
        self._complete_sync(member, {"errorCode": Errors.UNKNOWN_MEMBER_ID})

    def close(self) -> None:
        """Forget all members and timers; who waits is told to find another coordinator."""
        for member in self.members.values():
            self._timer.cancel(self._heartbeat_key(member.member_id))
            self._complete_join(
                member, _join_error(member.member_id, Errors.COORDINATOR_NOT_AVAILABLE)
            )
            self._complete_sync(member, {"errorCode": Errors.COORDINATOR_NOT_AVAILABLE})
            self._kept.total -= member.kept_bytes
        for member_id in list(self._pending_join):
            self._timer.cancel(self._heartbeat_key(member_id))
            self._forget_pending(member_id)
        self._timer.cancel(self._join_key)
        self._timer.cancel(self._sync_key)
        self.members.clear()

    @property
    def _join_key(self) -> tuple[str, str]:
        return ("join", self.group_id)

    @property
    def _sync_key(self) -> tuple[str, str]:
        return ("sync", self.group_id)

    def _heartbeat_key(self, member_id: str) -> tuple[str, str, str]:
        return ("heartbeat", self.group_id, member_id)


def _size_of_pending(member_id: str) -> int:
    return PENDING_BYTES + size_of_names(member_id)


def _join_error(member_id: str, error: Errors) -> Response:
    return {"errorCode": error, "memberId": member_id}


def _protocols(request: Response) -> list[tuple[str, bytes]]:
    return [(each["name"], each["metadata"]) for each in request["protocols"]]


def _rebalance_timeout_ms(request: Response) -> int:
    # Version 0 has only the one timeout.
    timeout_ms: int = request["rebalanceTimeoutMs"]
    return request["sessionTimeoutMs"] if timeout_ms < 0 else timeout_ms

"""`GroupCoordinator`: answers all requests about groups and their committed offsets.

There are two kinds of groups, `pylog.server.classic_group` and `pylog.server.consumer_group`, and
those that only commit offsets, which are classic ones without members. An empty group becomes one
of the other kind when a member of that kind joins it.

The groups of the served directory are there without their members: these have gone with the broker.
Share groups are left out.

Differs from Kafka: a member whose group is not known, since the server has been started anew, is
told to join again.

Source: KafkaApis, GroupCoordinatorService, GroupMetadataManager, OffsetMetadataManager (Kafka 4.4).
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

from pylog.files.partition_metadata import ZERO_UUID
from pylog.internal_topics.group_state import CONSUMER, SHARE, StoredOffset
from pylog.internal_topics.message_writer import EachOf
from pylog.scheduling.clock import SystemClock
from pylog.server.classic_group import UNKNOWN_MEMBER_ID, ClassicGroup
from pylog.server.consumer_group import (
    JOIN_EPOCH,
    ConsumerProtocolGroup,
    ensure_valid_heartbeat,
)
from pylog.server.group_config import GroupCoordinatorConfig, GroupError
from pylog.server.group_memory import GROUP_BYTES, MEMBER_BYTES, GroupMemory, size_of_names
from pylog.server.messages import APIS
from pylog.server.offset_metadata_manager import CommitKey
from pylog.server.protocol import Errors, first_times
from pylog.server.rate_limited_log import server_logger
from pylog.server.request_limits import in_turns
from pylog.server.topic_regexes import matching_topics

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.admin.consumer_groups import GroupListing
    from pylog.scheduling.clock import Clock
    from pylog.server.group_config import CoordinatorTimer
    from pylog.server.metadata_cache import MetadataCache
    from pylog.server.offset_metadata_manager import OffsetMetadataManager
    from pylog.server.protocol import Api, Handler, Request, RequestContext, Response

    Group = ClassicGroup | ConsumerProtocolGroup

_LOGGER = server_logger(__name__)
_NO_OFFSET = {"committedOffset": -1, "committedLeaderEpoch": -1, "metadata": ""}
_GROUP_KEY, _TRANSACTION_KEY, _SHARE_KEY = 0, 1, 2
_NO_NODE = {"nodeId": -1, "host": "", "port": -1}
_READ, _DELETE, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS = 3, 6, 8, 10, 11
_GROUP_OPERATIONS = sum(
    1 << each for each in (_READ, _DELETE, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS)
)
_NOT_ASKED = -(2**31)
_DEAD = "Dead"
_MOST_THREADS = 1  # for regular expressions and assignments
_TWICE = Errors.INVALID_REQUEST

# From which versions on requests are of another form.
_JOIN_WITHOUT_PROTOCOL_NAME = 7
_SYNC_WITH_PROTOCOL = 5
_LEAVE_OF_SEVERAL = 3
_FIND_SEVERAL = 4
_FETCH_OF_SEVERAL = 8
_TOPIC_IDS = 10
_COMMIT_OF_CONSUMER_GROUPS = 9
_DESCRIBE_WITH_ERROR = 6


class GroupCoordinator:
    """Groups, their members, and what they commit. One thread, that of the event loop.

    ``node`` returns the broker that clients find the coordinator at; ``clock`` has the time of
    commits.
    """

    def __init__(
        self,
        image: MetadataCache,
        timer: CoordinatorTimer,
        offsets: OffsetMetadataManager,
        node: Callable[[RequestContext], Response],
        config: GroupCoordinatorConfig | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._image = image
        self._timer = timer
        self._offsets = offsets
        self._node = node
        self._config = config or GroupCoordinatorConfig()
        self._clock = clock or SystemClock()
        self._groups: dict[str, Group] = {}
        self._kept = GroupMemory(self._config.max_group_bytes)
        self._in_thread = asyncio.Semaphore(_MOST_THREADS)
        # A close does not wait for it: an assignment to very many may take a minute.
        self._assignor = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="pylog-serve-assign")
        self._assigning: dict[ConsumerProtocolGroup, asyncio.Task[None]] = {}

    def handlers(self) -> dict[Api, Handler]:
        """Return the function that answers each API."""
        return {
            APIS["FindCoordinator"]: self.handle_find_coordinator,
            APIS["JoinGroup"]: self.handle_join_group,
            APIS["SyncGroup"]: self.handle_sync_group,
            APIS["Heartbeat"]: self.handle_heartbeat,
            APIS["LeaveGroup"]: self.handle_leave_group,
            APIS["ConsumerGroupHeartbeat"]: self.handle_consumer_group_heartbeat,
            APIS["OffsetCommit"]: self.handle_offset_commit,
            APIS["OffsetFetch"]: self.handle_offset_fetch,
            APIS["OffsetDelete"]: self.handle_offset_delete,
            APIS["ListGroups"]: self.handle_list_groups,
            APIS["DescribeGroups"]: self.handle_describe_groups,
            APIS["ConsumerGroupDescribe"]: self.handle_consumer_group_describe,
            APIS["DeleteGroups"]: self.handle_delete_groups,
        }

    @property
    def active_group_count(self) -> int:
        """Number of groups that have members."""
        return sum(bool(group.members) for group in self._groups.values())

    def load(self, listing: GroupListing | None) -> None:
        """Begin with the groups of a directory, and with what has been committed here."""
        for each in listing.groups if listing is not None else ():
            if each.kind == CONSUMER:
                self._keep(self._new_consumer_group(each.group_id, each.epoch))
            elif each.kind != SHARE:
                self._keep(self._new_classic_group(each.group_id, each.protocol_type, each.epoch))
        self._offsets.load(listing, self._image.topic_id)
        for group_id in self._offsets.group_ids:
            if group_id not in self._groups:
                self._keep(self._new_classic_group(group_id))

    async def close(self) -> None:
        """Answer the clients that wait, and store the last commits."""
        for task in list(self._assigning.values()):
            task.cancel()
        self._assignor.shutdown(wait=False, cancel_futures=True)
        for group in self._groups.values():
            group.close()
        await self._offsets.close()

    def _new_classic_group(
        self, group_id: str, protocol_type: str | None = None, epoch: int | None = None
    ) -> ClassicGroup:
        return ClassicGroup(
            group_id,
            self._config,
            self._timer,
            protocol_type=protocol_type,
            generation_id=epoch or 0,
            kept=self._kept,
        )

    def _new_consumer_group(self, group_id: str, epoch: int | None = None) -> ConsumerProtocolGroup:
        known = {} if epoch is None else {"epoch": epoch}
        return ConsumerProtocolGroup(
            group_id,
            self._config,
            self._timer,
            self._image,
            assign_later=self._assign_later,
            kept=self._kept,
            **known,
        )

    def _assign_later(self, group: ConsumerProtocolGroup) -> None:
        """Find the target assignment of a large group in a thread."""
        if group not in self._assigning:
            task = asyncio.get_running_loop().create_task(self._assign(group))
            self._assigning[group] = task
            task.add_done_callback(lambda _: self._assigning.pop(group))

    async def _assign(self, group: ConsumerProtocolGroup) -> None:
        while group.epoch > group.assignment_epoch:
            async with self._in_thread:
                wanted = group.wanted_assignment()
                loop = asyncio.get_running_loop()
                target = await loop.run_in_executor(self._assignor, wanted.find)
                group.set_target(wanted.epoch, target)
            # Members come and go together, and each of them has a new assignment made.
            await asyncio.sleep(self._config.consumer_assignment_interval_ms / 1000)

    def _add(self, group: Group) -> None:
        """Keep a new group; `GroupError` if there are too many, or for an id that is too long."""
        if len(group.group_id) > self._config.max_group_id_length:
            raise GroupError(Errors.INVALID_GROUP_ID)
        if group.group_id not in self._groups:
            size = _size_of(group.group_id)
            if not self._has_room(size):
                self._drop_unused()
            if not self._has_room(size):
                _LOGGER.warning(
                    "group %s is refused: there are %d groups already, of %d bytes",
                    group.group_id,
                    len(self._groups),
                    self._kept.total,
                )
                raise GroupError(Errors.COORDINATOR_NOT_AVAILABLE, "there are too many groups")
        self._keep(group)

    def _has_room(self, size: int) -> bool:
        """Return whether another group may be made."""
        return len(self._groups) < self._config.max_groups and self._kept.has_room(size)

    def _ensure_room(self, size_bytes: int) -> None:
        """Raise `GroupError` if members would take more memory than they may."""
        if size_bytes and not self._kept.has_room(size_bytes):
            self._drop_unused()
            self._kept.ensure_room(size_bytes)

    def _drop_unused(self) -> None:
        """Forget the groups that nobody is known to care for."""
        for each in list(self._groups.values()):
            if each.is_unused and not self._offsets.of_group(each.group_id):
                self._forget(each.group_id)

    def _keep(self, group: Group) -> None:
        if group.group_id not in self._groups:
            self._kept.total += _size_of(group.group_id)
        self._groups[group.group_id] = group

    def _forget(self, group_id: str) -> None:
        del self._groups[group_id]
        self._kept.total -= _size_of(group_id)

    # Where the coordinator is

    def handle_find_coordinator(self, request: Request, context: RequestContext) -> Response:
        """Answer FindCoordinator: it is here."""
        if context.version < _FIND_SEVERAL:
            return self._found(request["key"], request["keyType"], context)
        return {
            "coordinators": EachOf(
                lambda key: {"key": key, **self._found(key, request["keyType"], context)},
                request["coordinatorKeys"],
            )
        }

    def _found(self, key: str, key_type: int, context: RequestContext) -> Response:
        if key_type == _GROUP_KEY:
            none = "" if context.version >= _FIND_SEVERAL else "NONE"
            return {"errorCode": Errors.NONE, "errorMessage": none, **self._node(context)}
        error, message = Errors.INVALID_REQUEST, "this server coordinates groups of consumers alone"
        if key_type == _TRANSACTION_KEY:
            # Not to be tried again, as an unavailable coordinator would be.
            error = Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            message = f"{key!r}: the cluster is read-only, there are no transactions"
        return {"errorCode": error, "errorMessage": message, **_NO_NODE}

    # Members of classic groups

    async def handle_join_group(self, request: Request, context: RequestContext) -> Response:
        """Answer JoinGroup, when the rebalance has got as far."""
        try:
            group = self._joinable(request)
        except GroupError as refusal:
            answer = {"errorCode": refusal.error, "memberId": request["memberId"]}
        else:
            answer = await _answer(lambda respond: group.join(request, context, respond))
        if context.version >= _JOIN_WITHOUT_PROTOCOL_NAME and answer.get("protocolName") is None:
            answer = {**answer, "protocolName": None}
        elif answer.get("protocolName") is None:
            answer = {**answer, "protocolName": ""}
        return {"leader": "", "generationId": -1, **answer}

    def _joinable(self, request: Request) -> ClassicGroup:
        """Return the group that a member may try to join; a new one if need be."""
        group_id = request["groupId"]
        if not group_id:
            raise GroupError(Errors.INVALID_GROUP_ID)
        least, most = (
            self._config.group_min_session_timeout_ms,
            self._config.group_max_session_timeout_ms,
        )
        if not least <= request["sessionTimeoutMs"] <= most:
            raise GroupError(Errors.INVALID_SESSION_TIMEOUT)
        protocols = request["protocols"]
        given = (each[name] for each in protocols for name in ("name", "metadata"))
        self._ensure_room(MEMBER_BYTES + size_of_names(request["memberId"], *given))
        group = self._groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return group
        if group is not None and not group.is_empty:
            _LOGGER.warning(
                "group %s: a member of the classic protocol is refused, since others use the "
                "consumer protocol",
                group_id,
            )
            raise GroupError(Errors.INCONSISTENT_GROUP_PROTOCOL)
        if group is None and request["memberId"] != UNKNOWN_MEMBER_ID:
            raise GroupError(Errors.UNKNOWN_MEMBER_ID)
        group = self._new_classic_group(group_id)
        self._add(group)
        return group

    async def handle_sync_group(self, request: Request, context: RequestContext) -> Response:
        """Answer SyncGroup, when the leader has given its assignment."""
        has_protocol = None not in (request["protocolType"], request["protocolName"])
        if context.version >= _SYNC_WITH_PROTOCOL and not has_protocol:
            return {"errorCode": Errors.INCONSISTENT_GROUP_PROTOCOL}
        try:
            group = self._classic_group(request["groupId"])
            assignments = request["assignments"]
            self._ensure_room(size_of_names(*(each["assignment"] for each in assignments)))
        except GroupError as refusal:
            return {"errorCode": refusal.error}
        return await _answer(lambda respond: group.sync(request, respond))

    def handle_heartbeat(self, request: Request, context: RequestContext) -> Response:
        """Answer Heartbeat."""
        try:
            return {"errorCode": self._classic_group(request["groupId"]).heartbeat(request)}
        except GroupError as refusal:
            return {"errorCode": refusal.error}

    def handle_leave_group(self, request: Request, context: RequestContext) -> Response:
        """Answer LeaveGroup."""
        has_several = context.version >= _LEAVE_OF_SEVERAL
        one = {"memberId": request["memberId"], "groupInstanceId": None}
        members = request["members"] if has_several else [one]
        try:
            answers = self._classic_group(request["groupId"]).leave(members)
        except GroupError as refusal:
            if refusal.error is not Errors.UNKNOWN_MEMBER_ID:
                return {"errorCode": refusal.error}
            answers = [
                {
                    "memberId": each["memberId"],
                    "groupInstanceId": each["groupInstanceId"],
                    "errorCode": refusal.error,
                }
                for each in members
            ]
        if has_several:
            return {"errorCode": Errors.NONE, "members": answers}
        return {"errorCode": answers[0]["errorCode"]}

    def _classic_group(self, group_id: str) -> ClassicGroup:
        """Return a group that has, or had, members of the classic protocol."""
        if not group_id:
            raise GroupError(Errors.INVALID_GROUP_ID)
        group = self._groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            raise GroupError(Errors.UNKNOWN_MEMBER_ID)
        return group

    # Members of consumer groups

    async def handle_consumer_group_heartbeat(
        self, request: Request, context: RequestContext
    ) -> Response:
        """Answer ConsumerGroupHeartbeat."""
        try:
            ensure_valid_heartbeat(request, context.version)
            if request["memberEpoch"] < JOIN_EPOCH:
                return self._consumer_group(request["groupId"]).leave(request)
            self._ensure_room(_added_bytes(request, context))
            matching = await self._matching_topics(request)
            group = self._heartbeat_group(request)
            if self._groups.get(group.group_id) is not group:
                self._add(group)
            answer = group.heartbeat(request, context, matching)
        except GroupError as refusal:
            return {"errorCode": refusal.error, "errorMessage": refusal.message}
        return answer

    async def _matching_topics(self, request: Request) -> frozenset[str] | None:
        """Return the topics of a heartbeat's regular expression; None if they are known."""
        group = self._groups.get(request["groupId"])
        regex = request["subscribedTopicRegex"]
        if isinstance(group, ConsumerProtocolGroup):
            regex = group.unresolved_regex(request)
        if not regex:
            return None
        names = list(self._image.topic_names())
        async with self._in_thread:
            return await asyncio.to_thread(matching_topics, regex, names)

    def _heartbeat_group(self, request: Request) -> ConsumerProtocolGroup:
        """Return the group of a heartbeat; a new one for its first member."""
        group_id = request["groupId"]
        group = self._groups.get(group_id)
        has_no_members = group is None or (isinstance(group, ClassicGroup) and group.is_unused)
        if has_no_members and request["memberEpoch"] != JOIN_EPOCH:
            # A broker has its members again after a restart. Those of this server join again, and
            # would give up for good if the group were unknown.
            message = f"Member {request['memberId']} is not a member of group {group_id}."
            raise GroupError(Errors.UNKNOWN_MEMBER_ID, message)
        if isinstance(group, ConsumerProtocolGroup) or request["memberEpoch"] != JOIN_EPOCH:
            return self._consumer_group(group_id)
        if group is not None and not group.is_unused:
            message = (
                f"Cannot upgrade classic group {group_id} to consumer group because online upgrade "
                "is disabled."
            )
            raise GroupError(Errors.GROUP_ID_NOT_FOUND, message)
        return self._new_consumer_group(group_id)

    def _consumer_group(self, group_id: str) -> ConsumerProtocolGroup:
        group = self._group(group_id)
        if not isinstance(group, ConsumerProtocolGroup):
            message = f"Group {group_id} is not a consumer group."
            raise GroupError(Errors.GROUP_ID_NOT_FOUND, message)
        return group

    def _group(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            raise GroupError(Errors.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    # Committed offsets

    async def handle_offset_commit(self, request: Request, context: RequestContext) -> Response:
        """Answer OffsetCommit, when the offsets are stored."""
        topics = request["topics"]
        places = [
            (self._topic_name(topic, context), partition)
            for topic in topics
            for partition in topic["partitions"]
        ]
        errors = await in_turns(self._commit_error, places)
        accepted = [
            place for place, error in zip(places, errors, strict=True) if error is Errors.NONE
        ]
        stored = await in_turns(
            partial(self._stored_offset, request["groupId"], self._clock.milliseconds()), accepted
        )
        offsets: dict[CommitKey, StoredOffset | None] = dict(stored)
        knows_topic = (Errors.NONE, Errors.OFFSET_METADATA_TOO_LARGE)
        refusal = Errors.NONE
        try:
            if any(error in knows_topic for error in errors):
                self._validate_offset_commit(request, context)
            self._offsets.ensure_room(offsets, self._config.max_offsets_bytes)
            await self._offsets.commit(offsets)
        except GroupError as error:
            refusal = error.error

        def committed(at: int) -> Response:
            code = refusal if refusal and errors[at] in knows_topic else errors[at]
            return {"partitionIndex": places[at][1]["partitionIndex"], "errorCode": code}

        def of_topic(asked: tuple[Request, int]) -> Response:
            topic, end = asked
            indexes = range(end - len(topic["partitions"]), end)
            return {
                "name": topic["name"],
                "topicId": topic["topicId"],
                "partitions": EachOf(committed, indexes),
            }

        ends = accumulate(len(each["partitions"]) for each in topics)
        return {"topics": EachOf(of_topic, list(zip(topics, ends, strict=True)))}

    def _topic_name(self, topic: Request, context: RequestContext) -> str | None:
        """Return the name of a requested topic; None for an id of none that is served."""
        if context.version < _TOPIC_IDS:
            name: str = topic["name"]
            return name
        return self._image.topic_name(topic["topicId"])

    def _commit_error(self, place: tuple[str | None, Request]) -> Errors:
        name, partition = place
        if name is None:
            return Errors.UNKNOWN_TOPIC_ID
        if not 0 <= partition["partitionIndex"] < self._image.partition_count(name):
            return Errors.UNKNOWN_TOPIC_OR_PARTITION
        metadata = partition["committedMetadata"] or ""
        if _java_length(metadata) > self._config.offset_metadata_max_bytes:
            return Errors.OFFSET_METADATA_TOO_LARGE
        return Errors.NONE

    def _validate_offset_commit(self, request: Request, context: RequestContext) -> None:
        """Raise `GroupError` unless the group takes the offsets of this member."""
        group_id = request["groupId"]
        group = self._groups.get(group_id)
        if group is None:
            if request["generationIdOrMemberEpoch"] >= 0:
                # As with heartbeats. The Java client gives up at GROUP_ID_NOT_FOUND.
                is_new = context.version >= _COMMIT_OF_CONSUMER_GROUPS
                raise GroupError(Errors.UNKNOWN_MEMBER_ID if is_new else Errors.ILLEGAL_GENERATION)
            group = self._new_classic_group(group_id)
            self._add(group)
        if isinstance(group, ClassicGroup):
            group.validate_offset_commit(request)
        else:
            group.validate_offset_commit(request, context.version)

    def _stored_offset(
        self, group_id: str, now_ms: int, place: tuple[str, Request]
    ) -> tuple[CommitKey, StoredOffset]:
        name, partition = place
        leader_epoch = partition["committedLeaderEpoch"]
        return CommitKey(group_id, name, partition["partitionIndex"]), StoredOffset(
            partition["committedOffset"],
            None if leader_epoch < 0 else leader_epoch,
            partition["committedMetadata"] or "",
            now_ms,
            self._image.topic_id(name),
        )

    def handle_offset_fetch(self, request: Request, context: RequestContext) -> Response:
        """Answer OffsetFetch, for one group or, in later versions, several."""
        if context.version >= _FETCH_OF_SEVERAL:
            asked = first_times(request["groups"], lambda it: it["groupId"])
            return {"groups": EachOf(partial(self._fetched_once, context), asked)}
        return self._fetched({**request, "memberId": None, "memberEpoch": -1}, context)

    def _fetched_once(self, context: RequestContext, asked: tuple[Request, bool]) -> Response:
        request, is_first = asked
        if not is_first:
            return {"groupId": request["groupId"], "topics": [], "errorCode": _TWICE}
        return self._fetched(request, context)

    def _fetched(self, request: Request, context: RequestContext) -> Response:
        group_id = request["groupId"]
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerProtocolGroup):
            try:
                group.validate_offset_fetch(request["memberId"], request["memberEpoch"])
            except GroupError as refusal:
                return {"groupId": group_id, "topics": [], "errorCode": refusal.error}
        committed = self._offsets.of_group(group_id)
        topics = request["topics"]
        if topics is None:
            topics = self._committed_topics(committed, context)
        else:
            topics = _each_once(topics)
        return {
            "groupId": group_id,
            "topics": EachOf(lambda each: self._fetched_topic(each, committed, context), topics),
            "errorCode": Errors.NONE,
        }

    def _committed_topics(
        self, committed: dict[tuple[str, int], StoredOffset], context: RequestContext
    ) -> list[Request]:
        """Return all that a group has committed, as a client would ask for it."""
        partitions: dict[str, list[int]] = {}
        for (topic, partition), offset in sorted(committed.items(), key=lambda each: each[0]):
            if self._is_of_topic(offset, topic):
                partitions.setdefault(topic, []).append(partition)
        ids = {topic: self._image.topic_id(topic) for topic in partitions}
        return [
            {"name": topic, "topicId": ids[topic] or ZERO_UUID, "partitionIndexes": indexes}
            for topic, indexes in partitions.items()
            if context.version < _TOPIC_IDS or ids[topic] is not None
        ]

    def _fetched_topic(
        self,
        topic: Request,
        committed: dict[tuple[str, int], StoredOffset],
        context: RequestContext,
    ) -> Response:
        name = self._topic_name(topic, context)
        error = Errors.UNKNOWN_TOPIC_ID if name is None else Errors.NONE

        def fetched(index: int) -> Response:
            offset = None if name is None else committed.get((name, index))
            answer: Response = {"partitionIndex": index, "errorCode": error, **_NO_OFFSET}
            if offset is not None and self._is_of_topic(offset, str(name)):
                leader_epoch = -1 if offset.leader_epoch is None else offset.leader_epoch
                answer |= {
                    "committedOffset": offset.offset,
                    "committedLeaderEpoch": leader_epoch,
                    "metadata": offset.metadata,
                }
            return answer

        # Of versions of one group, topics have no ids.
        topic_id = topic.get("topicId", ZERO_UUID)
        partitions = EachOf(fetched, topic["partitionIndexes"])
        return {"name": topic["name"], "topicId": topic_id, "partitions": partitions}

    def _is_of_topic(self, offset: StoredOffset, topic: str) -> bool:
        """Whether it was committed for the topic that has the name now (KIP-848's topic ids)."""
        current = self._image.topic_id(topic)
        return offset.topic_id in (None, ZERO_UUID, current) or current is None

    async def handle_offset_delete(self, request: Request, context: RequestContext) -> Response:
        """Answer OffsetDelete: the offsets are forgotten here, and stay in the directory."""
        group_id = request["groupId"]
        try:
            subscribed = self._group_to_change(group_id).subscribed_topics()
            topics = await in_turns(
                lambda topic: self._deleted_topic(topic, subscribed), request["topics"]
            )
            self._group_to_change(group_id)  # still, after others have had their turn
            committed = self._offsets.of_group(group_id)
            await self._offsets.commit(
                {
                    CommitKey(group_id, topic["name"], each["partitionIndex"]): None
                    for topic in topics
                    for each in topic["partitions"]
                    if not each["errorCode"]
                    and (topic["name"], each["partitionIndex"]) in committed
                }
            )
        except GroupError as refusal:
            return {"errorCode": refusal.error, "topics": []}
        return {"errorCode": Errors.NONE, "topics": topics}

    def _group_to_change(self, group_id: str) -> Group:
        """Return a group whose offsets may be deleted: of consumers, or without members."""
        if not group_id:
            raise GroupError(Errors.INVALID_GROUP_ID)
        group = self._group(group_id)
        if group.protocol_type != CONSUMER and not group.is_empty:
            raise GroupError(Errors.NON_EMPTY_GROUP)
        return group

    def _empty_group(self, group_id: str) -> Group:
        group = self._group(group_id)
        if not group.is_empty:
            raise GroupError(Errors.NON_EMPTY_GROUP)
        return group

    def _deleted_topic(self, topic: Request, subscribed: frozenset[str] | None) -> Response:
        name = topic["name"]
        count = self._image.partition_count(name)
        known = Errors.NONE
        if subscribed is None or name in subscribed:
            known = Errors.GROUP_SUBSCRIBED_TO_TOPIC
        indexes = [each["partitionIndex"] for each in topic["partitions"]]
        return {
            "name": name,
            "partitions": [
                {
                    "partitionIndex": index,
                    "errorCode": known if 0 <= index < count else Errors.UNKNOWN_TOPIC_OR_PARTITION,
                }
                for index in indexes
            ],
        }

    # What tools show

    def handle_list_groups(self, request: Request, context: RequestContext) -> Response:
        """Answer ListGroups."""
        states = {each.strip().lower() for each in request["statesFilter"]}
        kinds = {each.strip().lower() for each in request["typesFilter"]}
        listed = [
            group
            for group in self._groups.values()
            if (not states or group.state_name.lower() in states)
            and (not kinds or group.kind in kinds)
        ]
        return {"errorCode": Errors.NONE, "groups": EachOf(_listed, listed)}

    def handle_describe_groups(self, request: Request, context: RequestContext) -> Response:
        """Answer DescribeGroups: groups of the classic protocol."""
        operations = {"authorizedOperations": _operations(request)}

        def described(asked: tuple[str, bool]) -> Response:
            group_id, is_first = asked
            if not is_first:
                return {**_dead(group_id), "errorCode": _TWICE, **operations}
            return {**operations, **self._described(group_id, context)}

        return {"groups": EachOf(described, first_times(request["groups"]))}

    def _described(self, group_id: str, context: RequestContext) -> Response:
        group = self._groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return group.described()
        none = _dead(group_id)
        if context.version >= _DESCRIBE_WITH_ERROR:
            what = "not found" if group is None else "is not a classic group"
            none["errorCode"] = Errors.GROUP_ID_NOT_FOUND
            none["authorizedOperations"] = _NOT_ASKED
            none["errorMessage"] = f"Group {group_id} {what}."
        return none

    def handle_consumer_group_describe(self, request: Request, context: RequestContext) -> Response:
        """Answer ConsumerGroupDescribe: groups of the consumer protocol."""
        operations = {"authorizedOperations": _operations(request)}

        def described(asked: tuple[str, bool]) -> Response:
            group_id, is_first = asked
            try:
                if not group_id:
                    raise GroupError(Errors.INVALID_GROUP_ID)  # noqa: TRY301
                if not is_first:
                    raise GroupError(_TWICE, "The group was asked for before.")  # noqa: TRY301
                return {**self._consumer_group(group_id).described(), **operations}
            except GroupError as refusal:
                error = {"errorCode": refusal.error, "errorMessage": refusal.message}
                return {"groupId": group_id, **error, "authorizedOperations": _NOT_ASKED}

        return {"groups": EachOf(described, first_times(request["groupIds"]))}

    async def handle_delete_groups(self, request: Request, context: RequestContext) -> Response:
        """Answer DeleteGroups: groups are forgotten here, and stay in the directory."""
        results: dict[str, Errors] = {}
        deleted: dict[CommitKey, StoredOffset | None] = {}
        for group_id in request["groupsNames"]:
            try:
                self._empty_group(group_id)
            except GroupError as refusal:
                results[group_id] = refusal.error
                continue
            results[group_id] = Errors.NONE
            places = self._offsets.of_group(group_id)
            deleted |= {CommitKey(group_id, *each): None for each in places}
        try:
            await self._offsets.commit(deleted)
        except GroupError as failure:
            results = {each: error or failure.error for each, error in results.items()}
        for group_id, error in results.items():
            group = self._groups.get(group_id)
            if not error and group is not None and group.is_empty:  # nobody has joined meanwhile
                self._forget(group_id)
        return {
            "results": [
                {"groupId": group_id, "errorCode": error} for group_id, error in results.items()
            ]
        }


def _listed(group: Group) -> Response:
    return {
        "groupId": group.group_id,
        "protocolType": group.protocol_type or "",
        "groupState": group.state_name,
        "groupType": group.kind,
    }


def _dead(group_id: str) -> Response:
    return {
        "groupId": group_id,
        "groupState": _DEAD,
        "protocolType": "",
        "protocolData": "",
        "members": [],
    }


def _added_bytes(heartbeat: Request, context: RequestContext) -> int:
    """Return how much of a heartbeat of the consumer protocol would be kept anew, about."""
    sent = [
        *(heartbeat["subscribedTopicNames"] or ()),
        heartbeat["subscribedTopicRegex"],
        heartbeat["rackId"],
    ]
    if heartbeat["memberEpoch"] == JOIN_EPOCH:
        sent += [heartbeat["memberId"], heartbeat["instanceId"], context.client_id]
        return MEMBER_BYTES + size_of_names(*sent)
    return size_of_names(*sent)


def _size_of(group_id: str) -> int:
    return GROUP_BYTES + size_of_names(group_id)


def _each_once(topics: list[Request]) -> list[Request]:
    """Return each topic that offsets are asked of once, and each of its partitions.

    A small request that names a partition again and again would have a huge answer.
    """
    merged: dict[object, Request] = {}
    for each in topics:
        # By name or, in later versions, by id.
        topic = merged.setdefault(
            (each["name"], each.get("topicId")), {**each, "partitionIndexes": {}}
        )
        topic["partitionIndexes"] |= dict.fromkeys(each["partitionIndexes"])
    return [
        {**each, "partitionIndexes": list(each["partitionIndexes"])} for each in merged.values()
    ]


async def _answer(start: Callable[[Callable[[Response], None]], None]) -> Response:
    """Return the response, now or later."""
    future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

    def respond(answer: Response) -> None:
        if not future.done():  # else its client is gone
            future.set_result(answer)

    start(respond)
    return await future


def _operations(request: Request) -> int:
    return _GROUP_OPERATIONS if request["includeAuthorizedOperations"] else _NOT_ASKED


def _java_length(text: str) -> int:
    """Return the length of a string as Java counts it: in UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2

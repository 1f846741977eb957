"""`groups`: consumer and share groups, their members, how far they have come, and their lag.

Which records count see `pylog.reading.group_records`, what share groups have read
`pylog.admin.share_groups`.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from pylog.admin.group_logs import GroupLogs
from pylog.admin.share_groups import (
    SHARE_GROUP_STATE_TOPIC,
    SharePartition,
    ShareState,
    read_share_states,
    share_groups,
)
from pylog.checks.consumers import UNKNOWN_RANGE, Placement, group_outlook, refused_and_missing
from pylog.config.server_properties import ServerProperties
from pylog.errors import LogStorageError, UnknownTopicOrPartitionError
from pylog.files.partition_metadata import format_uuid
from pylog.internal_topics.group_state import SHARE, GroupState
from pylog.internal_topics.share_group_state import SharePartitionKey
from pylog.model import IsolationLevel, TopicPartition
from pylog.reading.coordinators import (
    StaleState,
    cluster_image,
    partition_count,
    partition_for,
)
from pylog.reading.group_records import CONSUMER_OFFSETS_TOPIC, last_group_records, stored_groups
from pylog.reading.html_table import html_table
from pylog.reading.log_directory import open_directory
from pylog.reading.replicas import ensure_one_cluster
from pylog.scheduling.clock import SystemClock
from pylog.scheduling.worker_threads import SharedProgress
from pylog.text.names import names_nearest_keyword
from pylog.text.words import counted

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pylog.checks.consumers import GroupOutlook, MissingPartitions, RefusedPartition
    from pylog.internal_topics.group_state import StoredOffset
    from pylog.model import IsolationName
    from pylog.reading.group_records import LastRecords, StoredGroups
    from pylog.reading.log_view import LogView


_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a group; ``instance_id`` is None of dynamic members.

    Topics that are known by their id alone have that for a name in ``assigned``.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assigned: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """What a group has committed for a partition, against the partition's log.

    Attributes
    ----------
    offset
        The next one that the group would read; -1 is no position. None where compaction has
        removed what was committed at that time.
    leader_epoch, metadata, commit_timestamp
        As committed; the timestamp is the coordinator's, in ms.
    log_start_offset, log_end_offset
        Of the log under the paths; None where it is not there, or is of a later topic of that
        name. Up to the last stable offset, for consumers that read committed records.
    member_id
        Who is assigned the partition; None if nobody is.
    is_of_earlier_topic
        Whether it was committed for a topic of that name which has been deleted since.
    will_reset, reset_reason
        Whether a consumer that goes on there starts anew, by its ``auto.offset.reset``, and why:
        the position is not in the log, or the partition is gone. None where that is not known, and
        of a past instant.
    will_expire
        Whether a broker that starts now deletes it for its age, unless it is committed anew before:
        at its first look, which is ``offsets.retention.check.interval.ms`` after the start. None
        where it depends on whether members of the group come back before, and of a past instant.
    """

    topic: str
    partition: int
    offset: int | None
    leader_epoch: int | None
    metadata: str | None
    commit_timestamp: int | None
    log_start_offset: int | None
    log_end_offset: int | None
    member_id: str | None
    is_of_earlier_topic: bool = False
    will_reset: bool | None = None
    reset_reason: str | None = None
    will_expire: bool | None = None

    @property
    def lag(self) -> int | None:
        """How many offsets are between the group and the end; None if one is not known."""
        if self.offset is None or self.offset < 0 or self.log_end_offset is None:
            return None
        return self.log_end_offset - self.offset


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """A group.

    Attributes
    ----------
    kind
        ``classic``, ``consumer`` (KIP-848), ``share`` or ``streams``.
    state
        As a coordinator has it that has just loaded the group. Of a share group of which only
        ``__share_group_state`` tells, "Dead" where the partition that would have the group is here,
        else "Unknown".
    protocol_type, protocol
        Of a classic group that has had members.
    epoch
        Of the group: the generation of a classic one; None where offsets are all that there is.
    members, offsets
        By member id, and by topic and partition.
    share_partitions
        What a share group has instead of committed offsets, by topic and partition.
    dead_letter_topic
        Where a share group's records go that could not be delivered, as its configuration in the
        cluster's metadata says now (Kafka 4.4); None where that names no topic, or is not here.
    """

    group_id: str
    kind: str
    state: str
    protocol_type: str | None
    protocol: str | None
    epoch: int | None
    members: tuple[GroupMember, ...]
    offsets: tuple[CommittedOffset, ...]
    share_partitions: tuple[SharePartition, ...] = ()
    dead_letter_topic: str | None = None


@dataclass(frozen=True, slots=True)
class GroupListing:
    """What `pylog.groups` returns.

    Attributes
    ----------
    groups
        Sorted by id.
    partitions
        The partitions of ``__consumer_offsets`` that were read: a group is in one of them, and
        those whose partition is elsewhere are not here.
    unreadable_records
        How many of their records are of types that later versions of Kafka have, or are broken.
    ignored_records
        How many are of types that only earlier versions have, and that brokers pass over: they say
        nothing of what is here.
    stale
        What partitions hold of groups for which another one answers, or which are in several where
        nobody knows which one does. What is stale is not in ``groups``.
    errors
        What could not be read: partitions of ``__consumer_offsets``, whose groups are missing, of
        ``__share_group_state``, and logs of the groups' topics.
    unreadable_share_records
        As ``unreadable_records``, of ``__share_group_state``; Kafka 4.0 wrote such, too.
    refused
        Partitions of ``__consumer_offsets`` that no coordinator loads: a group is of two kinds.
    missing
        Partitions of it that are not here; None if that is not known of any, or if all groups that
        were asked for are here.
    """

    groups: list[ConsumerGroup]
    partitions: tuple[int, ...]
    unreadable_records: int = 0
    ignored_records: int = 0
    stale: tuple[StaleState, ...] = ()
    errors: list[LogStorageError] = field(default_factory=list)
    unreadable_share_records: int = 0
    refused: tuple[RefusedPartition, ...] = ()
    missing: MissingPartitions | None = None

    def _repr_html_(self) -> str:
        rows = [
            (group.group_id, each.topic, each.partition, each.offset, each.log_end_offset, each.lag)
            for group in self.groups
            for each in group.offsets
        ]
        columns = ("group", "topic", "partition", "committed", "log end", "lag")
        notes = [str(each) for each in self.errors]
        return html_table(counted(len(self.groups), "group"), columns, rows, len(rows), notes=notes)


@names_nearest_keyword
def groups(  # noqa: PLR0913 - keyword-only options, one for each thing a user may say
    *paths: str | os.PathLike[str],
    groups: Iterable[str] | None = None,
    at_ms: int | None = None,
    isolation: IsolationName | IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    server_properties: ServerProperties | None = None,
    now_ms: int | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> GroupListing:
    """Return the groups whose partitions of ``__consumer_offsets`` lie under the paths.

    Parameters
    ----------
    *paths
        Log directories, of any number of brokers: of a partition that lies there twice one replica
        counts, as for `open_directory`.
    groups
        Only these ids; None for all.
    at_ms
        An instant in the past, in ms: what had been committed by then, and where logs ended then.
        None for now.
    isolation
        "read_committed" counts lag to the last stable offset, as of now, and not to the end.
    server_properties
        Of a broker: how many partitions ``__consumer_offsets`` and ``__share_group_state`` have,
        where the cluster's metadata is not here. That number says which partition answers for a
        group (`pylog.reading.coordinators`). And how long committed offsets are kept.
    now_ms
        The time that the age of committed offsets is counted to; None for now.
    threads
        How many partitions of these topics are read side by side; None for what the environment
        variable ``PYLOG_NUM_THREADS`` says, else as many as there are processors.
    progress
        Called from time to time with the bytes that have been gone through, and those of all.

    Raises
    ------
    UnknownTopicOrPartitionError
        No partition of ``__consumer_offsets`` or ``__share_group_state`` is there, or no group of
        a name that was given.
    LogStorageError
        A path cannot be read. A damaged partition is no error of this function: the groups of the
        others are returned, see `GroupListing.errors`.
    ValueError
        The isolation level makes no sense, or ``threads`` is below 1.

    Examples
    --------
    >>> for group in pylog.groups("kafka/intact").groups:
    ...     print(group.group_id, [(each.topic, each.lag) for each in group.offsets])
    grp-late [('orders', 40)]
    grp-member [('invoices-eu', 6), ('invoices-eu', 46)]
    """
    directory = open_directory(*paths)
    ensure_one_cluster(directory.directories)
    of_metadata: list[LogStorageError] = []
    image = cluster_image(directory, of_metadata)
    views = directory.topics.get(CONSUMER_OFFSETS_TOPIC, [])
    share_views = directory.topics.get(SHARE_GROUP_STATE_TOPIC, [])
    configured = server_properties or ServerProperties()
    if not views and not share_views:
        count = partition_count(image, CONSUMER_OFFSETS_TOPIC, {}, None)
        named = "" if count is None else f", of {count} that the cluster's metadata names"
        reason = (
            f"no partition of {CONSUMER_OFFSETS_TOPIC} is here{named}: committed offsets are in "
            "the log directories of the brokers that have these"
        )
        raise UnknownTopicOrPartitionError(reason)
    shared = SharedProgress(sum(each.size_bytes for each in (*views, *share_views)), progress)
    found = _read_side_by_side(shared, last_group_records, views, at_ms, threads)
    share_found = _read_side_by_side(shared, read_share_states, share_views, at_ms, threads)
    read = {view.partition: each for view, each in zip(views, found, strict=True)}
    stored = stored_groups(read, image, configured.offsets_topic_partitions)
    shares = share_groups(
        dict(zip((view.partition for view in share_views), share_found, strict=True)),
        image,
        configured.share_state_topic_partitions,
    )
    states = _states(stored, shares.by_group, read)
    logs = GroupLogs(directory, image, at_ms, IsolationLevel.parse(isolation))
    chosen = {each: states[each] for each in _chosen(states, groups)}
    placement = Placement(directory, image)
    outlook = None
    if at_ms is None:
        outlook = group_outlook(
            *(read, stored._replace(states=chosen), placement, logs.whole_range_of),
            SystemClock().milliseconds() if now_ms is None else now_ms,
            configured.offsets_retention_ms,
        )
    refused, missing = refused_and_missing(read, stored, placement)
    wanted = None if groups is None else chosen.keys()
    described = [
        _group(state, stored.lost.get(each), shares.by_group.get(each, {}), logs, outlook)
        for each, state in chosen.items()
    ]
    return GroupListing(
        described,
        tuple(view.partition for view in views),
        sum(each.unreadable for each in found),
        sum(each.ignored for each in found),
        tuple(
            each
            for each, group_id in [*((each, each.id) for each in stored.stale), *shares.stale]
            if wanted is None or group_id in wanted
        ),
        [
            *of_metadata,
            *(each.error for each in found if each.error is not None),
            *(each.error for each in share_found if each.error is not None),
            *logs.attempts.errors,
        ],
        sum(each.unreadable for each in share_found),
        refused,
        missing if wanted is None or not wanted <= stored.states.keys() else None,
    )


def _states(
    stored: StoredGroups, share_ids: Iterable[str], read: Mapping[int, LastRecords]
) -> dict[str, GroupState]:
    """Return all groups by id, also those of which only their offsets or share partitions tell."""
    states = dict(stored.states)
    for group_id, state in stored.lost.items():
        states.setdefault(group_id, GroupState(group_id, state.kind))
    count = stored.partition_count
    for group_id in share_ids:
        is_here = count is not None and partition_for(group_id, count) in read
        known = "Dead" if is_here else "Unknown"
        states.setdefault(group_id, GroupState(group_id, SHARE, known_state=known))
    return states


def _read_side_by_side(
    shared: SharedProgress,
    read_one: Callable[[LogView, int | None], _Found],
    views: Sequence[LogView],
    at_ms: int | None,
    threads: int | None,
) -> list[_Found]:
    """Return what each partition says, as far as it can be read."""

    def read(view: LogView) -> _Found:
        try:
            return read_one(view, at_ms)
        finally:
            shared.advance(view.size_bytes)

    return shared.side_by_side(read, views, threads)


def _chosen(states: dict[str, GroupState], names: Iterable[str] | None) -> list[str]:
    chosen = sorted(states if names is None else set(names))
    for name in chosen:
        if name not in states:
            known = ", ".join(sorted(states)[:20]) or "none"
            reason = f"no group {name!r} here; groups found: {known}"
            raise UnknownTopicOrPartitionError(reason)
    return chosen


def _group(
    state: GroupState,
    lost: GroupState | None,
    shares: Mapping[SharePartitionKey, ShareState],
    logs: GroupLogs,
    outlook: GroupOutlook | None,
) -> ConsumerGroup:
    members = []
    owners: dict[TopicPartition, str] = {}
    for member_id, each in sorted(state.members.items()):
        assigned = tuple(sorted(_assigned(each.assigned, logs)))
        owners |= dict.fromkeys(assigned, member_id)
        members.append(
            GroupMember(member_id, each.instance_id, each.client_id, each.client_host, assigned)
        )
    stored = {TopicPartition(*place): each for place, each in state.offsets.items()}
    places = {*stored, *(TopicPartition(*each) for each in (lost.offsets if lost else ()))}
    if state.kind != SHARE:
        places.update(owners)  # has nothing committed yet: Kafka's tool lists these, too
    initialized = {
        SharePartitionKey(state.group_id, topic_id, number)
        for topic_id, numbers in state.shared.items()
        for number in numbers
    }
    return ConsumerGroup(
        state.group_id,
        state.kind,
        state.state,
        state.protocol_type,
        state.protocol,
        state.epoch,
        tuple(members),
        tuple(
            _committed(each, state, stored.get(each), owners.get(each), logs, outlook)
            for each in sorted(places)
        ),
        tuple(
            sorted(
                (_shared(each, shares.get(each), logs) for each in initialized | shares.keys()),
                key=lambda each: (each.topic, each.topic_id, each.partition),
            )
        ),
        logs.dead_letter_topic(state.group_id) if state.kind == SHARE else None,
    )


def _shared(key: SharePartitionKey, state: ShareState | None, logs: GroupLogs) -> SharePartition:
    topic = logs.name_of(key.topic_id)
    known = None if state is None else state.offset
    count = None if known is None else known.delivery_complete_count
    return SharePartition(
        topic,
        format_uuid(key.topic_id),
        key.partition,
        None if known is None else known.state_epoch,
        None if known is None else known.leader_epoch,
        None if known is None else known.start_offset,
        None if count is None or count < 0 else count,
        *logs.range_of(TopicPartition(topic, key.partition), key.topic_id),
    )


def _assigned(
    by_topic: dict[str | uuid.UUID, list[int]], logs: GroupLogs
) -> Iterator[TopicPartition]:
    for topic, numbers in by_topic.items():
        name = logs.name_of(topic) if isinstance(topic, uuid.UUID) else topic
        for number in numbers:
            yield TopicPartition(name, number)


def _committed(
    where: TopicPartition,
    state: GroupState,
    stored: StoredOffset | None,
    member_id: str | None,
    logs: GroupLogs,
    outlook: GroupOutlook | None,
) -> CommittedOffset:
    topic_id = None if stored is None else stored.topic_id
    start, end = logs.range_of(where, topic_id)
    if stored is None:
        return CommittedOffset(*where, None, None, None, None, start, end, member_id)
    reset_reason = will_reset = will_expire = None
    if outlook is not None:
        place = state.group_id, *where
        reset = outlook.resetting.get(place)
        is_known = stored.offset < 0 or logs.whole_range_of(where) not in (None, UNKNOWN_RANGE)
        will_reset = True if reset else False if is_known else None
        reset_reason = None if reset is None else reset.reason
        expiring = outlook.expiring.get(place)
        will_expire = expiring is not None and (expiring.is_certain or None)
    return CommittedOffset(
        *where,
        stored.offset,
        stored.leader_epoch,
        stored.metadata,
        stored.commit_timestamp,
        start,
        end,
        member_id,
        logs.is_another_topic(where, topic_id),
        will_reset=will_reset,
        reset_reason=reset_reason,
        will_expire=will_expire,
    )

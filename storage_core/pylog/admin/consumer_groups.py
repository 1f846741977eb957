"""`groups`: consumer and share groups, their members, how far they have come, and their lag.

Of each key in ``__consumer_offsets`` the last record counts, now or at an instant in the past.
Records of a transaction count when its marker says commit, by then; in the place that they have in
the log, as a coordinator takes them in. For what share groups have read see
`pylog.admin.share_groups`.

Source: CoordinatorLoaderImpl, OffsetMetadataManager (Kafka 4.3).
"""

from __future__ import annotations

import uuid
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pylog.admin.coordinators import (
    StaleState,
    cluster_image,
    partition_count,
    partition_for,
    who_answers,
)
from pylog.admin.share_groups import (
    DEAD_LETTER_TOPIC_CONFIG,
    SHARE_GROUP_STATE_TOPIC,
    SharePartition,
    ShareState,
    read_share_states,
    share_groups,
)
from pylog.config.server_properties import ServerProperties
from pylog.errors import (
    InvalidRecordError,
    LogStorageError,
    SegmentVanishedError,
    UnknownTopicOrPartitionError,
)
from pylog.files.partition_metadata import ZERO_UUID, format_uuid
from pylog.internal_topics.consumer_offsets import group_records
from pylog.internal_topics.group_state import SHARE, GroupState, group_states
from pylog.internal_topics.metadata_image import ConfigResource, ConfigResourceType
from pylog.internal_topics.share_group_state import SharePartitionKey
from pylog.model import IsolationLevel, TopicPartition
from pylog.reading.damage import Attempts
from pylog.reading.html_table import html_table
from pylog.reading.internal_logs import coordinator_records
from pylog.reading.log_directory import open_directory
from pylog.reading.offset_resolution import find_offset_for_timestamp
from pylog.reading.producer_transactions import find_transactions
from pylog.reading.replicas import ensure_one_cluster
from pylog.reading.transactions import find_last_stable_offset
from pylog.scheduling.worker_threads import SharedProgress
from pylog.text.names import names_nearest_keyword
from pylog.text.words import counted

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pylog.internal_topics.coordinator_record import CoordinatorRecord
    from pylog.internal_topics.group_state import StoredOffset
    from pylog.internal_topics.metadata_image import MetadataImage
    from pylog.reading.internal_logs import StoredRecord
    from pylog.reading.log_directory import LogDirectory
    from pylog.reading.log_view import LogView


CONSUMER_OFFSETS_TOPIC = "__consumer_offsets"
_MOST_LOOKS = 20
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
    """

    groups: list[ConsumerGroup]
    partitions: tuple[int, ...]
    unreadable_records: int = 0
    ignored_records: int = 0
    stale: tuple[StaleState, ...] = ()
    errors: list[LogStorageError] = field(default_factory=list)
    unreadable_share_records: int = 0

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
def groups(
    *paths: str | os.PathLike[str],
    groups: Iterable[str] | None = None,
    at_ms: int | None = None,
    isolation: str | IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    server_properties: ServerProperties | None = None,
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
        where the cluster's metadata are not here. That number says which partition answers for a
        group (`pylog.admin.coordinators`).
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
    ensure_one_cluster(view.directory for view in directory)
    views = directory.topics.get(CONSUMER_OFFSETS_TOPIC, [])
    share_views = directory.topics.get(SHARE_GROUP_STATE_TOPIC, [])
    if not views and not share_views:
        reason = (
            f"no partition of {CONSUMER_OFFSETS_TOPIC} is here: committed offsets are in the log "
            "directories of the brokers that have these"
        )
        raise UnknownTopicOrPartitionError(reason)
    of_metadata: list[LogStorageError] = []
    image = cluster_image(directory, of_metadata)
    shared = SharedProgress(sum(each.size_bytes for each in (*views, *share_views)), progress)
    found = _read_side_by_side(shared, last_group_records, views, at_ms, threads)
    share_found = _read_side_by_side(shared, read_share_states, share_views, at_ms, threads)
    by_partition = {
        view.partition: group_states(each.records) for view, each in zip(views, found, strict=True)
    }
    lost = group_states([record for each in found for record in each.unknown])
    configured = server_properties or ServerProperties()
    count = partition_count(
        image, CONSUMER_OFFSETS_TOPIC, by_partition, configured.offsets_topic_partitions
    )
    answers, stale = who_answers(
        CONSUMER_OFFSETS_TOPIC,
        count,
        by_partition,
        lambda name, place: by_partition[place][name].latest_commit,
    )
    shares = share_groups(
        dict(zip((view.partition for view in share_views), share_found, strict=True)),
        image,
        configured.share_state_topic_partitions,
    )
    states = {name: by_partition[place][name] for name, place in answers.items()}
    for group_id, state in lost.items():
        states.setdefault(group_id, GroupState(group_id, state.kind))
    for group_id in shares.by_group:
        is_here = count is not None and partition_for(group_id, count) in by_partition
        known = "Dead" if is_here else "Unknown"
        states.setdefault(group_id, GroupState(group_id, SHARE, known_state=known))
    logs = _Logs(directory, image, at_ms, IsolationLevel.parse(isolation))
    wanted = None if groups is None else set(groups)
    described = [
        _group(states[each], lost.get(each), shares.by_group.get(each, {}), logs)
        for each in _chosen(states, wanted)
    ]
    return GroupListing(
        described,
        tuple(view.partition for view in views),
        sum(each.unreadable for each in found),
        sum(each.ignored for each in found),
        tuple(
            each
            for each, group_id in [*((each, each.id) for each in stale), *shares.stale]
            if wanted is None or group_id in wanted
        ),
        [
            *of_metadata,
            *(each.error for each in found if each.error is not None),
            *(each.error for each in share_found if each.error is not None),
            *logs.attempts.errors,
        ],
        sum(each.unreadable for each in share_found),
    )


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
    logs: _Logs,
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
            _committed(each, stored.get(each), owners.get(each), logs) for each in sorted(places)
        ),
        tuple(
            sorted(
                (_shared(each, shares.get(each), logs) for each in initialized | shares.keys()),
                key=lambda each: (each.topic, each.topic_id, each.partition),
            )
        ),
        logs.dead_letter_topic(state.group_id) if state.kind == SHARE else None,
    )


def _shared(key: SharePartitionKey, state: ShareState | None, logs: _Logs) -> SharePartition:
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


def _assigned(by_topic: dict[str | uuid.UUID, list[int]], logs: _Logs) -> Iterator[TopicPartition]:
    for topic, numbers in by_topic.items():
        name = logs.name_of(topic) if isinstance(topic, uuid.UUID) else topic
        for number in numbers:
            yield TopicPartition(name, number)


def _committed(
    where: TopicPartition, stored: StoredOffset | None, member_id: str | None, logs: _Logs
) -> CommittedOffset:
    topic_id = None if stored is None else stored.topic_id
    start, end = logs.range_of(where, topic_id)
    if stored is None:
        return CommittedOffset(*where, None, None, None, None, start, end, member_id)
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
    )


class _Logs:
    """The logs that groups read, each looked at once."""

    def __init__(
        self,
        directory: LogDirectory,
        image: MetadataImage,
        at_ms: int | None,
        isolation: IsolationLevel,
    ) -> None:
        self.attempts = Attempts()
        self._directory = directory
        self._image = image
        self._at_ms = at_ms
        self._is_committed = isolation is IsolationLevel.READ_COMMITTED
        self._ranges: dict[TopicPartition, tuple[int | None, int | None]] = {}
        self._names: dict[uuid.UUID, str] | None = None

    def name_of(self, topic_id: uuid.UUID) -> str:
        """Return the name of a topic; its id as text if neither logs nor metadata here have it."""
        if self._names is None:
            ids = {self._topic_id(each[0]): name for name, each in self._directory.topics.items()}
            self._names = {each.topic_id: each.name for each in self._image.topics}
            self._names |= {found: name for found, name in ids.items() if found is not None}
        return self._names.get(topic_id, format_uuid(topic_id))

    def dead_letter_topic(self, group_id: str) -> str | None:
        """Return where a share group's undeliverable records go; None if nothing says it."""
        configs = self._image.configs_of(ConfigResource(ConfigResourceType.GROUP, group_id))
        return configs.get(DEAD_LETTER_TOPIC_CONFIG) or None

    def range_of(
        self, where: TopicPartition, topic_id: uuid.UUID | None
    ) -> tuple[int | None, int | None]:
        """Return start and end of a log; None where it is not here, or is another topic's."""
        if where not in self._directory or self.is_another_topic(where, topic_id):
            return None, None
        view = self._directory[where]
        if where not in self._ranges:
            start = self.attempts.read(lambda: view.log_start_offset)
            self._ranges[where] = start, self.attempts.read(lambda: self._end(view))
        return self._ranges[where]

    def is_another_topic(self, where: TopicPartition, topic_id: uuid.UUID | None) -> bool:
        """Whether the topic that is here now has another id."""
        if topic_id is None or topic_id == ZERO_UUID or where not in self._directory:
            return False
        return self._topic_id(self._directory[where]) not in (None, topic_id)

    def _end(self, view: LogView) -> int:
        end = find_last_stable_offset(view) if self._is_committed else view.log_end_offset
        if self._at_ms is None:
            return end
        later = find_offset_for_timestamp(view, self._at_ms + 1)
        return end if later is None else min(end, later.offset)

    def _topic_id(self, view: LogView) -> uuid.UUID | None:
        metadata = self.attempts.read(lambda: view.metadata)
        return None if metadata is None else metadata.topic_id


class LastRecords(NamedTuple):
    """The last record of each key in a partition of ``__consumer_offsets``, without tombstones."""

    records: list[CoordinatorRecord]  # in offset order
    unknown: list[CoordinatorRecord]
    unreadable: int
    ignored: int
    error: LogStorageError | None = None  # what ended the reading: damage


def last_group_records(view: LogView, at_ms: int | None = None) -> LastRecords:
    """Return what a coordinator would have believed of one partition, now or at an instant."""
    decided = _Decisions(view, at_ms)
    last: dict[bytes, StoredRecord] = {}
    later: dict[bytes, StoredRecord] = {}
    earlier_count = 0
    earlier_end = 0
    error = decided.error
    try:
        for stored in coordinator_records(view):
            is_later = at_ms is not None and stored.timestamp > at_ms
            if not later:
                earlier_end = stored.offset + (not is_later)
                earlier_count += not is_later
            if stored.key is None or not decided.counts(stored):
                continue
            if is_later:
                later.setdefault(stored.key, stored)
            else:
                last.pop(stored.key, None)  # so that records are in the order of their offsets
                last[stored.key] = stored
    except LogStorageError as damage:
        error = damage  # what was read before it counts
    gone = 0
    if error is None:
        start = view.log_start_offset
        gone = max(earlier_end, start) - start - earlier_count - decided.markers_below(earlier_end)
    has_gaps = gone > 0
    unknown = [later[key] for key in later if key not in last] if has_gaps else []
    records, unreadable, ignored = _decoded(last.values())
    return LastRecords(records, _decoded(unknown)[0], unreadable, ignored, error)


def _decoded(stored: Iterable[StoredRecord]) -> tuple[list[CoordinatorRecord], int, int]:
    """Return records, how many are not understood, and how many Kafka has no longer."""
    reader = group_records()
    records = []
    unreadable = ignored = 0
    for each in stored:
        if each.value is None:
            continue
        key = each.key or b""
        try:
            if reader.is_retired(reader.type_id(key)):
                ignored += 1
            else:
                records.append(reader.read(key, each.value))
        except InvalidRecordError:
            unreadable += 1
    return records, unreadable, ignored


class _Decisions:
    """Which transactions of a partition had been committed by an instant."""

    def __init__(self, view: LogView, at_ms: int | None) -> None:
        self._ends: dict[int, list[tuple[int, bool]]] = {}
        for _ in range(_MOST_LOOKS):
            self.error = self._read(view, at_ms)
            if not isinstance(self.error, SegmentVanishedError):
                break
            view = view.refreshed()  # a broker has compacted it meanwhile

    def _read(self, view: LogView, at_ms: int | None) -> LogStorageError | None:
        """Take in all markers; return the error that ends the walk."""
        self._ends.clear()
        try:
            for each in find_transactions(view):
                if each.marker_offset is None:
                    continue
                is_by_then = at_ms is None or (each.marker_timestamp or 0) <= at_ms
                is_committed = each.state == "committed" and is_by_then
                ends = self._ends.setdefault(each.producer_id, [])
                ends.append((each.marker_offset, is_committed))
        except LogStorageError as error:
            return error  # what was ended before it counts
        return None

    def counts(self, stored: StoredRecord) -> bool:
        """Whether a record is of no transaction, or of one that has been committed."""
        if stored.producer_id is None:
            return True
        ends = self._ends.get(stored.producer_id, [])
        place = bisect_right(ends, (stored.offset, True))
        return place < len(ends) and ends[place][1]

    def markers_below(self, offset: int) -> int:
        """Return how many markers there are below an offset."""
        return sum(marker < offset for ends in self._ends.values() for marker, _ in ends)

"""`groups`: consumer groups, their members, what they have committed, and their lag."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import LogStorageError, UnknownTopicOrPartitionError
from pylog.files.partition_metadata import ZERO_UUID, format_uuid
from pylog.inspect.group_listing import (
    CommittedOffset,
    ConsumerGroup,
    GroupListing,
    GroupMember,
)
from pylog.inspect.group_records import last_group_records
from pylog.inspect.shared_progress import SharedProgress
from pylog.internal_topics.group_state import GroupState, group_states
from pylog.keyword_arguments import names_nearest_keyword
from pylog.model import IsolationLevel, TopicPartition
from pylog.reading.damage import Attempts
from pylog.reading.log_directory import open_replicas
from pylog.reading.offset_resolution import find_offset_for_timestamp
from pylog.reading.transactions import find_last_stable_offset

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pylog.internal_topics.coordinator_record import CoordinatorRecord
    from pylog.internal_topics.group_state import StoredOffset
    from pylog.reading.log_directory import LogDirectory
    from pylog.reading.log_view import LogView

CONSUMER_OFFSETS_TOPIC = "__consumer_offsets"


@names_nearest_keyword
def groups(
    *paths: str | os.PathLike[str],
    groups: Iterable[str] | None = None,
    at_ms: int | None = None,
    isolation: str | IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> GroupListing:
    """Return the groups whose partitions of ``__consumer_offsets`` lie under the paths.

    Parameters
    ----------
    *paths
        Log directories, of any number of brokers: of a partition that lies there twice the longest
        replica counts.
    groups
        Only these ids; None for all.
    at_ms
        An instant in the past, in ms: what had been committed by then, and where logs ended then.
        None for now.
    isolation
        "read_committed" counts lag to the last stable offset, as of now, and not to the end.
    threads
        How many partitions of ``__consumer_offsets`` are read side by side; None for what the
        environment variable ``PYLOG_NUM_THREADS`` says, else as many as there are processors.
    progress
        Called from time to time with the bytes that have been gone through, and those of all.

    Raises
    ------
    UnknownTopicOrPartitionError
        No partition of ``__consumer_offsets`` is there, or no group of a name that was given.
    LogStorageError
        A path cannot be read. A damaged partition is no error of this function: the groups of the
        others are returned, see `GroupListing.errors`.
    ValueError
        The isolation level makes no sense, or ``threads`` is below 1.
    """
    directory = open_replicas(*paths)
    if CONSUMER_OFFSETS_TOPIC not in directory:
        reason = (
            f"no partition of {CONSUMER_OFFSETS_TOPIC} is here: committed offsets are in the log "
            "directories of the brokers that have these"
        )
        raise UnknownTopicOrPartitionError(reason)
    views = directory.topics[CONSUMER_OFFSETS_TOPIC]
    states: dict[str, GroupState] = {}
    unknown: list[CoordinatorRecord] = []
    errors: list[LogStorageError] = []
    unreadable = ignored = 0
    for found in _read_side_by_side(views, at_ms, threads, progress):
        if isinstance(found, LogStorageError):
            errors.append(found)
            continue
        states |= found.states
        unknown += found.unknown
        unreadable += found.unreadable
        ignored += found.ignored
    lost = group_states(unknown)
    for group_id, state in lost.items():
        states.setdefault(group_id, GroupState(group_id, state.kind))
    chosen = _chosen(states, groups)
    logs = _Logs(directory, at_ms, IsolationLevel.parse(isolation))
    described = [_group(states[each], lost.get(each), logs) for each in chosen]
    numbers = tuple(view.partition for view in views)
    return GroupListing(described, numbers, unreadable, ignored, [*errors, *logs.attempts.errors])


class _PartitionGroups(NamedTuple):
    """What one partition of ``__consumer_offsets`` says; see `LastRecords`."""

    states: dict[str, GroupState]
    unknown: list[CoordinatorRecord]
    unreadable: int
    ignored: int


def _read_side_by_side(
    views: Sequence[LogView],
    at_ms: int | None,
    threads: int | None,
    progress: Callable[[int, int], None] | None,
) -> list[_PartitionGroups | LogStorageError]:
    """Return what each partition says, or why it cannot be read."""
    shared = SharedProgress(sum(view.size_bytes for view in views), progress)

    def read(view: LogView) -> _PartitionGroups | LogStorageError:
        try:
            found = last_group_records(view, at_ms)
            states = group_states(found.records)
            return _PartitionGroups(states, found.unknown, found.unreadable, found.ignored)
        except LogStorageError as error:
            return error
        finally:
            shared.advance(view.size_bytes)

    return shared.side_by_side(read, views, threads)


def _chosen(states: dict[str, GroupState], names: Iterable[str] | None) -> list[str]:
    if names is None:
        return sorted(states)
    chosen = sorted(set(names))
    for name in chosen:
        if name not in states:
            known = ", ".join(sorted(states)[:20]) or "none"
            reason = f"no group {name!r} here; groups found: {known}"
            raise UnknownTopicOrPartitionError(reason)
    return chosen


def _group(state: GroupState, lost: GroupState | None, logs: _Logs) -> ConsumerGroup:
    members = []
    owners: dict[TopicPartition, str] = {}
    for member_id, each in sorted(state.members.items()):
        assigned = tuple(sorted(_assigned(each.assigned, logs)))
        owners |= dict.fromkeys(assigned, member_id)
        members.append(
            GroupMember(member_id, each.instance_id, each.client_id, each.client_host, assigned)
        )
    offsets: dict[TopicPartition, CommittedOffset] = {}
    for place, stored in state.offsets.items():
        where = TopicPartition(*place)
        offsets[where] = _committed(where, stored, owners.get(where), logs)
    # Assigned, and nothing committed yet: Kafka's tool lists these, too.
    for where in owners:
        offsets.setdefault(where, _committed(where, None, owners[where], logs))
    for place in lost.offsets if lost is not None else ():
        where = TopicPartition(*place)
        offsets.setdefault(where, _committed(where, None, None, logs))
    return ConsumerGroup(
        state.group_id,
        state.kind,
        state.state,
        state.protocol_type,
        state.protocol,
        state.epoch,
        tuple(members),
        tuple(offsets[where] for where in sorted(offsets)),
    )


def _assigned(by_topic: dict[str | uuid.UUID, list[int]], logs: _Logs) -> Iterator[TopicPartition]:
    for topic, numbers in by_topic.items():
        name = logs.name_of(topic) if isinstance(topic, uuid.UUID) else topic
        for number in numbers:
            yield TopicPartition(name, number)


def _committed(
    where: TopicPartition, stored: StoredOffset | None, member_id: str | None, logs: _Logs
) -> CommittedOffset:
    start, end = logs.range_of(where, None if stored is None else stored.topic_id)
    return CommittedOffset(
        where.topic,
        where.partition,
        None if stored is None else stored.offset,
        None if stored is None else stored.leader_epoch,
        None if stored is None else stored.metadata,
        None if stored is None else stored.commit_timestamp,
        start,
        end,
        member_id,
    )


class _Logs:
    """The logs that groups read, each looked at once."""

    def __init__(
        self, directory: LogDirectory, at_ms: int | None, isolation: IsolationLevel
    ) -> None:
        self.attempts = Attempts()
        self._directory = directory
        self._at_ms = at_ms
        self._is_committed = isolation is IsolationLevel.READ_COMMITTED
        self._ranges: dict[TopicPartition, tuple[int | None, int | None]] = {}
        self._names: dict[uuid.UUID, str] | None = None

    def name_of(self, topic_id: uuid.UUID) -> str:
        """Return the name of a topic; its id as text if it has no partition here."""
        if self._names is None:
            self._names = {}
            for topic, views in self._directory.topics.items():
                found = self._topic_id(views[0])
                if found is not None:
                    self._names[found] = topic
        return self._names.get(topic_id, format_uuid(topic_id))

    def range_of(
        self, where: TopicPartition, topic_id: uuid.UUID | None
    ) -> tuple[int | None, int | None]:
        """Return start and end of a log; None where it is not here, or is another topic's."""
        if where not in self._directory:
            return None, None
        view = self._directory[where]
        if topic_id is not None and topic_id != ZERO_UUID:
            found = self._topic_id(view)
            if found is not None and found != topic_id:
                return None, None
        if where not in self._ranges:
            start = self.attempts.read(lambda: view.log_start_offset)
            self._ranges[where] = start, self.attempts.read(lambda: self._end(view))
        return self._ranges[where]

    def _end(self, view: LogView) -> int:
        end = find_last_stable_offset(view) if self._is_committed else view.log_end_offset
        if self._at_ms is None:
            return end
        later = find_offset_for_timestamp(view, self._at_ms + 1)
        return end if later is None else min(end, later.offset)

    def _topic_id(self, view: LogView) -> uuid.UUID | None:
        metadata = self.attempts.read(lambda: view.metadata)
        return None if metadata is None else metadata.topic_id

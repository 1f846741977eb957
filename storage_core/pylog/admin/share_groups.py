"""How far share groups have come: what ``__share_group_state`` has of them (KIP-932).

A snapshot has all of a partition's state, and each update after it changes a part. Brokers remove
what is before the oldest snapshot that counts; nothing is compacted.

Source: ShareCoordinatorShard, GroupCoordinatorService.describeShareGroupAllOffsets (Kafka 4.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import InvalidRecordError, LogStorageError
from pylog.internal_topics.share_group_state import (
    SHARE_SNAPSHOT,
    SHARE_STATE_RECORD_TYPES,
    ShareGroupOffset,
    SharePartitionKey,
    share_group_offset,
    share_state_records,
)
from pylog.reading.coordinators import StaleState, partition_count, who_answers
from pylog.reading.internal_logs import coordinator_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pylog.internal_topics.metadata_image import MetadataImage
    from pylog.reading.internal_logs import StoredRecord
    from pylog.reading.log_view import LogView


SHARE_GROUP_STATE_TOPIC = "__share_group_state"
DEAD_LETTER_TOPIC_CONFIG = "errors.deadletterqueue.topic.name"


@dataclass(frozen=True, slots=True)
class SharePartition:
    """How far a share group has come in a partition, against the partition's log.

    What is None is not known here: the state is in another partition of ``__share_group_state``,
    was removed since, or is not understood.

    Attributes
    ----------
    topic, topic_id
        The name is the id where neither the logs nor the metadata under the paths have the topic.
    state_epoch, leader_epoch
        As a share coordinator has them.
    start_offset
        The first offset that is not done with; -1 where the group has not begun.
    delivery_complete_count
        How many offsets from there on are done with. None where the broker does not count them
        (before Kafka 4.2), or has not begun to.
    log_start_offset, log_end_offset
        Of the log under the paths; None where it is not there. Up to the last stable offset, for
        consumers that read committed records.
    """

    topic: str
    topic_id: str
    partition: int
    state_epoch: int | None
    leader_epoch: int | None
    start_offset: int | None
    delivery_complete_count: int | None
    log_start_offset: int | None
    log_end_offset: int | None

    @property
    def lag(self) -> int | None:
        """How many offsets are not done with; None if that is not known."""
        start, count, end = self.start_offset, self.delivery_complete_count, self.log_end_offset
        if start is None or start < 0 or count is None or end is None:
            return None
        return end - start - count


class ShareState(NamedTuple):
    """The state of a share partition; the offset is None where it is not known."""

    offset: ShareGroupOffset | None
    timestamp: int  # of the newest record, in ms


class ShareStates(NamedTuple):
    """What one partition of ``__share_group_state`` says."""

    by_id: dict[str, ShareState]
    keys: dict[str, SharePartitionKey]
    unreadable: int
    error: LogStorageError | None = None  # what ended the reading: damage


_TYPE_BYTES = 2
_SNAPSHOT = SHARE_SNAPSHOT.to_bytes(_TYPE_BYTES)
_TYPES = {each.to_bytes(_TYPE_BYTES) for each in SHARE_STATE_RECORD_TYPES}


def read_share_states(view: LogView, at_ms: int | None = None) -> ShareStates:
    """Return what a share coordinator would have believed of one partition, now or at an instant.

    A share coordinator writes no transactions: what is in one is not its own.
    """
    # The newest snapshot of each share partition and the updates since.
    chains: dict[bytes, list[StoredRecord]] = {}
    later: dict[bytes, StoredRecord] = {}
    odd = 0
    error = None
    try:
        for stored in coordinator_records(view):
            if stored.key is None or stored.producer_id is not None:
                continue
            kind, name = stored.key[:_TYPE_BYTES], stored.key[_TYPE_BYTES:]
            if at_ms is not None and stored.timestamp > at_ms:
                later.setdefault(name, stored)
            elif kind not in _TYPES:
                odd += stored.value is not None
            elif kind == _SNAPSHOT:
                chains.pop(name, None)
                if stored.value is not None:
                    chains[name] = [stored]
            elif stored.value is not None:
                chains.setdefault(name, []).append(stored)
        is_whole = view.log_start_offset == 0
    except LogStorageError as damage:
        error, is_whole = damage, False  # what was read before it counts
    if not is_whole:
        # What there was before them has been removed, so that nobody knows it.
        chains |= {name: [each] for name, each in later.items() if name not in chains}
    states = ShareStates({}, {}, 0, error)
    return states._replace(unreadable=odd + _add(states, chains.values(), at_ms))


def _add(states: ShareStates, chains: Iterable[list[StoredRecord]], at_ms: int | None) -> int:
    """Add what records say of each share partition; return how many are not understood."""
    reader = share_state_records()
    unreadable = 0
    for chain in chains:
        records = []
        key = None
        for stored in chain:
            try:
                key = SharePartitionKey.of(reader.read(stored.key or b"", None))
                records.append(reader.read(stored.key or b"", stored.value))
            except InvalidRecordError:
                unreadable += 1
        if key is None:
            continue
        newest = chain[-1].timestamp
        is_known = len(records) == len(chain) and (at_ms is None or newest <= at_ms)
        offset = share_group_offset(records) if is_known else None
        states.by_id[str(key)] = ShareState(offset, newest)
        states.keys[str(key)] = key
    return unreadable


class ShareGroups(NamedTuple):
    """What the partitions of ``__share_group_state`` say together."""

    by_group: dict[str, dict[SharePartitionKey, ShareState]]
    stale: list[tuple[StaleState, str]]  # each with the id of its group


def share_groups(
    found: Mapping[int, ShareStates], image: MetadataImage, configured: int | None
) -> ShareGroups:
    """Return what counts of each partition's states; ``configured`` see `partition_count`."""
    by_partition = {partition: each.by_id for partition, each in found.items()}
    keys = {name: key for each in found.values() for name, key in each.keys.items()}
    count = partition_count(image, SHARE_GROUP_STATE_TOPIC, by_partition, configured)
    answers, stale = who_answers(
        SHARE_GROUP_STATE_TOPIC,
        count,
        by_partition,
        lambda name, place: by_partition[place][name].timestamp,
    )
    by_group: dict[str, dict[SharePartitionKey, ShareState]] = {}
    for name, place in answers.items():
        key = keys[name]
        by_group.setdefault(key.group_id, {})[key] = by_partition[place][name]
    return ShareGroups(by_group, [(each, keys[each.id].group_id) for each in stale])

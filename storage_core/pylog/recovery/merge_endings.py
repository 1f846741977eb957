"""What is put at the ends of merged logs: part of a batch, markers, and positions of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.admin.consumer_groups import groups
from pylog.errors import LogDirectoryError, UnknownTopicOrPartitionError
from pylog.locations import join
from pylog.model import ControlRecordType, TopicPartition
from pylog.reading.group_records import CONSUMER_OFFSETS_TOPIC
from pylog.record.batch_scan import Window, find_batches
from pylog.recovery.merge_summary import MergeTransaction, MovedGroup
from pylog.recovery.partition_copy import end_transaction
from pylog.recovery.restore_groups import RestoredOffset, write_commits
from pylog.recovery.retained_batches import BatchSelection

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pylog.admin.consumer_groups import GroupListing
    from pylog.log.unified_log import UnifiedLog
    from pylog.recovery.merge_until import LogCut


def append_part(log: UnifiedLog, batch: bytes, end_offset: int) -> None:
    """Append the records of a batch that are before an offset."""
    window = Window.of(find_batches(np.frombuffer(batch, dtype=np.uint8)))
    for part in BatchSelection(None, end_offset).select(window):
        if len(part.headers):
            log.append_copied(part.data, part.headers)


def planned_markers(cut: LogCut | None) -> list[MergeTransaction]:
    """Return which transactions would be ended, and how."""
    if cut is None:
        return []
    return [
        MergeTransaction(
            *(each.producer_id, each.producer_epoch, each.first_offset, None, None, None, kind.name)
        )
        for kind, ended in (
            (ControlRecordType.COMMIT, cut.commits),
            (ControlRecordType.ABORT, cut.aborts),
        )
        for each in ended
    ]


def append_markers(log: UnifiedLog, commits: Collection[int]) -> list[MergeTransaction]:
    """End all transactions that are open: COMMIT of these producers', ABORT of the others'."""
    ended = []
    for each in log.producer_state.open_transactions:
        is_committed = each.producer_id in commits
        kind = ControlRecordType.COMMIT if is_committed else ControlRecordType.ABORT
        entry = log.producer_state.last_entry(each.producer_id)
        epoch = -1 if entry is None else entry.producer_epoch
        offset = end_transaction(log, each, kind)
        ended.append(
            MergeTransaction(
                each.producer_id, epoch, each.first_offset, None, None, None, kind.name, offset
            )
        )
    return ended


def append_lost_markers(
    log: UnifiedLog, found: Sequence[MergeTransaction]
) -> list[MergeTransaction]:
    """End those open transactions whose markers are on a branch, as these say."""
    by_producer = {each.producer_id: each for each in log.producer_state.open_transactions}
    ended = []
    for each in found:
        transaction = by_producer.get(each.producer_id)
        if each.marker is None or transaction is None:
            ended.append(each)
        else:
            offset = end_transaction(log, transaction, ControlRecordType[each.marker])
            ended.append(each._replace(appended=each.marker, appended_at=offset))
    return ended


def groups_behind(listing: GroupListing, ends: Mapping[TopicPartition, int]) -> list[MovedGroup]:
    """Return the positions of groups that are behind the end of a log, where they are known."""
    return [
        MovedGroup(group.group_id, each.topic, each.partition, each.offset, end)
        for group in listing.groups
        for each in group.offsets
        if (end := ends.get(TopicPartition(each.topic, each.partition))) is not None
        and each.offset is not None
        and each.offset > end
        and not each.is_of_earlier_topic
    ]


def listed_groups(place: str) -> GroupListing | None:
    """Return what a result has of groups; None without their topic."""
    try:
        return groups(place)
    except (LogDirectoryError, UnknownTopicOrPartitionError):
        return None


def bring_back_groups(place: str, ends: Mapping[TopicPartition, int]) -> list[MovedGroup]:
    """Commit the end of a log for groups whose positions are behind it."""
    listing = listed_groups(place)
    if listing is None:
        return []
    moved = groups_behind(listing, ends)
    if moved:
        metadata = {
            (group.group_id, each.topic, each.partition): each.metadata or ""
            for group in listing.groups
            for each in group.offsets
        }
        homes = _homes(place, {each.group_id for each in moved}, listing.partitions)
        write_commits(
            place,
            [RestoredOffset(*each, homes[each.group_id], metadata[each[:3]]) for each in moved],
        )
    return moved


def _homes(place: str, group_ids: Collection[str], partitions: Collection[int]) -> dict[str, int]:
    """Return in which partition of the topic each group is."""
    return {
        each.group_id: number
        for number in partitions
        for each in groups(join(place, f"{CONSUMER_OFFSETS_TOPIC}-{number}")).groups
        if each.group_id in group_ids
    }

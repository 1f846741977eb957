"""`restore_groups`: groups of a cluster that is gone go on in another log directory.

What groups had committed is read from the old ``__consumer_offsets``, and written to the one of a
stopped node, in the partition that answers for the group there. No leader epoch is written: a
client that is given one of another cluster starts anew, or hangs. The commit has the time of now,
or a broker would delete it for its age ten minutes after its start.

Source: GroupCoordinatorService.partitionFor, OffsetMetadataManager (Kafka 4.4); KIP-320.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from pylog.admin.consumer_groups import groups as groups_of
from pylog.errors import LogDirectoryError, LogStorageError, UnknownTopicOrPartitionError
from pylog.files.owned_directories import writable_log_directory
from pylog.internal_topics.group_state import StoredOffset
from pylog.internal_topics.offset_commits import (
    READ_BY_ALL_VERSION,
    offset_commit_key,
    offset_commit_value,
)
from pylog.model import TopicPartition
from pylog.reading.coordinators import cluster_image, partition_count, partition_for
from pylog.reading.group_records import CONSUMER_OFFSETS_TOPIC
from pylog.reading.log_directory import open_directory
from pylog.recovery.mirrored_offsets import read_mirrored_offsets
from pylog.recovery.offset_translation import read_offset_translation
from pylog.scheduling.clock import SystemClock
from pylog.text.words import counted, named
from pylog.writing.new_log_directory import ensure_apart
from pylog.writing.write_topic import write_topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pylog.admin.consumer_groups import CommittedOffset, GroupListing
    from pylog.recovery.mirrored_offsets import MirroredOffsets
    from pylog.recovery.offset_translation import OffsetTranslation

_PARTITIONS = 50
"""Of ``__consumer_offsets`` where nothing says how many it has (offsets.topic.num.partitions)."""


class RestoredOffset(NamedTuple):
    """A committed offset that is written.

    Attributes
    ----------
    before, offset
        The old position and the new one; the same without a map.
    coordinator
        The partition of ``__consumer_offsets`` that has it.
    metadata
        What the client has committed with it.
    """

    group_id: str
    topic: str
    partition: int
    before: int
    offset: int
    coordinator: int
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class RestoredGroups:
    """What `pylog.jobs.restore_groups` returns.

    Attributes
    ----------
    to
        The log directory.
    is_written
        Whether it was done, and not only planned.
    offsets
        What was written, by group, topic and partition.
    losses
        What is left out, in sentences; empty if nothing is.
    """

    to: str
    is_written: bool
    offsets: list[RestoredOffset]
    losses: list[str] = field(default_factory=list)


def restore_groups(  # noqa: PLR0913 - keyword-only options, one for each thing a user may say
    *paths: str | os.PathLike[str],
    to: str | os.PathLike[str],
    groups: Iterable[str] | None = None,
    at_ms: int | None = None,
    offset_map: str | os.PathLike[str] | None = None,
    topic_prefix: str = "",
    replaces: bool = False,
    dry_run: bool = False,
) -> RestoredGroups:
    """Write what groups had committed to the ``__consumer_offsets`` of another log directory.

    Parameters
    ----------
    *paths
        Log directories with the old ``__consumer_offsets``. They are not changed.
    to
        A log directory of a stopped node, which has the partitions of ``__consumer_offsets`` that
        answer for the groups; or one without a cluster's metadata, where they are made if need be.
    groups
        Only these ids; None for all.
    at_ms
        What had been committed by this instant, in ms; None for the last.
    offset_map
        A CSV file of topic, partition, old and new offset, of logs whose records have other offsets
        now; or a log directory with the offset syncs of MirrorMaker 2. Partitions that are not in
        it are left out.
    topic_prefix
        What the topics' names begin with there, such as ``"old."`` of MirrorMaker 2.
    replaces
        Whether positions that these groups have there already are replaced.
    dry_run
        Whether nothing is written.

    Raises
    ------
    LogDirectoryError
        Refused: a partition of ``__consumer_offsets`` is not there, or a group has another position
        there. Nothing was written.
    InvalidLineError
        A line of the map is none.
    UnknownTopicOrPartitionError
        No partition of ``__consumer_offsets`` is under the paths, or no group of a name.
    LogLockedError
        A broker runs on the directory.

    Examples
    --------
    >>> done = pylog.jobs.restore_groups("kafka/intact", to="new", groups=["grp-late"])
    >>> [(each.topic, each.partition, each.offset) for each in done.offsets]
    [('orders', 1, 9)]
    """
    place = writable_log_directory(to)
    for path in paths:
        ensure_apart(place, os.fspath(path))
    listing = groups_of(*paths, groups=groups, at_ms=at_ms)
    known = None if offset_map is None else _offset_map(offset_map)
    count, is_made = _partitions_of(place, listing)
    restored, losses = _restored(listing, known, count, topic_prefix)
    if not is_made:
        _ensure_there(place, restored)
    if not replaces:
        _ensure_new(place, restored)
    if restored and not dry_run:
        write_commits(place, restored, count if is_made else None)
    return RestoredGroups(place, not dry_run, restored, losses)


def _partitions_of(place: str, listing: GroupListing) -> tuple[int, bool]:
    """Return how many partitions the topic has, and whether those that are not there are made."""
    if not os.path.isdir(place):  # noqa: PTH112 - kept as text
        return max([_PARTITIONS, *(each + 1 for each in listing.partitions)]), True
    directory = open_directory(place)
    errors: list[LogStorageError] = []
    image = cluster_image(directory, errors)
    if errors:
        raise errors[0]
    views = directory.topics.get(CONSUMER_OFFSETS_TOPIC, [])
    known = partition_count(image, CONSUMER_OFFSETS_TOPIC, {}, None)
    if known is not None:
        return known, False
    if image.topics or image.metadata_version is not None:
        reason = (
            f"the cluster has no {CONSUMER_OFFSETS_TOPIC} yet: start it, let any consumer commit "
            "once, and stop it again"
        )
        raise LogDirectoryError(reason, place)
    return (len(views), False) if views else (_PARTITIONS, True)


def _offset_map(path: str | os.PathLike[str]) -> OffsetTranslation | MirroredOffsets:
    is_directory = os.path.isdir(path)  # noqa: PTH112 - also a descriptor
    return read_mirrored_offsets(path) if is_directory else read_offset_translation(path)


def _restored(
    listing: GroupListing,
    known: OffsetTranslation | MirroredOffsets | None,
    count: int,
    prefix: str,
) -> tuple[list[RestoredOffset], list[str]]:
    restored, unmapped, unknown, earlier = [], [], [], []
    for group_id, each in _committed(listing):
        place = TopicPartition(each.topic, each.partition)
        if each.offset is None:
            unknown.append(f"{group_id} in {place}")
        elif known is not None and place not in known:
            unmapped.append(f"{group_id} in {place}")
        else:
            offset = each.offset if known is None else known.position(place, each.offset)
            if offset is None:
                earlier.append(f"{group_id} in {place}")
                continue
            coordinator = partition_for(group_id, count)
            topic = f"{prefix}{each.topic}"
            restored.append(
                RestoredOffset(
                    *(group_id, topic, each.partition, each.offset, offset, coordinator),
                    each.metadata or "",
                )
            )
    losses = [f"not known what was committed: {named(unknown)}"] if unknown else []
    losses += [f"not in the map: {named(unmapped)}"] if unmapped else []
    losses += [f"before the first offset sync that is left: {named(earlier)}"] if earlier else []
    losses += [f"partitions of groups that could not be read: {each}" for each in listing.errors]
    if listing.unreadable_records:
        losses.append(
            f"{counted(listing.unreadable_records, 'record')} of {CONSUMER_OFFSETS_TOPIC} that "
            "cannot be read: of a later version of Kafka, or broken"
        )
    losses += [] if listing.missing is None else [str(listing.missing)]
    shared = [each.group_id for each in listing.groups if each.share_partitions]
    losses += [f"share groups, which have no such offsets: {named(shared)}"] if shared else []
    return restored, losses


def _committed(listing: GroupListing) -> Iterator[tuple[str, CommittedOffset]]:
    for group in listing.groups:
        for each in group.offsets:
            if (each.offset is None or each.offset >= 0) and not each.is_of_earlier_topic:
                yield group.group_id, each


def _ensure_there(place: str, restored: Iterable[RestoredOffset]) -> None:
    views = open_directory(place).topics.get(CONSUMER_OFFSETS_TOPIC, [])
    here = {each.partition for each in views}
    missing = sorted({each.coordinator for each in restored} - here)
    if missing:
        shown = named([f"{CONSUMER_OFFSETS_TOPIC}-{each}" for each in missing])
        reason = f"{shown} is not here: give the log directory of the node that leads it"
        raise LogDirectoryError(reason, place)


def _ensure_new(place: str, restored: Iterable[RestoredOffset]) -> None:
    """Refuse to move a group that is somewhere else already."""
    try:
        listing = groups_of(place)
    except (LogDirectoryError, UnknownTopicOrPartitionError):
        return  # it is to be made
    there = {
        (group.group_id, each.topic, each.partition): each.offset
        for group in listing.groups
        for each in group.offsets
    }
    others = [
        each
        for each in restored
        if there.get((each.group_id, each.topic, each.partition), each.offset) != each.offset
    ]
    if others:
        first = others[0]
        position = there[first.group_id, first.topic, first.partition]
        reason = (
            f"{counted(len(others), 'position')} of these groups are others here, as group "
            f"{first.group_id} in {first.topic}-{first.partition} at {position} and not "
            f"{first.offset}: leave the groups out, or replace their positions (replaces, "
            "--replace)"
        )
        raise LogDirectoryError(reason, place)


def write_commits(
    place: str, restored: list[RestoredOffset], partitions: int | None = None
) -> None:
    """Append commits to ``__consumer_offsets``; make it first if it is said to have partitions."""
    now_ms = SystemClock().milliseconds()
    keys = [offset_commit_key(each.group_id, each.topic, each.partition) for each in restored]
    commits = [StoredOffset(each.offset, None, each.metadata, now_ms, None) for each in restored]
    table = pa.table(
        {
            "key": keys,
            "value": [offset_commit_value(each, READ_BY_ALL_VERSION) for each in commits],
            "partition": pa.array([each.coordinator for each in restored], pa.int32()),
        }
    )
    write_topic(
        place,
        CONSUMER_OFFSETS_TOPIC,
        table,
        key="key",
        partition="partition",
        partitions=partitions,
        config=None if partitions is None else {"cleanup.policy": "compact"},
    )

"""The records of ``__consumer_offsets`` that count, by its partitions.

Of each key the last record counts, now or at an instant in the past. Records of a transaction count
when its marker says commit, by then; in the place that they have in the log.

Source: CoordinatorLoaderImpl, OffsetMetadataManager (Kafka 4.3).
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import InvalidRecordError, LogStorageError
from pylog.internal_topics.consumer_offsets import group_records
from pylog.internal_topics.group_kinds import GroupKinds
from pylog.internal_topics.group_state import group_states
from pylog.reading.coordinators import partition_count, who_answers
from pylog.reading.internal_logs import coordinator_records
from pylog.reading.log_view import read_steadily
from pylog.reading.producer_transactions import find_transactions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pylog.internal_topics.coordinator_record import CoordinatorRecord
    from pylog.internal_topics.group_kinds import MixedKinds
    from pylog.internal_topics.group_state import GroupState
    from pylog.internal_topics.metadata_image import MetadataImage
    from pylog.reading.coordinators import StaleState
    from pylog.reading.internal_logs import StoredRecord
    from pylog.reading.log_view import LogView


CONSUMER_OFFSETS_TOPIC = "__consumer_offsets"


class LastRecords(NamedTuple):
    """The last record of each key in a partition of ``__consumer_offsets``, without tombstones."""

    records: list[CoordinatorRecord]  # in offset order
    unknown: list[CoordinatorRecord]
    unreadable: int
    ignored: int
    error: LogStorageError | None = None  # what ended the reading: damage
    undecided: frozenset[tuple[str, str, int]] = frozenset()  # group, topic, partition that open
    # transactions commit an offset for
    mixed: MixedKinds | None = None  # why a coordinator does not load the partition


def last_group_records(view: LogView, at_ms: int | None = None) -> LastRecords:
    """Return what a coordinator would have believed of one partition, now or at an instant."""
    decided = _Decisions(view, at_ms)
    last: dict[bytes, StoredRecord] = {}
    later: dict[bytes, StoredRecord] = {}
    earlier_count = 0
    earlier_end = 0
    undecided: set[bytes] = set()
    kinds = GroupKinds()
    error = decided.error
    try:
        for stored in coordinator_records(view):
            if stored.key is not None:
                kinds.take(stored.offset, stored.key, stored.value)
                if decided.is_open(stored):
                    undecided.add(stored.key)
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
    return LastRecords(
        *(records, _decoded(unknown)[0], unreadable, ignored, error),
        *(frozenset(_places(undecided)), kinds.mixed),
    )


def _places(keys: Iterable[bytes]) -> Iterator[tuple[str, str, int]]:
    """Yield what offsets are committed for: group, topic and partition."""
    reader = group_records()
    for key in keys:
        with suppress(InvalidRecordError):
            fields = reader.read(key, None).key
            if "topic" in fields:
                yield fields["group"], fields["topic"], fields["partition"]


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
        self.error: LogStorageError | None = None
        try:
            read_steadily(view, lambda now: self._read(now, at_ms))
        except LogStorageError as error:
            self.error = error  # what was ended before it counts

    def _read(self, view: LogView, at_ms: int | None) -> None:
        """Take in all markers."""
        self._ends.clear()
        for each in find_transactions(view):
            if each.marker_offset is None:
                continue
            is_by_then = at_ms is None or (each.marker_timestamp or 0) <= at_ms
            is_committed = each.state == "committed" and is_by_then
            ends = self._ends.setdefault(each.producer_id, [])
            ends.append((each.marker_offset, is_committed))

    def counts(self, stored: StoredRecord) -> bool:
        """Whether a record is of no transaction, or of one that has been committed."""
        if stored.producer_id is None:
            return True
        ends = self._ends.get(stored.producer_id, [])
        place = bisect_right(ends, (stored.offset, True))
        return place < len(ends) and ends[place][1]

    def is_open(self, stored: StoredRecord) -> bool:
        """Whether a record is of a transaction that has no marker yet."""
        if stored.producer_id is None:
            return False
        ends = self._ends.get(stored.producer_id, [])
        return bisect_right(ends, (stored.offset, True)) == len(ends)

    def markers_below(self, offset: int) -> int:
        """Return how many markers there are below an offset."""
        return sum(marker < offset for ends in self._ends.values() for marker, _ in ends)


class StoredGroups(NamedTuple):
    """The groups that some partitions of ``__consumer_offsets`` have."""

    states: dict[str, GroupState]  # as the partition has them that answers for them
    lost: dict[str, GroupState]  # what is not known any more, of a past instant
    partition_count: int | None  # how many partitions the topic has; None where that is not known
    missing: tuple[int, ...]  # partitions that are not here, as far as that is known
    stale: list[StaleState]


def stored_groups(
    found: Mapping[int, LastRecords], image: MetadataImage, configured: int | None
) -> StoredGroups:
    """Return the groups of partitions; ``configured`` as of `partition_count`."""
    by_partition = {number: group_states(each.records) for number, each in found.items()}
    lost = group_states([record for each in found.values() for record in each.unknown])
    count = partition_count(image, CONSUMER_OFFSETS_TOPIC, by_partition, configured)
    answers, stale = who_answers(
        CONSUMER_OFFSETS_TOPIC,
        count,
        by_partition,
        lambda name, place: by_partition[place][name].latest_commit,
    )
    numbers = range(max(found, default=-1) + 1 if count is None else count)
    return StoredGroups(
        {name: by_partition[place][name] for name, place in answers.items()},
        lost,
        count,
        tuple(number for number in numbers if number not in found),
        stale,
    )

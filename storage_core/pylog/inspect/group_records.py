"""The last record of each key in ``__consumer_offsets``, now or at an instant in the past.

Records of a transaction count when its marker says commit, by then; in the place that they have in
the log, as a coordinator takes them in. Compaction removes what later records of a key replaced: of
an instant in the past it may be unknown whether a key had a record by then.

Source: CoordinatorLoaderImpl, OffsetMetadataManager (Kafka 4.3).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import InvalidRecordError
from pylog.inspect.transactions import find_transactions
from pylog.internal_topics.consumer_offsets import group_records
from pylog.reading.internal_logs import coordinator_records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylog.internal_topics.coordinator_record import CoordinatorRecord
    from pylog.reading.internal_logs import StoredRecord
    from pylog.reading.log_view import LogView


class LastRecords(NamedTuple):
    """The records that count in one partition.

    Attributes
    ----------
    records
        The last one of each key, by then, tombstones left out.
    unknown
        Records of later: of their keys nothing is here from before, and compaction may have
        removed it.
    unreadable
        How many records are of types that are not known here, or break their format.
    ignored
        How many are of types that brokers do not have any more.
    """

    records: list[CoordinatorRecord]
    unknown: list[CoordinatorRecord]
    unreadable: int
    ignored: int


def last_group_records(view: LogView, at_ms: int | None = None) -> LastRecords:
    """Return what a coordinator would have believed of one partition.

    Parameters
    ----------
    view
        A partition of ``__consumer_offsets``.
    at_ms
        The instant, in ms: records up to it count, by their timestamps. None for all.

    Raises
    ------
    LogStorageError
        The partition is damaged or cannot be read.
    """
    decided = _Decisions(view, at_ms)
    last: dict[bytes, StoredRecord] = {}
    later: dict[bytes, StoredRecord] = {}
    earlier_count = 0
    earlier_end = view.log_start_offset
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
            last[stored.key] = stored
    markers = decided.markers_below(earlier_end)
    has_gaps = earlier_end - view.log_start_offset > earlier_count + markers
    unknown = [later[key] for key in later if key not in last] if has_gaps else []
    records, unreadable, ignored = _read(last.values())
    return LastRecords(records, _read(unknown)[0], unreadable, ignored)


def _read(stored: Iterable[StoredRecord]) -> tuple[list[CoordinatorRecord], int, int]:
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
        self._at_ms = at_ms
        self._ends: dict[int, list[tuple[int, bool]]] = {}
        self._markers: list[int] = []
        for each in find_transactions(view):
            if each.marker_offset is None:
                continue
            self._markers.append(each.marker_offset)
            is_by_then = at_ms is None or (each.marker_timestamp or 0) <= at_ms
            is_committed = each.state == "committed" and is_by_then
            self._ends.setdefault(each.producer_id, []).append((each.marker_offset, is_committed))

    def counts(self, stored: StoredRecord) -> bool:
        """Whether a record is of no transaction, or of one that has been committed."""
        if stored.producer_id is None:
            return True
        ends = self._ends.get(stored.producer_id, [])
        place = bisect_right(ends, (stored.offset, True))
        return place < len(ends) and ends[place][1]

    def markers_below(self, offset: int) -> int:
        """Return how many markers there are below an offset."""
        return sum(marker < offset for marker in self._markers)

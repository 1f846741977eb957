"""Whether what was read of a partition can have been there: complaints, or none."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.broker.ledger import Ledger, Mark, Sent

Row = tuple[int, int, bytes | None, bytes | None]
"""Offset, timestamp in milliseconds, key, value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One read of one partition: what was asked, and what is known from before and after it.

    Attributes
    ----------
    ledger
        What was produced.
    before, after
        How far the partition was before anything was opened, and after the last row was read.
    log_start_before, log_start_after
        Lowest base offset of a segment at these moments.
    is_compacted
        Whether records may be missing that a later one of the same key replaces.
    is_committed
        Whether the read was read_committed.
    may_skip_lost
        Whether records that were deleted meanwhile may be left out without an error.
    start, end
        Offsets asked for, the end exclusive.
    is_filter
        Whether they are a condition on rows: a start that is gone is not an error then.
    start_timestamp
        The time asked for, in milliseconds.
    """

    ledger: Ledger
    before: Mark
    after: Mark
    log_start_before: int
    log_start_after: int
    is_compacted: bool
    is_committed: bool
    may_skip_lost: bool = False
    start: int | None = None
    end: int | None = None
    is_filter: bool = False
    start_timestamp: int | None = None

    @property
    def lowest_offset(self) -> int:
        """Below it, nothing may be read."""
        start = self._asked_start
        if self.start_timestamp is not None:
            start = self.ledger.lowest_at_time(self.start_timestamp)
        return max(start, self.log_start_before)

    @property
    def limit_offset(self) -> int:
        """At and above it, nothing may be read."""
        limit = self.after.decided if self.is_committed else self.after.planned
        return limit if self.end is None else min(limit, self.end)

    @property
    def required(self) -> list[Sent]:
        """Records that must be read, or replaced by a later one where compaction may do so."""
        # An offset that was asked for and is gone is an error; a time is looked up in what is left.
        is_exact = self.start is not None and not self.may_skip_lost and not self.is_filter
        start = self._asked_start if is_exact else self._surviving_start
        end = self.before.stable if self.is_committed else self.before.acknowledged
        end = end if self.end is None else min(end, self.end)
        return self.ledger.between(start, end, committed=self.is_committed)

    @property
    def allowed(self) -> list[Sent]:
        """Records that may be read."""
        return self.ledger.between(
            self.lowest_offset, self.limit_offset, committed=self.is_committed
        )

    @property
    def later(self) -> list[Sent]:
        """Records that were sent before the read ended, and need not be part of it."""
        return self.ledger.between(self._asked_start, self.after.planned)

    @property
    def _asked_start(self) -> int:
        if self.start_timestamp is not None:
            return self.ledger.first_at_time(self.start_timestamp).offset
        return self.start or 0

    @property
    def _surviving_start(self) -> int:
        return max(self._asked_start, self.log_start_after)


def complaints_about_rows(observed: Observed, rows: Sequence[Row]) -> list[str]:
    """Return what is wrong with the rows of one partition."""
    offsets = [row[0] for row in rows]
    for one, following in pairwise(offsets):
        if following <= one:
            return [f"offset {following} comes after {one}"]
    allowed = {each.offset: each for each in observed.allowed}
    wrong = [complaint for row in rows if (complaint := _complaint(row, allowed))]
    if wrong:
        return [f"{len(wrong)} wrong rows, the first: {wrong[0]}"]
    if observed.is_compacted:
        return _missing_keys(observed, offsets)
    return _missing_offsets(observed, offsets)


def complaints_about_count(observed: Observed, count: int) -> list[str]:
    """Return what is wrong with a number of records."""
    least = len(observed.required)
    if observed.is_compacted:
        least = len(_latest_by_key(observed.required) - _latest_by_key_replaced(observed))
    most = len(observed.allowed)
    return [] if least <= count <= most else [f"{count} records, expected {least} to {most}"]


def _complaint(row: Row, allowed: dict[int, Sent]) -> str | None:
    sent = allowed.get(row[0])
    if sent is None:
        return f"no record may be read at offset {row[0]}: {_as_text(row)}"
    expected = (sent.offset, sent.timestamp, sent.key, sent.value)
    return None if row == expected else f"read {_as_text(row)}, sent {_as_text(expected)}"


def _as_text(row: Row) -> str:
    offset, timestamp, key, value = row
    return f"({offset}, {timestamp}, {key!r}, {None if value is None else value[:40]!r})"


def _missing_offsets(observed: Observed, offsets: list[int]) -> list[str]:
    """Complain of holes, and of an end before what was acknowledged."""
    required = observed.required
    if not offsets:
        return [f"no rows, expected at least {_span(required)}"] if required else []
    between = observed.ledger.between(offsets[0], offsets[-1] + 1, committed=observed.is_committed)
    read = set(offsets)
    may_be_lost = observed.log_start_after if observed.may_skip_lost else 0
    holes = [each for each in between if each.offset not in read and each.offset >= may_be_lost]
    absent = [each for each in required if not offsets[0] <= each.offset <= offsets[-1]]
    span = f"rows {offsets[0]} to {offsets[-1]}"
    found = [f"{span} have {len(holes)} holes: {_span(holes)}"] if holes else []
    if absent:
        found.append(f"{span}, but {len(absent)} that were there are missing: {_span(absent)}")
    return found


def _missing_keys(observed: Observed, offsets: list[int]) -> list[str]:
    """Complain of keys whose latest record is neither there nor replaced by a later one.

    The later one need not have been read: a scan has a fixed end, compaction looks beyond it, and
    a consumer that reads up to a fixed offset misses the same records.
    """
    newest_read: dict[bytes, int] = {}
    sent = {each.offset: each.key for each in observed.allowed}
    for offset in offsets:
        newest_read[sent[offset]] = offset
    excused = _excused_keys(observed)
    last_sent = _by_key(observed.later)
    missing = [
        each
        for key, each in _by_key(observed.required).items()
        if newest_read.get(key, -1) < each.offset
        and key not in excused
        and last_sent[key].offset <= each.offset
    ]
    if not missing:
        return []
    first = missing[0]
    span = f"{offsets[0]} to {offsets[-1]}" if offsets else "none"
    complaint = (
        f"{len(missing)} keys lack their latest value; first: key {first.key!r} offset "
        f"{first.offset}, read {newest_read.get(first.key)}; rows {span}"
    )
    return [complaint]


def _excused_keys(observed: Observed) -> set[bytes]:
    """Return keys that need not be there: deleted, or replaced by a record outside the range."""
    latest = {key: each.offset for key, each in _by_key(observed.required).items()}
    return {
        each.key
        for each in observed.later
        if each.offset >= latest.get(each.key, 0)
        and (each.value is None or (observed.end is not None and each.offset >= observed.end))
    }


def _by_key(records: list[Sent]) -> dict[bytes, Sent]:
    return {each.key: each for each in records}


def _latest_by_key(records: list[Sent]) -> set[Sent]:
    return set(_by_key(records).values())


def _latest_by_key_replaced(observed: Observed) -> set[Sent]:
    """Return the latest required records that compaction may have taken since."""
    last_sent = _by_key(observed.later)
    return {
        each
        for each in _latest_by_key(observed.required)
        if each.value is None or last_sent[each.key] != each
    }


def _span(records: list[Sent]) -> str:
    if not records:
        return "none"
    return f"offsets {records[0].offset} to {records[-1].offset} ({len(records)} records)"

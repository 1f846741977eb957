"""Where a run of an incremental ingest starts and ends: rules of integers and clocks, no Spark.

What a source may still give with a lower mark decides how far behind its bookmark a run starts:
rows that come late (``lag``), rows with the newest value itself, the hour that clocks show twice,
and rows of transactions that are open. What is not final decides where it ends: rows of the future,
of a day that is not over, and of transactions that are open.
"""

from __future__ import annotations

import datetime as dt
import zoneinfo
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog_jobs.bookmark import (
    A_DATE,
    DAY_US,
    INTEGER,
    LEAST_POSITION,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Bookmark,
    Checkpoint,
    RememberedRows,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_LAGS = {TIMESTAMP: 3_600_000_000, TIMESTAMP_NTZ: 3_600_000_000, A_DATE: 1, INTEGER: 1_000}
"""By the kind of positions, where nothing says that no row is late."""
MOST_CLOCK_CHANGE_US = 3 * 3_600_000_000
_MOST_AHEAD_OF_UTC_US = 14 * 3_600_000_000
_FIXED_ZONES = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT"})
_MOST_CHECKPOINTS = 16
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def lag_in_positions(kind: str, lag: int | None, zone: str | None, *, is_final: bool) -> int:
    """Return how far behind its end a run looks for rows.

    Parameters
    ----------
    kind
        Of the positions.
    lag
        What the configuration says, in ids or microseconds; None if nothing.
    zone
        That of the column, if it has none and the configuration says it.
    is_final
        Whether the source itself says up to where its rows are final.
    """
    if lag is None:
        found = 0 if is_final else DEFAULT_LAGS[kind]
    else:
        found = -(-lag // DAY_US) if kind == A_DATE else lag  # of a part of a day the whole one
    if kind == A_DATE:
        return found  # only days that are over are read
    if kind == TIMESTAMP_NTZ and zone not in _FIXED_ZONES:
        return max(found, MOST_CLOCK_CHANGE_US)  # clocks are set back in autumn
    return max(found, 1)  # the newest value may get more rows


def of_clock(kind: str, instant_us: int, zone: str | None) -> int:
    """Return what a column of a kind shows at an instant, in UTC if no zone is given."""
    if kind == TIMESTAMP:
        return instant_us
    instant = _EPOCH + dt.timedelta(microseconds=instant_us)
    local = instant.astimezone(zoneinfo.ZoneInfo(zone or "UTC")).replace(tzinfo=dt.UTC)
    shown = (local - _EPOCH) // dt.timedelta(microseconds=1)
    return shown // DAY_US if kind == A_DATE else shown


def end_by_clock(kind: str, now_us: int, zone: str | None, ago_us: int | None) -> int | None:
    """Return where a run ends at the latest (exclusive): now, or so long before; None of ids.

    Of days it is the one that is not over, and of times without any zone the latest that a clock on
    earth shows.
    """
    if kind == INTEGER:
        return None
    if ago_us is None and kind == TIMESTAMP_NTZ and zone is None:
        return now_us + _MOST_AHEAD_OF_UTC_US
    return of_clock(kind, now_us - (ago_us or 0), zone)


@dataclass(frozen=True, slots=True)
class ReadRange:
    """The range of positions that one run reads."""

    start: int | None  # None: from the first row
    end: int  # exclusive; of versions, the last one
    remember_from: int | None  # of the rows of this run those from here on are remembered
    is_new: bool  # whether the bookmark moves on
    unsettled_from: int | None = None

    @property
    def known_from(self) -> int:
        """The earliest position at which the next run can start."""
        return self.end if self.remember_from is None else self.remember_from


def plan_range(
    last: Bookmark | None,
    *,
    initial: int | None,  # where the first run starts; None for the first row
    lag: int,  # how far behind the end a row may still come
    upper: int | None,  # where a run ends at the latest (exclusive)
    newest: int | None,  # the largest position before `upper`, from the start on; None without one
    settled: int | None = None,  # no open transaction adds rows before it; None: nothing is known
) -> ReadRange | None:
    """Return what the run after ``last`` reads; None if there is nothing that it could find."""
    start = initial if last is None else start_after(last, lag)
    ends = [] if newest is None else [newest + 1 if upper is None else min(newest + 1, upper)]
    if last is not None:
        ends.append(last.end)  # never back: a clock that was set back, or rows that were deleted
    if newest is None or not ends:
        return None
    end = max(ends)
    if start is not None and end <= start:
        return None
    unsettled_from = None if settled is None or settled >= end else settled
    edges = [each for each in (end - lag, unsettled_from) if each is not None]
    earliest = max(min(edges), LEAST_POSITION)
    remember_from = earliest if start is None else max(earliest, start)
    is_new = last is None or end > last.end
    remembers = remember_from < end
    return ReadRange(start, end, remember_from if remembers else None, is_new, unsettled_from)


def start_after(last: Bookmark, lag: int) -> int:
    """Return where rows may have come since: no farther back than what is remembered."""
    edges = [last.end - lag]
    if last.unsettled_from is not None:
        edges.append(last.unsettled_from)
    return max(min(edges), last.known_from)


def has_gone_back(last: Bookmark | None, newest: int | None) -> bool:
    """Whether the newest row of a source, if it has one, is before all that was read of it."""
    return last is not None and (newest is None or newest + 1 < last.end)


def with_checkpoint(checkpoints: Sequence[Checkpoint], found: Checkpoint) -> tuple[Checkpoint, ...]:
    """Return checkpoints with one more, the newest last; of too many every second one goes."""
    kept = [each for each in checkpoints if each.next_transaction < found.next_transaction]
    if len(kept) >= _MOST_CHECKPOINTS:
        kept = kept[1::2]
    return (*kept, found)


def settled_before(checkpoints: Sequence[Checkpoint], oldest_open: int) -> int:
    """Return the position before which no open transaction can add a row (exclusive).

    A transaction that had no id yet when a checkpoint was taken has taken its positions after it,
    so they are larger than all that were visible then.

    Parameters
    ----------
    checkpoints
        Looks at the database, of this run and of earlier ones.
    oldest_open
        The least id of a transaction that is open now: older ones have all ended.
    """
    newest = [each.newest for each in checkpoints if each.next_transaction <= oldest_open]
    return max(newest, default=LEAST_POSITION - 1) + 1


def next_bookmark(
    found: ReadRange,
    written: RememberedRows,
    about: Bookmark,
    *,
    rows_before: int | None = None,
) -> Bookmark:
    """Return the bookmark of a run.

    Parameters
    ----------
    found
        What the run has read.
    written
        The rows that it writes from ``found.remember_from`` on.
    about
        All of the bookmark that does not follow from its rows, with those of the last one.
    rows_before
        How many rows the source has before ``found.known_from``.
    """
    parts = [written]
    if found.remember_from is not None:
        parts.append(about.rows.since(found.remember_from))
    return Bookmark(
        about.column,
        about.kind,
        found.end,
        found.remember_from,
        about.identity,
        RememberedRows.of(parts),
        about.replaces,
        about.types,
        about.tables,
        found.unsettled_from,
        about.checkpoints,
        rows_before,
    )

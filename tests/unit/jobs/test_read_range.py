"""Where runs start and end, for each kind of positions."""

from __future__ import annotations

import datetime as dt

import pytest

from pylog_jobs.bookmark import (
    A_DATE,
    INTEGER,
    LEAST_POSITION,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Bookmark,
    Checkpoint,
    RememberedRows,
)
from pylog_jobs.read_range import (
    ReadRange,
    end_by_clock,
    has_gone_back,
    lag_in_positions,
    next_bookmark,
    plan_range,
    settled_before,
    start_after,
    with_checkpoint,
)

HOUR = 3_600_000_000
DAY = 24 * HOUR


@pytest.mark.parametrize(
    ("last", "lag", "upper", "newest", "expected"),
    [
        (None, 0, None, None, None),
        (None, 0, None, 9, ReadRange(None, 10, None, is_new=True)),
        (None, 3, None, 9, ReadRange(None, 10, 7, is_new=True)),
        (None, 0, 5, 9, ReadRange(None, 5, None, is_new=True)),
        # end 10, all rows from 7 on remembered
        ((10, 7), 0, None, 9, None),
        ((10, 7), 3, None, 9, ReadRange(7, 10, 7, is_new=False)),
        ((10, 7), 3, None, 20, ReadRange(7, 21, 18, is_new=True)),
        ((10, 7), 9, None, 20, ReadRange(7, 21, 12, is_new=True)),  # no more is remembered
        ((10, 7), 9, None, 11, ReadRange(7, 12, 7, is_new=True)),
        ((10, 7), 1, None, 20, ReadRange(9, 21, 20, is_new=True)),
        ((10, 7), 3, 4, 20, ReadRange(7, 10, 7, is_new=False)),  # a clock that was set back
        ((10, None), 3, None, 20, ReadRange(10, 21, 18, is_new=True)),  # the lag is new
    ],
)
def test_a_range_starts_where_late_rows_may_have_come_since(
    last: tuple[int, int | None] | None,
    lag: int,
    upper: int | None,
    newest: int | None,
    expected: ReadRange | None,
) -> None:
    bookmark = None if last is None else Bookmark("id", INTEGER, last[0], last[1])
    assert plan_range(bookmark, initial=None, lag=lag, upper=upper, newest=newest) == expected


@pytest.mark.parametrize(
    ("settled", "expected"),
    [
        (None, ReadRange(10, 21, 20, is_new=True)),
        (21, ReadRange(10, 21, 20, is_new=True)),
        (15, ReadRange(10, 21, 15, is_new=True, unsettled_from=15)),
        # What was settled once stays so.
        (3, ReadRange(10, 21, 10, is_new=True, unsettled_from=3)),
    ],
)
def test_rows_that_open_transactions_may_precede_are_remembered(
    settled: int | None, expected: ReadRange
) -> None:
    last = Bookmark("id", INTEGER, 10)
    found = plan_range(last, initial=None, lag=1, upper=None, newest=20, settled=settled)
    assert found == expected
    bookmark = next_bookmark(expected, RememberedRows(), last)
    assert start_after(bookmark, 1) == expected.remember_from


def test_a_first_run_remembers_all_rows_while_nothing_is_settled() -> None:
    found = plan_range(None, initial=None, lag=1, upper=None, newest=20, settled=LEAST_POSITION)
    assert found == ReadRange(None, 21, LEAST_POSITION, is_new=True, unsettled_from=LEAST_POSITION)


@pytest.mark.parametrize(
    ("oldest_open", "expected"),
    [(99, LEAST_POSITION), (100, 8), (119, 8), (120, 51), (500, 51)],
)
def test_positions_are_settled_once_all_transactions_of_a_look_have_ended(
    oldest_open: int, expected: int
) -> None:
    assert settled_before([Checkpoint(100, 7), Checkpoint(120, 50)], oldest_open) == expected


def test_the_newest_checkpoints_are_kept_and_of_older_ones_some() -> None:
    checkpoints: tuple[Checkpoint, ...] = ()
    for number in range(100):
        checkpoints = with_checkpoint(checkpoints, Checkpoint(number, 10 * number))
    assert checkpoints[-1] == (99, 990)
    assert len(checkpoints) <= 16
    assert with_checkpoint(checkpoints, Checkpoint(99, 995))[-1] == (99, 995)


@pytest.mark.parametrize(
    ("end", "newest", "expected"),
    [(None, None, False), (10, 9, False), (10, 12, False), (10, 8, True), (10, None, True)],
)
def test_a_source_whose_newest_row_is_before_the_bookmark_has_gone_back(
    end: int | None,
    newest: int | None,
    expected: bool,  # noqa: FBT001 - of a table
) -> None:
    assert has_gone_back(None if end is None else Bookmark("id", INTEGER, end), newest) is expected


@pytest.mark.parametrize(
    ("kind", "lag", "zone", "is_final", "expected"),
    [
        # The newest value is read again, whatever the lag is.
        (TIMESTAMP, 0, None, False, 1),
        (INTEGER, 0, None, True, 1),
        (INTEGER, 7, None, True, 7),
        # Without a lag it depends on what the source says of itself.
        (TIMESTAMP, None, None, True, 1),
        (TIMESTAMP, None, None, False, HOUR),
        (INTEGER, None, None, False, 1_000),
        (A_DATE, None, None, False, 1),
        # Of days only those that are over are read, so that none is read again without a lag.
        (A_DATE, 0, None, False, 0),
        (A_DATE, 1, None, False, 1),
        (A_DATE, DAY + 1, None, False, 2),
        # Clocks that are set back, unless the zone has none such.
        (TIMESTAMP_NTZ, 0, None, False, 3 * HOUR),
        (TIMESTAMP_NTZ, 0, "Europe/Berlin", True, 3 * HOUR),
        (TIMESTAMP_NTZ, 5 * HOUR, None, False, 5 * HOUR),
        (TIMESTAMP_NTZ, 0, "UTC", False, 1),
    ],
)
def test_a_run_looks_back_as_far_as_rows_may_come(
    kind: str,
    lag: int | None,
    zone: str | None,
    is_final: bool,  # noqa: FBT001 - of a table
    expected: int,
) -> None:
    assert lag_in_positions(kind, lag, zone, is_final=is_final) == expected


@pytest.mark.parametrize(
    ("kind", "zone", "ago", "expected"),
    [
        (INTEGER, None, None, None),
        (TIMESTAMP, None, None, "2026-11-22T00:30:00"),
        (TIMESTAMP, "Europe/Berlin", HOUR, "2026-11-21T23:30:00"),
        (TIMESTAMP_NTZ, None, None, "2026-11-22T14:30:00"),
        (TIMESTAMP_NTZ, None, HOUR, "2026-11-21T23:30:00"),
        (TIMESTAMP_NTZ, "America/New_York", None, "2026-11-21T19:30:00"),
        (A_DATE, None, None, "2026-11-22"),
        (A_DATE, None, HOUR, "2026-11-21"),
        (A_DATE, "America/New_York", None, "2026-11-21"),
        (A_DATE, "Asia/Tokyo", None, "2026-11-22"),
    ],
)
def test_a_run_ends_where_the_future_or_an_open_day_begins(
    kind: str, zone: str | None, ago: int | None, expected: str | None
) -> None:
    def microseconds(text: str) -> int:
        return round(dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC).timestamp()) * 1_000_000

    found = end_by_clock(kind, microseconds("2026-11-22T00:30:00"), zone, ago)
    if expected is None:
        assert found is None
    else:
        assert found == microseconds(expected) // (DAY if kind == A_DATE else 1)

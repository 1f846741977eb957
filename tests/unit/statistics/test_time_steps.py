from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pylog.statistics.batches import TimeSteps, without_strays

HOUR_MS = 3_600_000


def row(
    start: int | None, size_bytes: int = 1, interval_ms: int | None = HOUR_MS
) -> dict[str, Any]:
    return {
        "start": start,
        "intervalMs": interval_ms,
        "records": 2 * size_bytes,
        "bytes": size_bytes,
        "spanningBytes": 0,
    }


def test_without_a_time_there_are_no_steps() -> None:
    assert TimeSteps.of([row(None, interval_ms=None)], 10) is None


def test_hours_stay_hours_while_there_is_room() -> None:
    found = TimeSteps.of([row(5 * HOUR_MS, 7), row(7 * HOUR_MS, 9)], 3)
    assert found == TimeSteps(5 * HOUR_MS, HOUR_MS, [14, 0, 18], [7, 0, 9], [0, 0, 0])
    assert found.end_ms == 8 * HOUR_MS


def test_more_hours_than_there_is_room_for_become_steps_that_people_count_in() -> None:
    found = TimeSteps.of([row(hour * HOUR_MS) for hour in range(100)], 10)
    assert found is not None
    assert found.step_ms == 12 * HOUR_MS
    assert found.size_bytes == [12] * 8 + [4]


@given(st.lists(st.integers(0, 2**62 // HOUR_MS), min_size=1, max_size=30), st.integers(2, 200))
def test_there_are_never_more_steps_than_asked_for_and_nothing_is_lost(
    hours: list[int], most: int
) -> None:
    found = TimeSteps.of([row(hour * HOUR_MS) for hour in hours], most)
    assert found is not None
    assert len(found.size_bytes) <= most
    assert sum(found.size_bytes) == len(hours)
    assert found.start_ms <= min(hours) * HOUR_MS
    assert found.end_ms > max(hours) * HOUR_MS


def test_minutes_stay_minutes_while_there_is_room() -> None:
    minute = 60_000
    found = TimeSteps.of([row(3 * minute, 7, minute), row(5 * minute, 9, minute)], 10)
    assert found is not None
    assert (found.step_ms, found.size_bytes) == (minute, [7, 0, 9])


def test_what_a_wrong_clock_has_written_does_not_draw_years_without_a_record() -> None:
    rows = [row(hour * HOUR_MS, 100) for hour in range(400_000, 400_010)]
    wrong = [row(0, 5), row(900_000 * HOUR_MS, 20)]
    assert without_strays([*rows, *wrong, row(None)]) == (rows, wrong[::-1])


def test_two_times_that_both_weigh_are_drawn_with_what_is_between_them() -> None:
    rows = [row(0, 30), row(400_000 * HOUR_MS, 70)]
    assert without_strays(rows) == (rows, [])


def test_a_night_without_records_is_no_reason_to_leave_out_a_day() -> None:
    rows = [row(day * 24 * HOUR_MS + hour * HOUR_MS) for day in range(3) for hour in range(8, 20)]
    assert without_strays(rows) == (rows, [])


def test_batches_that_come_by_the_hour_are_not_drawn_by_the_minute() -> None:
    found = TimeSteps.of([row(hour * HOUR_MS, 1, 60_000) for hour in range(8)], 100)
    assert found is not None
    assert (found.step_ms, found.size_bytes) == (HOUR_MS, [1] * 8)

"""Histograms against loops over dictionaries."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pylog.statistics import batches as histograms
from pylog.statistics.batches import (
    MINUTE_MS,
    SizeHistogram,
    TimeHistogram,
    TimeSteps,
    without_strays,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

TIMESTAMPS = st.integers(0, 50 * MINUTE_MS) | st.sampled_from((0, MINUTE_MS - 1, MINUTE_MS, 2**62))
BATCHES = st.lists(st.tuples(TIMESTAMPS, TIMESTAMPS, st.integers(0, 99), st.integers(1, 9_999)))


def arrays(rows: Sequence[tuple[int, ...]]) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    return [np.array(each, dtype=np.int64) for each in zip(*rows, strict=True)]


def by_time(batches: list[tuple[int, int, int, int]]) -> TimeHistogram:
    found = TimeHistogram()
    if batches:
        rows = [(min(a, b), max(a, b), records, size) for a, b, records, size in batches]
        found.add(*arrays(rows))
    return found


def test_sizes_are_counted_between_powers_of_two() -> None:
    sizes = [0, 1, 2, 3, 4, 7, 8, 1023, 1024, 2**31 - 1, 2**40]
    found = SizeHistogram()
    found.add(*arrays([(size, size, 10 * size) for size in sizes]))
    for each in found:
        inside = [size for size in sizes if each.start <= size < each.end]
        assert each[2:] == (len(inside), sum(inside), 10 * sum(inside))
    assert sum(each.batches for each in found) == len(sizes)
    assert [each.start for each in found][:5] == [0, 1, 2, 4, 8]


@given(BATCHES, BATCHES)
def test_times_are_counted_by_the_interval_of_the_largest_one(
    left: list[tuple[int, int, int, int]], right: list[tuple[int, int, int, int]]
) -> None:
    found = by_time(left)
    found.merge(by_time(right))
    expected: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0, 0, 0, 0])
    for first, second, records, size in [*left, *right]:
        place = max(first, second) // MINUTE_MS
        is_spanning = min(first, second) // MINUTE_MS < place
        for index, value in enumerate((1, records, size, records, size)):
            expected[place * MINUTE_MS][index] += value if index < 3 or is_spanning else 0
    assert {each.start_ms: list(each[1:]) for each in found} == dict(expected)
    assert found.interval_ms == MINUTE_MS


@given(BATCHES, BATCHES)
def test_too_many_minutes_become_longer_intervals(
    left: list[tuple[int, int, int, int]], right: list[tuple[int, int, int, int]]
) -> None:
    most = histograms._MOST_INTERVALS
    histograms._MOST_INTERVALS = 3
    try:
        found = by_time(left)
        found.merge(by_time(right))
    finally:
        histograms._MOST_INTERVALS = most
    rows = list(found)
    assert len(rows) <= 3
    assert found.interval_ms % MINUTE_MS == 0
    assert all(each.start_ms % found.interval_ms == 0 for each in rows)
    for each in rows:
        inside = [
            (records, size)
            for first, second, records, size in [*left, *right]
            if each.start_ms <= max(first, second) < each.start_ms + found.interval_ms
        ]
        assert (each.batches, each.records, each.size_bytes) == (
            len(inside),
            sum(records for records, _ in inside),
            sum(size for _, size in inside),
        )


def test_what_has_no_timestamp_is_counted_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histograms, "_MOST_INTERVALS", 1)
    found = TimeHistogram()
    found.add(*arrays([(-1, -1, 5, 50), (-1, MINUTE_MS, 1, 10)]))
    assert found.untimed[1:4] == (1, 5, 50)
    assert [each[:4] for each in found] == [(MINUTE_MS, 1, 1, 10)]


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

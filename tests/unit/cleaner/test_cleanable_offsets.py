"""From where to where a log can be cleaned, and how much that is, as tables.

The cases are those of Kafka's LogCleanerManagerTest about `cleanableOffsets` and
`calculateCleanableBytes`; ``tests/kafka_tests.md`` says which is which.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from pylog.cleaner.cleanable_offsets import (
    CleanableBytes,
    CleanableOffsets,
    CleanableParams,
    non_active_segments_from,
)

NOW_MS = 1_700_000_000_000


class Segment(NamedTuple):
    base_offset: int
    size_bytes: int
    largest_timestamp: int = NOW_MS


# Of 10 offsets each, of 100, 200, 400 and 800 bytes; the last one is active.
SEGMENTS = [
    Segment(10, 100, NOW_MS - 4000),
    Segment(20, 200, NOW_MS - 3000),
    Segment(30, 400, NOW_MS - 3500),
    Segment(40, 800, NOW_MS - 5000),
]


def offsets(
    checkpoint: int | None = None,
    *,
    last_stable_offset: int = 50,
    min_compaction_lag_ms: int = 0,
    log_start_offset: int = 10,
) -> CleanableOffsets:
    params = CleanableParams(
        checkpoint,
        log_start_offset=log_start_offset,
        last_stable_offset=last_stable_offset,
        log_end_offset=50,
        min_compaction_lag_ms=min_compaction_lag_ms,
        now_ms=NOW_MS,
    )
    return CleanableOffsets.of(SEGMENTS, params)


@pytest.mark.parametrize(
    ("checkpoint", "expected"),
    [
        (None, (10, 40, False)),
        (10, (10, 40, False)),
        (25, (25, 40, False)),
        (45, (45, 45, False)),  # inside the active segment
        (50, (50, 50, False)),
        (9, (10, 40, True)),
        (51, (10, 40, True)),
    ],
)
def test_a_log_is_dirty_from_its_checkpoint_on(
    checkpoint: int | None, expected: tuple[int, int, bool]
) -> None:
    assert offsets(checkpoint) == expected


def test_a_log_start_above_the_checkpoint_counts() -> None:
    assert offsets(15, log_start_offset=33) == (33, 40, True)


@pytest.mark.parametrize(("last_stable_offset", "end"), [(40, 40), (39, 39), (31, 31), (15, 25)])
def test_nothing_above_the_last_stable_offset_is_cleaned(last_stable_offset: int, end: int) -> None:
    assert offsets(25, last_stable_offset=last_stable_offset) == (25, end, False)


@pytest.mark.parametrize(
    ("lag_ms", "end"),
    [
        (0, 40),
        (2999, 40),
        (3000, 40),  # at exactly the lag it may be cleaned
        (3001, 20),  # the segment at 30 is old enough, and waits for the one before it
        (3999, 20),
        (4001, 10),
        (10**15, 10),
    ],
)
def test_a_young_segment_keeps_all_after_it_from_being_cleaned(lag_ms: int, end: int) -> None:
    assert offsets(10, min_compaction_lag_ms=lag_ms) == (10, end, False)


def test_the_age_of_what_is_clean_does_not_count() -> None:
    assert offsets(30, min_compaction_lag_ms=3400) == (30, 40, False)
    assert offsets(25, min_compaction_lag_ms=3400) == (25, 25, False)


@pytest.mark.parametrize(
    ("first_dirty", "uncleanable", "expected"),
    [
        (10, 40, (40, 0, 700)),
        (20, 40, (40, 100, 600)),
        (25, 40, (40, 300, 600)),  # the segment that holds 25 counts as both
        (40, 40, (40, 700, 0)),
        (45, 45, (40, 1500, 0)),  # an offset inside the active segment
        (10, 39, (30, 0, 300)),  # whole segments
        (10, 30, (30, 0, 300)),
        (10, 10, (10, 0, 0)),
        (25, 25, (20, 300, 0)),
        (10, 99, (40, 0, 700)),
    ],
)
def test_bytes_are_counted_in_whole_segments(
    first_dirty: int, uncleanable: int, expected: tuple[int, int, int]
) -> None:
    assert CleanableBytes.of(SEGMENTS, first_dirty, uncleanable) == expected


def test_the_ratio_is_of_what_is_clean_and_what_can_be_cleaned() -> None:
    assert CleanableBytes.of(SEGMENTS, 20, 40).ratio == 600 / 700
    assert CleanableBytes.of(SEGMENTS, 10, 40).ratio == 1.0
    assert CleanableBytes.of([Segment(0, 0)], 0, 0).ratio == 0.0


@pytest.mark.parametrize(
    ("offset", "bases"),
    [(0, [10, 20, 30]), (10, [10, 20, 30]), (29, [20, 30]), (30, [30]), (40, []), (41, [])],
)
def test_segments_that_are_not_active(offset: int, bases: list[int]) -> None:
    assert [each.base_offset for each in non_active_segments_from(SEGMENTS, offset)] == bases

from __future__ import annotations

import pytest

from pylog.text.instants import likely_unit
from pylog.text.words import duration_text, time_text

NOW_IN_2026 = 1_795_770_000_000


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, "-"),
        (0, "1970-01-01T00:00:00Z"),
        (1_795_220_321_999, "2026-11-21T00:18:41Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59Z"),
        # A file can hold any of these.
        (253_402_300_800_000, "253402300800000 ms"),
        (-1, "-1 ms"),
        (2**63 - 1, "9223372036854775807 ms"),
    ],
)
def test_a_time_is_in_utc_where_a_calendar_has_it(milliseconds: int | None, text: str) -> None:
    assert time_text(milliseconds) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, "-"),
        (0, "0s"),
        (999, "0s"),
        (78_000, "1m 18s"),
        (3_600_000, "1h 0m"),
        (90_061_000, "1d 1h"),
        (-61_000, "-1m 1s"),
    ],
)
def test_a_duration_has_its_two_largest_units(milliseconds: int | None, text: str) -> None:
    assert duration_text(milliseconds) == text


@pytest.mark.parametrize(
    ("timestamp", "unit"),
    [
        (1_764_201_600_000, None),
        (1_764_201_600, "seconds"),
        (1_764_201_600_000_000, "microseconds"),
        (1_764_201_600_000_000_000, "nanoseconds"),
        (946_684_800_000, None),
        (946_684_800, "seconds"),
        (946_684_799, None),  # 1999, in seconds
        (NOW_IN_2026 + 366 * 86_400_000, None),
        (NOW_IN_2026 + 367 * 86_400_000, None),  # in the future, and in no other unit likely
        ((NOW_IN_2026 + 365 * 86_400_000) * 1_000 + 999, "microseconds"),
        ((NOW_IN_2026 + 367 * 86_400_000) * 1_000, None),
        (0, None),
        (-1, None),
        (-(2**63), None),
        (2**63 - 1, None),
    ],
)
def test_another_unit_is_named_where_the_number_is_a_time_in_it_alone(
    timestamp: int, unit: str | None
) -> None:
    assert likely_unit(timestamp, NOW_IN_2026) == unit

from __future__ import annotations

import pytest

from pylog.text.words import duration_text, time_text


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

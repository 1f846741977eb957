from __future__ import annotations

import pytest

from pylog.typed.exact_texts import days_of, instant_of, time_of_day, unscaled


@pytest.mark.parametrize(
    ("text", "scale", "precision", "expected"),
    [
        ("12.5", 2, 4, 1250),
        ("-0.01", 2, 4, -1),
        ("1e2", 0, 3, 100),
        ("0", 2, 4, 0),
        ("12.505", 2, 9, None),
        ("100", 2, 4, None),
        ("1e999999999999999999999", 0, 9, None),
    ],
)
def test_decimals_lose_no_digit(
    text: str, scale: int, precision: int, expected: int | None
) -> None:
    assert unscaled(text, scale, precision) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1970-01-02", 1), ("0001-01-01", -719_162), ("2026-02-30", None), ("2026-1-1", None)],
)
def test_dates_are_days(text: str, expected: int | None) -> None:
    assert days_of(text) == expected


@pytest.mark.parametrize(
    ("text", "places", "expected"),
    [
        ("00:00:01.5", 3, 1_500),
        ("09:15", 0, 33_300),
        ("24:00", 0, None),
        ("00:00:00.0001", 3, None),
    ],
)
def test_times_of_day_are_ticks(text: str, places: int, expected: int | None) -> None:
    assert time_of_day(text, places) == expected


@pytest.mark.parametrize(
    ("text", "is_zoned", "expected"),
    [
        ("1970-01-01T00:00:01Z", True, 1_000),
        ("1970-01-01 01:00:00+01:00", True, 0),
        ("1970-01-01T00:00:01", True, None),
        ("1970-01-01T00:00:01", False, 1_000),
        ("1970-01-01T00:00:01Z", False, None),
        ("1970-01-01T00:00:00.0005Z", True, None),
        ("1970-01-01T00:00:00+25:00", True, None),
    ],
)
def test_instants_are_ticks(text: str, is_zoned: bool, expected: int | None) -> None:  # noqa: FBT001 - a case of the test
    assert instant_of(text, 3, is_zoned=is_zoned) == expected


def test_a_zone_has_minutes_after_its_colon() -> None:
    for zone in ("+01:00", "+0100", "+01"):
        text = f"2026-11-30T10:15:00{zone}"
        assert instant_of(text, 0, is_zoned=True) == instant_of(
            "2026-11-30T09:15:00Z", 0, is_zoned=True
        )
    for zone in ("+01:", "+01:0", "+1", "+", "+01:000"):
        assert instant_of(f"2026-11-30T10:15:00{zone}", 0, is_zoned=True) is None

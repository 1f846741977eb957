from __future__ import annotations

import csv
import datetime as dt
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pylog
from pylog.text.instants import calendar_text, likely_unit
from pylog.text.words import duration_text, time_text
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

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
        (99 * 86_400_000 + 3_600_000, "99d 1h"),
        (751 * 86_400_000 + 3_600_000, "751d"),
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


# As `date -u -d @SECONDS` and Java's Instant print them.
FAR = [
    (1_763_769_600_000_000, 1_000, "+57861-08-20T00:00:00.000Z"),
    (253_402_300_800_000, 1_000, "+10000-01-01T00:00:00.000Z"),
    (253_402_300_799_999, 1_000, "9999-12-31T23:59:59.999Z"),
    (-1, 1_000, "1969-12-31T23:59:59.999Z"),
    (-62_167_219_200_000, 1_000, "0000-01-01T00:00:00.000Z"),
    (-62_167_219_200_001, 1_000, "-0001-12-31T23:59:59.999Z"),
    (0, 1, "1970-01-01T00:00:00Z"),
    (1_500, 1_000_000, "1970-01-01T00:00:00.001500Z"),
]


@pytest.mark.parametrize(("count", "per_second", "expected"), FAR)
def test_a_far_time_has_more_digits(count: int, per_second: int, expected: str) -> None:
    assert calendar_text(count, per_second) == expected


@given(st.datetimes(min_value=dt.datetime(1, 1, 1), max_value=dt.datetime(9999, 12, 31)))  # noqa: DTZ001 - the strategy's
def test_within_pythons_calendar_it_is_what_python_prints(time: dt.datetime) -> None:
    count = (time - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)  # noqa: DTZ001
    assert calendar_text(count, 1_000_000) == time.isoformat(timespec="microseconds") + "Z"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    records = [Stored(0, 1_763_769_600_000, b"a", b"ms"), Stored(1, FAR[0][0], b"b", b"us")]
    return write_partition(tmp_path, {0: [batch_v2([each]) for each in records]}).parent


def test_one_far_time_ends_no_export(directory: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.csv"
    pylog.export(pylog.scan(directory), target)
    with target.open(encoding="utf-8", newline="") as file:
        times = [row["timestamp"] for row in csv.DictReader(file)]
    assert times == ["2025-11-22 00:00:00.000000Z", "+57861-08-20 00:00:00.000000Z"]

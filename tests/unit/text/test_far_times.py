"""Times that Python's calendar does not have: microseconds taken for milliseconds, say."""

from __future__ import annotations

import csv
import datetime as dt
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pylog
from pylog.text.instants import calendar_text
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

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

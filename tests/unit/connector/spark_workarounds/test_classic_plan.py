"""What of a plan's comparisons still holds when the plan is made again."""

from __future__ import annotations

import datetime as dt

import pytest

from pylog.jobs import Comparison, to_record_filter
from pyspark_pylog.spark_workarounds.classic_plan import LOCAL_STEP, _of_later, _value_of

NOON = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)
NOON_MS = 1_714_564_800_000


@pytest.mark.parametrize("sign", [">", ">="])
def test_a_lower_bound_that_may_grow_is_kept_with_the_step_of_local_time(sign: str) -> None:
    # Summer time begins with one hour, on Lord Howe Island with half an hour; it was two once.
    assert dt.timedelta(hours=2) < LOCAL_STEP <= dt.timedelta(days=1)
    later = _of_later(Comparison("timestamp", sign, NOON))
    assert later == Comparison("timestamp", sign, NOON - LOCAL_STEP)
    where = to_record_filter([later])
    assert where.min_timestamp is not None
    assert where.min_timestamp < NOON_MS - 2 * 3_600_000


@pytest.mark.parametrize("sign", ["=", "<", "<=", "in"])
def test_no_other_bound_of_a_time_that_may_grow_is_kept(sign: str) -> None:
    assert _of_later(Comparison("timestamp", sign, NOON)) is None


@pytest.mark.parametrize("value", [NOON_MS, "now", None, [NOON]])
def test_a_bound_that_is_not_a_time_is_not_kept(value: object) -> None:
    assert _of_later(Comparison("timestamp", ">", value)) is None


@pytest.mark.parametrize("sign", ["=", ">", "<", "in"])
@pytest.mark.parametrize("column", ["offset", "partition", "topic", "key"])
def test_the_clock_does_not_touch_other_columns(column: str, sign: str) -> None:
    comparison = Comparison(column, sign, 7)
    assert _of_later(comparison) is comparison


def test_a_time_of_a_field_that_may_grow_is_not_kept() -> None:
    way = ("value", "at")
    assert _of_later(Comparison(way, ">", NOON)) is None
    assert _of_later(Comparison(way, "in", [NOON])) is None
    of_number = Comparison(way, ">", 7)
    assert _of_later(of_number) is of_number


def test_a_bound_at_the_beginning_of_time_is_left_out() -> None:
    first = dt.datetime(1, 1, 1, tzinfo=dt.UTC)
    assert _of_later(Comparison("timestamp", ">", first)) is None
    assert _of_later(Comparison("timestamp", ">", first + LOCAL_STEP)) == Comparison(
        "timestamp", ">", first
    )


class Type:
    """Stands in for a Spark data type."""

    def __init__(self, name: str) -> None:
        self._name = name

    def typeName(self) -> str:  # noqa: N802 - Spark's name
        return self._name


class Text:
    """Stands in for a Java string."""

    def toString(self) -> str:  # noqa: N802 - Java's name
        return "orders"


@pytest.mark.parametrize(
    ("kind", "stored", "value"),
    [
        ("long", 2**63 - 1, 2**63 - 1),
        ("integer", -1, -1),
        ("string", Text(), "orders"),
        ("binary", bytearray(b"\x00k"), b"\x00k"),
        ("timestamp", -1, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC)),
        ("timestamp", 1_500, dt.datetime(1970, 1, 1, 0, 0, 0, 1_500, tzinfo=dt.UTC)),
        ("timestamp", 2**63 - 1, None),  # the year 294247
        ("timestamp", -(2**63), None),
        ("timestamp_ntz", 1_500, None),
        ("double", 1.5, None),
        ("long", None, None),
    ],
)
def test_literals_are_what_a_data_source_would_get(
    kind: str, stored: object, value: object
) -> None:
    assert _value_of(Type(kind), stored) == value

"""What comparisons allow, checked row by row against the comparisons themselves."""

from __future__ import annotations

import datetime as dt
import operator
from dataclasses import asdict
from typing import Any

import pytest

from pylog.pushdown.comparison import Comparison, to_record_filter, utc_time

HIGHEST = 2**63 - 1
LOWEST = -(2**63)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
OPERATORS = {
    "=": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


def micros(count: int) -> dt.datetime:
    return EPOCH + dt.timedelta(microseconds=count)


def fields_of(*comparisons: tuple[str, str, object]) -> dict[str, Any]:
    where = to_record_filter(Comparison(*each) for each in comparisons)
    fields = asdict(where)
    assert not fields.pop("trusts_batch_timestamps")
    assert fields.pop("excluded") == ()
    return {name: value for name, value in fields.items() if value is not None}


@pytest.mark.parametrize(
    ("sign", "fields"),
    [
        ("=", {"min_offset": 7, "max_offset": 7}),
        (">", {"min_offset": 8}),
        (">=", {"min_offset": 7}),
        ("<", {"max_offset": 6}),
        ("<=", {"max_offset": 7}),
    ],
)
def test_bounds_of_offsets_are_inclusive(sign: str, fields: dict[str, int]) -> None:
    assert fields_of(("offset", sign, 7)) == fields


def test_offsets_at_the_ends_of_64_bits_stay_what_they_are() -> None:
    assert fields_of(("offset", ">", HIGHEST)) == {"min_offset": 2**63}
    assert fields_of(("offset", ">=", HIGHEST)) == {"min_offset": HIGHEST}
    assert fields_of(("offset", "<=", HIGHEST)) == {"max_offset": HIGHEST}
    assert fields_of(("offset", "<", LOWEST)) == {"max_offset": LOWEST - 1}
    assert fields_of(("offset", "=", 0)) == {"min_offset": 0, "max_offset": 0}


# The literals lie on a millisecond, just before and after one, and between two.
@pytest.mark.parametrize("sign", OPERATORS)
@pytest.mark.parametrize(
    "literal", [-2_001, -2_000, -1_999, -1_500, -1_001, -1_000, -999, -1, 0, 1, 999, 1_000, 1_001]
)
def test_timestamps_that_pass_are_those_that_spark_lets_pass(sign: str, literal: int) -> None:
    fields = fields_of(("timestamp", sign, micros(literal)))
    low, high = fields.get("min_timestamp", LOWEST), fields.get("max_timestamp", HIGHEST)
    for millisecond in range(-5, 6):
        passes = OPERATORS[sign](millisecond * 1_000, literal)
        assert (low <= millisecond <= high) is passes, f"{millisecond} ms {sign} {literal} us"


@pytest.mark.parametrize(
    ("literal", "low"),
    [
        (dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC), 0),
        (dt.datetime(1, 1, 1, tzinfo=dt.UTC), -62_135_596_800_000),
        (dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC), 253_402_300_800_000),
        (dt.datetime(1970, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))), 0),
    ],
)
def test_the_first_millisecond_at_or_after_a_time(literal: dt.datetime, low: int) -> None:
    assert fields_of(("timestamp", ">=", literal)) == {"min_timestamp": low}


def test_comparisons_of_one_column_narrow_each_other_in_any_order() -> None:
    four = [("offset", ">", 3), ("offset", ">=", 6), ("offset", "<", 20), ("offset", "<=", 9)]
    expected = {"min_offset": 6, "max_offset": 9}
    assert fields_of(*four) == expected
    assert fields_of(*reversed(four)) == expected


def test_a_range_without_a_row_stays_empty() -> None:
    assert fields_of(("offset", ">", 7), ("offset", "<", 7)) == {"min_offset": 8, "max_offset": 6}
    between_two = fields_of(("timestamp", "=", micros(1_500)))
    assert between_two["min_timestamp"] > between_two["max_timestamp"]


@pytest.mark.parametrize("values", [[4, 9, 2], (9, 4, None, 2), [2, 9]])
def test_a_list_reaches_from_its_lowest_to_its_highest_value(values: object) -> None:
    assert fields_of(("offset", "in", values)) == {"min_offset": 2, "max_offset": 9}


def test_times_of_a_list_that_no_record_can_have_do_not_widen_it() -> None:
    times = [micros(-7_500), micros(2_000), micros(3_000), micros(9_999)]
    assert fields_of(("timestamp", "in", times)) == {"min_timestamp": 2, "max_timestamp": 3}
    earlier = [micros(-3_000), micros(-1_500), micros(-2_000)]
    assert fields_of(("timestamp", "in", earlier)) == {"min_timestamp": -3, "max_timestamp": -2}


@pytest.mark.parametrize("values", [[], [None], [micros(1), micros(999)]])
def test_a_list_of_impossible_values_lets_nothing_pass(values: list[object]) -> None:
    fields = fields_of(("timestamp", "in", values))
    assert fields["min_timestamp"] > fields["max_timestamp"]


def test_a_timestamp_that_is_a_number_is_of_milliseconds() -> None:
    assert fields_of(("timestamp", ">", 1_000)) == {"min_timestamp": 1_001}
    assert fields_of(("timestamp", "<=", 1_000)) == {"max_timestamp": 1_000}
    assert fields_of(("timestamp", "in", [7, 5])) == {"min_timestamp": 5, "max_timestamp": 7}


@pytest.mark.parametrize(
    "comparison",
    [
        ("offset", "=", "7"),
        ("offset", ">", True),
        ("offset", ">", 7.5),
        ("offset", ">", None),
        ("offset", "!=", 7),
        ("offset", "in", [1, "2"]),
        ("offset", "in", 7),
        ("timestamp", ">", dt.datetime(2020, 1, 1)),  # noqa: DTZ001 - of no zone: it says nothing
        ("timestamp", "!=", micros(0)),
        ("timestamp", "in", [micros(0), "now"]),
        ("topic", ">", "a"),
        ("topic", "=", 1),
        ("topic", "in", ["a", 1]),
        ("partition", "=", True),
        ("partition", "in", 3),
        ("key", "=", "text"),
        ("value", "=", b"x"),
    ],
)
def test_what_is_not_understood_leaves_out_nothing(comparison: tuple[str, str, object]) -> None:
    assert fields_of(comparison) == {}
    # Nor does it loosen what others say.
    assert fields_of(("offset", "=", 3), comparison) == {"min_offset": 3, "max_offset": 3}


def test_sets_of_several_comparisons_are_what_all_of_them_name() -> None:
    assert fields_of(("topic", "in", ["a", "b", None]), ("topic", "in", ["b", "c"])) == {
        "topics": frozenset({"b"})
    }
    assert fields_of(("partition", "in", [0, 1]), ("partition", "=", 1)) == {
        "partitions": frozenset({1})
    }
    assert fields_of(("key", "=", b"a"), ("key", "=", b"b")) == {"keys": frozenset()}
    assert fields_of(("key", "=", None)) == {"keys": frozenset()}


def test_a_time_may_be_given_in_microseconds() -> None:
    assert utc_time(-1) == dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC)
    assert utc_time(1_700_000_000_123_456) == micros(1_700_000_000_123_456)
    assert utc_time(HIGHEST) is utc_time(LOWEST) is None

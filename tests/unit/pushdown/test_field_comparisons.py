from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from pylog.pushdown.comparison import Comparison
from pylog.pushdown.field_comparisons import to_field_condition

TYPES = {
    "value": pa.struct(
        [
            ("id", pa.int32()),
            ('odd "name"', pa.string()),
            ("price", pa.decimal128(9, 2)),
            ("ratio", pa.float64()),
            ("paid", pa.bool_()),
            ("at", pa.timestamp("us", "UTC")),
            ("local", pa.timestamp("ms")),
            ("fine", pa.timestamp("ns", "UTC")),
            ("day", pa.date32()),
            ("user", pa.struct([("id", pa.int64())])),
            ("tags", pa.list_(pa.int64())),
        ]
    ),
    "key": pa.int64(),
}
UTC_TIME = dt.datetime(2026, 11, 30, 9, 15, 0, 5, tzinfo=dt.timezone(dt.timedelta(hours=1)))
LOCAL_TIME = UTC_TIME.replace(tzinfo=None)


@pytest.mark.parametrize(
    ("column", "operator", "value", "expected"),
    [
        (("value", "user", "id"), "=", 7, 'value."user"."id" = 7'),
        (("value", "id"), "in", [7, None, -8], 'value."id" IN (7, -8)'),
        (("value", 'odd "name"'), "<=", "it's", 'value."odd ""name""" <= \'it\'\'s\''),
        (("value", "price"), ">", Decimal("1E+2"), 'value."price" > 100'),
        (("value", "paid"), "=", True, 'value."paid" = TRUE'),
        (("value", "at"), ">=", UTC_TIME, "value.\"at\" >= '2026-11-30T08:15:00.000005+00:00'"),
        (("value", "day"), "=", dt.date(2026, 11, 30), "value.\"day\" = '2026-11-30'"),
        ("key", "<", 5, "key < 5"),
    ],
)
def test_a_comparison_is_a_condition(
    column: str | tuple[str, ...], operator: str, value: object, expected: str
) -> None:
    assert to_field_condition([Comparison(column, operator, value)], TYPES) == expected


@pytest.mark.parametrize(
    ("column", "operator", "value"),
    [
        (("value", "ratio"), ">", 0.5),  # NaN is larger than any number to Spark alone
        (("value", "ratio"), "=", 1),
        (("value", "fine"), "=", UTC_TIME),  # nanoseconds are cut off before Spark compares
        (("value", "at"), "=", LOCAL_TIME),
        (("value", "local"), "=", UTC_TIME),
        (("value", "local"), "=", LOCAL_TIME),  # microseconds of milliseconds
        (("value", "id"), "=", "7"),
        (("value", "id"), "=", True),
        (("value", 'odd "name"'), "=", 7),
        (("value", "user"), "=", 7),
        (("value", "tags"), "=", [1]),
        (("value", "nothing"), "=", 7),
        (("value", "id", "x"), "=", 7),
        (("value", "id"), "in", []),
        (("value", "id"), "in", [*range(101)]),
        (("value", "id"), "in", [1, "2"]),
        ("offset", "=", 7),
        ("value", "=", b"x"),
    ],
)
def test_what_engines_compare_in_another_way_is_left_out(
    column: str | tuple[str, ...], operator: str, value: object
) -> None:
    asked = [Comparison(column, operator, value), Comparison("key", ">", 1)]
    assert to_field_condition(asked[:1], TYPES) is None
    assert to_field_condition(asked, TYPES) == "key > 1"

"""What is read from the predicates of Polars; tests/property/test_query_tools.py has the rows."""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from polars.io.plugins import register_io_source

from pylog.pushdown.polars_predicate import NOTHING_ASKED, PolarsPredicate

NOON = dt.datetime(2026, 11, 1, 12, tzinfo=dt.UTC)
SCHEMA: dict[str, Any] = {
    "key": pl.Binary,
    "topic": pl.String,
    "partition": pl.Int32,
    "offset": pl.Int64,
    "timestamp": pl.Datetime("us", "UTC"),
}
key, topic, partition, offset, timestamp = map(pl.col, SCHEMA)


def as_polars_gives_it(predicate: pl.Expr) -> PolarsPredicate:
    """Return what a source is given after Polars has optimized a query."""
    given: list[PolarsPredicate] = []

    def source(*arguments: object) -> object:
        expression = arguments[1]
        assert isinstance(expression, pl.Expr)
        given.append(PolarsPredicate.of(expression))
        yield pl.DataFrame(schema=SCHEMA)

    register_io_source(source, schema=SCHEMA).filter(predicate).collect()  # type: ignore[arg-type]
    [predicate_given] = given
    return predicate_given


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (offset > 5, [("offset", ">", 5)]),
        (pl.lit(5) < offset, [("offset", ">", 5)]),
        (offset.is_between(2, 7, closed="right"), [("offset", ">", 2), ("offset", "<=", 7)]),
        (~(offset > 5), [("offset", "<=", 5)]),
        (partition == pl.lit(3, pl.Int64), [("partition", "=", 3)]),
        (partition.is_in([0, 3]), [("partition", "in", [0, 3])]),
        (topic == "a and b", [("topic", "=", "a and b")]),
        (key == b"\x00\xff", [("key", "=", b"\x00\xff")]),
        (key.eq_missing(b"k"), [("key", "=", b"k")]),
        (key.is_in([b"k", None]), [("key", "in", [b"k", None])]),
        (timestamp >= NOON, [("timestamp", ">=", NOON)]),
        (
            timestamp < NOON.astimezone(dt.timezone(dt.timedelta(hours=-5))),
            [("timestamp", "<", NOON)],
        ),
        # Polars rounds what is finer than the column.
        (timestamp > pl.lit(1_999, pl.Datetime("ns", "UTC")), [("timestamp", ">", 1)]),
        ((offset > 5) & (key == b"k"), [("offset", ">", 5), ("key", "=", b"k")]),
        ((offset > 5) & ((key == b"k") | key.is_null()), [("offset", ">", 5)]),
    ],
)
def test_a_comparison_with_a_literal_is_understood(
    predicate: pl.Expr, expected: list[tuple[str, str, object]]
) -> None:
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    found = [
        (*each[:2], (each.value - epoch) // dt.timedelta(microseconds=1))
        if isinstance(each.value, dt.datetime) and each.value.year == 1970
        else tuple(each)
        for each in as_polars_gives_it(predicate).comparisons
    ]
    assert sorted(found, key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize(
    "predicate",
    [
        (offset == 1) | (offset == 2),
        offset != 5,
        offset > 0.5,
        offset + 1 > 5,
        offset > partition,
        key.is_null(),
        # A null is in this list.
        key.is_in([b"k", None], nulls_equal=True),
        timestamp.dt.date() == dt.date(2026, 11, 1),
        timestamp.dt.convert_time_zone("America/New_York").dt.hour() == 3,
        topic.str.starts_with("a"),
    ],
)
def test_anything_else_is_left_to_polars(predicate: pl.Expr) -> None:
    found = as_polars_gives_it(predicate)
    assert found.comparisons == ()
    assert found.expression is not None


def test_the_columns_of_a_predicate_are_named() -> None:
    assert set(as_polars_gives_it((offset > 5) | key.is_null()).columns) == {"offset", "key"}


def test_a_hint_that_only_polars_understands_is_left_out() -> None:
    given: list[PolarsPredicate] = []

    def source(*arguments: object) -> object:
        predicate = arguments[1]
        if isinstance(predicate, pl.Expr):
            given.append(PolarsPredicate.of(predicate))
        yield pl.DataFrame({"offset": [3, 1, 2]}, schema={"offset": pl.Int64})

    frame = register_io_source(source, schema={"offset": pl.Int64})  # type: ignore[arg-type]
    first = frame.sort("offset").head(2).collect()
    assert first["offset"].to_list() == [1, 2]
    filtered = frame.filter(pl.col("offset") > 1).sort("offset").head(1)
    filtered.collect()
    last = given[-1]
    assert [tuple(each) for each in last.comparisons] == [("offset", ">", 1)]
    assert last.expression is not None
    assert "dynamic" not in str(last.expression)


def test_a_mask_is_of_the_rows_that_polars_keeps() -> None:
    predicate = as_polars_gives_it(pl.col("offset") > 5)
    rows = pa.record_batch({"offset": pa.array([5, None, 6], pa.int64())})
    assert predicate.columns == ("offset",)
    assert predicate.mask(rows).tolist() == [False, False, True]
    assert NOTHING_ASKED.mask(rows).tolist() == [True, True, True]

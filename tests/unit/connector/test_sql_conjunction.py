"""What is read of a condition's text, and that nothing is read that it may not say."""

from __future__ import annotations

import datetime as dt
import random

import pytest

from pylog import Comparison, RecordFilter, to_record_filter
from pyspark_pylog.sql_conjunction import read_conjunction
from tests.support.predicates import ROWS, Row, random_predicate, truth

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("condition", "comparisons"),
    [
        ("offset > 5", [("offset", ">", 5)]),
        ("OFFSET<=-5", [("offset", "<=", -5)]),
        ("`offset` == 5", [("offset", "=", 5)]),
        ("5 <=> offset", [("offset", "=", 5)]),
        (" 5 <\n\toffset ", [("offset", ">", 5)]),
        ("offset BETWEEN 3 AND 5", [("offset", ">=", 3), ("offset", "<=", 5)]),
        (
            "offset between 3 and 5 and partition = 1",
            [("offset", ">=", 3), ("offset", "<=", 5), ("partition", "=", 1)],
        ),
        ("topic = 'a AND offset > 3'", [("topic", "=", "a AND offset > 3")]),
        ("topic IN ('orders', 'x,y', null)", [("topic", "in", ["orders", "x,y"])]),
        ("key = 'k1'", [("key", "=", b"k1")]),
        ("key in (X'6B31', x'', 'k')", [("key", "in", [b"k1", b"", b"k"])]),
        (
            "timestamp < timestamp_millis(-1)",
            [("timestamp", "<", EPOCH - dt.timedelta(0, 0, 1000))],
        ),
        ("timestamp = timestamp_seconds( 2 )", [("timestamp", "=", EPOCH + dt.timedelta(0, 2))]),
        ("timestamp = timestamp_micros(2)", [("timestamp", "=", EPOCH + dt.timedelta(0, 0, 2))]),
        ("(offset > 5 AND (offset < 9))", [("offset", ">", 5), ("offset", "<", 9)]),
        ("(offset = 1 OR offset = 2) AND partition = 3", [("partition", "=", 3)]),
        ("NOT offset = 1 AND partition = 3", [("partition", "=", 3)]),
        ("offset NOT BETWEEN 1 AND 2 AND partition = 3", [("partition", "=", 3)]),
        ("offset NOT IN (1, 2) AND partition = 3", [("partition", "=", 3)]),
        ("value LIKE '%OR%' AND partition = 3", [("partition", "=", 3)]),
        ("abs(offset, 1 OR 2) = 4 AND partition = 3", [("partition", "=", 3)]),
        ("f(x, y AND offset = 3) AND partition = 3", [("partition", "=", 3)]),
        ("offset = 1 + 1 AND partition = 3", [("partition", "=", 3)]),
        ("topic = 'it''s' AND partition = 3", [("partition", "=", 3)]),
        ("topic = 'a' 'b' AND partition = 3", [("partition", "=", 3)]),
        ("topic = 'A' COLLATE UTF8_LCASE AND partition = 3", [("partition", "=", 3)]),
        ("offset = 5L AND partition = 3", [("partition", "=", 3)]),
        ("offset > 9223372036854775808 AND partition = 3", [("partition", "=", 3)]),
        ("offset = NULL AND partition = 3", [("partition", "=", 3)]),
        ("offset <> 5 AND partition = 3", [("partition", "=", 3)]),
        ("batch.offset = 5 AND partition = 3", [("partition", "=", 3)]),
        ("key = X'6B3' AND partition = 3", [("partition", "=", 3)]),
        (
            "timestamp > timestamp_millis(99999999999999999) AND partition = 3",
            [("partition", "=", 3)],
        ),
        ('topic = "x AND offset = 3" AND partition = 3', [("partition", "=", 3)]),
        ("`a AND offset = 3` = 1 AND partition = 3", [("partition", "=", 3)]),
    ],
)
def test_members_of_a_conjunction_are_understood_whole_or_not_at_all(
    condition: str, comparisons: list[tuple[str, str, object]]
) -> None:
    read = read_conjunction(condition)
    assert read.comparisons == [Comparison(*each) for each in comparisons]
    assert read.instants == []


@pytest.mark.parametrize(
    "condition",
    [
        "offset = 3 OR partition = 1",
        "offset = 3 AND partition = 1 OR partition = 2",
        "offset = 3 -- AND more",
        "offset = 3 /* OR true */",
        "offset = 3 AND topic = 'it\\'s'",
        "offset = 3 AND topic = '${x}'",
        "offset = 3 AND CASE WHEN true AND offset = 3 THEN true END",
        "offset = 3 AND x = (SELECT 1 WHERE true AND offset = 3)",
        "offset = 3 AND topic = 'é'",
        "offset = 3 AND topic = 'open",
        "offset = 3 AND (partition = 1",
        "offset = 3) AND (partition = 1",
        "offset = 3 AND",
        "offset = 3, partition = 1",
        "offset = 3 AND :parameter",
        "offset = 3 AND !true",
        "offset between 3",
        "(" * 100 + "offset = 3" + ")" * 100,
        "",
        "   ",
    ],
)
def test_nothing_is_read_of_text_that_may_be_cut_otherwise(condition: str) -> None:
    assert read_conjunction(condition) == ([], [])


@pytest.mark.parametrize(
    ("condition", "instants"),
    [
        ("timestamp > '2026-11-01'", ["'2026-11-01'"]),
        ("timestamp >= TIMESTAMP '2026-1-1 00:00:00.5' and x", ["TIMESTAMP '2026-1-1 00:00:00.5'"]),
        ("date'2026-11-01' <= timestamp", ["date'2026-11-01'"]),
        (
            "timestamp BETWEEN '2026-11-01' AND '2026-11-02T00:00:00+01:00'",
            ["'2026-11-01'", "'2026-11-02T00:00:00+01:00'"],
        ),
        ("timestamp IN (date'2026-11-01', timestamp_millis(3))", ["date'2026-11-01'"]),
        ("timestamp IN ('2026-11-01')", []),  # which Spark compares as text
        ("timestamp > 'now'", []),
        ("timestamp > timestamp'today'", []),
        ("timestamp > '12:00:00'", []),
        ("timestamp_x > '2026-11-01'", []),
    ],
)
def test_instants_that_depend_on_the_session_are_named(condition: str, instants: list[str]) -> None:
    read = read_conjunction(condition)
    assert [each.text for each in read.instants] == instants
    assert [condition[each.begin : each.end] for each in read.instants] == instants
    assert to_record_filter(read.comparisons) == to_record_filter([])


def passes(where: RecordFilter, row: Row) -> bool:
    """Whether a filter lets a row pass."""

    def is_in(allowed: frozenset[object] | None, value: object) -> bool:
        return allowed is None or value in allowed

    def is_between(low: int | None, value: int, high: int | None) -> bool:
        return (low is None or value >= low) and (high is None or value <= high)

    return (
        is_in(where.topics, row.topic)
        and is_in(where.partitions, row.partition)
        and is_in(where.keys, row.key)
        and is_between(where.min_offset, row.offset, where.max_offset)
        and is_between(where.min_timestamp, row.timestamp, where.max_timestamp)
    )


def test_no_row_that_a_random_condition_lets_pass_is_left_out() -> None:
    narrowed = 0
    for seed in range(5_000):
        source = random.Random(seed)
        several = [random_predicate(source, depth=source.choice((0, 1, 2))) for _ in range(2)]
        condition = " AND ".join(f"({each.sql})" for each in several)
        where = to_record_filter(read_conjunction(condition).comparisons)
        if where == RecordFilter():
            continue
        narrowed += 1
        for row in ROWS:
            if all(truth(each, row) is True for each in several):
                assert passes(where, row), (seed, condition, row)
    assert narrowed > 2_000

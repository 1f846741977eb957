"""What is found in the plan of a client of Spark Connect; no server is asked."""

from __future__ import annotations

import datetime as dt
import random
from typing import TYPE_CHECKING, Any, cast

import pytest

pytest.importorskip("grpc_status")

from pyspark.sql.connect import functions as cf
from pyspark.sql.connect.plan import DataSource, Filter, Limit, LogicalPlan, Project

from pylog import RecordFilter
from pylog.jobs import Comparison, to_record_filter
from pyspark_pylog.spark_workarounds.connect_plan import find_columns, find_comparisons
from tests.support.predicates import ROWS, Row, random_predicate, truth

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KNOWN = ["key", "value", "topic", "partition", "offset", "timestamp", "headers"]
NOON = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)
OFFSET: Any = cf.col("offset")
TOPIC: Any = cf.col("topic")
TIMESTAMP: Any = cf.col("timestamp")


class Session:
    """Stands in for a session: a plan asks its client for nothing here."""

    _client = None


class Frame:
    """Stands in for a DataFrame: a plan and its session."""

    sparkSession = Session()  # noqa: N815 - Spark's name

    def __init__(self, plan: LogicalPlan) -> None:
        self._plan = plan


def frame(plan: LogicalPlan) -> DataFrame:
    return cast("DataFrame", Frame(plan))


def read() -> LogicalPlan:
    return DataSource(format="pylog", options={"path": "/mnt/kafka-logs"})


def where(*conditions: Any, of: LogicalPlan | None = None) -> LogicalPlan:  # noqa: ANN401
    plan = of or read()
    for each in conditions:
        plan = Filter(plan, cf.expr(each) if isinstance(each, str) else each)
    return plan


@pytest.mark.parametrize(
    ("condition", "comparisons"),
    [
        ("offset > 5 AND topic = 'orders'", []),  # text, for which a client has no parser
        ((OFFSET > 5) & (TOPIC == "orders"), [("offset", ">", 5), ("topic", "=", "orders")]),
        (OFFSET.between(3, 5), [("offset", ">=", 3), ("offset", "<=", 5)]),
        (cf.lit(5) <= OFFSET, [("offset", ">=", 5)]),
        (OFFSET.eqNullSafe(5), [("offset", "=", 5)]),
        (OFFSET.isin(1, 2), [("offset", "in", [1, 2])]),
        (TOPIC.isin("a", None), [("topic", "in", ["a"])]),
        (cf.col("key") == cf.lit(b"k1"), [("key", "=", b"k1")]),
        (cf.col("KEY").isin("k1", cf.lit(b"k2")), [("key", "in", [b"k1", b"k2"])]),
        (TIMESTAMP < NOON, [("timestamp", "<", NOON)]),
        (cf.timestamp_millis(cf.lit(1_714_564_800_000)) <= TIMESTAMP, [("timestamp", ">=", NOON)]),
        ((OFFSET > 5) & cf.expr("partition = 1"), [("offset", ">", 5)]),
        ((OFFSET > 5) | (TOPIC == "orders"), []),
        (~(OFFSET > 5), []),
        (OFFSET != 5, []),
        (OFFSET > 5.5, []),
        (OFFSET == None, []),  # noqa: E711 - as a user may write it
        (OFFSET + 1 > 5, []),
        (cf.abs(OFFSET) == 5, []),
        (cf.col("partition") < OFFSET, []),
        (OFFSET.cast("string") == "5", []),
        (OFFSET.isin(1, cf.col("partition")), []),
        (cf.col("batch.offset") == 5, [("batch.offset", "=", 5)]),  # no column of ours
    ],
)
def test_comparisons_with_literals_are_found(
    condition: object, comparisons: list[tuple[str, str, object]]
) -> None:
    found = find_comparisons(frame(where(condition)))
    assert found == [Comparison(*each) for each in comparisons]


def test_all_filters_above_the_read_count_and_what_is_above_something_else_does_not() -> None:
    assert len(find_comparisons(frame(where(OFFSET > 5, OFFSET < 9)))) == 2
    below_a_limit = where(OFFSET < 9, of=Limit(where(OFFSET > 5), 3))
    assert find_comparisons(frame(below_a_limit)) == []
    assert find_columns(frame(below_a_limit), KNOWN) is None


@pytest.mark.parametrize(
    "condition",
    [
        cf.monotonically_increasing_id() < 5,
        cf.rand(3) < 0.5,
        (OFFSET < 7) & (cf.abs(cf.rand()) < 0.5),
        cf.call_function("spark_partition_id") == 1,
        "Monotonically_Increasing_Id () < 5",
        "offset < 7 AND `rand`(3) < 0.5",
        "rand/* no seed */() < 0.5",
        "identifier('rand')() < 0.5",
    ],
)
def test_nothing_is_found_at_or_above_a_filter_that_says_another_thing_of_fewer_rows(
    condition: object,
) -> None:
    below = where(OFFSET > 5, condition, TOPIC == "orders")
    assert find_comparisons(frame(below)) == [Comparison("offset", ">", 5)]


def test_a_topic_may_have_the_name_of_a_random_function() -> None:
    assert len(find_comparisons(frame(where("topic = 'random'", OFFSET > 5)))) == 1
    assert len(find_comparisons(frame(where((TOPIC == "random") & (OFFSET > 5))))) == 2


def test_a_column_of_a_certain_dataframe_is_not_taken_for_ours() -> None:
    offset: Any = cf.col("offset")
    offset._expr._plan_id = 7
    assert find_comparisons(frame(where(offset > 5))) == []


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        (["offset", "value"], ["value", "offset"]),
        ([cf.col("OFFSET").alias("x")], ["offset"]),
        ([cf.expr("upper(cast(value as string)) as v")], ["value"]),
        ([cf.expr("`timestamp` + interval 1 hour")], ["timestamp"]),
        ([cf.struct("key", cf.col("topic").cast("binary"))], ["key", "topic"]),
        ([cf.transform("headers", lambda header: header["key"])], ["headers"]),
        ([cf.lit(1)], []),
        (["*"], None),
        ([cf.expr("struct(*)")], None),
        ([cf.expr("(SELECT max(x) FROM t)")], None),
    ],
)
def test_columns_that_may_be_named_are_found(columns: list[Any], named: list[str] | None) -> None:
    chosen = [cf.col(each) if isinstance(each, str) else each for each in columns]
    assert find_columns(frame(Project(read(), chosen)), KNOWN) == named


def test_columns_of_conditions_are_needed_as_well() -> None:
    plan = Project(where("partition = 1", TIMESTAMP < NOON), [cf.col("offset")])
    assert find_columns(frame(plan), KNOWN) == ["partition", "offset", "timestamp"]
    assert find_columns(frame(where("offset = 1", of=read())), KNOWN) == ["offset"]
    assert (
        find_columns(frame(Project(where("struct(*) is null"), [cf.col("offset")])), KNOWN) is None
    )


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
    for seed in range(2_000):
        source = random.Random(seed)
        several = [random_predicate(source, depth=source.choice((0, 1, 2))) for _ in range(2)]
        columns = [eval(each.column, {"F": cf}) for each in several]  # noqa: S307 - made here
        found = to_record_filter(find_comparisons(frame(where(*columns))))
        if found == RecordFilter():
            continue
        narrowed += 1
        for row in ROWS:
            if all(truth(each, row) is True for each in several):
                assert passes(found, row), (seed, [each.column for each in several], row)
    assert narrowed > 800

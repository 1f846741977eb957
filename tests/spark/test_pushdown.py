"""Predicates leave out what they can and never a row, however often a DataFrame is used.

Spark 4.1 to 4.3 keep filters that were pushed into one use of a ``load()`` for all later ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from pyspark_pylog import table
from pyspark_pylog.spark_workarounds.pushed_filters import FIRST_WITHOUT_LEAK
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.support.spark_session import NEEDS_SPARK, SPARK_VERSION, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = NEEDS_SPARK

CONF = "spark.sql.python.filterPushdown.enabled"
LEAKS = SPARK_VERSION[0] < FIRST_WITHOUT_LEAK
PUSHES = SPARK_VERSION >= (4, 1)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give orders-0 and -1, offsets 0 to 9 each."""
    directory = tmp_path_factory.mktemp("kafka-logs")
    batches = [
        batch_v2([Stored(offset, 1000 * offset, b"k%d" % (offset % 3), b"v%d" % offset)])
        for offset in range(10)
    ]
    for name in ("orders-0", "orders-1"):
        write_partition(directory, {0: batches[:6], 6: batches[6:]}, name=name)
    return directory


@pytest.fixture(params=["conf on", "conf off"])
def conf(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """Let Spark push filters into Python sources, or not."""
    spark.conf.set(CONF, str(request.param == "conf on").lower())
    yield request.param
    spark.conf.unset(CONF)


def offsets(frame: DataFrame) -> list[int]:
    return sorted(row.offset for row in frame.select("offset").collect())


def twice(*numbers: int) -> list[int]:
    return sorted([*numbers, *numbers])


def check_every_shape(spark: SparkSession, fresh: Callable[[], DataFrame]) -> None:
    """Check queries that use rows of ``fresh()`` under several filters."""
    one = fresh()
    low, high = one.where("offset < 3"), fresh().where("offset >= 8")
    assert offsets(low.union(high)) == twice(0, 1, 2, 8, 9)
    assert offsets(high.union(low)) == twice(0, 1, 2, 8, 9)

    left = fresh().where("partition = 0 AND offset > 2").alias("a")
    right = fresh().where("partition = 1 AND offset < 6").alias("b")
    assert left.join(right, "offset").count() == 3
    assert fresh().alias("a").join(fresh().alias("b"), ["partition", "offset"]).count() == 20

    used = fresh()
    assert offsets(used.where("key = X'6B31'")) == twice(1, 4, 7)
    assert used.where("offset = 4").count() == 2
    assert used.count() == 20
    explained = used.where("offset > 7")
    explained.explain()
    assert used.where("offset < 1").count() == 2
    assert explained.count() == 4

    for name in ("first_rows", "last_rows", "all_rows"):
        fresh().createOrReplaceTempView(name)
    [row] = spark.sql(
        "SELECT (SELECT count(*) FROM first_rows WHERE offset > 7) a, (SELECT count(*) FROM "
        "last_rows WHERE timestamp < timestamp_millis(3000)) b, (SELECT count(*) FROM all_rows) c"
    ).collect()
    assert tuple(row) == (4, 6, 20)


@pytest.mark.parametrize("pushdown", ["auto", "off"])
def test_one_load_may_be_used_under_many_filters(
    spark: SparkSession, logs: Path, conf: str, pushdown: str
) -> None:
    if pushdown == "auto" and not LEAKS:
        pytest.skip("prunes there; a load of its own a filter is tested below")
    frame = load(spark, logs, pushdown=pushdown)
    check_every_shape(spark, lambda: frame)


@pytest.mark.parametrize("pushdown", ["auto", "off"])
def test_a_view_may_be_used_by_many_queries(
    spark: SparkSession, logs: Path, conf: str, pushdown: str
) -> None:
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW many USING pylog OPTIONS (path '{logs}', "
        f"pushdown '{pushdown}')"
    )
    check_every_shape(spark, lambda: spark.table("many"))
    assert spark.sql("SELECT * FROM many WHERE offset > 8").count() == 2
    assert spark.sql("SELECT * FROM many WHERE offset < 8").count() == 16
    [row] = spark.sql(
        "SELECT (SELECT count(*) FROM many WHERE offset > 7), (SELECT count(*) FROM many), "
        "(SELECT max(offset) FROM many WHERE partition = 1)"
    ).collect()
    assert tuple(row) == (4, 20, 9)


def test_pushdown_on_is_right_where_each_load_is_filtered_once(
    spark: SparkSession, logs: Path, conf: str
) -> None:
    def fresh() -> DataFrame:
        return load(spark, logs, pushdown="on")

    assert offsets(fresh().where("offset < 3").union(fresh().where("offset >= 8"))) == twice(
        0, 1, 2, 8, 9
    )
    left = fresh().where("partition = 0 AND offset > 2")
    right = fresh().where("partition = 1 AND offset < 6")
    assert left.join(right, "offset").count() == 3
    filtered = fresh().where("offset BETWEEN 3 AND 5")
    assert [filtered.count(), filtered.count(), len(filtered.collect())] == [6, 6, 6]
    assert offsets(filtered) == twice(3, 4, 5)
    assert fresh().count() == 20
    for name in ("first_rows", "last_rows", "all_rows"):
        fresh().createOrReplaceTempView(name)
    [row] = spark.sql(
        "SELECT (SELECT count(*) FROM first_rows WHERE offset > 7), (SELECT count(*) FROM "
        "last_rows WHERE offset < 3), (SELECT count(*) FROM all_rows)"
    ).collect()
    assert tuple(row) == (4, 6, 20)


@pytest.mark.parametrize(
    ("pushdown", "condition", "tasks"),
    [
        ("on", "partition = 1", 1),
        ("on", "offset > 9", 1),  # Spark's stand-in for no task at all
        ("on", "topic = 'orders'", 2),
        ("off", "partition = 1", 2),
        ("auto", "partition = 1", 2 if LEAKS else 1),
    ],
)
def test_pushed_filters_leave_out_tasks_where_the_option_says_so(
    spark: SparkSession, logs: Path, pushdown: str, condition: str, tasks: int
) -> None:
    spark.conf.set(CONF, "true")
    try:
        frame = load(spark, logs, pushdown=pushdown).where(condition)
        assert frame.rdd.getNumPartitions() == (tasks if PUSHES else 2)
    finally:
        spark.conf.unset(CONF)
    # Off, as it is by default, nothing reaches the source, and nothing fails.
    frame = load(spark, logs, pushdown=pushdown).where(condition)
    assert frame.rdd.getNumPartitions() == 2


@pytest.mark.parametrize("pushdown", ["auto", "on", "off"])
def test_a_table_s_chains_share_nothing(
    spark: SparkSession, logs: Path, conf: str, pushdown: str
) -> None:
    orders = table(spark, str(logs), pushdown=pushdown)
    low, high = orders.where("offset < 3"), orders.where(F.col("offset") >= 8)
    assert offsets(low.select("*").union(high.select("*"))) == twice(0, 1, 2, 8, 9)
    left = orders.where("partition = 0").where("offset > 2").select("offset", "value")
    right = orders.filter("partition = 1 AND offset < 6").select("offset", "key")
    assert left.join(right, "offset").count() == 3
    assert [low.count(), high.count(), orders.count(), low.count()] == [6, 4, 20, 6]
    one = orders.where("key = X'6B31'").select("offset", "value")
    assert offsets(one) == offsets(one) == twice(1, 4, 7)
    queries = (low.select("offset"), high.select("offset"), orders.to_df())
    for name, frame in zip(("first_rows", "last_rows", "all_rows"), queries, strict=True):
        frame.createOrReplaceTempView(name)
    for _ in range(2):
        [row] = spark.sql(
            "SELECT (SELECT count(*) FROM first_rows), (SELECT count(*) FROM last_rows), "
            "(SELECT count(*) FROM all_rows)"
        ).collect()
        assert tuple(row) == (6, 4, 20)
    assert low.select("offset").crossJoin(high.select("offset")).count() == 24

"""``pyspark_pylog.table(…)`` reads what its predicates need, and gives the rows that they name."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from pyspark_pylog import table
from tests.support.batches import Stored, batch_v2
from tests.support.damage import flip
from tests.support.log_files import segment_path, write_partition
from tests.support.predicates import ROWS, TOPICS, random_predicate, truth
from tests.support.spark_plans import columns_of, options_of, tasks_of
from tests.support.spark_session import NEEDS_SPARK, load

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from pyspark_pylog.relation import PylogTable
    from tests.conftest import HowMany

pytestmark = NEEDS_SPARK

SEED = 20_240_611
PREDICATES = 80


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give `ROWS`, one batch a row but for every third, a segment each ten offsets."""
    directory = tmp_path_factory.mktemp("kafka-logs")
    for topic, partition in TOPICS:
        rows = [row for row in ROWS if (row.topic, row.partition) == (topic, partition)]
        stored = [Stored(row.offset, row.timestamp, row.key, b"v" * 50) for row in rows]
        segments = {
            first: [
                batch_v2(stored[at : min(at + 3, first + 10)])
                for at in range(first, min(first + 10, len(stored)), 3)
            ]
            for first in range(0, len(stored), 10)
        }
        write_partition(directory, segments, name=f"{topic}-{partition}")
    return directory


@pytest.fixture
def orders(spark: SparkSession, logs: Path) -> PylogTable:
    return table(spark, str(logs))


# The session's time zone is New York's: five hours behind UTC in January 1970.
@pytest.mark.parametrize(
    ("condition", "pushed"),
    [
        ("key = 'k1'", '{"keys": ["azE="]}'),
        ("key = X'6B31'", '{"keys": ["azE="]}'),
        ("key in ('k1', null, 'k0')", '{"keys": ["azA=", "azE="]}'),
        ("offset = '5'", '{"min_offset": 5, "max_offset": 5}'),
        ("OFFSET <=> 5", '{"min_offset": 5, "max_offset": 5}'),
        ("5 < offset", '{"min_offset": 6}'),
        ("offset > 5.5", '{"min_offset": 6}'),
        ("not (offset between 3 and 5) is null", None),
        ("not (offset < 3 or offset > 5)", '{"min_offset": 3, "max_offset": 5}'),
        ("offset between 3 and 9 and offset >= 5", '{"min_offset": 5, "max_offset": 9}'),
        (
            f"offset in ({', '.join(map(str, range(4, 20)))})",
            '{"min_offset": 4, "max_offset": 19}',
        ),
        (f"partition in ({', '.join(map(str, range(12)))}, null)", str([*range(12)])),
        ("partition = 1L", '{"partitions": [1]}'),
        ("topic = 'orders' and partition = 1", '{"topics": ["orders"], "partitions": [1]}'),
        ("topic = 'x' or topic = 'orders'", None),
        ("topic = 'ORDERS' collate UTF8_LCASE", None),
        ("offset = null", None),
        ("offset in (null)", None),
        ("offset <> 3", None),
        ("offset > (select 5)", '{"min_offset": 6}'),
        ("timestamp >= '1969-12-31 19:00:05'", '{"min_timestamp": 5000}'),
        ("timestamp = timestamp_millis(-1)", '{"min_timestamp": -1, "max_timestamp": -1}'),
        ("timestamp > timestamp'1970-01-01 00:00:00.123456Z'", '{"min_timestamp": 124}'),
        ("timestamp >= timestamp'1970-01-01 00:00:00.123456Z'", '{"min_timestamp": 124}'),
        ("timestamp < timestamp'1970-01-01 00:00:00.123456Z'", '{"max_timestamp": 123}'),
        ("timestamp <= timestamp'1970-01-01 00:00:00.123Z'", '{"max_timestamp": 123}'),
        (
            "timestamp = timestamp'1970-01-01 00:00:00.123456Z'",
            '{"min_timestamp": 1, "max_timestamp": 0}',
        ),
        (
            "date(timestamp) = '1970-01-01'",
            '{"min_timestamp": 18000000, "max_timestamp": 104399999}',
        ),
        ("timestamp < timestamp'+12000-01-01 00:00:00'", None),
        ("timestamp > timestamp'-0010-01-01 00:00:00' and offset > 3", '{"min_offset": 4}'),
    ],
)
def test_what_a_condition_says_of_places_times_and_keys_is_pushed(
    orders: PylogTable, condition: str, pushed: str | None
) -> None:
    found = options_of(orders.where(condition).to_df()) if pushed else {}
    if pushed is None:
        options = table_options(orders, condition)
        assert "recordFilter" not in options
    else:
        assert pushed in found["recordFilter"]


def table_options(orders: PylogTable, condition: str) -> dict[str, str]:
    """Return the options of the load; none where Spark itself finds that no row can pass."""
    frame = orders.where(condition).to_df()
    plan = frame._jdf.queryExecution().optimizedPlan()
    is_empty = plan.getClass().getSimpleName() == "LocalRelation"
    return {} if is_empty else options_of(frame)


@pytest.mark.parametrize(
    ("condition", "pushed"),
    [
        ("timestamp < now()", False),
        ("timestamp <= current_date()", False),
        ("timestamp < 'now'", False),
        ("timestamp > timestamp'2020-01-01' - (now() - timestamp'2019-01-01')", False),
        ("offset < unix_millis(now())", False),
        ("timestamp > now() - INTERVAL 1 HOUR", True),
        ("timestamp >= date_trunc('DAY', current_timestamp())", True),
        ("date(timestamp) >= date_sub(current_date(), 3)", True),
    ],
)
def test_a_bound_that_moves_with_the_clock_is_pushed_only_from_below(
    orders: PylogTable, condition: str, *, pushed: bool
) -> None:
    options = table_options(orders, f"topic = 'orders' AND {condition}")
    assert "max_timestamp" not in options.get("recordFilter", "")
    assert ("min_timestamp" in options.get("recordFilter", "")) == pushed


def test_conditions_behind_one_that_asks_which_row_it_is_leave_out_nothing(
    spark: SparkSession, logs: Path, orders: PylogTable
) -> None:
    first_five = "monotonically_increasing_id() % (1L << 33) < 5"
    one = orders.where("topic = 'orders' AND partition = 1")
    frame = one.where(first_five).where("offset >= 3")
    assert sorted(row.offset for row in frame.select("offset").collect()) == [3, 4]
    assert '"topics": ["orders"]' in options_of(frame.to_df())["recordFilter"]
    assert "offset" not in options_of(frame.to_df())["recordFilter"]


def test_pruning_leaves_out_tasks_segments_and_columns(orders: PylogTable) -> None:
    whole = tasks_of(orders.to_df())
    assert len(whole) == len(TOPICS)

    def read(condition: str) -> tuple[int, float]:
        tasks = tasks_of(orders.where(condition).to_df())
        return len(tasks), sum(task.size_bytes for task in tasks) / sum(
            task.size_bytes for task in whole
        )

    assert read("topic = 'orders' AND partition = 1")[0] == 1
    tasks, part = read("offset BETWEEN 12 AND 14")
    assert tasks == len(TOPICS)
    assert part < 0.4
    assert read("topic = 'nothing'") == (0, 0)
    narrow = orders.where("key = X'6B31'").select("OFFSET", F.col("value").alias("offset2"))
    assert columns_of(narrow) == ["key", "value", "offset"]
    assert narrow.columns == ["OFFSET", "offset2"]
    assert columns_of(orders.select("offset", "offset")) == ["offset"]
    assert columns_of(orders.where("offset > 3").select(F.max("offset"))) == ["offset"]


def test_columns_may_be_named_that_the_optimizer_finds_to_be_without_effect(
    orders: PylogTable,
) -> None:
    # As `timestamp >= NULL` is: never true, and so nothing beside the other side of an OR.
    condition = "timestamp >= NULL OR (partition = 1 AND offset < 2)"
    assert orders.where(condition).select("offset").count() == 2
    assert orders.where("key IS NULL OR true").select("offset").count() == len(ROWS)


def test_select_takes_whatever_a_dataframe_s_does(orders: PylogTable) -> None:
    some = orders.where("topic = 'orders' AND partition = 0 AND offset < 4")
    assert some.select("OFFSET").count() == 4
    assert some.select(F.max("offset")).collect() == [(3,)]
    assert some.select(F.lit(1).alias("one")).count() == 4
    assert some.select("*").columns == some.columns
    assert some.select(F.col("topic").alias("offset")).distinct().collect() == [("orders",)]
    numbers = some.select(F.row_number().over(Window.orderBy("offset")).alias("n"))
    assert numbers.agg(F.max("n")).collect() == [(4,)]
    found = orders.where("CAST(key AS STRING) BETWEEN 'k0' AND 'k1'").select("offset").count()
    assert found == sum(row.key in (b"k0", b"k1") for row in ROWS)


def test_options_hold_beside_predicates(spark: SparkSession, logs: Path) -> None:
    named = table(spark, str(logs), Columns="offset,topic").where("topic = 'orders'")
    assert named.columns == ["offset", "topic"]
    assert named.select("offset").count() == 60
    cut = table(spark, [str(logs)], subscribe="orders", maxRecordsPerPartition=7)
    assert cut.where("offset >= 10").count() == 40
    segments = table(spark, str(logs), table="segments").where("topic = 'orders'")
    assert segments.where("partition = 0").select("segment").count() == 3


def test_rows_of_damage_are_kept_or_not_as_by_a_full_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = [batch_v2([Stored(offset, offset, b"k", b"v")]) for offset in range(6)]
    path = segment_path(write_partition(tmp_path, {0: batches}), 0)
    flip(path, 3 * len(batches[0].data) - 1)
    options = {"mode": "PERMISSIVE", "columns": "offset,topic,timestamp,_corrupt_record"}
    for condition, expected in (
        ("topic = 'orders'", 6),
        ("offset > 1", 3),
        ("offset > 1 OR offset IS NULL", 4),
        ("_corrupt_record IS NOT NULL", 1),
        ("timestamp < timestamp_millis(3)", 2),
    ):
        assert table(spark, str(tmp_path), **options).where(condition).count() == expected
        assert load(spark, tmp_path, **options).where(condition).count() == expected


def test_random_predicates_give_the_rows_that_python_finds(
    spark: SparkSession, logs: Path, orders: PylogTable, how_many: HowMany
) -> None:
    whole = load(spark, logs)
    for number in range(how_many(25, PREDICATES)):
        predicate = random_predicate(random.Random(SEED + number))
        columns = ("topic", "partition", "offset")
        expected = sorted(tuple(row)[:3] for row in ROWS if truth(predicate, row) is True)
        for frame in (
            orders.where(predicate.sql).select(*columns),
            whole.where(predicate.sql).select(*columns),
        ):
            found = sorted(zip(*frame.toArrow().to_pydict().values(), strict=True))
            assert found == expected, (SEED + number, predicate.sql)


def test_a_count_reads_no_column(
    spark: SparkSession, logs: Path, orders: PylogTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = load(spark, logs).count()
    assert expected == len(ROWS)
    loaded: list[dict[str, str]] = []
    plain = type(orders)._load

    def noted(self: PylogTable, pushed: dict[str, str], *schema: StructType) -> DataFrame:
        loaded.append(pushed)
        return plain(self, pushed, *schema)

    monkeypatch.setattr(type(orders), "_load", noted)
    assert orders.count() == expected
    assert loaded == [{"recordCounts": "true"}]
    few = table(spark, str(logs), subscribe="orders", mode="PERMISSIVE", maxRecordsPerPartition=7)
    assert few.count() == load(spark, logs, subscribe="orders").count()
    assert table(spark, str(logs), subscribePattern="invoices").count() == 0
    assert (
        table(spark, str(logs), table="segments").count()
        == load(spark, logs, table="segments").count()
    )


def test_a_count_of_predicates_reads_what_they_name(
    spark: SparkSession, logs: Path, orders: PylogTable
) -> None:
    late = orders.where("offset >= 5 AND partition = 0")
    assert late.count() == load(spark, logs).where("offset >= 5 AND partition = 0").count()
    assert sorted(columns_of(late.select(F.lit(1)))) == ["offset", "partition"]


def test_a_table_is_used_wherever_a_dataframe_is(
    spark: SparkSession, orders: PylogTable, logs: Path
) -> None:
    whole = load(spark, logs)
    count = whole.where("key = 'k1'").count()
    assert 0 < count < whole.count()
    places = ["topic", "partition", "offset"]
    part: Any
    for part in (orders.where(orders.key == b"k1"), orders.filter(orders["key"] == b"k1")):
        assert options_of(part.to_df())["recordFilter"] == '{"keys": ["azE="]}'
        assert whole.join(part, places).count() == count
        assert part.join(orders, places).count() == count
        assert whole.union(part).count() == whole.count() + count
        assert whole.exceptAll(part).count() == whole.count() - count
        assert part.join(F.broadcast(orders.to_df()), places, "left_anti").isEmpty()
        assert part.groupBy(part.key).count().collect() == [(b"k1", count)]
        assert part.orderBy(part["offset"].desc()).select(part.partition).first() is not None


def rows_of(frame: DataFrame) -> int:
    return frame.count()


def test_a_table_is_a_dataframe_to_isinstance_type_checkers_and_sql(
    spark: SparkSession, orders: PylogTable, logs: Path
) -> None:
    count = load(spark, logs).count()
    assert isinstance(orders, DataFrame)
    assert not isinstance(orders, dict)
    assert rows_of(orders) == count  # mypy accepts it
    part = orders.where("partition = 0 AND topic = 'orders'")
    found = spark.sql("SELECT count(*) FROM {t} JOIN {part} USING (key)", t=orders, part=part)
    expected = load(spark, logs).join(
        load(spark, logs).where("partition = 0 AND topic = 'orders'"), "key"
    )
    assert found.first() == (expected.count(),)
    assert orders.select(["offset", "key"]).columns == ["offset", "key"]


def test_explain_says_what_is_read(
    orders: PylogTable, logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part = orders.where("topic = 'orders' and partition = 1 and offset between 3 and 7")
    part.explain()
    ours, _, plan = capsys.readouterr().out.partition("\n\n")
    lines = [line.partition(":")[::2] for line in ours.splitlines()[1:]]
    found = {name: text.strip() for name, text in lines}
    assert found["path"] == str(logs)
    assert found["topics"] == "orders (1)"
    assert found["range"].startswith("orders-1 offsets [3, 8), ")
    assert json.loads(found["pushed"]) == {
        "topics": ["orders"],
        "partitions": [1],
        "min_offset": 3,
        "max_offset": 7,
    }
    size = int(found["to read"].partition("(")[2].partition(" bytes")[0])
    [task] = tasks_of(part.to_df())
    assert 0 < size == task.size_bytes
    assert "Physical Plan" in plan


def test_explain_of_a_table_names_its_topics(
    spark: SparkSession, logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table(spark, str(logs), table="latest", subscribe="orders").explain()
    printed = capsys.readouterr().out
    assert "table:      latest, of whole logs; pushed: no predicate" in printed
    assert "topics:     orders (" in printed

"""One test for each trap of Spark's Python data sources that a batch read can fall into.

Trap 4 (streams) is in ``test_streams.py``; trap 9 (writing) has no test: there is none yet.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import Row

from pyspark_pylog import DefaultSource, table
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import segment_path, write_partition
from tests.support.spark_session import (
    NEEDS_SPARK,
    PLANS_ONCE,
    SPARK_CONF,
    last_line,
    load,
    require_java,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = NEEDS_SPARK

CONF = "spark.sql.python.filterPushdown.enabled"
LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Give orders-0 and -1, offsets 0 to 9 each."""
    batches = [
        batch_v2([Stored(offset, offset, b"k", b"v", (("h", None),))]) for offset in range(10)
    ]
    for name in ("orders-0", "orders-1"):
        write_partition(tmp_path / "logs", {0: batches}, name=name)
    return tmp_path / "logs"


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[None]:
    """Have Spark push filters into Python sources."""
    spark.conf.set(CONF, "true")
    yield
    spark.conf.unset(CONF)


@pytest.mark.usefixtures("pushing")
def test_trap_1_filters_of_one_scan_do_not_reach_another(spark: SparkSession, logs: Path) -> None:
    frame = load(spark, logs)
    assert frame.where("offset > 7").count() == 4
    assert frame.count() == 20
    assert frame.where("offset > 7").union(frame.where("offset > 3")).count() == 4 + 12


def test_trap_2_a_view_is_a_snapshot_until_it_is_made_again(
    spark: SparkSession, logs: Path
) -> None:
    make = f"CREATE OR REPLACE TEMPORARY VIEW growing USING pylog OPTIONS (path '{logs}')"
    spark.sql(make)
    assert spark.table("growing").count() == 20
    with segment_path(logs / "orders-0", 0).open("ab") as log:
        log.write(batch_v2([Stored(10, 10, b"k", b"new")]).data)
    assert spark.table("growing").count() == (20 if PLANS_ONCE else 21)
    assert table(spark, str(logs)).count() == 21
    spark.sql(make)
    assert spark.table("growing").count() == 21


def test_trap_3_a_catalog_table_keeps_options_only_in_the_schema_that_the_source_gave(
    spark: SparkSession, logs: Path
) -> None:
    columns = "(offset BIGINT, value BINARY)"
    spark.sql(f"CREATE TABLE trap3 {columns} USING pylog OPTIONS (path '{logs}')")
    try:
        message = last_line(lambda: spark.table("trap3").collect())
        assert (
            "CREATE TABLE … USING pylog OPTIONS (path '/path/to/kafka-logs'), without a" in message
        )
        assert spark.read.option("path", str(logs)).table("trap3").count() == 20
    finally:
        spark.sql("DROP TABLE trap3")


def test_trap_5_nothing_to_read_is_not_a_row(spark: SparkSession, logs: Path) -> None:
    nothing = load(spark, logs, startingOffsets='{"orders":10}')
    assert (nothing.collect(), nothing.count(), nothing.rdd.getNumPartitions()) == ([], 0, 1)
    assert table(spark, str(logs)).where("topic = 'none'").select("offset").collect() == []
    assert load(spark, logs, table="transactions").collect() == []


_BESIDE_A_BROKEN_ONE = """
import sys
from pylog_jobs.session import spark_session
from pyspark_pylog import DefaultSource
session = spark_session("fresh")
session.dataSource.register(DefaultSource)
print(session.read.format("pylog").load(sys.argv[1]).count(), "rows")
session.stop()
"""


@pytest.mark.thorough
def test_trap_6_registration_works_where_a_broken_module_stops_discovery(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_java()
    (tmp_path / "pyspark_broken.py").write_text("raise RuntimeError('broken')\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(SPARK_CONF))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", _BESIDE_A_BROKEN_ONE, str(logs)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.stdout == "20 rows\n", done.stderr


def test_trap_7_a_reader_with_push_filters_reads_also_while_pushdown_is_off(
    spark: SparkSession, logs: Path
) -> None:
    assert spark.conf.get(CONF, "false") == "false"  # 4.0 does not know it
    for pushdown in ("auto", "on", "off"):
        assert load(spark, logs, pushdown=pushdown).where("offset > 7").count() == 4


@pytest.mark.parametrize("large", ["false", "true"])
def test_trap_8_batches_have_exactly_the_arrow_schema_that_spark_demands(
    spark: SparkSession, logs: Path, large: str
) -> None:
    columns = (
        "_corrupt_record,batch,headers,timestampType,timestamp,offset,partition,topic,value,key"
    )
    spark.conf.set(LARGE_TYPES, large)
    try:
        assert len(load(spark, logs, columns=columns, mode="PERMISSIVE").collect()) == 20
        headers = "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
        not_null = f"timestamp TIMESTAMP NOT NULL, topic STRING NOT NULL, {headers}"
        frame = spark.read.format("pylog").schema(not_null).load(str(logs))
        assert frame.select("headers").first() == Row(headers=[Row(key="h", value=None)])
    finally:
        spark.conf.unset(LARGE_TYPES)


def test_trap_10_a_query_that_stops_early_harms_none_after_it(
    spark: SparkSession, logs: Path
) -> None:
    frame = load(spark, logs)
    for _ in range(2):
        assert len(frame.take(3)) == 3
        assert frame.limit(4).count() == 4
        assert frame.count() == 20


def test_trap_11_rows_travel_in_large_arrow_batches(tmp_path: Path) -> None:
    batches = [
        batch_v2([Stored(first + at, 0, b"k", b"v") for at in range(100)])
        for first in range(0, 5000, 100)
    ]
    write_partition(tmp_path, {0: batches})
    source = DefaultSource({"path": str(tmp_path)})
    reader = source.reader(source.schema())
    [partition] = reader.partitions()
    read = list(reader.read(partition))
    assert all(isinstance(batch, pa.RecordBatch) for batch in read)
    assert sum(batch.num_rows for batch in read) == 5000
    assert len(read) <= 5

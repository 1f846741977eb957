"""Through Spark Connect the source is the same, and predicates of `table` reach it.

In a process of its own: a process has either a classic session or one of Connect.
"""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import StructType

from pyspark_pylog import DefaultSource
from pyspark_pylog.batch_reader import TaskPartition
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.support.predicates import ROWS, TOPICS, random_predicate, truth
from tests.support.spark_session import NEEDS_SPARK, SPARK_CONF, require_java

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import HowMany

pytestmark = NEEDS_SPARK

SEED = 20_261_123
PREDICATES = 30
_MISSING = [name for name in ("grpc", "grpc_status") if importlib.util.find_spec(name) is None]

_SCRIPT = """
import json, sys
import pyspark.sql
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark_pylog import table

spark = SparkSession.builder.remote("local[2]").getOrCreate()
path = sys.argv[1]
frame = spark.read.format("pylog").load(path)
spark.sql(f"CREATE TEMPORARY VIEW orders USING pylog OPTIONS (path '{path}')")
orders = table(spark, path, trustBatchTimestamps="true")
found = {
    "count": frame.count(),
    "filtered": [row.offset for row in frame.where("key = X'6B31'").sort("offset").collect()],
    "union": frame.where("offset < 2").union(frame.where("offset > 8")).count(),
    "sql": [list(row) for row in spark.sql("SELECT max(offset), count(*) FROM orders").collect()],
    "table": sorted(r.offset for r in orders.where("offset > 7").select("offset").collect()),
    "is a DataFrame": isinstance(orders, pyspark.sql.DataFrame),
    "join": frame.join(orders, ["topic", "partition", "offset"]).count(),
    "in sql": spark.sql("SELECT count(*) FROM {t}", t=orders.where("offset > 7")).first()[0],
    "table again": orders.where("timestamp < timestamp_millis(3)").count(),
}
spark.sql(f"CREATE TABLE in_catalog USING pylog OPTIONS (path '{path}', columns 'offset')")
found["catalog table"] = spark.sql("SELECT max(offset) FROM in_catalog").first()[0]
spark.sql("DROP TABLE in_catalog")
try:
    spark.read.format("pylog").option("subscrib", "orders").load(path).schema
except PySparkException as error:
    found["suggests"] = "did you mean 'subscribe'?" in str(error)
copy = path + "-copy"
for _ in range(2):
    writer = frame.write.format("pylog").mode("append").option("jobId", "copy")
    writer.option("numPartitions", 2).save(copy)
copied = spark.read.format("pylog").load(copy)
found["written"] = sorted(row.timestamp.timestamp() for row in copied.collect())
try:
    frame.write.format("pylog").mode("overwrite").save(copy)
except PySparkException as error:
    found["refused"] = "appends to topics and replaces nothing" in str(error)
print(json.dumps(found))
spark.stop()
"""


needs_connect = pytest.mark.skipif(
    bool(_MISSING), reason=f"Spark Connect needs {' and '.join(_MISSING)}"
)


def run_client(
    script: str, path: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str, seconds: int = 300
) -> dict[str, Any]:
    """Return what a client prints, which has a server of its own."""
    java_home = require_java()
    monkeypatch.setenv("JAVA_HOME", str(java_home))
    monkeypatch.setenv("SPARK_CONF_DIR", str(SPARK_CONF))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.chdir(path.parent)
    done = subprocess.run(
        [sys.executable, "-c", script, str(path), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@needs_connect
def test_spark_connect_reads_and_writes_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = [
        batch_v2([Stored(offset, offset, b"k%d" % (offset % 3), b"v")]) for offset in range(10)
    ]
    write_partition(tmp_path / "logs", {0: batches})
    assert run_client(_SCRIPT, tmp_path / "logs", monkeypatch) == {
        "count": 10,
        "filtered": [1, 4, 7],
        "union": 3,
        "sql": [[9, 10]],
        "table": [8, 9],
        "is a DataFrame": True,
        "join": 10,
        "in sql": 2,
        "table again": 3,
        "suggests": True,
        "written": [offset / 1000 for offset in range(10)],
        "catalog table": 9,
        "refused": True,
    }


# A record a minute from noon in New York on; the offsets that pass, and how many segments of ten
# offsets are read for them, at most.
_CONDITIONS: dict[str, tuple[list[int], int]] = {
    "C('offset') >= 97": ([97, 98, 99], 1),
    "(C('partition') == 0) & C('offset').between(41, 42) & (F.length('value') > 0)": ([41, 42], 1),
    "(C('timestamp') >= at(18, 38)) & C('key').isNotNull()": ([98, 99], 1),
    "C('timestamp') < at(17, 2)": ([0, 1], 10),
    "C('timestamp') == F.timestamp_millis(F.lit(1704128520000))": ([2], 10),
    "C('key').isin('k7', F.lit(b'k8'))": ([7, 8], 10),
    "C('offset').isin(33, 50) & (C('topic') == 'orders')": ([33, 50], 3),
    "(C('offset') == 3) | (C('offset') == 50)": ([3, 50], 10),
    "~(C('offset') < 99)": ([99], 10),
    "C('topic') == 'Orders'": ([], 0),
    # Text gives the same rows, and all is read.
    "'offset >= 97'": ([97, 98, 99], 10),
    "'timestamp >= timestamp\\'2024-01-01 13:38:00\\' AND key IS NOT NULL'": ([98, 99], 10),
}
_NOT_UNDERSTOOD = ("(C('offset') == 3) | (C('offset') == 50)", "'offset >= 97'")

_NARROWED = """
import datetime as dt, json, pathlib, sys
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark_pylog import table

C = F.col

def at(hour, minute):
    return dt.datetime(2024, 1, 1, hour, minute, tzinfo=dt.timezone.utc)

path, conditions = sys.argv[1], json.loads(sys.argv[2])
spark = SparkSession.builder.remote("local[2]").getOrCreate()
spark.conf.set("spark.sql.session.timeZone", "America/New_York")
orders = table(spark, path, trustBatchTimestamps="true")

def described(frame):
    node = frame._plan.plan(spark._client)
    while node.WhichOneof("rel_type") != "read":
        node = getattr(node, node.WhichOneof("rel_type")).input
    source = node.read.data_source
    rows = sorted(row.offset for row in frame.collect())
    return {"rows": rows, "options": dict(source.options), "schema": source.schema}

found = {each: described(orders.where(eval(each)).select("offset")) for each in conditions}
moved = orders.where(C("timestamp") < at(17, 2)).select("offset")
spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
found["elsewhere"] = described(moved)
last = pathlib.Path(path, "orders-0", "00000000000000000090.log")
last.write_bytes(last.read_bytes()[:-5] + b"wrong")
found["beside damage"] = described(orders.where(C("offset") < 90).select("offset"))
try:
    orders.where("offset < 90 OR offset < 80").count()
except PySparkException as error:
    found["all is read"] = "00000000000000000090.log" in str(error)
print(json.dumps(found))
spark.stop()
"""


def segments_read(described: dict[str, Any], path: Path) -> int:
    """Return how many segments the tasks of a client's read hold bytes of."""
    options = {**described["options"], "path": str(path)}
    source = DefaultSource(CaseInsensitiveDict(options))
    names = StructType.fromJson(json.loads(described["schema"])).fieldNames()
    known = {field.name: field for field in source.schema()}
    partitions = source.reader(StructType([known[name] for name in names])).partitions()
    tasks = [task for each in partitions if isinstance(each, TaskPartition) for task in each.tasks]
    return sum(len(task.slices) for task in tasks)


@pytest.mark.thorough
@needs_connect
def test_predicates_of_a_table_are_pushed_down_from_the_client_s_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noon = 1_704_128_400_000
    rows = [Stored(at, noon + 60_000 * at, b"k%d" % at, b"v" * 100) for at in range(100)]
    segments = {
        first: [batch_v2(rows[at : at + 2]) for at in range(first, first + 10, 2)]
        for first in range(0, 100, 10)
    }
    logs = tmp_path / "logs"
    write_partition(logs, segments)
    found = run_client(_NARROWED, logs, monkeypatch, json.dumps([*_CONDITIONS]))
    assert {each: found[each]["rows"] for each in _CONDITIONS} == {
        each: passing for each, (passing, _) in _CONDITIONS.items()
    }
    for condition, (_, most) in _CONDITIONS.items():
        assert segments_read(found[condition], logs) <= most, condition
        assert "value" not in found[condition]["schema"] or "value" in condition
    for condition in _NOT_UNDERSTOOD:
        assert segments_read(found[condition], logs) == 10
    # An instant of a Column is the same in every time zone.
    assert found["elsewhere"]["rows"] == [0, 1]
    assert found["beside damage"]["rows"] == [*range(90)]
    assert found["all is read"]


_RANDOM = """
import json, sys
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark_pylog import table

spark = SparkSession.builder.remote("local[2]").getOrCreate()
spark.conf.set("spark.sql.session.timeZone", "America/New_York")
orders, found = table(spark, sys.argv[1]), []
for condition in json.loads(sys.argv[2]):
    rows = orders.where(eval(condition)).select("topic", "partition", "offset").collect()
    found.append(sorted(map(list, rows)))
print(json.dumps({"found": found}))
spark.stop()
"""


@pytest.mark.thorough
@needs_connect
def test_random_predicates_give_the_rows_that_python_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how_many: HowMany
) -> None:
    logs = tmp_path / "logs"
    for topic, partition in TOPICS:
        stored = [
            batch_v2([Stored(row.offset, row.timestamp, row.key, b"v")])
            for row in ROWS
            if (row.topic, row.partition) == (topic, partition)
        ]
        write_partition(logs, {0: stored[:10], 10: stored[10:]}, name=f"{topic}-{partition}")
    source = random.Random(SEED)
    count = how_many(10, PREDICATES)
    predicates = [random_predicate(source, depth=1) for _ in range(count)]
    conditions = json.dumps([each.column for each in predicates])
    found = run_client(_RANDOM, logs, monkeypatch, conditions, seconds=300 + 10 * count)["found"]
    for predicate, rows in zip(predicates, found, strict=True):
        expected = sorted([*row[:3]] for row in ROWS if truth(predicate, row) is True)
        assert rows == expected, predicate.column

"""Through Spark Connect the source is the same; predicates of `table` reach Spark, and no plan.

In a process of its own: a process has either a classic session or one of Connect.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.support.spark_session import NEEDS_SPARK, SPARK_CONF, require_java

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = NEEDS_SPARK

_MISSING = [name for name in ("grpc", "grpc_status") if importlib.util.find_spec(name) is None]

_SCRIPT = """
import json, logging, sys
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark_pylog import table

warnings = []
handler = logging.Handler()
handler.emit = lambda record: warnings.append(record.getMessage())
logging.getLogger("pyspark_pylog").addHandler(handler)
spark = SparkSession.builder.remote("local[2]").getOrCreate()
path = sys.argv[1]
frame = spark.read.format("pylog").load(path)
spark.sql(f"CREATE TEMPORARY VIEW orders USING pylog OPTIONS (path '{path}')")
orders = table(spark, path)
found = {
    "count": frame.count(),
    "filtered": [row.offset for row in frame.where("key = X'6B31'").sort("offset").collect()],
    "union": frame.where("offset < 2").union(frame.where("offset > 8")).count(),
    "sql": [list(row) for row in spark.sql("SELECT max(offset), count(*) FROM orders").collect()],
    "table": sorted(r.offset for r in orders.where("offset > 7").select("offset").collect()),
    "table again": orders.where("timestamp < timestamp_millis(3)").count(),
}
found["warnings"] = [text.partition(":")[2].partition(",")[0] for text in warnings]
try:
    spark.read.format("pylog").option("subscrib", "orders").load(path).schema
except PySparkException as error:
    found["told"] = "did you mean 'subscribe'?" in str(error)
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


@pytest.mark.skipif(bool(_MISSING), reason=f"Spark Connect needs {' and '.join(_MISSING)}")
def test_spark_connect_reads_and_writes_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java_home = require_java()
    batches = [
        batch_v2([Stored(offset, offset, b"k%d" % (offset % 3), b"v")]) for offset in range(10)
    ]
    write_partition(tmp_path / "logs", {0: batches})
    monkeypatch.setenv("JAVA_HOME", str(java_home))
    monkeypatch.setenv("SPARK_CONF_DIR", str(SPARK_CONF))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.chdir(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(tmp_path / "logs")],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "count": 10,
        "filtered": [1, 4, 7],
        "union": 3,
        "sql": [[9, 10]],
        "table": [8, 9],
        "table again": 3,
        "told": True,
        "written": [offset / 1000 for offset in range(10)],
        "refused": True,
        "warnings": [
            " pyspark_pylog.table pushes no predicate and no column down over Spark Connect"
        ],
    }

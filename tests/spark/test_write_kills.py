"""Processes that are killed while a job is written: it is there whole or not at all, and once.

``--soak N`` is the number of rounds of each test.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from py4j.protocol import Py4JError
from pyspark import cloudpickle
from pyspark.errors import PySparkException

import pylog
from tests.support import killing_source
from tests.support.killing_source import KillingSource
from tests.support.spark_session import NEEDS_SPARK, SPARK_CONF, require_java, save

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from tests.conftest import Counted

pytestmark = NEEDS_SPARK

ROOT = Path(__file__).parents[2]
SEED = 20_261_122
ROWS = 300
TOPICS: dict[str, str | int] = {"topic.segment.bytes": 1 << 20, "numPartitions": 2}

_DRIVER = """
import sys
from tests.spark.test_write_kills import rows_of
from tests.support.killing_source import KillingSource
from pylog_jobs.session import spark_session

logs, job, at, once, victim, master = sys.argv[1:]
spark = spark_session("killed", master=master, settings={"spark.ui.enabled": "false"})
spark.dataSource.register(KillingSource)
writer = rows_of(spark, int(job)).write.format("pylog_killed").mode("append")
options = {"topic": "orders", "jobId": job, "numPartitions": 2, "topic.segment.bytes": 1 << 20}
killing = {"killed.in": victim, "killed.at": at, "killed.once": once}
jvm = {"killed.jvm": victim == "commit"}
writer.options(**options, **killing, **jvm).save(logs)
"""

_STREAM = """
import sys
from pylog_jobs.session import spark_session

logs, source, checkpoint = sys.argv[1:]
spark = spark_session("killed", settings={"spark.ui.enabled": "false"})
reader = spark.readStream.format("text").option("maxFilesPerTrigger", 1)
writer = reader.load(source).writeStream.format("pylog").option("topic", "orders")
query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start(logs)
print("started", flush=True)
query.awaitTermination()
"""


def rows_of(spark: SparkSession, job: int) -> DataFrame:
    """Return the rows of a job: in every other one so many bytes that segments are made of them."""
    text = "repeat(uuid(), 120)" if job % 2 else "''"
    frame = spark.range(ROWS, numPartitions=2)
    return frame.selectExpr("cast(id as string) key", f"concat('{job}-', id, '-', {text}) value")


def found_of(logs: Path, job: int) -> list[int]:
    """Return the numbers of a job's rows that a read finds."""
    if not any(logs.glob("orders-*")):
        return []
    values = pylog.scan(logs, topics="orders", columns=["value"]).to_table()["value"].to_pylist()
    parts = [value.decode().split("-", 2) for value in values]
    return sorted(int(row) for number, row, _ in parts if int(number) == job)


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    """Return how often something is killed; tests that start a Spark each time divide it."""
    return int(request.config.getoption("--soak") or 12)


@pytest.fixture(scope="module")
def killing(spark: SparkSession) -> Iterator[None]:
    # The workers of the session do not find the modules of the tests.
    cloudpickle.register_pickle_by_value(killing_source)  # type: ignore[no-untyped-call]
    spark.dataSource.register(KillingSource)
    yield
    cloudpickle.unregister_pickle_by_value(killing_source)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("victim", ["commit", "write"])
def test_a_killed_python_process_leaves_a_job_whole_or_not_at_all(
    spark: SparkSession, killing: None, tmp_path: Path, victim: str, rounds: int, counted: Counted
) -> None:
    logs = tmp_path / "logs"
    steps = random.Random(SEED)
    outcomes = {"not at all": 0, "whole": 0, "not killed": 0}
    for job in range(rounds):
        once = tmp_path / f"killed-{job}"
        writer = rows_of(spark, job).write.format("pylog_killed").mode("append")
        writer = writer.options(topic="orders", jobId=f"job-{job}", **TOPICS)
        at = steps.randint(1, 60 if victim == "commit" else 8)
        writer = writer.option("killed.in", victim).option("killed.at", at)
        writer = writer.option("killed.once", str(once))
        failed = False
        try:
            writer.save(str(logs))
        except (PySparkException, Py4JError):
            failed = True
        assert failed == once.exists()
        outcomes["not killed"] += not failed
        found = found_of(logs, job)
        assert found in ([], list(range(ROWS)))
        outcomes["whole" if found else "not at all"] += once.exists()
        for _ in range(20):
            save(rows_of(spark, job), logs, topic="orders", jobId=f"job-{job}", **TOPICS)
            if [path.name for path in logs.glob(".pylog-*")] == [".pylog-ledger"]:
                break  # else a task of the killed job was still at work: the next run sweeps it
        assert found_of(logs, job) == list(range(ROWS))
        assert [path.name for path in logs.glob(".pylog-*")] == [".pylog-ledger"]
    for job in range(rounds):
        assert found_of(logs, job) == list(range(ROWS))
    counted(f"writes of Spark whose {victim} was killed", outcomes)
    assert outcomes["not killed"] < rounds


def test_a_killed_task_is_run_again_and_its_rows_are_there_once(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    done = _driver(logs, 1, at=3, once=tmp_path / "killed", victim="write", master="local[2,4]")
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "killed").exists()
    assert found_of(logs, 1) == list(range(ROWS))
    assert [path.name for path in logs.glob(".pylog-*")] == [".pylog-ledger"]


def test_a_driver_that_is_killed_in_a_commit_leaves_a_job_whole_or_not_at_all(
    spark: SparkSession, tmp_path: Path, rounds: int
) -> None:
    logs = tmp_path / "logs"
    steps = random.Random(SEED)
    for job in range(max(3, rounds // 4)):
        once = tmp_path / f"killed-{job}"
        done = _driver(
            logs, job, at=steps.randint(1, 45), once=once, victim="commit", master="local[2]"
        )
        assert (done.returncode != 0) == once.exists(), done.stderr[-3000:]
        assert found_of(logs, job) in ([], list(range(ROWS)))
        save(rows_of(spark, job), logs, topic="orders", jobId=str(job), **TOPICS)
        assert found_of(logs, job) == list(range(ROWS))
    assert [path.name for path in logs.glob(".pylog-*")] == [".pylog-ledger"]


def test_a_driver_that_is_killed_while_it_streams_loses_and_doubles_nothing(
    tmp_path: Path, rounds: int
) -> None:
    logs, source, checkpoint = (tmp_path / name for name in ("logs", "input", "checkpoint"))
    source.mkdir()
    delays = random.Random(SEED)
    total = 0
    for _ in range(max(3, rounds // 4)):
        for _ in range(25):
            (source / f"{total:05}.txt").write_text(f"{total}\n{total + 1}\n", "utf-8")
            total += 2
        with subprocess.Popen(
            [sys.executable, "-c", _STREAM, str(logs), str(source), str(checkpoint)],
            stdout=subprocess.PIPE,
            env=_environment(),
            cwd=tmp_path,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"started\n"
            time.sleep(delays.uniform(0.5, 6))
            for each in [*psutil.Process(process.pid).children(recursive=True), process]:
                each.kill()
    last = subprocess.run(
        [sys.executable, "-c", _STREAM, str(logs), str(source), str(checkpoint)],
        env=_environment(),
        cwd=tmp_path,
        check=True,
        capture_output=True,
        timeout=300,
    )
    assert last.returncode == 0
    values = pylog.scan(logs, topics="orders", columns=["value"]).to_table()["value"].to_pylist()
    assert sorted(map(int, values)) == list(range(total))
    assert [path.name for path in logs.glob(".pylog-*")] == [".pylog-ledger"]


def _environment() -> dict[str, str]:
    return {
        **os.environ,
        "JAVA_HOME": str(require_java()),
        "SPARK_CONF_DIR": str(SPARK_CONF),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }


def _driver(
    logs: Path, job: int, *, at: int, once: Path, victim: str, master: str
) -> subprocess.CompletedProcess[str]:
    arguments = [str(logs), str(job), str(at), str(once), victim, master]
    return subprocess.run(
        [sys.executable, "-c", _DRIVER, *arguments],
        env=_environment(),
        cwd=logs.parent,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )

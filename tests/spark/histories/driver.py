"""A Spark driver that plays histories: ``python -m … MASTER``.

Lines come in as JSON: a source, a number, a folder and how to reach PostgreSQL. The answer to each
is JSON: how often the job ended with which status, and what is wrong, or null.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError

from pylog_jobs.error_text import describe
from pylog_jobs.session import spark_session
from tests.kills.spark_driver import say
from tests.spark.histories.files import FolderHistory
from tests.spark.histories.postgres import PASSWORD_VARIABLE, PostgresHistory
from tests.spark.histories.promise import BrokenPromiseError
from tests.spark.histories.sqlite import SqliteHistory
from tests.spark.histories.versions import DeltaHistory, IcebergHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from tests.spark.histories.history import History

SEED = 4_810
_SETTINGS = {
    "spark.databricks.delta.snapshotPartitions": "1",  # of 50
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
_HISTORIES: Mapping[str, Callable[[SparkSession, Path, random.Random], History]] = {
    "sqlite": SqliteHistory,
    "parquet": FolderHistory,
    "delta": DeltaHistory,
    "iceberg": IcebergHistory,
}


def _history(spark: SparkSession, request: dict[str, str], rng: random.Random) -> History:
    folder = Path(request["folder"]) / f"{request['source']}-{request['number']}"
    folder.mkdir()
    if request["source"] == "postgres":
        return PostgresHistory(spark, folder, rng, (request["url"], request["password"]))
    return _HISTORIES[request["source"]](spark, folder, rng)


def play(spark: SparkSession, request: dict[str, str]) -> str:
    """Play a history; return the answer."""
    seed = f"{SEED} {request['source']} {request['number']}"
    history = _history(spark, request, random.Random(seed))
    problem = None
    try:
        history.play()
    except (BrokenPromiseError, Py4JJavaError) as error:
        text = str(error) if isinstance(error, BrokenPromiseError) else describe(error)
        problem = "\n  ".join((f"history {seed!r}: {text}", *history.events))
    finally:
        history.close()
    shutil.rmtree(history.folder)
    return json.dumps({"statuses": history.statuses, "problem": problem})


def _serve(master: str) -> None:
    spark = spark_session("histories", master=master, settings=_SETTINGS)
    spark.sparkContext.setLogLevel("ERROR")
    say("")
    while line := sys.stdin.readline():
        request = json.loads(line)
        os.environ[PASSWORD_VARIABLE] = request["password"]
        try:
            say(play(spark, request))
        except Exception as error:  # noqa: BLE001 - told to the test
            say(json.dumps({"statuses": {}, "problem": f"{request}: {describe(error)}"}))
    spark.stop()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _serve(sys.argv[1])

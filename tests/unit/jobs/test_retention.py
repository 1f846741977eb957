"""The job that applies retention."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog_jobs import compact, retention
from pylog_jobs.cleanup import parameters_of
from pylog_jobs.job import UsageError
from tests.support.spark_session import NEEDS_SPARK
from tests.unit.cleaner.cleaning_jobs import contents
from tests.unit.jobs.cleaned import logs, parsed
from tests.unit.writing.test_compaction import NOW_MS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from pylog_jobs.job import Outcome

__all__ = ["logs"]


pytestmark = NEEDS_SPARK


def run_retention(spark: SparkSession, path: Path, *arguments: str) -> Outcome:
    parameters = parameters_of(parsed(retention, path, *arguments))
    return retention.run(spark, parameters)


def test_retention_removes_what_the_library_removes(
    spark: SparkSession, logs: Path, tmp_path: Path
) -> None:
    shutil.copytree(logs, tmp_path / "other")
    config = {"cleanup.policy": "delete", "retention.ms": "1000", "retention.bytes": "-1"}
    now_ms = NOW_MS + 5_000
    expected = pylog.apply_retention(tmp_path / "other", config=config, now_ms=now_ms)
    arguments = [f"--config={name}={value}" for name, value in config.items()]
    arguments += ["--now", str(now_ms)]
    planned = run_retention(spark, logs, *arguments, "--dry-run")
    done = run_retention(spark, logs, *arguments)
    assert (planned.status, done.status) == (0, 0)
    assert done.summary["removedSegments"] == expected.totals.segments > 20
    assert planned.summary["removedBytes"] == done.summary["removedBytes"]
    assert planned.summary["removedRecords"]
    assert contents(logs).keys() == contents(tmp_path / "other").keys()


def test_topics_of_unknown_configuration_are_refused(spark: SparkSession, logs: Path) -> None:
    shutil.copytree(logs / "foo-0", logs / "copied-0")
    before = contents(logs)
    with pytest.raises(pylog.LogStorageError, match="copied"):
        compact.prepare(parsed(compact, logs))
    with pytest.raises(UsageError, match="copied"):
        run_retention(spark, logs)
    assert contents(logs) == before

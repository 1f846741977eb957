"""The job that compares logs: on Spark it finds what the command does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog_jobs import diff
from pylog_jobs.job import UsageError
from tests.support.spark_session import NEEDS_SPARK
from tests.unit.jobs.cleaned import parsed
from tests.unit.recovery.test_merge import log, replica

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from pylog_jobs.job import Outcome
    from tests.support.golden import GoldenRoot

pytestmark = NEEDS_SPARK


def run_diff(spark: SparkSession, *arguments: object) -> Outcome:
    path, *others = map(str, arguments)
    return diff.run(spark, diff.prepare(parsed(diff, path, *others)))  # type: ignore[arg-type]


def test_it_finds_what_the_command_finds(spark: SparkSession, tmp_path: Path) -> None:
    for node, end in (("1", 40), ("2", 35)):
        replica(tmp_path / node, {0: log(0, end)})
        replica(tmp_path / node, {0: log(0, 40)}, name="users-0")
    replica(tmp_path / "2", {0: log(0, 5)}, name="users-1")
    places = [tmp_path / "1", tmp_path / "2"]
    expected = pylog.jobs.diff(*places)
    done = run_diff(spark, *places)
    assert done.status == 1
    assert (done.summary["pairs"], done.summary["differentPairs"]) == (3, 2)
    found: Any = done.summary["differences"]
    assert [(each["topic"], each["partition"], each["firstOffset"]) for each in found] == [
        (each.topic, each.partition, each.first_offset)
        for each in expected.partitions
        if not each.is_alike
    ]
    assert found[0]["counts"] == {"onlyLeft": 5}
    alike = run_diff(spark, *places, "--topic", "users", "--partition", "0", "--headers")
    assert (alike.status, alike.summary["records"]) == (0, 40)


def test_two_partitions_of_other_names_are_compared(spark: SparkSession, tmp_path: Path) -> None:
    one = replica(tmp_path / "1", {0: log(0, 40)})
    other = replica(tmp_path / "2", {0: log(0, 40)}, name="copy-3")
    done = run_diff(spark, one, other)
    assert (done.status, done.summary["pairs"]) == (0, 1)


def test_a_directory_is_like_itself(spark: SparkSession, golden_root: GoldenRoot) -> None:
    source = golden_root.case("4.3.0/internal-logdir")
    done = run_diff(spark, source, source, "--as", "replicas")
    assert (done.status, done.summary["differentPairs"]) == (0, 0)


def test_one_path_is_refused(tmp_path: Path) -> None:
    replica(tmp_path / "1", {0: log(0, 40)})
    with pytest.raises(UsageError, match="at least two"):
        diff.prepare(parsed(diff, tmp_path / "1"))

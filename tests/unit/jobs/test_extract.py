"""The job that copies a part of logs: on Spark it writes what the command does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog_jobs import extract
from pylog_jobs.job import UsageError
from tests.support.log_files import tree
from tests.support.spark_session import NEEDS_SPARK
from tests.unit.jobs.cleaned import parsed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from pylog_jobs.job import Outcome

pytestmark = NEEDS_SPARK


def run_extract(spark: SparkSession, *arguments: object) -> Outcome:
    path, *others = map(str, arguments)
    return extract.run(
        spark,
        extract.prepare(parsed(extract, path, *others)),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("how", [[], ["--exact", "--transactions", "abort"]])
def test_it_writes_what_the_command_writes(
    spark: SparkSession, source: Path, tmp_path: Path, how: list[str]
) -> None:
    options: dict[str, Any] = {"exact": True, "transactions": "abort"} if how else {}
    expected = pylog.jobs.extract(source, to=tmp_path / "expected", start=5, end=42, **options)
    bounds = ("--start-offset", 5, "--end-offset", 42)
    done = run_extract(spark, source, "--to", tmp_path / "out", *bounds, *how)
    assert done.status == bool(expected.cut_transactions and not how)
    assert done.summary["partitions"] == len(expected.partitions)
    assert done.summary["batches"] == sum(each.batches for each in expected.partitions)
    cut: Any = done.summary["cutTransactions"]
    names = ["topic", "partition", "producerId", "firstOffset", "state", "markerOffset"]
    assert [list(each) for each in cut] == [names] * len(expected.cut_transactions)
    assert [tuple(each.values()) for each in cut] == list(map(tuple, expected.cut_transactions))
    found, wanted = tree(tmp_path / "out"), tree(tmp_path / "expected")
    assert found.keys() == wanted.keys()
    logs = [name for name in wanted if name.endswith(".log")]
    assert {name: found[name] for name in logs} == {name: wanted[name] for name in logs}
    assert sorted(each.name for each in tmp_path.iterdir()) == ["expected", "out"]


def test_a_dry_run_writes_nothing(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    done = run_extract(spark, source, "--to", tmp_path / "out", "--topic", "orders", "--dry-run")
    assert (done.summary["partitions"], done.summary["dryRun"]) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_an_offset_that_is_not_there_leaves_nothing(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    with pytest.raises(Exception, match="offset 1000"):
        run_extract(spark, source, "--to", tmp_path / "out", "--start-offset", 1000)
    assert list(tmp_path.iterdir()) == []


def test_a_position_is_given_once(source: Path, tmp_path: Path) -> None:
    both = ["--end-offset", "7", "--end-timestamp", "-2h"]
    both[-2:] = [f"--end-timestamp={both[-1]}"]
    with pytest.raises(UsageError, match="not both"):
        extract.prepare(parsed(extract, source, "--to", str(tmp_path / "x"), *both))

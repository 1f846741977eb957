"""The job that merges replicas: on Spark it writes what the command does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import DivergedReplicasError, LogDirectoryError
from pylog_jobs import merge
from pylog_jobs.job import UsageError
from tests.support.batches import batch_v2
from tests.support.group_records import classic, commit, stored
from tests.support.log_files import segment_path, tree
from tests.support.spark_session import NEEDS_SPARK
from tests.unit.jobs.cleaned import parsed
from tests.unit.recovery.test_merge import diverged, log, replica
from tests.unit.recovery.test_merge_cuts import write_history

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from pylog_jobs.job import Outcome

pytestmark = NEEDS_SPARK


def run_merge(spark: SparkSession, *arguments: object) -> Outcome:
    path, *others = map(str, arguments)
    return merge.run(spark, merge.prepare(parsed(merge, path, *others)))  # type: ignore[arg-type]


def nodes(tmp_path: Path) -> list[Path]:
    for node in "12":
        for name in ("orders-0", "orders-1", "users-0"):
            replica(tmp_path / node, {0: log(0, 20), 20: log(20, 40)}, name=name)
    segment_path(tmp_path / "1/orders-0", 20).unlink()
    return [tmp_path / "1", tmp_path / "2"]


def test_it_writes_what_the_command_writes(spark: SparkSession, tmp_path: Path) -> None:
    places = nodes(tmp_path)
    expected = pylog.jobs.merge(*places, to=tmp_path / "expected")
    planned = run_merge(spark, *places, "--to", tmp_path / "out", "--dry-run")
    assert not (tmp_path / "out").exists()
    done = run_merge(spark, *places, "--to", tmp_path / "out")
    assert (done.status, planned.status) == (0, 0)
    assert (done.summary["partitions"], done.summary["partitionsWithGaps"]) == (3, 0)
    assert done.summary["sizeInBytes"] == sum(each.size_bytes for each in expected.partitions)
    found, wanted = tree(tmp_path / "out"), tree(tmp_path / "expected")
    assert found.keys() == wanted.keys()
    logs = [name for name in wanted if name.endswith(".log")]
    assert {name: found[name] for name in logs} == {name: wanted[name] for name in logs}
    assert sorted(each.name for each in tmp_path.iterdir()) == ["1", "2", "expected", "out"]


def test_gaps_are_status_1(spark: SparkSession, tmp_path: Path) -> None:
    one = replica(tmp_path / "1", {0: log(0, 20), 40: log(40, 60)})
    done = run_merge(spark, one, "--to", tmp_path / "out")
    assert done.status == 1
    assert done.summary["gaps"] == [
        {
            "topic": "orders",
            "partition": 0,
            "startOffset": 20,
            "endOffset": 40,
            "isCleanedOrLost": False,
        }
    ]


def test_an_option_of_the_command_is_one_of_the_job(spark: SparkSession, tmp_path: Path) -> None:
    ones = diverged(tmp_path)
    done = run_merge(spark, *ones, "--to", tmp_path / "out")
    assert done.summary["openTransactions"] == 1
    done = run_merge(spark, *ones, "--to", tmp_path / "ended", "--append-markers")
    assert done.summary["openTransactions"] == 0


def test_where_a_partition_is_undecided_nothing_is_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    places = nodes(tmp_path)
    for node, step in (("1", 5), ("2", 10)):
        replica(tmp_path / node, {0: log(0, 40, step=step)}, name="other-0")
    with pytest.raises(DivergedReplicasError, match="other-0"):
        run_merge(spark, *places, "--to", tmp_path / "out")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["1", "2"]
    preferred = ("--prefer", places[1])
    assert run_merge(spark, *places, "--to", tmp_path / "out", *preferred).status == 0


def test_what_cannot_be_done_is_refused_before_spark_starts(tmp_path: Path) -> None:
    places = nodes(tmp_path)
    first, *rest = map(str, [*places, "--to", tmp_path / "2"])
    with pytest.raises(LogDirectoryError, match="not empty"):
        merge.prepare(parsed(merge, first, *rest))  # type: ignore[arg-type]
    first, *rest = map(str, [*places, "--to", tmp_path / "x", "--topic", "none"])
    with pytest.raises(UsageError, match="none"):
        merge.prepare(parsed(merge, first, *rest))  # type: ignore[arg-type]
    first, *rest = map(str, [*places, "--to", tmp_path / "x", "--prefer", tmp_path / "3"])
    with pytest.raises(UsageError, match="none of the paths"):
        merge.prepare(parsed(merge, first, *rest))  # type: ignore[arg-type]


def test_it_ends_as_at_an_instant_as_the_command_does(spark: SparkSession, tmp_path: Path) -> None:
    write_history(tmp_path / "1", 4)
    commits = [classic("ahead"), commit("ahead", offset=40, at=1)]
    offsets = batch_v2(stored(commits, timestamp=1000))
    replica(tmp_path / "1", {0: [offsets]}, name="__consumer_offsets-0")
    until = pylog.Timestamp(1550)
    expected = pylog.jobs.merge(tmp_path / "1", to=tmp_path / "expected", until=until)
    done = run_merge(spark, tmp_path / "1", "--to", tmp_path / "out", "--until", "1550")
    assert done.summary["partitions"] == len(expected.partitions) == 4
    found = pylog.jobs.merge(tmp_path / "1", to=tmp_path / "by-offset", until=1550)
    assert done.summary["groupsMoved"] == len(found.groups)
    timed = run_merge(
        *(spark, tmp_path / "1", "--to", tmp_path / "timed"),
        *("--until", "1970-01-01T00:00:01.550Z"),
    )
    assert timed.summary["groupsMoved"] == len(expected.groups) == 1
    logs = {name: data for name, data in tree(tmp_path / "expected").items() if "orders" in name}
    assert {name: tree(tmp_path / "timed")[name] for name in logs} == logs
    moved = {
        (group.group_id, each.partition): each.offset
        for group in pylog.groups(tmp_path / "timed").groups
        for each in group.offsets
    }
    assert moved == {("ahead", 0): expected.groups[0].offset}

"""A real standalone cluster: a master, two workers, an executor on each; see make cluster-demo."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import pylog
from tests.support.damage import flip
from tests.support.delivery import Delivery, build_wheel, deliveries
from tests.support.spark_session import NEEDS_SPARK, SPARK_CONF, last_line_of, require_java
from tests.support.standalone_cluster import ClusterStartError, StandaloneCluster

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

pytestmark = [*NEEDS_SPARK, pytest.mark.slow]

COUNT_RECORDS = Path(__file__).parents[1] / "cluster_demo" / "count_records.py"
CONFIGURATION = SPARK_CONF / "standalone"
RECORDS = 30_000
PARTITIONS = 4


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    require_java()
    directory = tmp_path_factory.mktemp("cluster")
    with StandaloneCluster(directory, configuration=CONFIGURATION) as running:
        yield running


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Delivery]:
    wheel = build_wheel(tmp_path_factory.mktemp("wheel"))
    return {each.name: each for each in deliveries(wheel, tmp_path_factory.mktemp("ways"))}


@pytest.fixture(scope="module")
def log_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("logs")
    values = [f'{{"id":{number}}}'.encode() for number in range(RECORDS)]
    keys = [f"key-{number % 97}".encode() for number in range(RECORDS)]
    table = pa.table({"key": keys, "value": values})
    pylog.write_topic(directory, "orders", table, partitions=PARTITIONS)
    return directory


def submit(
    cluster: StandaloneCluster, way: Delivery, log_directory: Path
) -> subprocess.CompletedProcess[str]:
    arguments = [str(log_directory), "orders"]
    return cluster.submit(COUNT_RECORDS, arguments, python=way.python, options=way.options)


@pytest.mark.thorough(one_in=2)
@pytest.mark.parametrize("name", ["wheel", "py-files"])
def test_two_executors_read_a_topic_however_the_package_reached_them(
    cluster: StandaloneCluster, ways: dict[str, Delivery], log_directory: Path, name: str
) -> None:
    way = ways[name]
    done = submit(cluster, way, log_directory)
    assert done.returncode == 0, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    assert summary["records"] == summary["distinct_ids"] == RECORDS
    assert summary["sum_of_ids"] == RECORDS * (RECORDS - 1) // 2
    assert (summary["least_id"], summary["greatest_id"]) == (0, RECORDS - 1)
    assert [partition for partition, _ in summary["partitions"]] == list(range(PARTITIONS))
    assert len(summary["executors"]) == 2
    assert way.place in summary["pylog_of_driver"]
    assert all(way.place in each for each in summary["pylog_of_executors"])


@pytest.mark.thorough
def test_an_executor_that_fails_names_the_damage_and_where_it_lies(
    cluster: StandaloneCluster, ways: dict[str, Delivery], tmp_path: Path
) -> None:
    table = pa.table({"value": [b'{"id":1}'] * 100})
    pylog.write_topic(tmp_path, "orders", table, partitions=1)
    (log,) = tmp_path.glob("orders-0/*.log")
    flip(log, -1)
    done = submit(cluster, ways["wheel"], tmp_path)
    assert done.returncode != 0
    # spark-submit writes what the driver's Python writes to standard error to standard output.
    assert f"{log} at byte " in last_line_of(done.stdout)
    assert re.search(rf"Lost task .* executor \d\).*{log}", done.stderr, re.DOTALL)


def test_a_cluster_leaves_no_process_when_its_block_ends(tmp_path: Path) -> None:
    require_java()

    def interrupt() -> None:
        with StandaloneCluster(tmp_path, configuration=CONFIGURATION, workers=1) as running:
            assert "Registering worker" in running.log("master")
            assert len(processes_that_name(tmp_path)) == 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert processes_that_name(tmp_path) == []


def test_a_cluster_that_does_not_start_says_why(tmp_path: Path) -> None:
    require_java()
    with (
        pytest.raises(ClusterStartError, match=r"worker-[01] of the cluster ended with status 1"),
        StandaloneCluster(tmp_path, configuration=CONFIGURATION, memory="1"),
    ):
        pass
    assert processes_that_name(tmp_path) == []


def processes_that_name(path: Path) -> list[str]:
    """Return the command lines of processes, other than this one, that hold a path."""
    lines = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = process.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # it has ended
            continue
        if int(process.name) != os.getpid() and str(path) in line:
            lines.append(line)
    return lines

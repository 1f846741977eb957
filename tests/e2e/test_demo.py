"""The demonstration on a real broker's log directory, as ``make demo`` runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.golden import Holds, golden_partitions, read_expected
from tests.support.spark_session import NEEDS_SPARK, SPARK_CONF, require_java

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.golden import GoldenPartition, GoldenRoot

pytestmark = [*NEEDS_SPARK, pytest.mark.e2e, pytest.mark.slow]

CASE = "4.3.0/internal-logdir"

# The JVM's notice; what Python 3.12 and newer say of Spark 4.0's way to start workers; and on a
# busy machine, when the JVM has closed a planning worker's socket before the worker has said that
# it is done, a traceback of Spark's own files alone (seen in 2 of 12 runs with three at a time,
# with the session still in use and no task running), of which the JVM's end may leave the first
# lines alone.
SPARK_S_OWN = re.compile(
    r"WARNING: Using incubator modules: jdk\.incubator\.vector\n"
    r"|\S+/pyspark/daemon\.py:\d+: DeprecationWarning: This process \(pid=\d+\) is multi-threaded, "
    r"use of fork\(\) may lead to deadlocks in the child\.\n(?:  .*\n)?"
    r"|Traceback \(most recent call last\):\n"
    r'(?:  File "\S+/pyspark/daemon\.py", line \d+, in \w+\n(?:    .*\n)*)*'
    r"(?:BrokenPipeError: \[Errno 32\] Broken pipe\n|\Z)"
)


def run_demo(path: Path) -> subprocess.CompletedProcess[str]:
    require_java()
    return subprocess.run(
        [sys.executable, "-m", "pylog_jobs.demo", str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "SPARK_CONF_DIR": str(SPARK_CONF)},
    )


@pytest.fixture(scope="module")
def partitions(golden_root: GoldenRoot) -> list[GoldenPartition]:
    return [
        golden_root.partition(each)
        for each in golden_partitions(Holds.EXACTLY)
        if each.startswith(f"{CASE}:") and ":__" not in each
    ]


@pytest.fixture(scope="module")
def demo(golden_root: GoldenRoot) -> subprocess.CompletedProcess[str]:
    return run_demo(golden_root.case(CASE))


def lines_of(partition: GoldenPartition) -> list[dict[str, object]]:
    path = partition.expected_path("uncommitted")
    assert path is not None
    return read_expected(path)


def test_it_succeeds_and_says_nothing_of_its_own_on_standard_error(
    demo: subprocess.CompletedProcess[str],
) -> None:
    assert demo.returncode == 0, demo.stderr
    errors = SPARK_S_OWN.sub("", demo.stderr)
    assert errors == "", demo.stderr


def test_it_lists_all_topics(
    demo: subprocess.CompletedProcess[str], golden_root: GoldenRoot
) -> None:
    found = dict(
        re.findall(r"^  (\S+) +(\d+) partitions +\d+ offsets +[\d,]+ bytes$", demo.stdout, re.M)
    )
    folders = [each.name for each in golden_root.case(CASE).iterdir() if each.is_dir()]
    assert {topic: int(number) for topic, number in found.items()} == Counter(
        name.rpartition("-")[0] for name in folders
    )


def test_its_counts_are_those_of_kafka_s_consumer(
    demo: subprocess.CompletedProcess[str], partitions: list[GoldenPartition]
) -> None:
    expected: Counter[str] = Counter()
    for each in partitions:
        expected[each.topic] += len(lines_of(each))
    found = re.findall(r"^  (\S+) +(\d+) records  ", demo.stdout, re.MULTILINE)
    assert {topic: int(number) for topic, number in found} == expected
    assert f"== read {expected.total()} records, " in demo.stdout


def test_it_prints_the_schema_and_the_first_records(
    demo: subprocess.CompletedProcess[str], partitions: list[GoldenPartition]
) -> None:
    assert " |-- timestampType: integer (nullable = true)" in demo.stdout
    first = partitions[0]
    assert f"== the first records of {first.name}\n" in demo.stdout
    offsets = [str(line["offset"]) for line in lines_of(first)[:5]]
    assert re.findall(r"^ +(\d+)  20\d\d-", demo.stdout, re.MULTILINE) == offsets


def test_it_reads_a_time_range(
    demo: subprocess.CompletedProcess[str], partitions: list[GoldenPartition]
) -> None:
    found = re.search(r"== startingTimestamp (\d+) .*, endingTimestamp (\d+) ", demo.stdout)
    assert found is not None
    start, end = int(found[1]), int(found[2])
    expected = set()
    for each in partitions:
        lines = lines_of(each)
        first = next((at for at, line in enumerate(lines) if line["timestamp"] >= start), None)  # type: ignore[operator]
        last = next((at for at, line in enumerate(lines) if line["timestamp"] >= end), len(lines))  # type: ignore[operator]
        if first is not None and first < last:
            chosen = [line["offset"] for line in lines[first:last]]
            expected.add((each.topic, each.partition, len(chosen), chosen[0], chosen[-1]))
    rows = re.findall(r"^\|\s*(\S+)\|\s*(\d+)\|\s*(\d+)\|\s*(\d+)\|\s*(\d+)\|$", demo.stdout, re.M)
    assert {(row[0], *map(int, row[1:])) for row in rows} == expected


def test_it_ends_with_three_lines_to_try(demo: subprocess.CompletedProcess[str]) -> None:
    head, *lines = demo.stdout.splitlines()[-4:]
    assert head == "On your own directory:"
    assert [line.split()[0] for line in lines] == [
        ".venv/bin/pylog",
        ".venv/bin/pylog",
        ".venv/bin/python",
    ]


def test_a_wrong_path_is_reported_in_one_line(tmp_path: Path) -> None:
    done = run_demo(tmp_path / "nope")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"demo: error: {tmp_path}/nope: no such directory (is it mounted on this host?)\n"
    )

"""A compaction whose driver is killed: no log has changed, and the next run completes."""

from __future__ import annotations

import shutil
import subprocess
import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from tests.spark.test_job_processes import TIMEOUT_SECONDS, environment, python, run, summary_of
from tests.support.spark_session import NEEDS_SPARK
from tests.unit.cleaner.cleaning_jobs import contents, left_over
from tests.unit.writing.test_compaction import NOW_MS, rows

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [*NEEDS_SPARK, pytest.mark.slow, pytest.mark.thorough]

RECORDS = 100_000
BYTES_PER_SECOND = 500_000
"""So slowly do tasks read and write that the driver can be killed meanwhile."""

WINDOW_SECONDS = 1.5
"""What a task takes at most between two writes: a segment has 300,000 bytes, read twice."""


def wait_until_tasks_have_ended(logs: Path) -> None:
    """Return when nobody writes staged files any more: tasks outlive their driver for a while."""
    seen, now = None, staged_bytes(logs)
    while seen != now:
        time.sleep(2 * WINDOW_SECONDS)
        seen, now = now, staged_bytes(logs)


def staged_bytes(logs: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in logs.glob(".pylog-cleaned-*")}


def test_a_driver_that_is_killed_while_tasks_write_leaves_all_logs_as_they_were(
    tmp_path: Path,
) -> None:
    logs, other = tmp_path / "logs", tmp_path / "other"
    properties = {"cleanup.policy": "compact", "segment.bytes": "300000"}
    pylog.create_topic(logs, "foo", 2, properties=properties)
    keys = [b"%d" % (number % (RECORDS // 2)) for number in range(RECORDS)]
    pylog.write_topic(logs, "foo", pa.table({"key": keys, "value": keys}))
    shutil.copytree(logs, other)
    pylog.compact(other, now_ms=NOW_MS)
    before = rows(logs)
    slow = tmp_path / "server.properties"
    slow.write_text(f"log.dirs={logs}\nlog.cleaner.io.max.bytes.per.second={BYTES_PER_SECOND}\n")
    command = python("compact", logs, "--now", NOW_MS)
    with subprocess.Popen(
        [*command, "--server-properties", str(slow)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(),
    ) as killed:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not left_over(logs):
            assert killed.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        killed.kill()
    assert rows(logs) == before
    wait_until_tasks_have_ended(logs)
    done = run(command)
    assert done.returncode == 0, done.stderr
    assert summary_of(done.stdout)["cleanedPartitions"] == 2
    assert contents(logs) == contents(other)
    assert left_over(logs) == []

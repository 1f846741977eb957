"""Retention and compaction as jobs: on Spark they leave what the library leaves without it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest

import pylog
from pylog_jobs import compact
from pylog_jobs.compact import clean_by_tasks, pack
from tests.support.batches import (
    Stored,
    batch_v2,
    message,
    message_bytes,
    plain_records,
    wrapper_of,
)
from tests.support.codecs import compress
from tests.support.log_files import write_high_watermarks, write_partition
from tests.support.spark_session import NEEDS_SPARK
from tests.unit.cleaner.cleaning_jobs import contents, left_over
from tests.unit.jobs.cleaned import logs, parsed
from tests.unit.writing.test_compaction import NOW_MS, rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from pylog_jobs.job import Outcome

__all__ = ["logs"]


pytestmark = NEEDS_SPARK


def run_compact(spark: SparkSession, path: Path, *arguments: str) -> Outcome:
    return compact.run(spark, compact.prepare(parsed(compact, path, *arguments)))


def test_partitions_that_share_tasks_are_compacted_as_without_spark(
    spark: SparkSession, logs: Path, tmp_path: Path
) -> None:
    shutil.copytree(logs, tmp_path / "other")
    expected = pylog.compact(tmp_path / "other", now_ms=NOW_MS)
    planned = run_compact(spark, logs, "--now", str(NOW_MS), "--dry-run")
    done = run_compact(spark, logs, "--now", str(NOW_MS))
    assert (planned.status, done.status) == (0, 0)
    assert planned.summary == {**done.summary, "dryRun": True}
    assert contents(logs) == contents(tmp_path / "other")
    assert done.summary["removedRecords"] == expected.totals.records
    assert done.summary["cleanedPartitions"] == 21
    assert left_over(logs) == []


def test_a_partition_with_too_many_keys_is_compacted_by_the_engine_in_one_round(
    spark: SparkSession, tmp_path: Path
) -> None:
    logs, other = tmp_path / "logs", tmp_path / "other"
    properties = {"cleanup.policy": "compact", "segment.bytes": "500000"}
    pylog.create_topic(logs, "foo", 1, properties=properties)
    keys = [b"%d" % (number % 50_000) for number in range(100_000)]
    values = [None if number % 7 == 0 else b"v%d" % number for number in range(100_000)]
    for codec in ("none", "zstd"):
        table = pa.table({"key": keys, "value": values})
        pylog.write_topic(logs, "foo", table, compression=codec)
    shutil.copytree(logs, other)
    pylog.compact(other, now_ms=NOW_MS)
    server = tmp_path / "server.properties"
    server.write_text(f"log.cleaner.dedupe.buffer.size=1048600\nlog.dirs={logs}\n")
    arguments = ("--now", str(NOW_MS), "--server-properties", str(server))
    planned = run_compact(spark, logs, *arguments, "--dry-run")
    done = run_compact(spark, logs, *arguments)
    assert contents(logs) == contents(other)
    assert (done.summary["partitionsByEngine"], done.summary["isComplete"]) == (1, True)
    assert planned.summary == {**done.summary, "dryRun": True}


def test_damage_is_status_1_and_the_other_partitions_are_compacted(
    spark: SparkSession, logs: Path
) -> None:
    victim = min(logs.glob("foo-0/*.log"))
    data = bytearray(victim.read_bytes())
    data[-1] ^= 1
    victim.write_bytes(data)
    done = run_compact(spark, logs)
    assert done.status == 1
    failures = cast("list[dict[str, str]]", done.summary["failures"])
    assert [each["partition"] for each in failures] == ["foo-0"]
    assert "batch CRC stored" in failures[0]["failure"]
    assert done.summary["cleanedPartitions"] == 20
    assert victim.read_bytes() == data


def test_a_wrong_checksum_that_cleaning_makes_right_is_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    inner = message_bytes(0, b"a", b"1", magic=1, timestamp=NOW_MS, crc=5)
    entry = wrapper_of(compress("gzip", inner), offset=0, magic=1, codec="gzip")
    built = replace(message(Stored(0, NOW_MS, b"a", b"1"), magic=1), data=entry)
    write_partition(tmp_path, {0: [built], 1: [batch_v2(plain_records(1, 1))]}, name="foo-0")
    write_high_watermarks(tmp_path, {("foo", 0): 2})
    done = run_compact(spark, tmp_path, "--config", "cleanup.policy=compact", "--now", str(NOW_MS))
    assert (done.status, done.summary["failures"]) == (1, [])
    [damage] = cast("list[dict[str, Any]]", done.summary["damage"])
    assert (damage["partition"], damage["records"]) == ("foo-0", 1)
    path = tmp_path / "foo-0" / "00000000000000000000.log"
    assert damage["damage"].startswith(f"offset 0, {path} at byte 0: message CRC stored 0x00000005")


def test_a_task_that_fails_fails_the_job_and_leaves_all_logs_as_they_were(
    spark: SparkSession, logs: Path
) -> None:
    before = rows(logs), rows(logs, "small3")
    job = compact.prepare(parsed(compact, logs))
    with job:
        segment = min(logs.glob("small3-0/*.log"))
        hidden = segment.rename(segment.with_suffix(".hidden"))
        with pytest.raises(Exception, match="small3-0"):
            clean_by_tasks(spark, job.tasks)
        hidden.rename(segment)
    for _ in range(20):
        if not left_over(logs):
            break  # else another task of the failed job was still at work: the next job sweeps it
        with compact.prepare(parsed(compact, logs)):
            pass
    assert left_over(logs) == []
    assert (rows(logs), rows(logs, "small3")) == before


def test_small_partitions_share_tasks_of_about_the_same_size(logs: Path) -> None:
    with pylog.jobs.CompactionJob(logs) as job:
        groups = pack(job.tasks, 4)
    assert sorted(id(each) for group in groups for each in group) == sorted(map(id, job.tasks))
    sizes = [sum(each.size_bytes for each in group) for group in groups]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] - sizes[-1] <= max(each.size_bytes for each in job.tasks)

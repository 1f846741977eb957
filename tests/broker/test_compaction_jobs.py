"""A broker boots on what compaction in many processes leaves, whole or killed in the middle."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from pylog_jobs import compact
from tests.broker.server_log import log_lines_of_trouble
from tests.crash.compaction_script import TOPICS, run
from tests.support.crash_replay import Kind
from tests.support.kafka_broker_tools import segment_files
from tests.support.recording_io import RecordingIO
from tests.support.spark_session import spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.broker.conftest import NewBroker
    from tests.support.kafka_broker import KafkaBroker

__all__ = ["spark"]

pytestmark = pytest.mark.broker

PROJECT = Path(__file__).parents[2]
COUNT = 300
KEYS = 11
CLEANING = {"cleanup.policy": "compact", "segment.bytes": "900"}
STAGED = ".pylog-cleaned-*"

Found = dict[str, list[tuple[int, bytes | None, bytes | None]]]


def written(new_broker: NewBroker) -> tuple[KafkaBroker, Found]:
    """Return a broker that is stopped, and what pylog has written to its topics."""
    broker = new_broker()
    for topic in TOPICS:
        broker.create_topic(topic)
    broker.stop()
    keys = [b"key %d" % (number * 7 % KEYS) for number in range(COUNT)]
    values = [b"value %d" % number for number in range(COUNT)]
    for topic in TOPICS:
        pylog.alter_topic(broker.log_dir, topic, properties=CLEANING)
        table = pa.table({"key": keys, "value": values})
        pylog.write_topic(broker.log_dir, topic, table, batch_size=100)
    return broker, {topic: [*zip(range(COUNT), keys, values, strict=True)] for topic in TOPICS}


def survivors(broker: KafkaBroker, before: Found) -> Found:
    """Return the last row of each key below the active segment, and all from there on."""
    left: Found = {}
    for topic, rows in before.items():
        active = max(int(path.stem) for path in segment_files(broker.partition_directory(topic)))
        last = {key: offset for offset, key, _ in rows if offset < active}
        left[topic] = [row for row in rows if row[0] >= active or row[0] == last[row[1]]]
        assert len(left[topic]) < COUNT / 4
    return left


def served(broker: KafkaBroker) -> Found:
    return {
        topic: [(each.offset, each.key, each.value) for each in broker.consume(topic, 1)[0]]
        for topic in TOPICS
    }


def killed_in_a_commit(directory: Path, copy: Path) -> None:
    """Have a job be killed when it has given half of the new segments their names."""
    shutil.copytree(directory, copy)
    io = RecordingIO(copy)
    run(copy, io)
    shutil.rmtree(copy)
    named = [
        number
        for number, each in enumerate(io.operations, 1)
        if each.kind is Kind.REPLACE and each.path.endswith(".log.swap")
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.compaction_worker", str(directory)],
        cwd=PROJECT,
        input=f"{named[len(named) // 2]}\n",
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "killed\n"


@pytest.mark.thorough
def test_a_broker_boots_on_what_a_killed_owner_left(new_broker: NewBroker, tmp_path: Path) -> None:
    broker, before = written(new_broker)
    after = survivors(broker, before)
    killed_in_a_commit(broker.log_dir, tmp_path / "copy")
    staged = sorted(broker.log_dir.glob(STAGED))
    assert staged
    assert [*broker.log_dir.glob("*/*.swap")]
    broker.start()
    found = served(broker)
    broker.stop()
    for topic in TOPICS:
        assert set(after[topic]) <= set(found[topic]) <= set(before[topic])
    assert found != before
    assert [*broker.log_dir.glob("*/*.swap")] == []
    assert sorted(broker.log_dir.glob(STAGED)) == staged  # nothing to a broker
    pylog.compact(broker.log_dir)
    assert [*broker.log_dir.glob(STAGED)] == []
    broker.start()
    assert served(broker) == after
    broker.stop()


@pytest.mark.spark
def test_a_broker_serves_what_spark_has_compacted(
    spark: SparkSession, new_broker: NewBroker
) -> None:
    broker, before = written(new_broker)
    after = survivors(broker, before)
    done = compact.run(spark, pylog.jobs.CompactionJob(broker.log_dir, topics=TOPICS))
    assert done.summary["cleanedPartitions"] == len(TOPICS)
    broker.start()
    assert served(broker) == after
    broker.stop()
    assert log_lines_of_trouble(broker.server_log) == []

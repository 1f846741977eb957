"""Tasks of a cleaning: what they do when a disk, a log or a record is at fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.config import CleanerConfig
from pylog.errors import KafkaStorageError
from pylog.model import TopicPartition
from tests.support.recording_io import Fault, FaultyIO, Kind
from tests.unit.cleaner.cleaning_jobs import (
    compact_by_tasks,
    contents,
    left_over,
    topics_to_compact,
)
from tests.unit.writing.test_compaction import NOW_MS, make_topic

if TYPE_CHECKING:
    from pathlib import Path


def logs_in(directory: Path) -> dict[str, bytes]:
    return {name: data for name, data in contents(directory).items() if name.endswith(".log")}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return topics_to_compact(tmp_path)


def test_a_task_whose_disk_is_full_leaves_nothing(logs: Path) -> None:
    with pylog.jobs.CompactionJob(logs, topics=["foo"]) as job:
        [task] = job.tasks
        with pytest.raises(KafkaStorageError):
            task.run(FaultyIO(Fault(kinds=frozenset({Kind.WRITE}), at=2)))
        assert left_over(logs) == []


def test_a_damaged_log_is_named_and_the_others_are_cleaned(logs: Path) -> None:
    victim = min(logs.glob("foo-0/*.log"))
    data = bytearray(victim.read_bytes())
    data[-1] ^= 1
    victim.write_bytes(data)
    summary = compact_by_tasks(pylog.jobs.CompactionJob(logs))
    by_topic = {each.topic_partition.topic: each for each in summary.partitions}
    assert "batch CRC stored" in (by_topic["foo"].failure or "")
    assert (by_topic["foo"].rounds, by_topic["foo"].is_complete) == (0, False)
    assert (by_topic["bar"].failure, by_topic["bar"].is_complete) == (None, True)
    assert victim.read_bytes() == data


@pytest.mark.parametrize("is_large", [False, True])
def test_a_record_above_max_decompressed_message_bytes_keeps_its_partition_as_it_is(
    tmp_path: Path, *, is_large: bool
) -> None:
    make_topic(tmp_path, "foo", 3_000, keys=3_000, compression_type="lz4")
    pylog.write_topic(tmp_path, "foo", [(b"large", b"x" * 500), (b"later", b"")])
    with pylog.logs.own_log_directory(tmp_path) as manager:
        manager.get_log(TopicPartition("foo", 0)).roll()
    properties = pylog.ServerProperties(
        cleaner_config=CleanerConfig(
            dedupe_buffer_size=(1 << 20) + 1, dedupe_buffer_load_factor=0.01 if is_large else 0.9
        )
    )
    before = logs_in(tmp_path)
    job = pylog.jobs.CompactionJob(
        tmp_path,
        server_properties=properties,
        config={"max.decompressed.message.bytes": "500"},
        now_ms=NOW_MS,
    )
    summary = compact_by_tasks(job, is_large=is_large)
    [partition] = summary.partitions
    assert "max.decompressed.message.bytes is 500" in (partition.failure or "")
    assert logs_in(tmp_path) == before
    assert left_over(tmp_path) == []

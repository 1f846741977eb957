"""Cleanings whose keys fit no task's memory."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from tests.unit.cleaner.cleaning_jobs import (
    by_engine,
    compact_by_tasks,
    contents,
    large_of,
    left_over,
    topics_to_compact,
)
from tests.unit.cleaner.compacted_logs import checkpointed
from tests.unit.writing.test_compaction import COMPACT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return topics_to_compact(tmp_path)


def test_keys_that_do_not_fit_are_for_the_engine_in_one_round(memory_path: Path) -> None:
    directory, other = memory_path / "logs", memory_path / "other"
    pylog.create_topic(directory, "foo", 1, properties=COMPACT | {"segment.bytes": "1000000"})
    keys = [b"%d" % (number % 50_000) for number in range(100_000)]
    pylog.write_topic(directory, "foo", pa.table({"key": keys, "value": keys}))
    shutil.copytree(directory, other)
    expected = pylog.compact(other)
    server = memory_path / "server.properties"
    server.write_text(f"log.cleaner.dedupe.buffer.size=1048600\nlog.dirs={directory}\n")
    properties = pylog.ServerProperties.read(server)
    now_ms = expected.now_ms
    job = pylog.jobs.CompactionJob(directory, now_ms=now_ms, server_properties=properties)
    assert compact_by_tasks(job, is_large=True) == expected
    assert contents(directory) == contents(other)
    assert [each.rounds for each in expected.partitions] == [1]
    assert checkpointed(directory) == checkpointed(other)


def test_who_plans_a_large_cleaning_reads_no_segment(logs: Path) -> None:
    with pylog.jobs.CompactionJob(logs, topics=["foo"]) as job:
        [large] = large_of(job)
        found = [task.run() for task in large.transactions]
        files = sorted(logs.glob("foo-0/*.log"))
        hidden = [path.rename(path.with_suffix(".hidden")) for path in files]
        plan = large.plan(found)
        for path, at in zip(files, hidden, strict=True):
            at.rename(path)
    assert len(plan.record_keys) == len(found) == len(files) - 1
    assert len(plan.groups) == large.group_count
    with pytest.raises(ValueError, match=r"transactions of segments \[0\] are not known"):
        large.plan(found[1:])


def test_damage_that_an_engine_comes_upon_is_named_and_the_other_logs_are_cleaned(
    logs: Path,
) -> None:
    victim = min(logs.glob("foo-0/*.log"))
    data = bytearray(victim.read_bytes())
    data[100] ^= 1
    victim.write_bytes(data)
    with pylog.jobs.CompactionJob(logs) as job:
        summary = job.commit([by_engine(each) for each in large_of(job)])
    by_topic = {each.topic_partition.topic: each for each in summary.partitions}
    assert str(victim) in (by_topic["foo"].failure or "")
    assert (by_topic["bar"].failure, by_topic["bar"].is_complete) == (None, True)
    assert victim.read_bytes() == data
    assert left_over(logs) == []

"""The snapshot of a log that a task cleans: the same as the log itself."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.config import LogConfig
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.model import TopicPartition
from pylog.testing import ManualClock, ManualScheduler
from tests.support.batches import joined
from tests.support.random_log import START_MS, TOPIC, RandomLog
from tests.unit.cleaner.cleaning_jobs import by_engine, compact_by_tasks, contents, large_of

if TYPE_CHECKING:
    from pathlib import Path

PARTITION = TopicPartition(TOPIC, 0)


def fill(directory: Path, drawn: RandomLog, config: LogConfig) -> None:
    """Write the rounds of a random log, with a cleaning of ours after the first."""
    for number, part in enumerate(drawn.rounds()):
        clock = ManualClock(START_MS)
        context = LogContext(clock=clock, scheduler=ManualScheduler(clock))
        with LogManager([directory], topic_configs={TOPIC: config}, context=context) as manager:
            log = manager.get_or_create_log(PARTITION)
            for step in part.steps:
                clock.set(max(clock.milliseconds(), step.now_ms))
                if step.batches:
                    log.append_as_follower(joined(step.batches))
                if step.is_roll:
                    log.roll()
            log.update_high_watermark(log.log_end_offset)
        if number == 0:
            pylog.compact(directory, config=config.properties(), now_ms=START_MS)


@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_logs_are_cleaned_by_tasks_and_engine_as_by_compact(
    first: int, memory_path: Path
) -> None:
    cleaned = 0
    for seed in range(first, first + 20):
        drawn = RandomLog(seed)
        own = {"cleanup.policy": "compact", "segment.index.bytes": "4000"}
        properties = {**drawn.topic_config, **own}
        directory = memory_path / f"{seed}"
        fill(directory, drawn, LogConfig.from_properties(properties))
        now_ms = START_MS + 100_000_000
        for name in ("tasks", "engine"):
            shutil.copytree(directory, memory_path / f"{seed}-{name}")
        expected = pylog.compact(directory, config=properties, now_ms=now_ms)
        done = compact_by_tasks(
            pylog.jobs.CompactionJob(
                memory_path / f"{seed}-tasks", config=properties, now_ms=now_ms
            )
        )
        job = pylog.jobs.CompactionJob(
            memory_path / f"{seed}-engine", config=properties, now_ms=now_ms
        )
        with job:
            staged = [by_engine(each) for each in large_of(job)]
            done_by_engine = job.commit(staged)
        cleaned += len(staged)
        for name, summary in (("tasks", done), ("engine", done_by_engine)):
            assert summary == expected, (seed, name)
            assert contents(memory_path / f"{seed}-{name}") == contents(directory), (seed, name)
    assert cleaned > 5

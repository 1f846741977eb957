"""Cleaning jobs as tests run them: tasks that travel, and an engine in plain Python."""

from __future__ import annotations

import pickle
import random
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

import pylog
from tests.unit.writing.test_compaction import make_topic

if TYPE_CHECKING:
    from pathlib import Path

Sent = TypeVar("Sent")


def sent(value: Sent) -> Sent:
    """Return what a task gets of a value, or the driver of a task's."""
    copied: Sent = pickle.loads(pickle.dumps(value))  # noqa: S301 - our own
    return copied


def by_engine(large: pylog.jobs.LargeCleaning) -> pylog.jobs.StagedCleaning:
    """Do what an engine does, in plain Python."""
    plan = large.plan(sent(sent(task).run()) for task in large.transactions)
    if plan.failure is not None:
        return plan.failure
    read = [sent(batch) for task in plan.record_keys for batch in sent(task).read()]
    records = pa.Table.from_batches(read).to_pylist() if read else []
    last: dict[tuple[int, int], int] = {}
    for record in records:
        if record["is_mapped"]:
            key = record["hash_0"], record["hash_1"]
            last[key] = max(record["offset"], last.get(key, -1))
    superseded: dict[int, list[int]] = {group.number: [] for group in plan.groups}
    for record in records:
        if record["offset"] < last.get((record["hash_0"], record["hash_1"]), -1):
            superseded[record["group"]].append(record["offset"])
    random.Random(len(records)).shuffle(superseded[0])
    return plan.merge(
        sent(sent(group).run(np.array(superseded[group.number], dtype=np.int64)))
        for group in plan.groups
    )


def compact_by_tasks(
    job: pylog.jobs.CompactionJob, *, is_large: bool = False
) -> pylog.results.CompactionSummary:
    """Run all tasks as if elsewhere, and commit; have the engine do those that do not fit."""
    with job:
        staged = {each.topic_partition: each for each in (sent(sent(t).run()) for t in job.tasks)}
        larges = list(job.large(staged.values()))
        assert bool(larges) == is_large
        staged |= {each.topic_partition: by_engine(each) for each in larges}
        return job.commit(staged.values())


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def left_over(directory: Path) -> list[str]:
    return [path.name for path in directory.glob(".pylog-cleaned-*")]


def topics_to_compact(tmp_path: Path) -> Path:
    make_topic(tmp_path / "logs", "foo", 200)
    make_topic(tmp_path / "logs", "bar", 90, keys=90)
    make_topic(tmp_path / "logs", "plain", 100, cleanup_policy="delete")
    return tmp_path / "logs"


def large_of(job: pylog.jobs.CompactionJob) -> list[pylog.jobs.LargeCleaning]:
    """Return the cleaning of each partition by an engine, as if its keys had not fitted."""
    return list(
        job.large(
            pylog.jobs.StagedCleaning(
                topic_partition=task.snapshot.topic_partition, next_dirty_offset=0, keys_fit=False
            )
            for task in job.tasks
        )
    )

"""`CompactionJob`: what tasks stage and the driver swaps is what `pylog.compact` makes."""

from __future__ import annotations

import pickle
import random
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa
import pytest

import pylog
from pylog.config import CleanerConfig, LogConfig
from pylog.errors import KafkaStorageError, LogDirectoryError, LogLockedError
from pylog.files.log_dir_failure_channel import LogDirFailureChannel
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.model import TopicPartition
from pylog.testing import ManualClock, ManualScheduler
from tests.support.batches import joined
from tests.support.random_log import START_MS, TOPIC, RandomLog
from tests.support.recording_io import Fault, FaultyIO, Kind
from tests.unit.cleaner.compacted_logs import checkpointed
from tests.unit.writing.test_compaction import COMPACT, NOW_MS, digests, make_topic, rows

if TYPE_CHECKING:
    from pathlib import Path

PARTITION = TopicPartition(TOPIC, 0)


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


def logs_in(directory: Path) -> dict[str, bytes]:
    return {name: data for name, data in contents(directory).items() if name.endswith(".log")}


def left_over(directory: Path) -> list[str]:
    return [path.name for path in directory.glob(".pylog-cleaned-*")]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    make_topic(tmp_path / "logs", "foo", 200)
    make_topic(tmp_path / "logs", "bar", 90, keys=90)
    make_topic(tmp_path / "logs", "plain", 100, cleanup_policy="delete")
    return tmp_path / "logs"


def test_tasks_and_a_commit_do_what_compact_does(logs: Path, tmp_path: Path) -> None:
    shutil.copytree(logs, tmp_path / "other")
    expected = pylog.compact(tmp_path / "other", now_ms=NOW_MS)
    summary = compact_by_tasks(pylog.jobs.CompactionJob(logs, now_ms=NOW_MS))
    assert summary == expected
    assert contents(logs) == contents(tmp_path / "other")
    assert summary.totals.records > 100


def test_a_dry_run_counts_and_changes_nothing(logs: Path) -> None:
    before = digests(logs)
    expected = pylog.compact(logs, now_ms=NOW_MS, dry_run=True)
    with pylog.logs.own_log_directory(logs):
        summary = compact_by_tasks(pylog.jobs.CompactionJob(logs, now_ms=NOW_MS, dry_run=True))
    assert summary == expected
    assert {k: v for k, v in digests(logs).items() if "-" in k and ".log" in k} == {
        k: v for k, v in before.items() if "-" in k and ".log" in k
    }


def test_the_directory_is_owned_from_the_plan_to_the_end(logs: Path) -> None:
    with pylog.jobs.CompactionJob(logs) as job:
        for task in job.tasks:
            task.run()  # takes no lock
        with pytest.raises(LogLockedError):
            pylog.compact(logs)
    assert pylog.compact(logs).totals.records > 0


def test_what_is_not_committed_changes_no_log_and_is_removed(logs: Path) -> None:
    before = rows(logs)
    with pylog.jobs.CompactionJob(logs) as job:
        for task in job.tasks:
            task.run()
            task.run()  # another attempt has files of its own
        assert len(left_over(logs)) > 2 * 3 * len(job.tasks)
    assert left_over(logs) == []
    assert rows(logs) == before


def test_the_next_owner_removes_what_a_killed_driver_left(logs: Path) -> None:
    with pylog.jobs.CompactionJob(logs) as job:
        [task, *_] = job.tasks
    task.run()  # of a job that is no more
    assert left_over(logs)
    with pylog.logs.own_log_directory(logs):
        assert left_over(logs) == []


def test_a_staged_file_that_is_gone_or_cut_is_an_error_before_any_change(logs: Path) -> None:
    before = rows(logs)
    for harm in ("unlink", "cut"):
        with pylog.jobs.CompactionJob(logs) as job:
            staged = [task.run() for task in job.tasks]
            victim = sorted(logs.glob(".pylog-cleaned-*.log"))[-1]
            if harm == "unlink":
                victim.unlink()
            else:
                victim.write_bytes(victim.read_bytes()[:-1])
            with pytest.raises(LogDirectoryError, match="Nothing was changed"):
                job.commit(staged)
        assert rows(logs) == before


def test_a_missing_task_is_an_error(logs: Path) -> None:
    with pylog.jobs.CompactionJob(logs) as job:
        staged = [task.run() for task in job.tasks]
        with pytest.raises(ValueError, match="expected"):
            job.commit(staged[1:])


def test_a_task_whose_disk_is_full_leaves_nothing(logs: Path) -> None:
    with pylog.jobs.CompactionJob(logs, topics=["foo"]) as job:
        [task] = job.tasks
        with pytest.raises(KafkaStorageError):
            task.run(FaultyIO(Fault(kinds=frozenset({Kind.WRITE}), at=2)))
        assert left_over(logs) == []


@pytest.mark.parametrize("at", [1, 2, 4, 5, 7, 9, 12, 16, 21, 27, 34])
def test_a_disk_that_fails_in_a_commit_leaves_groups_old_or_new_and_a_rerun_completes(
    memory_path: Path, at: int
) -> None:
    logs = memory_path / "logs"
    make_topic(logs, "foo", 120)
    shutil.copytree(logs, memory_path / "other")
    pylog.compact(memory_path / "other", now_ms=NOW_MS)
    expected, before = rows(memory_path / "other"), rows(logs)
    io = FaultyIO()
    context = LogContext(io=io, failures=LogDirFailureChannel(is_logged=False))
    job = pylog.jobs.CompactionJob(logs, now_ms=NOW_MS, context=context)
    with suppress(KafkaStorageError), job:
        staged = [task.run() for task in job.tasks]
        changes = frozenset({Kind.REPLACE, Kind.REMOVE, Kind.SYNC_DIRECTORY})
        io.faults = [Fault(kinds=changes, at=at, forever=True)]
        job.commit(staged)
    with pylog.logs.own_log_directory(logs):
        assert left_over(logs) == []
    after = rows(logs)
    assert set(expected) <= set(after) <= set(before)
    pylog.compact(logs, now_ms=NOW_MS)
    assert rows(logs) == expected


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

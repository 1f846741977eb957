"""Commits that were interrupted, completed by the next owner of the directory."""

from __future__ import annotations

import json
import shutil
import threading
from collections import defaultdict
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from pylog.errors import KafkaStorageError
from pylog.files.durable_io import DurableIO
from pylog.files.file_names import MANIFEST
from tests.support.recording_io import Fault, FaultyIO, Kind
from tests.unit.staged_commit.interrupted import (
    IN_THE_SECOND_WRITE,
    append_as_leader,
    expected,
    interrupt,
    job_in,
    open_and_close,
    values,
    with_manifest_aside,
)

if TYPE_CHECKING:
    from pathlib import Path

BEFORE_THE_LEDGER = Fault(kinds=frozenset({Kind.REPLACE}), path_end=".pylog-ledger.tmp")


def test_the_new_place_is_announced_before_anything_is_appended_there(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    pylog.create_topic(directory, "orders", 1)
    interrupt(directory, IN_THE_SECOND_WRITE)
    aside = with_manifest_aside(directory)
    append_as_leader(directory, b"broker", leader_epoch=7)
    shutil.move(aside, directory / MANIFEST)
    context = pylog.logs.LogContext(io=FaultyIO(BEFORE_THE_LEDGER))
    with pytest.raises(KafkaStorageError):
        pylog.logs.LogManager([directory], context=context).startup()
    [partition] = json.loads((directory / MANIFEST).read_text())["partitions"]
    assert partition["base_offset"] == 21
    assert 0 < partition["skipped_batches"] < 20
    assert values(directory) == [*expected()[:20], "broker"]
    open_and_close(directory)
    assert values(directory) == [*expected()[:20], "broker", *expected()[20:]]
    batches = pylog.read_table(directory, "batches").to_pylist()
    epochs = {(each["base_offset"] >= 20, each["partition_leader_epoch"]) for each in batches}
    assert epochs == {(False, 0), (True, 7)}  # the rest follows the newest


def test_a_partition_that_a_broker_has_renamed_is_an_error(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    pylog.create_topic(directory, "orders", 1)
    interrupt(directory, IN_THE_SECOND_WRITE)
    shutil.move(directory / "orders-0", directory / f"orders-0.{'a' * 32}-stray")
    with pytest.raises(KafkaStorageError, match="partition orders-0, which is gone"):
        pylog.logs.LogManager([directory]).startup()


def large_job(directory: Path) -> tuple[pylog.jobs.WriteJob, pylog.jobs.StagedRecords]:
    """Stage enough for threads to append partitions side by side: 2 MiB for each of four."""
    job = pylog.jobs.WriteJob(str(directory), "large", topic="orders", partitions=4)
    with job.stage("task") as attempt:
        partitions = pa.array([each % 4 for each in range(8_192)], pa.int32())
        names = [f"row {each:04} {'x' * 1_000}" for each in range(8_192)]
        attempt.append(pa.record_batch({"partition": partitions, "value": names}))
    return job, attempt.staged


def rows_of_large_job(partition: int) -> list[bytes]:
    return [b"row %04d %s" % (each, b"x" * 1_000) for each in range(partition, 8_192, 4)]


class ThreadsIO(DurableIO):
    """Notes the threads that write to each log."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: dict[str, set[int]] = defaultdict(set)

    def pwrite(self, path: str, descriptor: int, position: int, data: memoryview) -> int:
        if path.endswith("00000000000000000000.log"):
            self.threads[path].add(threading.get_ident())
        return super().pwrite(path, descriptor, position, data)


def test_partitions_of_a_large_job_are_appended_side_by_side(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    directory.mkdir()
    job, staged = large_job(directory)
    io = ThreadsIO()
    job.commit([staged], context=pylog.logs.LogContext(io=io))
    assert [len(each) for each in io.threads.values()] == [1] * 4
    assert threading.get_ident() not in set().union(*io.threads.values())
    for partition in range(4):
        scan = pylog.scan(directory / f"orders-{partition}", columns=["value"])
        assert scan.to_table()["value"].to_pylist() == rows_of_large_job(partition)


def test_a_disk_that_fails_in_one_of_many_threads_fails_the_commit(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    directory.mkdir()
    job, staged = large_job(directory)
    threads = threading.active_count()
    fault = Fault(kinds=frozenset({Kind.WRITE}), path_end="orders-2/00000000000000000000.log")
    with pytest.raises(KafkaStorageError, match="orders-2"):
        job.commit([staged], context=pylog.logs.LogContext(io=FaultyIO(fault)))
    assert threading.active_count() == threads
    assert values(directory) == []  # whatever the other threads have appended
    open_and_close(directory)
    for partition in range(4):
        scan = pylog.scan(directory / f"orders-{partition}", columns=["value"])
        assert scan.to_table()["value"].to_pylist() == rows_of_large_job(partition)


def test_an_abort_touches_nothing_that_a_manifest_needs(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    pylog.create_topic(directory, "orders", 1)
    interrupt(directory, IN_THE_SECOND_WRITE)
    job_in(directory).abort([None])
    open_and_close(directory)
    assert values(directory) == expected()


def test_another_job_completes_the_commit_before_its_own(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    pylog.create_topic(directory, "orders", 1)
    interrupt(directory, IN_THE_SECOND_WRITE)
    other = pylog.jobs.WriteJob(str(directory), "other", topic="orders")
    with other.stage("task") as attempt:
        attempt.append(pa.record_batch({"value": ["other"]}))
    other.commit([attempt.staged])
    assert values(directory) == [*expected(), "other"]


def test_topics_that_a_commit_makes_have_their_configuration(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    directory.mkdir()
    job = pylog.jobs.WriteJob(
        str(directory), "nightly", topic="orders", partitions=2, config={"retention.ms": "-1"}
    )
    with job.stage("task") as attempt:
        attempt.append(pa.record_batch({"key": ["k"], "value": ["v"]}))
    fault = Fault(kinds=frozenset({Kind.MAKE_DIRECTORY}), path_end="orders-1")
    with pytest.raises(KafkaStorageError):
        job.commit([attempt.staged], context=pylog.logs.LogContext(io=FaultyIO(fault)))
    with pylog.logs.LogManager([directory]) as manager:
        assert [each.partition for each in manager.logs] == [0, 1]
        assert manager.config_of("orders").retention_ms == -1
    ids = {each.topic_id for each in pylog.list_partitions(directory).partitions}
    assert len(ids) == 1
    assert values(directory) == ["v"]

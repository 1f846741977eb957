"""Commits that were interrupted, completed by the next owner of the directory."""

from __future__ import annotations

import json
import shutil
import threading
from collections import defaultdict
from typing import TYPE_CHECKING

import crcmod.predefined
import pyarrow as pa
import pytest

import pylog
from pylog.errors import KafkaStorageError, SegmentVanishedError
from pylog.files.durable_io import DurableIO
from pylog.files.file_names import MANIFEST
from pylog.testing import ManualClock
from tests.support.recording_io import Fault, FaultyIO, Kind

if TYPE_CHECKING:
    from pathlib import Path

NOW_MS = 1_700_000_000_000
IN_THE_SECOND_WRITE = Fault(
    kinds=frozenset({Kind.WRITE}), path_end="orders-0/00000000000000000000.log", at=2
)
BEFORE_THE_LEDGER = Fault(kinds=frozenset({Kind.REPLACE}), path_end=".pylog-ledger.tmp")


def job_in(directory: Path) -> pylog.jobs.WriteJob:
    return pylog.jobs.WriteJob(str(directory), "nightly", topic="orders", batch_size_bytes=200)


def interrupt(directory: Path, fault: Fault, rows: int = 20) -> None:
    """Stage two files of the same partition, and let the commit fail."""
    job, staged = job_in(directory), []
    for task in range(2):
        with job.stage(f"task-{task}") as attempt:
            names = [f"task {task} row {each}" for each in range(rows)]
            attempt.append(pa.record_batch({"value": names}))
        staged.append(attempt.staged)
    with pytest.raises(KafkaStorageError):
        job.commit(staged, context=pylog.logs.LogContext(io=FaultyIO(fault)))


def expected(rows: int = 20) -> list[str]:
    return [f"task {task} row {each}" for task in range(2) for each in range(rows)]


def values(directory: Path) -> list[str]:
    table = pylog.scan(directory, columns=["value"]).to_table()
    return [each.decode() for each in table["value"].to_pylist()]


def with_manifest_aside(directory: Path) -> Path:
    """Move the manifest away, so that an opener knows as little of it as a broker."""
    aside = directory.parent / "aside"
    shutil.move(directory / MANIFEST, aside)
    return aside


def open_and_close(directory: Path) -> None:
    with pylog.logs.LogManager([directory]):
        pass


def test_what_was_appended_is_not_appended_again(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    pylog.create_topic(directory, "orders", 1)
    interrupt(directory, IN_THE_SECOND_WRITE)
    assert (directory / "orders-0" / "00000000000000000000.log").stat().st_size > 0
    open_and_close(directory)
    assert values(directory) == expected()
    assert job_in(directory).is_committed()
    open_and_close(directory)
    assert values(directory) == expected()


def test_the_rest_goes_to_the_end_that_a_broker_has_left(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    pylog.create_topic(directory, "orders", 1)
    interrupt(directory, IN_THE_SECOND_WRITE)
    aside = with_manifest_aside(directory)
    pylog.write_topic(directory, "orders", [(None, "broker 1")])
    pylog.write_topic(directory, "orders", [(None, "broker 2")])
    shutil.move(aside, directory / MANIFEST)
    half = expected()[:20]
    assert values(directory) == [*half, "broker 1", "broker 2"]
    open_and_close(directory)
    assert values(directory) == [*half, "broker 1", "broker 2", *expected()[20:]]
    assert pylog.read_table(directory, "findings").num_rows == 0


def test_the_new_place_is_announced_before_anything_is_appended_there(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    pylog.create_topic(directory, "orders", 1)
    interrupt(directory, IN_THE_SECOND_WRITE)
    aside = with_manifest_aside(directory)
    pylog.write_topic(directory, "orders", [(None, "broker")])
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


def test_a_partition_that_a_broker_has_renamed_is_an_error(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    pylog.create_topic(directory, "orders", 1)
    interrupt(directory, IN_THE_SECOND_WRITE)
    shutil.move(directory / "orders-0", directory / f"orders-0.{'a' * 32}-stray")
    with pytest.raises(KafkaStorageError, match="partition orders-0, which is gone"):
        pylog.logs.LogManager([directory]).startup()


def test_records_that_were_deleted_in_between_are_an_error(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    pylog.create_topic(directory, "orders", 1)
    interrupt(directory, IN_THE_SECOND_WRITE)
    aside = with_manifest_aside(directory)
    pylog.write_topic(directory, "orders", [(None, "broker")])
    with pylog.logs.LogManager([directory]) as manager:
        log = manager.get_log(pylog.TopicPartition("orders", 0))
        log.truncate_fully_and_start_at(log.log_end_offset)
    shutil.move(aside, directory / MANIFEST)
    with pytest.raises(KafkaStorageError, match="nobody can tell whether they were the commit's"):
        pylog.logs.LogManager([directory]).startup()
    (directory / MANIFEST).unlink()
    open_and_close(directory)


@pytest.mark.parametrize(("base_offset", "lost"), [(5, 0), (0, 2)])
def test_records_that_were_compacted_in_between_are_an_error(
    tmp_path: Path, base_offset: int, lost: int
) -> None:
    directory = tmp_path / "logs"
    pylog.create_topic(directory, "orders", 1)
    interrupt(directory, IN_THE_SECOND_WRITE)
    aside = with_manifest_aside(directory)
    builder = pylog.logs.RecordBatchBuilder(base_offset=base_offset, partition_leader_epoch=0)
    for each in range(3):
        builder.append(NOW_MS, b"key", b"broker %d" % each)
    batch = bytearray(builder.build())
    batch[26] += lost  # the last offset delta: the batch once had more records
    batch[17:21] = crcmod.predefined.mkCrcFun("crc-32c")(bytes(batch[21:])).to_bytes(4, "big")
    with pylog.logs.LogManager([directory]) as manager:
        log = manager.get_log(pylog.TopicPartition("orders", 0))
        log.truncate_to(0)
        log.append_as_follower(bytes(batch), 0)
    shutil.move(aside, directory / MANIFEST)
    assert values(directory) == ["broker 0", "broker 1", "broker 2"]
    with pytest.raises(KafkaStorageError, match="nobody can tell whether they were the commit's"):
        pylog.logs.LogManager([directory]).startup()


def test_a_staged_file_that_is_gone_is_an_error_unless_it_was_appended(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    pylog.create_topic(directory, "orders", 1)
    interrupt(directory, IN_THE_SECOND_WRITE)
    first, second = sorted(
        directory.glob("*.batches"), key=lambda path: b"task 1" in path.read_bytes()
    )
    first.unlink()
    second_content = second.read_bytes()
    second.unlink()
    with pytest.raises(SegmentVanishedError, match="its records are not in the log of orders-0"):
        pylog.logs.LogManager([directory]).startup()
    second.write_bytes(second_content)
    open_and_close(directory)
    assert values(directory) == expected()


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


def test_batches_of_a_topic_with_append_time_are_stamped_once(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    properties = {"message.timestamp.type": "LogAppendTime"}
    pylog.create_topic(directory, "orders", 1, properties=properties)
    interrupt(directory, IN_THE_SECOND_WRITE)
    announced = json.loads((directory / MANIFEST).read_text())["time_ms"]
    later = pylog.logs.LogContext(clock=ManualClock(announced + 1_000_000))
    with pylog.logs.LogManager([directory], context=later):
        pass
    assert values(directory) == expected()
    times = pylog.scan(directory, columns="timestamp", timestamp_unit="ms").to_table()["timestamp"]
    assert set(times.cast(pa.int64()).to_pylist()) == {announced}


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

"""Jobs in the log directory of a real broker: their files are passed over, their records served.

A broker that opens the directory after a commit was interrupted appends to what it finds. What was
not appended by then follows after that, once, when one of ours opens it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from pylog.errors import KafkaStorageError, LogLockedError
from pylog.files.file_names import MANIFEST
from tests.broker.conftest import BROKER_VERSIONS
from tests.support.recording_io import Fault, FaultyIO, Kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.broker.conftest import NewBroker
    from tests.support.kafka_broker import KafkaBroker

pytestmark = pytest.mark.broker

PARTITIONS = 3
LARGE, SMALL = 1_500, 20
"""Rows for partition 0, which become segments, and for the others."""

CRASHES = {
    "before the first segment": Fault(kinds=frozenset({Kind.REPLACE}), path_end=".batches"),
    "between two segments": Fault(kinds=frozenset({Kind.REPLACE}), path_end=".batches", at=2),
    "between two partitions": Fault(
        kinds=frozenset({Kind.WRITE}), path_end="orders-1/00000000000000000000.log"
    ),
    "in the last partition": Fault(
        kinds=frozenset({Kind.WRITE}), path_end="orders-2/00000000000000000000.log"
    ),
    "before the ledger": Fault(
        kinds=frozenset({Kind.REPLACE}), path_end=".pylog-ledger.tmp", forever=True
    ),
    "before the manifest goes": Fault(kinds=frozenset({Kind.REMOVE}), path_end=MANIFEST),
}


def rows(task: int) -> pa.RecordBatch:
    values, partitions = [], []
    for partition, count in enumerate((LARGE, SMALL, SMALL)):
        values += [f"task {task} row {each:05} {'x' * 40}" for each in range(count)]
        partitions += [partition] * count
    return pa.record_batch({"value": values, "partition": pa.array(partitions, pa.int32())})


def job_in(directory: Path) -> pylog.jobs.WriteJob:
    return pylog.jobs.WriteJob(str(directory), "nightly", topic="orders", batch_size_bytes=1_000)


def stage(directory: Path) -> list[pylog.jobs.StagedRecords]:
    staged = []
    for task in range(2):
        with job_in(directory).stage(f"task-{task}") as attempt:
            attempt.append(rows(task))
        staged.append(attempt.staged)
    return staged


def commit_another_job(directory: Path) -> None:
    other = pylog.jobs.WriteJob(str(directory), "other", topic="orders")
    with other.stage("task") as attempt:
        attempt.append(pa.record_batch({"value": ["other"], "partition": pa.array([0])}))
    other.commit([attempt.staged])


def produce(broker: KafkaBroker, text: str) -> None:
    with broker.producer() as producer:
        for partition in range(PARTITIONS):
            producer.send("orders", f"{text} {partition}".encode(), partition=partition).get(30)


def consumed(broker: KafkaBroker) -> dict[int, list[str]]:
    return {
        partition: [(each.value or b"").decode() for each in records]
        for partition, records in broker.consume("orders", PARTITIONS).items()
    }


def scanned(directory: Path) -> dict[int, list[str]]:
    table = pylog.scan(directory, topics="orders", columns=["partition", "value"]).to_table()
    found: dict[int, list[str]] = {each: [] for each in range(PARTITIONS)}
    for row in table.to_pylist():
        found[row["partition"]].append(row["value"].decode())
    return found


def expected(partition: int) -> list[str]:
    values, partitions = [], []
    for task in range(2):
        batch = rows(task).to_pydict()
        values += batch["value"]
        partitions += batch["partition"]
    return [value for value, at in zip(values, partitions, strict=True) if at == partition]


@pytest.mark.parametrize("version", BROKER_VERSIONS)
def test_a_broker_starts_on_staged_files_a_manifest_and_a_ledger_and_serves_the_job(
    new_broker: NewBroker, version: str
) -> None:
    broker = new_broker(version)
    broker.create_topic("orders", PARTITIONS)
    produce(broker, "first")
    broker.stop()
    directory = broker.log_dir
    with pylog.logs.LogManager([directory]) as manager:
        manager.store_topic_config("orders", {"segment.bytes": "60000"})
    staged = stage(directory)
    commit_another_job(directory)
    sent = {each: [f"first {each}"] for each in range(PARTITIONS)}
    sent[0].append("other")
    for number, (name, fault) in enumerate(CRASHES.items()):
        # One interruption after the other of the same commit, with a broker after each.
        context = pylog.logs.LogContext(io=FaultyIO(fault))
        interrupted: Callable[[], object] = pylog.logs.LogManager(
            [directory], context=context
        ).startup
        if number == 0:
            interrupted = partial(job_in(directory).commit, staged, context=context)
        with pytest.raises(KafkaStorageError):
            interrupted()
        assert (directory / MANIFEST).exists(), name
        broker.start()
        assert broker.is_running
        found = consumed(broker)
        produce(broker, name)
        broker.stop()
        for partition in range(PARTITIONS):
            sent[partition].append(f"{name} {partition}")
            own = [each for each in found[partition] if each.startswith("task ")]
            assert own == expected(partition)[: len(own)], name
    assert job_in(directory).commit(stage(directory)).already_committed
    assert not list(directory.glob(".pylog-staged-*"))
    broker.start()
    found = consumed(broker)
    for partition in range(PARTITIONS):
        own = [each for each in found[partition] if each.startswith("task ")]
        assert own == expected(partition)
        assert [each for each in found[partition] if not each.startswith("task ")] == sent[
            partition
        ]
    broker.stop()
    assert scanned(directory) == found


@pytest.mark.thorough
@pytest.mark.parametrize("version", BROKER_VERSIONS)
def test_a_committed_job_needs_no_recovery_by_a_broker(new_broker: NewBroker, version: str) -> None:
    broker = new_broker(version)
    broker.create_topic("orders", PARTITIONS)
    broker.stop()
    directory = broker.log_dir
    with pylog.logs.LogManager([directory]) as manager:
        manager.store_topic_config("orders", {"segment.bytes": "60000"})
    job_in(directory).commit(stage(directory))
    before = {
        path: path.read_bytes()
        for path in directory.glob("orders-*/*")
        if path.suffix in {".log", ".index", ".timeindex"}
    }
    assert len([path for path in before if path.suffix == ".log"]) > PARTITIONS
    broker.start()
    late = pylog.jobs.WriteJob(str(directory), "late", topic="orders")
    with pytest.raises(LogLockedError, match=f"process {broker.process_id} is a Kafka broker"):
        late.commit([], timeout=0.1)
    found = consumed(broker)
    assert found == {each: expected(each) for each in range(PARTITIONS)}
    produce(broker, "later")
    broker.stop()
    assert "unclean shutdown" not in broker.server_log
    assert "Truncating" not in broker.server_log
    changed = [
        path.name
        for path, content in before.items()
        if not path.read_bytes().startswith(content.rstrip(b"\0"))
    ]
    assert not changed
    assert pylog.scan(directory, topics="orders").count() == 2 * (LARGE + 2 * SMALL) + PARTITIONS

"""Commits of two staged files, interrupted where a test says."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from pylog.errors import KafkaStorageError
from pylog.files.file_names import MANIFEST
from pylog.model import TopicPartition
from tests.support.recording_io import Fault, FaultyIO, Kind

if TYPE_CHECKING:
    from pathlib import Path

IN_THE_SECOND_WRITE = Fault(
    kinds=frozenset({Kind.WRITE}), path_end="orders-0/00000000000000000000.log", at=2
)


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


def append_as_leader(directory: Path, value: bytes, leader_epoch: int) -> None:
    """Append a record as a broker that has become leader in an epoch."""
    batch = pylog.logs.RecordBatchBuilder()
    batch.append(1_000, None, value)
    with pylog.logs.LogManager([directory]) as manager:
        log = manager.get_log(TopicPartition("orders", 0))
        log.append_as_leader(batch.build(), leader_epoch=leader_epoch)


def open_and_close(directory: Path) -> None:
    with pylog.logs.LogManager([directory]):
        pass

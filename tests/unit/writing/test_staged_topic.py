"""Rows that are staged while a commit makes their topic, or after one that was interrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from pylog.errors import KafkaStorageError
from tests.support.recording_io import Fault, FaultyIO, Kind

if TYPE_CHECKING:
    from pathlib import Path

PARTITIONS = 3


def job_in(directory: Path, job_id: str) -> pylog.jobs.WriteJob:
    return pylog.jobs.WriteJob(
        str(directory),
        job_id,
        topic="orders",
        partitions=PARTITIONS,
        config={"max.message.bytes": "2000"},
    )


def stage(directory: Path, job_id: str) -> pylog.jobs.StagedRecords:
    rows = {"value": [f"{job_id} {each}" for each in range(PARTITIONS)]}
    numbers = pa.array(range(PARTITIONS), pa.int32())
    with job_in(directory, job_id).stage("task") as attempt:
        attempt.append(pa.record_batch({**rows, "partition": numbers}))
    return attempt.staged


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    """Give a directory where the commit of ``first`` ended when one partition of three was made."""
    staged = stage(tmp_path, "first")
    fault = Fault(kinds=frozenset({Kind.MAKE_DIRECTORY}), path_end="orders-1")
    with pytest.raises(KafkaStorageError):
        job_in(tmp_path, "first").commit(
            [staged], context=pylog.logs.LogContext(io=FaultyIO(fault))
        )
    assert [path.name for path in sorted(tmp_path.glob("orders-*"))] == ["orders-0"]
    assert (tmp_path / ".pylog-manifest").exists()
    return tmp_path


@pytest.mark.parametrize("job_id", ["first", "second"])
def test_rows_go_to_all_partitions_that_a_commit_has_announced(
    interrupted: Path, job_id: str
) -> None:
    staged = stage(interrupted, job_id)
    assert [rules.partitions for rules in staged.rules] == [(0, 1, 2)]
    summary = job_in(interrupted, job_id).commit([staged])
    assert summary.already_committed == (job_id == "first")
    table = pylog.scan(interrupted, columns=["partition", "value"]).to_table()
    jobs = dict.fromkeys(["first", job_id])
    assert table["value"].to_pylist() == [
        f"{job} {partition}".encode() for partition in range(PARTITIONS) for job in jobs
    ]


def test_rows_are_held_against_the_properties_that_a_commit_has_announced(
    interrupted: Path,
) -> None:
    job = pylog.jobs.WriteJob(str(interrupted), "second", topic="orders")
    with pytest.raises(pylog.errors.RecordTooLargeError), job.stage("task") as attempt:
        attempt.append(pa.record_batch({"value": ["x" * 3_000]}))

"""The batches of staged files: there as a whole, and stamped once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from pylog.errors import SegmentVanishedError
from pylog.files.file_names import MANIFEST
from pylog.testing import ManualClock
from tests.unit.staged_commit.interrupted import (
    IN_THE_SECOND_WRITE,
    append_as_leader,
    expected,
    interrupt,
    job_in,
    open_and_close,
    values,
)

if TYPE_CHECKING:
    from pathlib import Path


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


def test_batches_have_the_newest_leader_epoch_of_the_log(tmp_path: Path) -> None:
    """By it a broker that comes back tells what its leader has not."""
    pylog.create_topic(tmp_path, "orders", 1)
    append_as_leader(tmp_path, b"v", leader_epoch=7)
    job = job_in(tmp_path)
    with job.stage("task-0") as attempt:
        attempt.append(pa.record_batch({"value": [b"x" * 100] * 4}))
    job.commit([attempt.staged])
    batches = pylog.read_table(tmp_path, "batches").to_pylist()
    assert len(batches) > 2
    assert {each["partition_leader_epoch"] for each in batches} == {7}


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

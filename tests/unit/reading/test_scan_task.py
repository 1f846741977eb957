"""A planned range that reads itself."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from pylog.errors import CorruptRecordError, InvalidRecordError
from tests.support.batches import Stored, batch_v2, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Offsets 0 to 9 in two segments of ``orders-0``."""
    write_partition(tmp_path, {base: [batch_v2(plain_records(base, 5))] for base in (0, 5)})
    return tmp_path


def offsets(batches: list[pa.RecordBatch]) -> list[int]:
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


def test_a_task_reads_its_range_in_the_schema_of_the_scan(log: Path) -> None:
    scan = pylog.scan(log, start=3, end=8, columns=["offset", "value"])
    [task] = scan.plan()
    batches = list(task.read(scan.schema))
    assert {batch.schema for batch in batches} == {scan.schema}
    assert offsets(batches) == [3, 4, 5, 6, 7]


def test_a_task_that_was_pickled_reads_the_same(log: Path) -> None:
    [task] = pylog.scan(log).plan()
    again = pickle.loads(pickle.dumps(task))  # noqa: S301 - our own
    assert again == task
    assert type(again) is pylog.jobs.ScanTask
    assert offsets(list(again.read())) == list(range(10))


def test_parts_of_a_task_are_tasks(log: Path) -> None:
    tasks = pylog.scan(log, max_records_per_partition=4).plan()
    assert [type(task) for task in tasks] == [pylog.jobs.ScanTask] * 3
    assert [offsets(list(task.read())) for task in tasks] == [[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]]


def test_whether_a_field_may_be_null_is_taken_from_the_schema(log: Path) -> None:
    schema = pa.schema([pa.field("offset", pa.int64(), nullable=False)])
    [task] = pylog.scan(log).plan()
    assert {batch.schema for batch in task.read(schema)} == {schema}


def test_damage_is_an_error_or_noted(tmp_path: Path) -> None:
    damaged = bytearray(batch_v2([Stored(0, -1, None, b"v")]).data)
    damaged[-1] ^= 1
    sound = batch_v2([Stored(1, -1, None, b"v")]).data
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020d}.log").write_bytes(bytes(damaged) + sound)
    [task] = pylog.scan(tmp_path).plan()
    with pytest.raises(CorruptRecordError):
        list(task.read())
    report = pylog.results.DamageReport()
    assert offsets(list(task.read(mode="dropmalformed", damage=report))) == [1]  # type: ignore[arg-type]
    assert [(each.position, each.end_position) for each in report.ranges] == [(0, len(damaged))]
    with pytest.raises(ValueError, match="mode 'lenient'"):
        task.read(mode="lenient")  # type: ignore[arg-type]


def test_a_batch_above_the_limit_is_refused(log: Path) -> None:
    [task] = pylog.scan(log).plan()
    with pytest.raises(InvalidRecordError, match="more than the limit of 8 bytes"):
        list(task.read(max_decompressed_bytes=8))


def test_a_task_is_unpickled_without_arrow(log: Path) -> None:
    [task] = pylog.scan(log).plan()
    code = (
        "import pickle, sys; task = pickle.loads(sys.stdin.buffer.read()); "
        "print(task.end_offset, {'numpy', 'pyarrow', 'numba'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(task), capture_output=True, check=True
    )
    assert done.stdout == b"10 set()\n"


def test_offsets_that_lie_far_apart_are_no_hundred_millions_of_tasks(tmp_path: Path) -> None:
    far = 2**31 - 2
    directory = write_partition(
        tmp_path, {0: [batch_v2(plain_records(0, 1)), batch_v2(plain_records(far, 1))]}
    )
    with pytest.raises(ValueError, match=r"make 536,870,912 tasks, more than 1,000,000"):
        pylog.scan(directory, max_records_per_partition=4).plan()

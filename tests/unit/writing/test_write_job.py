"""Jobs that are staged by many and committed by one."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from tests.unit.writing.staged_jobs import NOW_MS, job_files, job_in, stage, values_in

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.tables import TableName


def test_what_was_staged_is_there_once_it_is_committed(tmp_path: Path) -> None:
    job = job_in(tmp_path, topic=None)
    first = stage(job, {"topic": ["a", "b", "a"], "value": ["1", "2", "3"]})
    second = stage(job, {"topic": ["a"], "value": ["4"]}, {"topic": ["a"], "value": ["5"]})
    assert not job.is_committed()
    assert first.record_count == 3
    summary = job.commit([first, second])
    assert job.is_committed()
    assert values_in(tmp_path) == {("a", 0): ["1", "3", "4", "5"], ("b", 0): ["2"]}
    assert not job_files(tmp_path)
    assert (summary.records, summary.already_committed) == (5, False)
    assert [each.end_offset for each in summary.partitions] == [4, 1]


def test_rows_lie_as_write_topic_puts_them(tmp_path: Path) -> None:
    columns = {
        "key": [f"key {each}" for each in range(500)],
        "value": pa.array([f"value {each}".encode() for each in range(500)], pa.large_binary()),
        "timestamp": pa.array([NOW_MS + each for each in range(500)], pa.timestamp("ms", "UTC")),
        "headers": pa.array(
            [[{"key": "h", "value": b"%d" % each}] for each in range(500)],
            pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
        ),
    }
    job = job_in(tmp_path / "job", partitions=3)
    (tmp_path / "job").mkdir()
    job.commit([stage(job, columns)])
    pylog.write_topic(tmp_path / "direct", "orders", pa.table(columns), partitions=3)
    one, other = (
        pylog.scan(tmp_path / name, include_headers=True).to_table() for name in ("job", "direct")
    )
    assert one == other


def test_an_existing_topic_keeps_its_partitions_and_a_new_one_gets_those_asked_for(
    tmp_path: Path,
) -> None:
    pylog.create_topic(tmp_path, "old", 2)
    job = job_in(tmp_path, topic=None, partitions=3, config={"retention.ms": "-1"})
    job.commit([stage(job, {"topic": ["old", "new"], "value": ["1", "2"]})])
    assert len(pylog.open_directory(tmp_path).topics["old"]) == 2
    assert len(pylog.open_directory(tmp_path).topics["new"]) == 3
    with pylog.logs.LogManager([tmp_path]) as manager:
        assert manager.config_of("new").retention_ms == -1
        assert manager.config_of("old").retention_ms == 604_800_000


@pytest.mark.parametrize(("partitioner", "expected"), [("round_robin", 3), ("integer_key", 2)])
def test_the_partitioner_is_chosen_by_name(tmp_path: Path, partitioner: str, expected: int) -> None:
    job = job_in(tmp_path, partitions=3, partitioner=partitioner)
    job.commit([stage(job, {"key": ["0", "3", "1"], "value": ["a", "b", "c"]})])
    assert len(values_in(tmp_path)) == expected


def _without_path(directory: Path, name: TableName) -> pa.Table:
    table = pylog.read_table(directory, name)
    return table.select([each for each in table.column_names if each != "path"])


def test_indexes_are_those_of_appends(tmp_path: Path) -> None:
    config = {"segment.bytes": "20000", "index.interval.bytes": "1500"}
    rows = {"value": [f"{each:05}" + "x" * 95 for each in range(1_000)]}
    rows["timestamp"] = pa.array([NOW_MS + each * 7 % 31 for each in range(1_000)], pa.int64())
    job = job_in(tmp_path / "job", config=config, batch_size_bytes=1_000)
    (tmp_path / "job").mkdir()
    job.commit([stage(job, rows)])
    table = pa.table(rows)
    pylog.write_topic(tmp_path / "direct", "orders", table, config=config, batch_size=1_000)
    for name in ("segments", "index_entries", "leader_epochs"):
        one, other = (_without_path(tmp_path / each, name) for each in ("job", "direct"))
        assert one == other, name


# ---- what is left


def test_a_job_and_what_was_staged_can_be_pickled(tmp_path: Path) -> None:
    job = job_in(tmp_path, config={"retention.ms": "-1"})
    job = pickle.loads(pickle.dumps(job))  # noqa: S301 - our own
    staged = pickle.loads(pickle.dumps(stage(job, {"value": ["a"]})))  # noqa: S301 - our own
    assert job.commit([staged]).records == 1


def test_a_job_loads_neither_arrow_nor_numba() -> None:
    code = (
        "import pylog, sys\n"
        "job = pylog.jobs.WriteJob('/nowhere', 'job', topic='orders')\n"
        "assert not {'pyarrow', 'numba', 'numpy'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

"""What readers are given while a job is being committed, and after its commit was interrupted."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from pylog.errors import CorruptCheckpointError, KafkaStorageError, SegmentVanishedError
from pylog.files.file_names import MANIFEST
from pylog.reading.planner import plan_partition
from tests.crash.job_script import append_as_a_broker
from tests.support.recording_io import Fault, FaultyIO, Kind

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.reading.log_view import LogView
    from pylog.reading.planner import ScanRequest

CONFIG = {"segment.bytes": "3000"}


def job_in(directory: Path, job_id: str = "nightly") -> pylog.jobs.WriteJob:
    return pylog.jobs.WriteJob(str(directory), job_id, topic="orders", batch_size_bytes=500)


def stage(job: pylog.jobs.WriteJob) -> pylog.jobs.StagedRecords:
    rows = [(0, f"new {each} {'x' * 50}") for each in range(100)] + [(1, "new"), (2, "new")]
    partitions, values = zip(*rows, strict=True)
    with job.stage("task") as attempt:
        attempt.append(pa.record_batch({"value": values, "partition": pa.array(partitions)}))
    return attempt.staged


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a directory with three records in partitions 0 and 1 each, and none in 2."""
    path = tmp_path / "logs"
    rows = pa.table({"value": [f"old {each}" for each in range(6)], "partition": [0, 1] * 3})
    pylog.write_topic(path, "orders", rows, partitions=3, partition="partition", config=CONFIG)
    return path


OLD = {0: ["old 0", "old 2", "old 4"], 1: ["old 1", "old 3", "old 5"]}
BEFORE_PARTITION_1 = Fault(
    kinds=frozenset({Kind.WRITE}), path_end="orders-1/00000000000000000000.log"
)
BEFORE_THE_LEDGER = Fault(kinds=frozenset({Kind.REPLACE}), path_end=".pylog-ledger.tmp")
AFTER_THE_LEDGER = Fault(kinds=frozenset({Kind.REMOVE}), path_end=MANIFEST)


def interrupt(directory: Path, fault: Fault, job_id: str = "nightly") -> None:
    job = job_in(directory, job_id)
    with pytest.raises(KafkaStorageError):
        job.commit([stage(job)], context=pylog.logs.LogContext(io=FaultyIO(fault)))
    assert (directory / MANIFEST).exists()


def by_partition(table: pa.Table) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for row in table.to_pylist():
        found.setdefault(row["partition"], []).append(row["value"].decode())
    return found


def values(path: Path) -> dict[int, list[str]]:
    return by_partition(pylog.scan(path).to_table())


@pytest.mark.parametrize("fault", [BEFORE_PARTITION_1, BEFORE_THE_LEDGER])
def test_nothing_of_a_job_is_seen_before_the_ledger_has_it(directory: Path, fault: Fault) -> None:
    interrupt(directory, fault)
    assert (directory / "orders-0" / "00000000000000000003.log").stat().st_size > 0
    assert values(directory) == OLD
    for scan in (
        pylog.scan(directory, mode="DROPMALFORMED"),
        pylog.scan(directory, use_indexes=False),
        pylog.scan(directory, isolation="read_committed"),
    ):
        assert by_partition(scan.to_table()) == OLD
    assert values(directory / "orders-0") == {0: OLD[0]}
    assert pylog.scan(directory).count() == 6
    assert pylog.scan(directory).last(1).count() == 2
    ends = {each.partition: each.log_end_offset for each in pylog.open_directory(directory)}
    assert ends == {0: 3, 1: 3, 2: 0}
    partitions = pylog.read_table(directory, "partitions").to_pylist()
    assert [each["log_end_offset"] for each in partitions] == [3, 3, 0]
    batches = pylog.read_table(directory, "batches").to_pylist()
    assert max(each["last_offset"] for each in batches) == 2
    assert {
        each["base_offset"] for each in pylog.read_table(directory, "segments").to_pylist()
    } == {0}


def test_all_of_it_is_seen_once_the_ledger_has_it(directory: Path) -> None:
    interrupt(directory, AFTER_THE_LEDGER)
    found = values(directory)
    assert {partition: len(each) for partition, each in found.items()} == {0: 103, 1: 4, 2: 1}
    assert not [each for each in pylog.list_partitions(directory).partitions if each.notes]


def test_a_pending_commit_is_a_note_of_a_listing_and_a_finding(directory: Path) -> None:
    interrupt(directory, BEFORE_PARTITION_1)
    listed = pylog.list_partitions(directory).partitions
    assert [each.log_end_offset for each in listed] == [3, 3, 0]
    for each, end in zip(listed, (3, 3, 0), strict=True):
        [note] = each.notes
        assert note == (
            "a commit of job 'nightly' is under way or was interrupted; none of it is read: the "
            f"log ends at offset {end}. Whatever opens the log directory to write next completes it"
        )
    rows = pylog.read_table(directory, "findings").to_pylist()
    pending = [row for row in rows if row["code"] == "pending_commit"]
    assert [(row["severity"], row["next_offset"]) for row in pending] == [
        ("info", 3),
        ("info", 3),
        ("info", 0),
    ]
    assert {row["path"] for row in pending} == {str(directory / MANIFEST)}
    assert not [row for row in rows if row["severity"] == "error"]


def test_where_a_broker_has_appended_everything_is_read(directory: Path) -> None:
    interrupt(directory, BEFORE_PARTITION_1)
    append_as_a_broker(directory)
    found = values(directory)
    assert len(found[0]) == 3 + 100 + 1
    assert found[1] == [*OLD[1], "broker orders-1"]
    assert found[2] == ["broker orders-2"]
    notes = [each.notes for each in pylog.list_partitions(directory).partitions]
    assert notes == [[], [], []]


def test_whatever_opens_the_directory_to_write_completes_the_commit(directory: Path) -> None:
    interrupt(directory, BEFORE_PARTITION_1)
    pylog.create_topic(directory, "other", 1)
    assert not (directory / MANIFEST).exists()
    assert {partition: len(each) for partition, each in values(directory).items()} == {
        0: 103,
        1: 4,
        2: 1,
    }
    assert job_in(directory).is_committed()


def test_a_commit_that_comes_while_a_read_is_planned_is_seen_as_a_whole_or_not_at_all(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_in(directory)
    staged = stage(job)
    planned = 0

    def plan_and_commit(
        view: LogView, wanted: ScanRequest, ranges: dict[str, tuple[int, int]]
    ) -> list[pylog.jobs.ScanTask]:
        nonlocal planned
        tasks = plan_partition(view, wanted, ranges)
        planned += 1
        if planned == 1:  # the first partition is planned, the others are not
            job.commit([staged])
        return tasks

    monkeypatch.setattr("pylog.reading.planner.plan_partition", plan_and_commit)
    found = values(directory)
    assert {partition: len(each) for partition, each in found.items()} == {0: 103, 1: 4, 2: 1}
    assert planned == 6


def test_a_commit_that_begins_while_a_read_is_planned_and_does_not_end_is_not_seen(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = 0

    def plan_and_commit(
        view: LogView, wanted: ScanRequest, ranges: dict[str, tuple[int, int]]
    ) -> list[pylog.jobs.ScanTask]:
        nonlocal planned
        if planned == 1:
            planned += 1
            interrupt(directory, BEFORE_THE_LEDGER)
        planned += 1
        return plan_partition(view, wanted, ranges)

    monkeypatch.setattr("pylog.reading.planner.plan_partition", plan_and_commit)
    assert values(directory) == OLD


def test_a_filtered_part_of_a_scan_has_nothing_of_a_job_that_was_committed_since_it_was_planned(
    directory: Path,
) -> None:
    job = job_in(directory)
    staged = stage(job)
    scan = pylog.scan(directory)
    before = scan.count()
    job.commit([staged])
    assert scan.narrowed(where=pylog.RecordFilter(min_offset=0)).to_table().num_rows == before
    assert pylog.scan(directory).count() > before


def test_a_directory_that_was_opened_during_a_commit_stays_as_it_was_seen(directory: Path) -> None:
    interrupt(directory, BEFORE_PARTITION_1)
    opened = pylog.open_directory(directory)
    assert [view.log_end_offset for view in opened] == [3, 3, 0]
    with pylog.logs.LogManager([directory]):
        pass
    assert [view.log_end_offset for view in opened] == [3, 3, 0]


def test_a_manifest_that_cannot_be_read_is_an_error(directory: Path) -> None:
    (directory / MANIFEST).write_text("{}")
    with pytest.raises(CorruptCheckpointError, match="manifest of a commit is malformed"):
        pylog.scan(directory).count()
    with pytest.raises(CorruptCheckpointError, match="move it away to give the commit up"):
        pylog.logs.LogManager([directory]).startup()
    [listed, *_] = pylog.list_partitions(directory).partitions
    assert "manifest of a commit is malformed" in listed.findings[0]
    rows = pylog.read_table(directory, "findings").to_pylist()
    assert {row["code"] for row in rows} == {"damaged_manifest"}


def test_staged_files_that_are_gone_are_an_error(directory: Path) -> None:
    interrupt(directory, BEFORE_PARTITION_1)
    for path in directory.glob(".pylog-staged-*"):
        path.unlink()
    with pytest.raises(SegmentVanishedError):
        pylog.scan(directory).count()
    with pytest.raises(SegmentVanishedError):
        pylog.logs.LogManager([directory]).startup()
    # Who gives the commit up gets what was appended of it.
    (directory / MANIFEST).unlink()
    assert len(values(directory)[0]) == 103


def test_without_a_manifest_no_file_is_opened_for_it(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("pylog.files.commit_manifest.read_manifest", refuse)
    monkeypatch.setattr("pylog.files.ledger.read_ledger", refuse)
    assert values(directory) == OLD


def test_a_listing_with_a_manifest_loads_arrow_no_more_than_one_without(directory: Path) -> None:
    code = (
        "import pylog, sys\n"
        f"pylog.list_partitions({str(directory)!r})\n"
        "assert not {'pyarrow', 'numba', 'numpy'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_follower_sees_a_job_whole_or_not_at_all(directory: Path) -> None:
    followed = pylog.follow(directory)

    def ends() -> dict[int, int]:
        return {each.partition: log.end_offset for each, log in followed.refresh().items()}

    assert ends() == {0: 3, 1: 3, 2: 0}
    interrupt(directory, BEFORE_THE_LEDGER)
    assert ends() == {0: 3, 1: 3, 2: 0}
    assert by_partition(pylog.scan(followed.directory).to_table()) == OLD
    with pylog.logs.LogManager([str(directory)]):  # completes the commit
        pass
    logs = followed.refresh()
    assert {each.partition: log.end_offset for each, log in logs.items()} == {0: 103, 1: 4, 2: 1}
    assert [log.rewritten_below for log in logs.values()] == [None] * 3


def test_a_follower_that_begins_during_a_commit_sees_nothing_of_it(directory: Path) -> None:
    interrupt(directory, BEFORE_PARTITION_1)
    for isolation in ("read_uncommitted", "read_committed"):
        logs = pylog.follow(directory, isolation=isolation).refresh()
        assert {each.partition: log.end_offset for each, log in logs.items()} == {0: 3, 1: 3, 2: 0}

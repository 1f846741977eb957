from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import CorruptRecordError, LogDirectoryError
from pylog.reading import planner
from pylog.reading.pending_commit import PendingCommit
from tests.support.batches import ABORT, COMMIT, batch_v2, marker, plain_records, with_bad_crc
from tests.support.log_files import write_partition
from tests.unit.reading.planned import LOG, tasks

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.reading.damage import ReadModeName
    from pylog.results import Scan


def test_a_partition_with_nothing_to_read_gets_no_task(directory: Path) -> None:
    assert tasks(directory, start="latest") == []
    assert tasks(directory, start=5, end=5) == []


def test_there_is_one_task_a_partition_in_order(tmp_path: Path) -> None:
    for name in ("b-0", "a-1", "a-0"):
        write_partition(tmp_path, LOG, name=name)
    assert [str(task.topic_partition) for task in tasks(tmp_path)] == ["a-0", "a-1", "b-0"]


def test_tasks_can_be_pickled(directory: Path) -> None:
    for task in tasks(directory, isolation="read_committed"):
        assert pickle.loads(pickle.dumps(task)) == task  # noqa: S301 - our own


def test_a_plan_is_made_once(directory: Path) -> None:
    scan = pylog.scan(directory)
    assert scan.plan() is scan.plan()


def test_a_plan_ends_where_commits_never_leave_it_one_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 5))]})
    monkeypatch.setattr(PendingCommit, "has_changed", lambda _: True)
    with pytest.raises(LogDirectoryError, match="commits of jobs come and go faster than a read"):
        pylog.scan(tmp_path).plan()


PRODUCER = 9
COMMITTED = [*range(5), *range(106, 110), 200]
"""The offsets of what `log_directory` holds of partition 0 without its aborted records."""
ABORTED = [*range(10, 100)]


@pytest.fixture
def log_directory(tmp_path: Path) -> Path:
    """Between committed records lie aborted ones, markers and the gaps of a compaction."""
    batches = [
        batch_v2(plain_records(0, 5)),
        batch_v2(plain_records(10, 90), producer_id=PRODUCER, is_transactional=True),
        marker(100, ABORT, producer_id=PRODUCER),
        batch_v2(plain_records(106, 4), producer_id=PRODUCER, is_transactional=True),
        marker(110, COMMIT, producer_id=PRODUCER),
        batch_v2(plain_records(200, 1)),
        marker(300, COMMIT, producer_id=PRODUCER),
    ]
    write_partition(tmp_path, {0: batches[:2], 100: batches[2:]}, name="orders-0")
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 3))]}, name="orders-1")
    write_partition(tmp_path, {0: []}, name="orders-2")
    return tmp_path


def offsets(scan: Scan, partition: int = 0) -> list[int]:
    rows = scan.to_table().select(["partition", "offset"]).to_pylist()
    return [row["offset"] for row in rows if row["partition"] == partition]


@pytest.mark.parametrize("count", [1, 2, 5, 6, 9, 10, 11, 1_000])
def test_the_last_committed_records_are_found(log_directory: Path, count: int) -> None:
    last = pylog.scan(log_directory, isolation="read_committed").last(count)
    assert offsets(last) == COMMITTED[-count:]
    assert offsets(last, partition=1) == [0, 1, 2][-count:]
    assert offsets(last, partition=2) == []
    assert last.count() == len(COMMITTED[-count:]) + len([0, 1, 2][-count:])


@pytest.mark.parametrize("count", [1, 5, 6, 50, 94, 95, 96, 100, 101])
def test_the_last_uncommitted_records_are_found(log_directory: Path, count: int) -> None:
    everything = sorted([*COMMITTED, *ABORTED])
    assert offsets(pylog.scan(log_directory).last(count)) == everything[-count:]


@pytest.mark.parametrize("most", [1, 3, 64])
def test_few_offsets_are_looked_through_at_once(
    log_directory: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "_MOST_OFFSETS", most)
    last = pylog.scan(log_directory, isolation="read_committed").last(7)
    assert offsets(last) == COMMITTED[-7:]


def test_a_filter_counts_what_passes(log_directory: Path) -> None:
    where = pylog.RecordFilter(keys=frozenset({b"k1", b"k3", b"k107"}))
    scan = pylog.scan(log_directory, assign={"orders": [0]}, where=where)
    assert offsets(scan.last(2)) == [3, 107]
    assert offsets(scan.last(9)) == [1, 3, 107]


def test_they_are_the_last_of_the_range_that_is_read(log_directory: Path) -> None:
    scan = pylog.scan(log_directory, assign={"orders": [0]}, start=2, end=106)
    assert offsets(scan.last(3)) == [97, 98, 99]
    assert offsets(pylog.scan(log_directory, assign={"orders": [0]}, start=2, end=4).last(3)) == [
        2,
        3,
    ]


def test_what_is_appended_afterwards_is_not_read(log_directory: Path) -> None:
    last = pylog.scan(log_directory, assign={"orders": [1]}).last(2)
    log = log_directory / "orders-1" / "00000000000000000000.log"
    log.write_bytes(log.read_bytes() + batch_v2(plain_records(3, 5)).data)
    assert offsets(last, partition=1) == [1, 2]


def test_damage_before_the_last_records_is_no_business_of_theirs(tmp_path: Path) -> None:
    bad = with_bad_crc(batch_v2(plain_records(0, 5)))
    write_partition(tmp_path, {0: [bad, batch_v2(plain_records(5, 5))]})
    scan = pylog.scan(tmp_path)
    assert offsets(scan.last(3)) == [7, 8, 9]
    with pytest.raises(CorruptRecordError, match="batch CRC stored"):
        scan.last(6)


@pytest.mark.parametrize("mode", ["DROPMALFORMED", "PERMISSIVE"])
def test_damage_between_the_last_records_is_reported_once(
    tmp_path: Path, mode: ReadModeName, caplog: pytest.LogCaptureFixture
) -> None:
    bad = with_bad_crc(batch_v2(plain_records(5, 5)))
    batches = [batch_v2(plain_records(0, 5)), bad, batch_v2(plain_records(10, 5))]
    write_partition(tmp_path, {0: batches})
    last = pylog.scan(tmp_path, mode=mode).last(7)
    assert offsets(last) == [3, 4, *range(10, 15)]
    assert len(last.damage.ranges) == 1
    assert sum("batch CRC stored" in record.getMessage() for record in caplog.records) == 1


@pytest.mark.parametrize("count", [0, -1])
def test_less_than_one_record_is_refused(log_directory: Path, count: int) -> None:
    with pytest.raises(ValueError, match=f"{count} last records were asked for"):
        pylog.scan(log_directory).last(count)

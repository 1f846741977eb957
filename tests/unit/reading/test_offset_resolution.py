from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import LogStorageError, OffsetOutOfRangeError
from tests.support.batches import ABORT, Stored, batch_v2, marker, plain_records
from tests.support.log_files import write_log_start_offsets, write_partition
from tests.support.reading import scanned

if TYPE_CHECKING:
    from pathlib import Path

ORDERS = pylog.TopicPartition("orders", 0)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Offsets 10 to 29 are served; offset o has timestamp 1000 + o."""
    segments = {
        base: [batch_v2(plain_records(base + i, 5, timestamp=1000 + base + i)) for i in (0, 5)]
        for base in (0, 10, 20)
    }
    write_partition(tmp_path, segments)
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 3))]}, name="payments-0")
    write_log_start_offsets(tmp_path, {("orders", 0): 12})
    return tmp_path


def offsets(log: Path, **options: object) -> list[int]:
    return [record.offset for record in scanned(log / "orders-0", **options)]


def test_earliest_is_the_log_start_offset_and_latest_the_end(log: Path) -> None:
    assert offsets(log) == list(range(12, 30))
    assert offsets(log, start="latest") == []
    assert offsets(log, end="earliest") == []


def test_offsets_cut_exactly(log: Path) -> None:
    assert offsets(log, start=13, end=22) == list(range(13, 22))
    assert offsets(log, start=13, end=13) == []
    assert offsets(log, start=30) == []
    assert offsets(log, start=12, end=30) == list(range(12, 30))


@pytest.mark.parametrize("option", ["start", "end"])
@pytest.mark.parametrize("offset", [0, 11, 31, 10**12])
def test_an_offset_outside_the_log_is_reported(log: Path, option: str, offset: int) -> None:
    with pytest.raises(OffsetOutOfRangeError) as caught:
        offsets(log, **{option: offset})
    assert str(caught.value) == (
        f"offset {offset} of orders-0 is out of range: the log holds offsets 12 to 30 (exclusive)"
    )


def test_an_offset_outside_the_log_may_be_moved_into_it(log: Path) -> None:
    assert offsets(log, start=0, fail_on_data_loss=False) == list(range(12, 30))
    assert offsets(log, end=10**12, fail_on_data_loss=False) == list(range(12, 30))


def test_a_start_after_the_end_is_reported(log: Path) -> None:
    with pytest.raises(LogStorageError, match="starts at offset 20, after its end offset 15"):
        offsets(log, start=20, end=15)


def test_timestamps_are_offset_lookups(log: Path) -> None:
    assert offsets(log, start=pylog.Timestamp(1020)) == list(range(20, 30))
    assert offsets(log, start=pylog.Timestamp(0), end=pylog.Timestamp(1015)) == [12, 13, 14]
    assert offsets(log, end=pylog.Timestamp(99_999)) == list(range(12, 30))
    at = dt.datetime.fromtimestamp(1.025, tz=dt.UTC)
    assert offsets(log, start=at) == list(range(25, 30))


def test_a_start_later_than_every_record_is_an_error_or_the_end(log: Path) -> None:
    with pytest.raises(LogStorageError, match="no record of orders-0 has a timestamp of 2000 ms"):
        offsets(log, start=pylog.Timestamp(2000))
    assert offsets(log, start=pylog.Timestamp(2000, if_missing="latest")) == []


def test_the_max_timestamp_is_a_position(log: Path) -> None:
    assert offsets(log, start="max_timestamp") == [29]


def test_positions_may_be_given_by_topic_or_partition(log: Path) -> None:
    found = scanned(log, start={("orders", 0): 28, "payments": 1})
    assert [record.offset for record in found] == [28, 29, 1, 2]
    found = scanned(log, end={"orders": 13})
    assert [record.offset for record in found] == [12, 0, 1, 2]


def test_a_position_for_what_is_not_read_is_refused(log: Path) -> None:
    for specs in ({"orderz": 1}, {("orders", 9): 1}, {ORDERS: 1, "x": 2}):
        with pytest.raises(ValueError, match="which is not read; partitions read: orders-0, pay"):
            pylog.scan(log, start=specs)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a position is given for orders"):
        pylog.scan(log, topics="payments", start={"orders": 1})


def test_under_read_committed_latest_is_the_last_stable_offset(tmp_path: Path) -> None:
    batches = [
        batch_v2(plain_records(0, 2)),
        batch_v2(plain_records(2, 2), is_transactional=True, producer_id=1),
        batch_v2(plain_records(4, 2)),
    ]
    directory = write_partition(tmp_path, {0: batches})
    for options in ({}, {"end": "latest"}, {"end": 6}, {"end": 5}):
        found = scanned(directory, isolation="read_committed", **options)
        assert [record.offset for record in found] == [0, 1]
    assert scanned(directory, isolation="read_committed", start=5) == []
    aborted = write_partition(tmp_path, {0: [*batches, marker(6, ABORT)]}, name="orders-1")
    found = scanned(aborted, isolation="read_committed")
    assert [record.offset for record in found] == [0, 1, 4, 5]


def test_a_time_found_after_the_last_stable_offset_is_not_an_answer(tmp_path: Path) -> None:
    late = [Stored(2, 9_000, None, None)]
    batches = [batch_v2(plain_records(0, 2)), batch_v2(late, is_transactional=True, producer_id=1)]
    directory = write_partition(tmp_path, {0: batches})
    with pytest.raises(LogStorageError, match="no record of orders-0 has a timestamp of 9000"):
        scanned(directory, isolation="read_committed", start=pylog.Timestamp(9_000))
    assert len(scanned(directory, start=pylog.Timestamp(9_000))) == 1

from __future__ import annotations

import datetime as dt
import os
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest

import pylog
from pylog.errors import (
    CorruptRecordError,
    InvalidRecordError,
    LogStorageError,
    OffsetOutOfRangeError,
)
from pylog.files.byte_source import LocalFile
from pylog.reading.offset_resolution import find_max_timestamp, find_offset_for_timestamp
from tests.support.batches import (
    ABORT,
    COMMIT,
    Built,
    Stored,
    batch_v2,
    batch_v2_of,
    empty_batch_v2,
    marker,
    message,
    plain_records,
    with_bad_crc,
    wrapper,
)
from tests.support.log_files import (
    segment_path,
    time_index_bytes,
    write_log_start_offsets,
    write_partition,
)
from tests.support.reading import scanned

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.reading.log_view import LogView

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


def view(directory: Path) -> LogView:
    (found,) = pylog.open_directory(directory)
    return found


@contextmanager
def bytes_read() -> Iterator[Counter[str]]:
    """Count the bytes that are read of local files, by the files' suffix."""
    counted: Counter[str] = Counter()
    read_at, read_into = LocalFile.read_at, LocalFile.read_into

    def note_read_at(self: LocalFile, position: int, length: int) -> bytes:
        data = read_at(self, position, length)
        counted[Path(self.path).suffix] += len(data)
        return data

    def note_read_into(self: LocalFile, position: int, buffer: memoryview) -> int:
        count = read_into(self, position, buffer)
        counted[Path(self.path).suffix] += count
        return count

    with (
        mock.patch.object(LocalFile, "read_at", note_read_at),
        mock.patch.object(LocalFile, "read_into", note_read_into),
    ):
        yield counted


def record_at(offset: int, timestamp: int) -> Stored:
    return Stored(offset, timestamp, None, None)


def test_little_is_read_of_the_time_index_of_each_earlier_segment(tmp_path: Path) -> None:
    count, batches = 20, 300
    segments = {
        base: [batch_v2([record_at(base + i, base + i)]) for i in range(batches)]
        for base in range(0, count * batches, batches)
    }
    directory = write_partition(tmp_path, segments)
    last = count * batches - 1
    log_view = view(directory)
    with bytes_read() as counted:
        assert find_offset_for_timestamp(log_view, last) == (last, last)
    # The last segment is searched: a page or two more.
    assert segment_path(directory, 0, ".timeindex").stat().st_size > 11 * batches
    assert counted[".timeindex"] <= count * 256 + 3 * 4_096


def test_a_time_index_that_lost_its_last_entries_hides_nothing(tmp_path: Path) -> None:
    first = [batch_v2([record_at(i, 100 + i)]) for i in range(10)]
    directory = write_partition(tmp_path, {0: first, 10: [batch_v2([record_at(10, 50)])]})
    os.truncate(segment_path(directory, 0, ".timeindex"), 3 * 12)
    assert find_offset_for_timestamp(view(directory), 108) == (108, 8)
    assert find_max_timestamp(view(directory)) == (109, 9)


@pytest.mark.parametrize("entry", [(105, 9), (100, 5), (104, 8)])
def test_a_time_index_entry_that_its_batch_does_not_bear_out_is_not_believed(
    tmp_path: Path, entry: tuple[int, int]
) -> None:
    directory = write_partition(
        tmp_path, {0: [batch_v2([record_at(i, 100 + i)]) for i in range(10)]}
    )
    segment_path(directory, 0, ".timeindex").write_bytes(time_index_bytes([entry], 0))
    for stamp in range(100, 110):
        assert find_offset_for_timestamp(view(directory), stamp) == (stamp, stamp - 100)
    assert find_max_timestamp(view(directory)) == (109, 9)


def test_entries_that_go_back_before_one_are_reason_enough_not_to_believe_it(
    tmp_path: Path,
) -> None:
    stamps = (300, 200, 400)
    batches = [batch_v2([record_at(i, stamp)]) for i, stamp in enumerate(stamps)]
    directory = write_partition(tmp_path, {0: batches})
    entries = [(stamp, i) for i, stamp in enumerate(stamps)]
    segment_path(directory, 0, ".timeindex").write_bytes(time_index_bytes(entries, 0))
    assert find_offset_for_timestamp(view(directory), 250) == (300, 0)


def test_a_batch_that_compaction_emptied_has_no_timestamp(tmp_path: Path) -> None:
    batches = [
        batch_v2([record_at(0, 70)]),
        empty_batch_v2(1, 4, max_timestamp=900),
        batch_v2([record_at(5, 80)]),
    ]
    directory = write_partition(tmp_path, {0: batches, 6: [batch_v2([record_at(6, 60)])]})
    assert find_max_timestamp(view(directory)) == (80, 5)
    assert find_offset_for_timestamp(view(directory), 75) == (80, 5)
    assert find_offset_for_timestamp(view(directory), 900) is None


def test_a_wrapper_whose_time_no_message_has_is_not_the_latest(tmp_path: Path) -> None:
    # KAFKA-4298: a v1 wrapper stamped by the broker around v0 messages, which have no time.
    odd = wrapper([record_at(0, 5)], magic=1, codec="gzip", inner_magic=0, append_time=900)
    directory = write_partition(tmp_path, {0: [odd, batch_v2([record_at(1, 80)])]})
    assert find_max_timestamp(view(directory)) == (80, 1)


def test_control_records_count(tmp_path: Path) -> None:
    batches = [batch_v2([record_at(0, 10)]), marker(1, COMMIT, timestamp=500)]
    directory = write_partition(tmp_path, {0: batches})
    assert find_max_timestamp(view(directory)) == (500, 1)
    assert find_offset_for_timestamp(view(directory), 11) == (500, 1)


def test_format_v0_has_no_timestamps(tmp_path: Path) -> None:
    directory = write_partition(
        tmp_path, {0: [message(record, magic=0) for record in plain_records(0, 3)]}
    )
    assert find_max_timestamp(view(directory)) is None
    assert find_offset_for_timestamp(view(directory), 0) is None


def test_an_old_entry_names_a_record_within_a_batch(tmp_path: Path) -> None:
    # Leaders up to 3.7 stored the record's own offset.
    batches = [
        batch_v2([record_at(0, 10)]),
        batch_v2([record_at(1, 20), record_at(2, 40), record_at(3, 30)]),
    ]
    directory = write_partition(tmp_path, {0: batches, 4: []}, with_time_index=False)
    path = segment_path(directory, 0, ".timeindex")
    path.write_bytes(time_index_bytes([(10, 0), (40, 2)], 0))
    assert find_offset_for_timestamp(view(directory), 25) == (40, 2)
    assert find_max_timestamp(view(directory)) == (40, 2)


def test_records_that_break_the_format_are_an_error_of_whoever_looks_for_a_time(
    tmp_path: Path,
) -> None:
    sound = batch_v2([record_at(0, 10)])
    broken = batch_v2_of(b"\xff" * 20, base_offset=1, base_timestamp=20, max_timestamp=20)
    batches = [sound, Built(broken, (), 2, 1, 1, 20), batch_v2([record_at(2, 30)])]
    directory = write_partition(tmp_path, {0: batches}, with_time_index=False)
    with pytest.raises(InvalidRecordError, match="the batch's records"):
        find_offset_for_timestamp(view(directory), 15)


def test_damage_that_has_to_be_looked_at_is_reported(tmp_path: Path) -> None:
    batches = [
        batch_v2([record_at(0, 10)]),
        with_bad_crc(batch_v2([record_at(1, 20)])),
        batch_v2([record_at(2, 30)]),
    ]
    directory = write_partition(tmp_path, {0: batches}, with_time_index=False)
    assert find_offset_for_timestamp(view(directory), 10) == (10, 0)
    with pytest.raises(CorruptRecordError, match="batch CRC stored"):
        find_offset_for_timestamp(view(directory), 15)

"""What a rolled segment gives back in the background costs nothing that is still in use."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from pylog.config import LogConfig
from pylog.files.clean_shutdown import read_clean_shutdown
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.model import TopicPartition
from pylog.record.record_batch_builder import RecordBatchBuilder
from pylog.testing import ManualClock, ManualScheduler
from tests.support.batches import batch_v2, plain_records

PARTITION = TopicPartition("orders", 0)
CONFIG = LogConfig(segment_bytes=1_000, index_interval_bytes=0)
OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE = 8, 12


def batch() -> bytes:
    builder = RecordBatchBuilder()
    builder.append(1_000, None, b"v" * 200)
    return builder.build()


def test_a_segment_that_became_active_again_keeps_its_indexes(tmp_path: Path) -> None:
    clock = ManualClock()
    scheduler = ManualScheduler(clock)
    context = LogContext(clock=clock, scheduler=scheduler)
    with LogManager([tmp_path], CONFIG, context=context) as manager:
        log = manager.get_or_create_log(PARTITION)
        for _ in range(10):
            log.append_as_leader(batch())
        assert [each.base_offset for each in log.segments] == [0, 3, 6, 9]
        log.truncate_to(5)  # before the background flush of the rolls
        scheduler.tick()
        assert [each.base_offset for each in log.segments] == [0, 3]
        for _ in range(2):
            log.append_as_leader(batch())
        active = log.segments[-1]
        assert active.offset_index.entries <= 3
        assert active.time_index.entries <= 2
    directory = tmp_path / "orders-0"
    for base_offset in (0, 3, 6):
        assert (directory / f"{base_offset:020}.index").stat().st_size <= 3 * OFFSET_ENTRY_SIZE
        assert (directory / f"{base_offset:020}.timeindex").stat().st_size <= 2 * TIME_ENTRY_SIZE


def open_files_in(directory: Path) -> set[str]:
    """Return the names of the files of a directory for which this process has descriptors."""
    names = set()
    for number in os.listdir("/proc/self/fd"):  # noqa: PTH208 - one of them is its own
        with contextlib.suppress(FileNotFoundError):
            path = Path("/proc/self/fd", number).readlink()
            if path.parent == directory:
                names.add(path.name)
    return names


def test_rolled_segments_give_their_descriptors_back_once_they_are_flushed(tmp_path: Path) -> None:
    clock = ManualClock()
    scheduler = ManualScheduler(clock)
    context = LogContext(clock=clock, scheduler=scheduler)
    with LogManager([tmp_path], CONFIG, context=context) as manager:
        log = manager.get_or_create_log(PARTITION)
        for _ in range(10):
            log.append_as_leader(batch())
        logs = {f"{base_offset:020}.log" for base_offset in (0, 3, 6, 9)}
        assert logs <= open_files_in(tmp_path / "orders-0")
        scheduler.tick()
        of_the_active_one = {f"{9:020}{suffix}" for suffix in (".log", ".index", ".timeindex")}
        assert open_files_in(tmp_path / "orders-0") <= of_the_active_one


def test_who_still_holds_a_deleted_segment_makes_none_of_its_files_again(tmp_path: Path) -> None:
    """A flush in the background may have taken it from the log before it was deleted."""
    clock = ManualClock()
    scheduler = ManualScheduler(clock)
    context = LogContext(clock=clock, scheduler=scheduler)
    config = LogConfig(segment_bytes=1_000, index_interval_bytes=0, file_delete_delay_ms=0)
    with LogManager([tmp_path], config, context=context) as manager:
        log = manager.get_or_create_log(PARTITION)
        for _ in range(10):
            log.append_as_leader(batch())
        segment = log.segments[1]
        segment.release()  # as after the flush of a roll
        log.truncate_to(2)
        segment.flush()
        scheduler.tick()
        segment.flush()
        assert segment.offset_index.lookup(4).position == 0
        names = {path.name for path in (tmp_path / "orders-0").iterdir()}
        assert {name for name in names if name.endswith((".index", ".timeindex", ".deleted"))} == {
            "00000000000000000000.index",
            "00000000000000000000.timeindex",
        }


@pytest.mark.parametrize(
    ("given", "expected"), [(None, 15), (16, 16)], ids=["what was found", "what is given"]
)
def test_the_broker_epoch_of_the_marker_outlives_us(
    tmp_path: Path, given: int | None, expected: int
) -> None:
    marker = tmp_path / ".kafka_cleanshutdown"
    marker.write_bytes(b'{"version":0,"brokerEpoch":15}')
    with LogManager([tmp_path], broker_epoch=given):
        assert not marker.exists()
    found = read_clean_shutdown(marker)
    assert found is not None
    assert found.broker_epoch == expected


def test_an_append_that_is_refused_halfway_leaves_no_index_entries(tmp_path: Path) -> None:
    """Else records appended later would be looked for where they point to."""
    records = b"".join(
        batch_v2(plain_records(offset, 1, value_size=200)).data for offset in range(6)
    )
    # Room for 4 offset entries; the set would have 5.
    config = LogConfig(segment_index_bytes=36, index_interval_bytes=0)
    with LogManager([tmp_path], config) as manager:
        log = manager.get_or_create_log(PARTITION)
        segment = log.segments[0]
        with pytest.raises(ValueError, match="do not fit"):
            log.append_as_follower(records)
        assert (segment.offset_index.entries, segment.time_index.entries) == (0, 0)
        assert (log.log_end_offset, log.size_bytes) == (0, 0)
        assert segment.first_batch_timestamp() is None
        again = batch_v2(plain_records(0, 6, value_size=200)).data
        log.append_as_follower(again)
        assert log.read(3, 10_000).records == again

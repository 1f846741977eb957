"""`LogManager.metrics`: sizes, offsets and counts of logs, by the names of Kafka's JMX metrics."""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

import pylog
from pylog.config import LogConfig
from pylog.errors import KafkaStorageError, RecordBatchTooLargeError, RecordTooLargeError
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.model import TopicPartition
from pylog.record.batch_scan import find_batches
from pylog.testing import ManualClock, ManualScheduler
from tests.support.recording_io import Fault, FaultyIO
from tests.unit.log.owned_log import NOW_MS, of_magic, one_batch, stored

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pylog.log.unified_log import UnifiedLog

ORDERS = TopicPartition("orders", 0)
EVENTS = TopicPartition("events", 3)
ONE = one_batch(b"value")


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[LogManager]:
    clock = ManualClock(NOW_MS)
    context = LogContext(clock=clock, scheduler=ManualScheduler(clock))
    config = LogConfig(segment_bytes=400, max_message_bytes=300)
    with LogManager([tmp_path], config, context=context) as manager:
        yield manager


@pytest.fixture
def log(manager: LogManager) -> UnifiedLog:
    return manager.get_or_create_log(ORDERS)


def test_sizes_and_offsets_are_those_of_now(manager: LogManager, log: UnifiedLog) -> None:
    for _ in range(7):
        log.append_as_leader(ONE)
    log.delete_records(3)
    manager.get_or_create_log(EVENTS)
    metrics = manager.metrics()
    assert list(metrics.logs) == [EVENTS, ORDERS]
    orders = metrics.logs[ORDERS]
    assert orders.size == 7 * len(ONE)
    # 400 bytes hold five batches of 73.
    assert orders.num_log_segments == 2
    assert (orders.log_start_offset, orders.log_end_offset) == (3, 7)
    empty = metrics.logs[EVENTS]
    assert (empty.size, empty.num_log_segments, empty.log_end_offset) == (0, 1, 0)


def test_they_are_frozen_and_public(manager: LogManager, log: UnifiedLog) -> None:
    before = log.metrics()
    log.append_as_leader(ONE)
    assert (before.log_end_offset, before.bytes_in) == (0, 0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        before.bytes_in = 1  # type: ignore[misc]
    assert isinstance(manager.metrics(), pylog.logs.LogManagerMetrics)
    assert isinstance(before, pylog.logs.LogMetrics)
    assert manager.metrics().cleaner is None


def test_what_is_appended_is_counted_by_every_way_in(log: UnifiedLog, tmp_path: Path) -> None:
    """One batch, many, those of a follower with a gap, and batches that are finished."""
    two = one_batch(b"a", b"b")
    log.append_as_leader(two)
    log.append_batches_as_leader(bytearray(two + two + two))
    assert (log.metrics().bytes_in, log.metrics().messages_in) == (4 * len(two), 8)

    follower = one_batch(b"a", b"b", base_offset=20)
    log.append_as_follower(follower, 0)
    assert (log.metrics().bytes_in, log.metrics().messages_in) == (4 * len(two) + len(follower), 10)

    finished = bytearray(one_batch(b"a", b"b", b"c", base_offset=22))
    headers = find_batches(np.frombuffer(finished, dtype=np.uint8)).headers
    log.append_finished(memoryview(finished), headers)
    file = tmp_path / "staged"
    file.write_bytes(adopted := one_batch(b"a", base_offset=25))
    log.adopt_segment(str(file), find_batches(np.frombuffer(adopted, dtype=np.uint8)).headers)
    assert log.metrics().messages_in == 14
    assert log.metrics().bytes_in == log.size_bytes


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_messages_of_old_formats_are_counted_as_offsets(
    log: UnifiedLog, magic: int, codec: str
) -> None:
    records = stored(b"a", b"b", b"c")
    log.append_as_leader(of_magic(magic, records, codec))
    log.append_as_follower(of_magic(magic, stored(b"a", b"b", base_offset=10), codec))
    assert log.metrics().messages_in == 5
    assert log.metrics().bytes_in == log.size_bytes


def test_a_repeated_batch_is_not_counted_again(log: UnifiedLog) -> None:
    batch = one_batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    log.append_as_leader(batch)
    assert log.append_as_leader(batch).is_duplicate
    assert (log.metrics().messages_in, log.metrics().bytes_in) == (1, len(batch))


def test_rejected_bytes_are_those_above_the_largest_message(log: UnifiedLog) -> None:
    large = one_batch(b"x" * 300)
    for _ in range(2):
        with pytest.raises(RecordTooLargeError):
            log.append_as_leader(large)
    with pytest.raises(RecordTooLargeError):
        log.append_batches_as_leader(ONE + large)
    # As in Kafka, where another reason to refuse an append does not count.
    with pytest.raises(RecordBatchTooLargeError):
        log.append_as_follower(
            one_batch(b"x" * 300, base_offset=1) + one_batch(b"x" * 300, base_offset=2)
        )
    metrics = log.metrics()
    assert metrics.bytes_rejected == 3 * len(large)
    assert (metrics.bytes_in, metrics.messages_in) == (len(ONE), 1)


def test_rejected_bytes_of_many_threads_are_all_counted(log: UnifiedLog) -> None:
    large = one_batch(b"x" * 300)

    def refuse() -> None:
        for _ in range(50):
            with pytest.raises(RecordTooLargeError):
                log.append_as_leader(large)

    threads = [threading.Thread(target=refuse) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log.metrics().bytes_rejected == 200 * len(large)


def test_a_flush_counts_where_there_was_something_to_flush(log: UnifiedLog) -> None:
    log.append_as_leader(ONE)
    log.flush()
    log.flush()
    metrics = log.metrics()
    assert metrics.log_flush_count == 1
    assert metrics.log_flush_time_ms >= 0
    log.append_as_leader(ONE)
    log.flush()
    assert log.metrics().log_flush_count == 2


def test_what_retention_deletes_is_counted(manager: LogManager, log: UnifiedLog) -> None:
    for _ in range(12):
        log.append_as_leader(ONE)
    assert (log.metrics().deleted_segments, log.metrics().deleted_bytes) == (0, 0)
    log.delete_records(10)
    assert [each.base_offset for each in log.delete_old_segments(NOW_MS)] == [0, 5]
    metrics = manager.metrics().logs[ORDERS]
    assert (metrics.deleted_segments, metrics.deleted_bytes) == (2, 10 * len(ONE))
    assert (metrics.size, metrics.num_log_segments, metrics.log_start_offset) == (
        2 * len(ONE),
        1,
        10,
    )


def test_a_directory_whose_disk_failed_is_named(tmp_path: Path) -> None:
    sound, failing = tmp_path / "sound", tmp_path / "failing"
    io = FaultyIO(Fault(path_end="orders-0/00000000000000000000.log", forever=True))
    manager = LogManager([failing, sound], context=LogContext(io=io))
    manager.startup()
    try:
        with pytest.raises(KafkaStorageError):
            manager.get_or_create_log(ORDERS).append_as_leader(ONE)
        metrics = manager.metrics()
        assert metrics.offline_log_directories == (str(failing),)
        assert metrics.offline_log_directory_count == 1
    finally:
        manager.abandon()

"""Retention in the background of a manager that was started for it."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from pylog.config import LogConfig, LogManagerConfig
from pylog.errors import OffsetOutOfRangeError
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.model import TopicPartition
from pylog.testing import ManualClock, ManualScheduler
from tests.support.crash_replay import Kind
from tests.support.recording_io import Fault, FaultyIO
from tests.unit.log.owned_log import NOW_MS, one_batch, records_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pylog.files.durable_io import DurableIO
    from pylog.log.unified_log import UnifiedLog

SIZE = len(one_batch(b"value", key=b"k"))
CONFIG = LogConfig(segment_bytes=2 * SIZE, retention_ms=1000, file_delete_delay_ms=5000)
DELAY_MS, INTERVAL_MS = 30_000, 300_000
ORDERS, EVENTS = TopicPartition("orders", 0), TopicPartition("events", 0)


class Owner:
    """A manager on a clock that stands still."""

    def __init__(
        self,
        directory: Path,
        config: LogConfig | None = CONFIG,
        *,
        runs_retention: bool = True,
        io: DurableIO | None = None,
        topic_configs: dict[str, LogConfig] | None = None,
    ) -> None:
        self.clock = ManualClock(NOW_MS)
        self.scheduler = ManualScheduler(self.clock)
        context = LogContext(clock=self.clock, scheduler=self.scheduler)
        if io is not None:
            context.io = io
        self.manager = LogManager(
            [directory],
            config,
            topic_configs=topic_configs,
            context=context,
            runs_retention=runs_retention,
        )

    def pass_time(self, milliseconds: int) -> None:
        self.clock.sleep(milliseconds)
        self.scheduler.tick()


def fill(manager: LogManager, topic_partition: TopicPartition) -> UnifiedLog:
    """Append five records, which makes three segments."""
    log = manager.get_or_create_log(topic_partition)
    for _ in range(5):
        log.append_as_leader(one_batch(b"value", key=b"k", timestamp=NOW_MS))
    return log


def bases(log: UnifiedLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_old_segments_are_removed_on_schedule(tmp_path: Path) -> None:
    owner = Owner(tmp_path)
    with owner.manager as manager:
        log = fill(manager, ORDERS)
        owner.pass_time(DELAY_MS - 1)
        assert bases(log) == [0, 2, 4]
        owner.pass_time(1)
        assert bases(log) == [5]
        assert len(list(tmp_path.glob("*/*.log.deleted"))) == 3
        owner.pass_time(5000)
        assert list(tmp_path.glob("*/*.deleted")) == []
        log.append_as_leader(one_batch(b"value", key=b"k", timestamp=NOW_MS))
        owner.pass_time(INTERVAL_MS - 5001)
        assert bases(log) == [5]
        owner.pass_time(1)
        assert bases(log) == [6]


def test_a_manager_that_is_not_asked_to_removes_nothing(tmp_path: Path) -> None:
    owner = Owner(tmp_path, runs_retention=False)
    with owner.manager as manager:
        log = fill(manager, ORDERS)
        owner.pass_time(DELAY_MS + 10 * INTERVAL_MS)
        assert bases(log) == [0, 2, 4]


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_compacted_logs_are_left_to_the_cleaner(tmp_path: Path, policy: str) -> None:
    compacted = CONFIG.with_properties({"cleanup.policy": policy})
    owner = Owner(tmp_path, topic_configs={"events": compacted})
    with owner.manager as manager:
        orders, events = fill(manager, ORDERS), fill(manager, EVENTS)
        events.maybe_increment_log_start_offset(4)
        owner.pass_time(DELAY_MS)
        assert (bases(orders), bases(events)) == ([5], [0, 2, 4])


def test_topics_of_which_nothing_is_known_are_left_alone_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Owner(tmp_path).manager as manager:
        fill(manager, ORDERS)
        fill(manager, EVENTS)
        manager.store_topic_config("events", {"retention.ms": "1000"})
    owner = Owner(tmp_path, config=None)
    with owner.manager as manager, caplog.at_level(logging.WARNING):
        owner.pass_time(DELAY_MS)
        owner.pass_time(INTERVAL_MS)
        assert len(bases(manager.get_log(ORDERS))) > 1
        assert bases(manager.get_log(EVENTS)) == [5]
        assert [each.getMessage() for each in caplog.records] == [
            "retention leaves topic orders alone: nobody has said what it is configured to"
        ]
        manager.store_topic_config("orders", {"retention.ms": "1000"})
        owner.pass_time(INTERVAL_MS)
        assert bases(manager.get_log(ORDERS)) == [5]


def test_a_directory_that_fails_does_not_keep_the_others_from_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    io = FaultyIO()
    clock = ManualClock(NOW_MS)
    scheduler = ManualScheduler(clock)
    manager = LogManager(
        [tmp_path / "one", tmp_path / "two"],
        LogConfig(segment_bytes=2 * SIZE, retention_bytes=1),
        context=LogContext(io=io, clock=clock, scheduler=scheduler),
        runs_retention=True,
    )
    manager.startup()
    events, orders = fill(manager, EVENTS), fill(manager, ORDERS)
    assert events.log_directory != orders.log_directory
    scheduler.tick()  # what was rolled is flushed
    fault = Fault(kinds=frozenset({Kind.REPLACE}), path_end="events-0/00000000000000000002.log")
    io.faults = [fault]
    clock.sleep(DELAY_MS)
    scheduler.tick()
    assert bases(orders) == [4]
    assert "retention of events-0: " in caplog.text
    manager.abandon()
    # What was removed until then is a beginning, and nothing is missing in between.
    names = [path.name for path in sorted((tmp_path / "one").glob("events-0/*.log"))]
    assert names == [f"{base:020}.log" for base in (2, 4)]


def repeat_all(works: list[Callable[[], None]], seconds: float) -> None:
    """Call each of some functions again and again, in a thread of its own."""
    failures: list[BaseException] = []
    stop = threading.Event()

    def run(work: Callable[[], None]) -> None:
        try:
            while not stop.is_set():
                work()
        except BaseException as error:  # noqa: BLE001 - raised below
            failures.append(error)
            stop.set()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    stop.wait(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def read_some(log: UnifiedLog) -> None:
    """Read from the log's start, and expect every offset from there on, or none."""
    start = log.log_start_offset
    with suppress(OffsetOutOfRangeError):  # retention was faster
        records = records_in(log.read(start, 10 * SIZE).records)
        offsets = [record.offset for record in records]
        assert offsets == list(range(start, start + len(offsets)))


def ensure_whole(log: UnifiedLog) -> None:
    """Expect every offset from the log's start to its end, once."""
    offset = log.log_start_offset
    while records := records_in(log.read(offset, 30 * SIZE).records):
        assert records[0].offset == offset
        offset += len(records)
    assert offset == log.log_end_offset


def test_threads_append_read_and_truncate_meanwhile(tmp_path: Path) -> None:
    config = LogConfig(
        segment_bytes=20 * SIZE,
        retention_bytes=50 * SIZE,
        retention_ms=-1,
        file_delete_delay_ms=0,
    )
    settings = LogManagerConfig(initial_task_delay_ms=0, retention_check_interval_ms=1)
    with LogManager([tmp_path], config, manager_config=settings, runs_retention=True) as manager:
        logs = [manager.get_or_create_log(TopicPartition("orders", each)) for each in range(2)]
        truncated = manager.get_or_create_log(TopicPartition("truncated", 0))

        def append() -> None:
            for log in (*logs, truncated):
                log.append_as_leader(one_batch(b"value", key=b"k"))

        def read() -> None:
            for log in logs:
                read_some(log)

        def truncate() -> None:
            time.sleep(0.01)
            truncated.truncate_to(max(truncated.log_start_offset, truncated.log_end_offset - 7))

        for _ in range(30):  # a busy machine does little in a second
            repeat_all([append, append, read, read, truncate], seconds=1)
            if all(log.log_start_offset > 0 for log in logs):
                break
        assert all(log.log_start_offset > 0 for log in logs)
        ends = {each: log.log_end_offset for each, log in manager.logs.items()}
    with LogManager([tmp_path], config) as manager:
        assert {each: log.log_end_offset for each, log in manager.logs.items()} == ends
        for log in manager.logs.values():
            log.delete_old_segments()
            ensure_whole(log)
        assert all(manager.logs[log.topic_partition].size_bytes >= 50 * SIZE for log in logs)
        assert all(manager.logs[log.topic_partition].size_bytes < 70 * SIZE for log in logs)

"""Log directories from start-up to shutdown: locks, checkpoints, schedules, topics, failures.

The cases are those of Kafka's LogManagerTest and CleanShutdownFileHandlerTest;
``tests/kafka_tests.md`` says which is which.
"""

from __future__ import annotations

import json
import os
import random
import threading
import uuid
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pylog.config import LogConfig, LogManagerConfig
from pylog.errors import (
    KafkaStorageError,
    LogLockedError,
    UnexpectedFileError,
    UnknownTopicOrPartitionError,
)
from pylog.files.durable_io import DurableIO
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.model import TopicPartition
from pylog.testing import ManualClock, ManualScheduler
from tests.support.crash_replay import Kind
from tests.support.recording_io import Fault, FaultyIO
from tests.unit.log.owned_log import NOW_MS, one_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pylog.log.unified_log import UnifiedLog

ORDERS = TopicPartition("orders", 0)
EVENTS = TopicPartition("events", 3)
CONFIG = LogConfig(segment_bytes=210, segment_index_bytes=1200, file_delete_delay_ms=1000)
SETTINGS = LogManagerConfig(initial_task_delay_ms=30_000, flush_scheduler_interval_ms=10_000)
MARKER = ".kafka_cleanshutdown"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"


class Made(NamedTuple):
    """A manager and what its time hangs on."""

    manager: LogManager
    clock: ManualClock
    scheduler: ManualScheduler

    def pass_time(self, milliseconds: int) -> None:
        self.clock.sleep(milliseconds)
        self.scheduler.tick()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Made]]:
    """Give a function that makes managers, of ``tmp_path`` if nothing else is said."""
    made: list[Made] = []

    def make(
        *directories: str | os.PathLike[str],
        config: LogConfig = CONFIG,
        topic_configs: dict[str, LogConfig] | None = None,
        io: DurableIO | None = None,
        broker_epoch: int = -1,
        settings: LogManagerConfig = SETTINGS,
    ) -> Made:
        clock = ManualClock(NOW_MS)
        scheduler = ManualScheduler(clock)
        manager = LogManager(
            directories or [tmp_path],
            config,
            topic_configs=topic_configs,
            manager_config=settings,
            context=LogContext(
                io=io or DurableIO(), clock=clock, scheduler=scheduler, random=random.Random(1)
            ),
            broker_epoch=broker_epoch,
        )
        made.append(Made(manager, clock, scheduler))
        return made[-1]

    yield make
    for each in made:
        each.manager.abandon()


def append(log: UnifiedLog, count: int = 1) -> None:
    for _ in range(count):
        log.append_as_leader(one_batch(b"value", timestamp=NOW_MS))


def checkpoint(directory: Path, name: str) -> dict[str, int]:
    version, count, *lines = (directory / name).read_text().splitlines()
    assert (version, int(count)) == ("0", len(lines))
    return {"-".join(line.split()[:2]): int(line.split()[2]) for line in lines}


def test_a_log_is_made_at_its_first_use_with_a_topic_id(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    manager = make().manager.startup()
    identity = uuid.UUID("4ee74a38-df66-4a2f-8e8d-d61cb6f3aa9a")
    log = manager.get_or_create_log(ORDERS, identity)
    assert manager.get_or_create_log(ORDERS) is log
    assert manager.get_log(ORDERS) is log
    assert (tmp_path / "orders-0" / "partition.metadata").read_text() == (
        "version: 0\ntopic_id: TudKON9mSi-OjdYctvOqmg"
    )
    append(log)
    assert log.log_end_offset == 1


def test_the_topic_id_is_written_before_the_log_is_given_out(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    io = FaultyIO(Fault(path_end="partition.metadata.tmp", forever=True))
    manager = make(io=io).manager.startup()
    with pytest.raises(KafkaStorageError, match=r"partition\.metadata"):
        manager.get_or_create_log(ORDERS)
    assert manager.logs == {}
    assert not list(tmp_path.glob("orders-0/partition.metadata"))


def test_a_log_that_is_not_there_is_not_made_by_asking(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    manager = make().manager.startup()
    with pytest.raises(UnknownTopicOrPartitionError, match="orders-0"):
        manager.get_log(ORDERS)
    assert manager.logs == {}
    assert not (tmp_path / "orders-0").exists()


@pytest.mark.parametrize(
    "topic_partition",
    [
        TopicPartition("", 0),
        TopicPartition("..", 0),
        TopicPartition("a/b", 0),
        TopicPartition("a" * 250, 0),
        TopicPartition("orders", -1),
        TopicPartition("orders", 2**31),
        TopicPartition("a" * 249, 100_000),  # 256 characters, one more than a file system takes
    ],
)
def test_a_log_that_kafka_would_not_allow_is_refused(
    make: Callable[..., Made], topic_partition: TopicPartition, tmp_path: Path
) -> None:
    manager = make().manager.startup()
    with pytest.raises(ValueError, match=r".+"):
        manager.get_or_create_log(topic_partition)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def test_a_log_goes_where_the_fewest_are(make: Callable[..., Made], tmp_path: Path) -> None:
    directories = [tmp_path / str(number) for number in range(3)]
    manager = make(*directories).manager.startup()
    for number in range(20):
        manager.get_or_create_log(TopicPartition("test", number))
        counts = [len(list(each.glob("test-*"))) for each in directories]
        assert max(counts) - min(counts) <= 1
        assert sum(counts) == number + 1


@pytest.mark.parametrize("topic", ["orders", "a" * 249])
def test_a_deleted_log_is_renamed_at_once_and_removed_later(
    make: Callable[..., Made], tmp_path: Path, topic: str
) -> None:
    made = make()
    manager = made.manager.startup()
    name = TopicPartition(topic, 0)
    log = manager.get_or_create_log(name)
    manager.get_or_create_log(EVENTS)
    append(log, 5)
    manager.delete_log(name)
    assert list(manager.logs) == [EVENTS]
    assert not (tmp_path / str(name)).exists()
    (left,) = tmp_path.glob("*-delete")
    assert len(left.name) <= 255
    assert checkpoint(tmp_path, RECOVERY_POINTS) == {"events-3": 0}
    made.pass_time(CONFIG.file_delete_delay_ms - 1)
    assert left.exists()
    made.pass_time(1)
    assert not left.exists()
    with pytest.raises(UnknownTopicOrPartitionError):
        manager.delete_log(name)
    assert manager.get_or_create_log(name).log_end_offset == 0


def test_who_still_holds_a_deleted_log_does_no_harm_to_the_others(
    make: Callable[..., Made],
) -> None:
    manager = make().manager.startup()
    deleted, kept = manager.get_or_create_log(ORDERS), manager.get_or_create_log(EVENTS)
    manager.delete_log(ORDERS)
    with pytest.raises(KafkaStorageError, match="closed"):
        append(deleted)
    append(kept)
    manager.shutdown()


def test_what_a_deletion_left_is_removed_after_the_next_start(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    left = tmp_path / "orders-0.4ee74a38df664a2f8e8dd61cb6f3aa9a-delete"
    left.mkdir()
    (left / f"{0:020d}.log").write_bytes(b"")
    made = make()
    manager = made.manager.startup()
    assert (manager.logs, manager.loadings) == ({}, [])
    made.pass_time(CONFIG.file_delete_delay_ms)
    assert not left.exists()


def test_files_of_deleted_segments_go_after_the_delay(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    made = make()
    log = made.manager.startup().get_or_create_log(ORDERS)
    append(log, 8)
    log.truncate_to(2)
    assert list(tmp_path.glob("orders-0/*.deleted")) != []
    made.pass_time(CONFIG.file_delete_delay_ms)
    assert list(tmp_path.glob("orders-0/*.deleted")) == []


def test_topics_have_their_own_configuration(make: Callable[..., Made], tmp_path: Path) -> None:
    own = LogConfig(segment_bytes=5000)
    manager = make(topic_configs={"orders": own}).manager.startup()
    assert manager.get_or_create_log(ORDERS).config == own
    assert manager.get_or_create_log(EVENTS).config == CONFIG
    stored = manager.store_topic_config("events", {"segment.bytes": "777"})
    assert stored.segment_bytes == 777
    assert stored.file_delete_delay_ms == CONFIG.file_delete_delay_ms
    manager.shutdown()
    again = make().manager.startup()
    assert again.get_log(EVENTS).config.segment_bytes == 777
    assert again.get_log(ORDERS).config == CONFIG
    again.store_topic_config("events", {})
    assert again.config_of("events") == CONFIG
    assert again.stored_properties("events") == {}
    again.store_topic_config("events", None)
    assert again.stored_properties("events") is None


def test_topics_are_configured_if_something_is_given_or_stored(tmp_path: Path) -> None:
    with LogManager([tmp_path]) as manager:
        manager.get_or_create_log(ORDERS)
        manager.store_topic_config("events", {})
        assert manager.unconfigured_topics(["orders", "events"]) == ["orders"]
    with LogManager([tmp_path]) as again:
        assert again.unconfigured_topics(["orders", "events"]) == ["orders"]
    with LogManager([tmp_path], LogConfig()) as configured:
        assert configured.unconfigured_topics(["orders", "events"]) == []
    with LogManager([tmp_path], topic_configs={"orders": LogConfig()}) as given:
        assert given.unconfigured_topics(["orders", "events", "x"]) == ["x"]


def test_a_directory_that_another_manager_holds_is_refused(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    first = make().manager.startup()
    append(first.get_or_create_log(ORDERS))
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    with pytest.raises(LogLockedError, match=str(tmp_path)):
        make().manager.startup()
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before
    first.shutdown()
    assert make().manager.startup().get_log(ORDERS).log_end_offset == 1


def test_a_start_that_one_directory_refuses_gives_the_others_back(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    free, taken = tmp_path / "free", tmp_path / "taken"
    holder = make(taken).manager.startup()
    with pytest.raises(LogLockedError):
        make(free, taken).manager.startup()
    make(free).manager.startup()
    holder.shutdown()


def test_one_directory_given_twice_is_refused(make: Callable[..., Made], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="twice"):
        make(tmp_path, f"{tmp_path}/")


@pytest.mark.parametrize("written", ["{0}/", "{0}/./", "relative"])
def test_however_a_directory_is_written_its_checkpoint_counts(
    make: Callable[..., Made], tmp_path: Path, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "logs"
    monkeypatch.chdir(tmp_path)
    path = "logs" if written == "relative" else written.format(directory)
    manager = make(path).manager.startup()
    append(manager.get_or_create_log(ORDERS), 2)
    manager.get_log(ORDERS).flush()
    manager.checkpoint_log_recovery_offsets()
    assert checkpoint(directory, RECOVERY_POINTS) == {"orders-0": 2}
    manager.abandon()
    again = make(path).manager.startup()
    assert again.get_log(ORDERS).recovery_point == 2


def test_a_directory_that_is_not_kafkas_stops_the_start(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    (tmp_path / "not_kafkas").mkdir()
    with pytest.raises(UnexpectedFileError, match="not_kafkas"):
        make().manager.startup()
    (tmp_path / "not_kafkas").rmdir()
    make().manager.startup()


@pytest.mark.parametrize("name", ["remote-log-index-cache", "__cluster_metadata-0"])
def test_directories_that_hold_no_logs_of_ours_are_left_alone(
    make: Callable[..., Made], tmp_path: Path, name: str
) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / "some-file-0").write_bytes(b"")
    manager = make().manager.startup()
    assert manager.logs == {}
    assert list((tmp_path / name).iterdir()) == []


def test_a_stray_log_is_left_alone_and_a_future_one_kept_apart(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    stray = tmp_path / "orders-0.4ee74a38df664a2f8e8dd61cb6f3aa9a-stray"
    future = tmp_path / "orders-0.4ee74a38df664a2f8e8dd61cb6f3aa9a-future"
    stray.mkdir()
    future.mkdir()
    manager = make().manager.startup()
    assert manager.logs == {}
    assert [each.directory for each in manager.loadings] == [str(future)]
    assert list(stray.iterdir()) == []
    manager.shutdown()
    assert checkpoint(tmp_path, RECOVERY_POINTS) == {}


def test_a_partition_in_two_directories_stops_the_start(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "orders-0").mkdir(parents=True)
    with pytest.raises(UnexpectedFileError, match="two directories of orders-0"):
        make(tmp_path / "a", tmp_path / "b").manager.startup()


def test_the_marker_holds_the_brokers_epoch_and_means_that_nothing_has_to_be_recovered(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    manager = make(broker_epoch=7).manager.startup()
    append(manager.get_or_create_log(ORDERS), 5)
    assert not (tmp_path / MARKER).exists()
    manager.shutdown()
    assert json.loads((tmp_path / MARKER).read_text()) == {"version": 0, "brokerEpoch": 7}
    again = make().manager.startup()
    assert not (tmp_path / MARKER).exists()
    assert [each.recovered_segments for each in again.loadings] == [[]]
    again.abandon()
    assert not (tmp_path / MARKER).exists()
    third = make().manager.startup()
    assert [len(each.recovered_segments) for each in third.loadings] == [1]
    assert third.get_log(ORDERS).log_end_offset == 5


@pytest.mark.parametrize(
    "content", [b"", b'{"version":0,"brokerEpoch":3,"unknown":[]}', b"no JSON at all"]
)
def test_a_marker_counts_whatever_is_in_it(
    make: Callable[..., Made], tmp_path: Path, content: bytes
) -> None:
    manager = make().manager.startup()
    append(manager.get_or_create_log(ORDERS), 5)
    manager.abandon()
    (tmp_path / MARKER).write_bytes(content)
    assert [each.had_clean_shutdown for each in make().manager.startup().loadings] == [True]


def test_a_start_that_fails_while_loading_leaves_no_marker(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    manager = make().manager.startup()
    append(manager.get_or_create_log(ORDERS))
    manager.shutdown()
    io = FaultyIO(Fault(path_end="leader-epoch-checkpoint", forever=True))
    (tmp_path / "orders-0" / "leader-epoch-checkpoint").unlink()
    with pytest.raises(KafkaStorageError):
        make(io=io).manager.startup()
    assert not (tmp_path / MARKER).exists()
    assert not (tmp_path / ".lock").exists()


def test_a_start_that_is_refused_before_loading_leaves_the_marker(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    clean, taken = tmp_path / "clean", tmp_path / "taken"
    make(clean).manager.startup().shutdown()
    make(taken).manager.startup()
    with pytest.raises(LogLockedError):
        make(clean, taken).manager.startup()
    assert (clean / MARKER).exists()


def test_a_log_that_cannot_be_closed_costs_its_directory_the_marker_and_no_other(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    io = FaultyIO()
    directories = [tmp_path / "a", tmp_path / "b"]
    manager = make(*directories, io=io).manager.startup()
    logs = [manager.get_or_create_log(TopicPartition("orders", number)) for number in (0, 1)]
    for log in logs:
        append(log, 2)
    bad = logs[0]
    io.faults.append(
        Fault(kinds=frozenset({Kind.SYNC}), path_end=f"{bad.directory}/{0:020d}.log", forever=True)
    )
    with pytest.raises(KafkaStorageError, match="orders-0"):
        manager.shutdown()
    good = os.path.dirname(logs[1].directory)  # noqa: PTH120
    assert [(each / MARKER).exists() for each in directories] == [
        str(each) == good for each in directories
    ]
    io.faults.clear()
    again = make(*directories).manager.startup()
    assert {each.had_clean_shutdown for each in again.loadings} == {True, False}
    assert [log.log_end_offset for log in again.logs.values()] == [2, 2]


def test_an_empty_active_segment_has_its_files_after_a_shutdown(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    manager = make().manager.startup()
    append(manager.get_or_create_log(ORDERS), 2)
    manager.get_log(ORDERS).roll()
    manager.shutdown()
    found = {path.name: path.stat().st_size for path in (tmp_path / "orders-0").iterdir()}
    assert {found[f"{2:020d}{each}"] for each in (".log", ".index", ".timeindex")} == {0}
    assert found[f"{2:020d}.snapshot"] == 10
    assert checkpoint(tmp_path, RECOVERY_POINTS) == {"orders-0": 2}


def test_a_shutdown_can_be_repeated_and_ends_all_background_work(
    make: Callable[..., Made],
) -> None:
    made = make()
    made.manager.startup()
    assert made.scheduler.pending_tasks >= 5
    made.manager.shutdown()
    made.manager.shutdown()
    assert made.scheduler.pending_tasks == 0
    assert made.manager.logs == {}


def test_recovery_points_are_checkpointed_on_schedule(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    made = make()
    manager = made.manager.startup()
    for name, count in ((ORDERS, 3), (EVENTS, 5)):
        log = manager.get_or_create_log(name)
        append(log, count)
        log.flush()
    assert not (tmp_path / RECOVERY_POINTS).exists()
    made.pass_time(SETTINGS.initial_task_delay_ms)
    assert checkpoint(tmp_path, RECOVERY_POINTS) == {"orders-0": 3, "events-3": 5}
    append(manager.get_log(ORDERS))
    manager.get_log(ORDERS).flush()
    made.pass_time(SETTINGS.flush_offset_checkpoint_interval_ms)
    assert checkpoint(tmp_path, RECOVERY_POINTS) == {"orders-0": 4, "events-3": 5}


def test_only_log_starts_inside_a_segment_are_checkpointed(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    made = make()
    manager = made.manager.startup()
    log = manager.get_or_create_log(ORDERS)
    manager.get_or_create_log(EVENTS)
    append(log, 5)
    made.pass_time(SETTINGS.initial_task_delay_ms)
    assert checkpoint(tmp_path, LOG_STARTS) == {}
    log.delete_records(3)
    made.pass_time(SETTINGS.flush_start_offset_checkpoint_interval_ms)
    assert checkpoint(tmp_path, LOG_STARTS) == {"orders-0": 3}
    manager.shutdown()
    assert make().manager.startup().get_log(ORDERS).log_start_offset == 3


def test_high_watermarks_are_checkpointed_on_schedule(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    made = make()
    append(made.manager.startup().get_or_create_log(ORDERS), 4)
    made.pass_time(SETTINGS.initial_task_delay_ms)
    assert checkpoint(tmp_path, HIGH_WATERMARKS) == {"orders-0": 4}


def test_a_truncation_writes_the_recovery_points_of_its_directory_alone(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    directories = [tmp_path / "a", tmp_path / "b"]
    manager = make(*directories).manager.startup()
    logs = [manager.get_or_create_log(TopicPartition("orders", number)) for number in (0, 1)]
    for log in logs:
        append(log, 5)
        log.flush()
    logs[0].truncate_to(2)
    written, other = sorted(directories, key=lambda each: str(each) != logs[0].log_directory)
    assert checkpoint(written, RECOVERY_POINTS) == {"orders-0": 2}
    assert not (other / RECOVERY_POINTS).exists()


@pytest.mark.parametrize("content", ["", "0\n5\norders 0 3\n", "garbage\n", "9\n0\n"])
def test_a_checkpoint_that_cannot_be_read_counts_as_empty(
    make: Callable[..., Made], tmp_path: Path, content: str
) -> None:
    manager = make().manager.startup()
    append(manager.get_or_create_log(ORDERS), 8)
    manager.shutdown()
    (tmp_path / RECOVERY_POINTS).write_text(content)
    (tmp_path / MARKER).unlink()
    again = make().manager.startup()
    log = again.get_log(ORDERS)
    assert (log.log_end_offset, log.recovery_point) == (8, 0)
    assert len(again.loadings[0].recovered_segments) == len(log.segments)


def test_a_log_is_flushed_when_its_time_has_come(make: Callable[..., Made]) -> None:
    made = make(topic_configs={"orders": LogConfig(flush_ms=10_000)})
    manager = made.manager.startup()
    often, never = manager.get_or_create_log(ORDERS), manager.get_or_create_log(EVENTS)
    append(often)
    append(never)
    made.pass_time(SETTINGS.initial_task_delay_ms)
    assert (often.recovery_point, never.recovery_point) == (1, 0)
    assert often.last_flushed_ms == made.clock.milliseconds()


def test_idle_producers_are_forgotten(make: Callable[..., Made]) -> None:
    settings = LogManagerConfig(
        initial_task_delay_ms=0,
        producer_id_expiration_ms=50_000,
        producer_id_expiration_check_interval_ms=20_000,
    )
    made = make(settings=settings)
    log = made.manager.startup().get_or_create_log(ORDERS)
    data = one_batch(b"x", timestamp=NOW_MS, producer_id=1, producer_epoch=0, base_sequence=0)
    log.append_as_leader(data)
    made.pass_time(49_999)
    assert list(log.producer_state.active_producers) == [1]
    made.pass_time(20_000)
    assert list(log.producer_state.active_producers) == []


def test_a_directory_that_fails_goes_offline_and_the_others_go_on(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    io = FaultyIO()
    directories = [tmp_path / "a", tmp_path / "b"]
    manager = make(*directories, io=io).manager.startup()
    logs = [manager.get_or_create_log(TopicPartition("orders", number)) for number in (0, 1)]
    io.faults.append(
        Fault(kinds=frozenset({Kind.WRITE}), path_end=f"{logs[0].directory}/{0:020d}.log")
    )
    with pytest.raises(KafkaStorageError):
        append(logs[0])
    with pytest.raises(KafkaStorageError, match="offline"):
        append(logs[0])
    append(logs[1])
    later = manager.get_or_create_log(TopicPartition("later", 0))
    assert later.log_directory == logs[1].log_directory
    manager.checkpoint_log_recovery_offsets()
    with pytest.raises(KafkaStorageError, match="offline"):
        manager.shutdown()


def test_without_an_online_directory_no_log_can_be_made(make: Callable[..., Made]) -> None:
    io = FaultyIO()
    manager = make(io=io).manager.startup()
    io.faults.append(Fault(kinds=frozenset({Kind.MAKE_DIRECTORY})))
    with pytest.raises(KafkaStorageError):
        manager.get_or_create_log(ORDERS)
    with pytest.raises(KafkaStorageError, match="offline"):
        manager.get_or_create_log(EVENTS)


def test_logs_are_loaded_by_as_many_threads_as_are_configured(tmp_path: Path) -> None:
    with LogManager([tmp_path], CONFIG) as manager:
        for number in range(6):
            append(manager.get_or_create_log(TopicPartition("test", number)), number)
    names: set[str] = set()

    class Watching(DurableIO):
        def open_to_write(self, path: str, *, create: bool) -> int:
            names.add(threading.current_thread().name)
            return super().open_to_write(path, create=create)

    (tmp_path / MARKER).unlink()
    settings = LogManagerConfig(num_recovery_threads_per_data_dir=3)
    context = LogContext(io=Watching())
    with LogManager([tmp_path], CONFIG, manager_config=settings, context=context) as manager:
        assert [log.log_end_offset for log in manager.logs.values()] == list(range(6))
        assert all(each.recovered_segments for each in manager.loadings)
        workers = {name for name in names if name.startswith("log-recovery")}
        assert 1 <= len(workers) <= 3


def test_an_interruption_by_hand_leaves_the_directory_as_a_crash_would(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    def interrupted() -> None:
        with make().manager as manager:
            append(manager.get_or_create_log(ORDERS))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not (tmp_path / MARKER).exists()
    assert make().manager.startup().get_log(ORDERS).log_end_offset == 1


def test_the_first_failure_is_the_one_reported(make: Callable[..., Made]) -> None:
    io = FaultyIO()

    def broken() -> None:
        with make(io=io).manager as manager:
            append(manager.get_or_create_log(ORDERS))
            io.faults.append(Fault(kinds=frozenset({Kind.SYNC}), forever=True))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        broken()
    assert any("closing the log directories failed" in note for note in caught.value.__notes__)


def scheduler_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("pylog-scheduler")]


def test_making_a_context_or_a_manager_starts_no_thread(tmp_path: Path) -> None:
    before = threading.active_count()
    context = LogContext()
    manager = LogManager([tmp_path], context=context)
    LogManager([tmp_path])
    assert threading.active_count() == before
    manager.startup()
    manager.shutdown()
    assert threading.active_count() == before


def test_one_thread_waits_for_all_schedules_of_a_manager(tmp_path: Path) -> None:
    with LogManager([tmp_path]) as manager:
        manager.get_or_create_log(TopicPartition("orders", 0))
        assert scheduler_threads() == ["pylog-scheduler-0"]
    assert scheduler_threads() == []

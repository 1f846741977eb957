"""A manager that opens one log after the other: thousands are closed in order, few are open."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

import pytest

from pylog.config import LogConfig
from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.log.log_manager import LogManager
from pylog.model import TopicPartition
from tests.unit.log.owned_log import one_batch

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.log.unified_log import UnifiedLog

MARKER = ".kafka_cleanshutdown"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
NAMES = [TopicPartition("orders", number) for number in range(4)]
CONFIG = LogConfig(segment_bytes=210, segment_index_bytes=1200)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a log directory that was shut down cleanly: partition N has N + 1 records."""
    with LogManager([tmp_path], CONFIG) as manager:
        for each in NAMES:
            log = manager.get_or_create_log(each)
            for _ in range(each.partition + 1):
                log.append_as_leader(one_batch(b"x"))
            log.delete_records(each.partition)
    return tmp_path


def times(directory: Path) -> dict[str, int]:
    return {
        str(path.relative_to(directory)): path.stat().st_mtime_ns
        for path in directory.rglob("*")
        if path.is_file()
    }


def visitor(directory: Path) -> LogManager:
    return LogManager([directory], CONFIG, opens_logs=False)


def test_one_log_is_open_at_a_time(directory: Path) -> None:
    seen: list[TopicPartition] = []
    alive: weakref.WeakSet[UnifiedLog] = weakref.WeakSet()
    with visitor(directory) as manager:
        assert manager.logs == {}
        for log in manager.visit(lambda _: True):
            alive.add(log)
            seen.append(log.topic_partition)
            assert list(manager.logs) == [log.topic_partition]
            gc.collect()
            assert len(alive) <= 2  # the last one is about to go
    assert seen == NAMES


def test_checkpoints_have_every_log_whether_it_was_visited_or_not(directory: Path) -> None:
    names = (RECOVERY_POINTS, "log-start-offset-checkpoint", "replication-offset-checkpoint")
    before = {name: read_offset_checkpoint(directory / name) for name in names}
    assert before[RECOVERY_POINTS] == {each: each.partition + 1 for each in NAMES}
    with visitor(directory) as manager:
        for log in manager.visit(lambda each: each.partition == 2):
            log.append_as_leader(one_batch(b"y"))
            log.delete_records(4)
    assert (directory / MARKER).exists()
    after = {name: read_offset_checkpoint(directory / name) for name in names}
    assert after[RECOVERY_POINTS] == before[RECOVERY_POINTS] | {NAMES[2]: 4}
    assert after[names[1]] == before[names[1]] | {NAMES[2]: 4}
    assert after[names[2]] == before[names[2]] | {NAMES[2]: 4}


def test_logs_that_are_not_chosen_are_left_alone_after_a_clean_stop(directory: Path) -> None:
    before = times(directory)
    with visitor(directory) as manager:
        assert [log.topic_partition for log in manager.visit(NAMES[1].__eq__)] == [NAMES[1]]
    changed = {name for name, time in times(directory).items() if before.get(name) != time}
    assert not {name for name in changed if name.startswith(("orders-0", "orders-2", "orders-3"))}
    assert (directory / MARKER).exists()


def test_after_an_unclean_stop_all_logs_are_recovered_before_the_marker_is_written(
    directory: Path,
) -> None:
    (directory / MARKER).unlink()
    torn = max((directory / "orders-3").glob("*.log"))
    torn.write_bytes(torn.read_bytes() + b"\0" * 30)
    size = torn.stat().st_size
    with visitor(directory) as manager:
        assert [log.topic_partition for log in manager.visit(NAMES[1].__eq__)] == [NAMES[1]]
    assert torn.stat().st_size == size - 30
    assert (directory / MARKER).exists()


def test_an_end_in_the_middle_of_an_unclean_directory_leaves_no_marker(directory: Path) -> None:
    for is_clean in (True, False):
        if not is_clean:
            (directory / MARKER).unlink()
        with visitor(directory) as manager:
            for _ in manager.visit(lambda _: True):
                break
        assert (directory / MARKER).exists() is is_clean


def test_the_cleaners_checkpoint_is_written_once_at_the_end(directory: Path) -> None:
    path = directory / "cleaner-offset-checkpoint"
    with visitor(directory) as manager:
        [checkpoint] = manager.cleaner_checkpoints.values()
        for log in manager.visit(lambda _: True):
            checkpoint.update(log.topic_partition, log.log_end_offset)
            assert not path.exists()
            assert checkpoint.find(log.topic_partition) == log.log_end_offset
    assert read_offset_checkpoint(path) == {each: each.partition + 1 for each in NAMES}

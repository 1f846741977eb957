"""A cleaner's threads beside others that append, truncate and delete."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pylog.cleaner.log_cleaner import LogCleaner
from pylog.config import CleanerConfig
from pylog.errors import CorruptRecordError
from pylog.model import TopicPartition
from tests.support.recording_io import Fault, FaultyIO, Kind
from tests.unit.cleaner.compacted_logs import (
    BAR,
    CHECKPOINT,
    FOO,
    CompactedLogs,
    records_of,
)
from tests.unit.log.owned_log import one_batch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pylog.log.metrics import CleanerMetrics

PATIENCE_SECONDS = 60.0
SOON = CleanerConfig(backoff_ms=5, dedupe_buffer_size=2 << 20)


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.002)


def names(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir())


class Gate:
    """Stops a cleaner inside of a round, before it copies, until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_reached, self.is_open = threading.Event(), threading.Event()
        create = "pylog.log.unified_log.create_cleaned_segment"
        original = __import__(
            "pylog.log.unified_log", fromlist=["create_cleaned_segment"]
        ).create_cleaned_segment

        def wait(*arguments: object) -> object:
            made = original(*arguments)
            self.is_reached.set()
            assert self.is_open.wait(PATIENCE_SECONDS)
            return made

        monkeypatch.setattr(create, wait)


def in_thread(task: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=task, daemon=True)
    thread.start()
    return thread


def is_waiting(cleaner: LogCleaner, topic_partition: TopicPartition) -> bool:
    return cleaner._manager.states.is_aborted(topic_partition)


def test_the_latest_record_of_each_key_stays_and_offsets_do_not_change(tmp_path: Path) -> None:
    logs = CompactedLogs(tmp_path)
    logs.append(b"a", b"b", b"a", b"c", b"b", b"d")
    with logs, LogCleaner(logs.manager, SOON):
        wait_until((tmp_path / CHECKPOINT).exists)
        assert logs.checkpointed() == {"foo-0": 5}
        assert [(offset, key) for offset, key, _ in records_of(logs.log())] == [
            (2, b"a"),
            (3, b"c"),
            (4, b"b"),
            (5, b"d"),
        ]
        metrics = logs.manager.metrics().cleaner
        assert metrics is not None
        assert (metrics.rounds, metrics.failed_rounds, metrics.dead_thread_count) == (1, 0, 0)
        assert metrics.max_dirty_percent in {0, 100}
    assert logs.manager.metrics().cleaner is None


@pytest.mark.parametrize("target", [0, 1, 2, 3])
def test_a_truncation_below_the_active_segment_waits_until_the_cleaning_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: int
) -> None:
    logs = CompactedLogs(tmp_path)
    logs.append(b"a", b"b", b"a", b"c", b"b")
    gate = Gate(monkeypatch)
    with logs, LogCleaner(logs.manager, SOON) as cleaner:
        assert gate.is_reached.wait(PATIENCE_SECONDS)
        truncation = in_thread(lambda: logs.log().truncate_to(target))
        wait_until(lambda: is_waiting(cleaner, FOO))
        assert logs.log().log_end_offset == 5
        gate.is_open.set()
        truncation.join(PATIENCE_SECONDS)
        assert logs.log().log_end_offset == target
        logs.append(*[b"z"] * 3)
        wait_until(lambda: logs.log().segments[-1].base_offset == target + 2)
    assert not list((tmp_path / "foo-0").glob("*.cleaned"))


def test_a_truncation_inside_the_active_segment_does_not_disturb_a_cleaning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = CompactedLogs(tmp_path, batches_per_segment=2)
    logs.append(b"a", b"a", b"a", b"b", b"b", b"b")
    gate = Gate(monkeypatch)
    with logs, LogCleaner(logs.manager, SOON) as cleaner:
        assert gate.is_reached.wait(PATIENCE_SECONDS)
        assert logs.log().truncate_to(5)
        assert not is_waiting(cleaner, FOO)
        gate.is_open.set()
        wait_until((tmp_path / CHECKPOINT).exists)
        assert [offset for offset, _, _ in records_of(logs.log())] == [2, 3, 4]


def test_a_deletion_waits_until_the_cleaning_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = CompactedLogs(tmp_path)
    logs.append(b"a", b"b", b"a", b"c", b"b")
    gate = Gate(monkeypatch)
    with logs, LogCleaner(logs.manager, SOON) as cleaner:
        assert gate.is_reached.wait(PATIENCE_SECONDS)
        deletion = in_thread(lambda: logs.manager.delete_log(FOO))
        wait_until(lambda: is_waiting(cleaner, FOO))
        assert (tmp_path / "foo-0").exists()
        gate.is_open.set()
        deletion.join(PATIENCE_SECONDS)
        assert not (tmp_path / "foo-0").exists()
        logs.append(b"a", b"a", b"a")
        wait_until((tmp_path / CHECKPOINT).exists)
        assert logs.checkpointed()["foo-0"] in {1, 2}  # all three, or the first two of them
        metrics = cleaner.metrics()
        assert (metrics.failed_rounds, metrics.dead_thread_count) == (0, 0)


def test_a_topic_that_is_not_compacted_any_more_is_let_go_of_before_retention_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = CompactedLogs(tmp_path)
    logs.append(b"a", b"b", b"a", b"c", b"b")
    before = records_of(logs.log())
    gate = Gate(monkeypatch)
    with logs, LogCleaner(logs.manager, SOON) as cleaner:
        assert gate.is_reached.wait(PATIENCE_SECONDS)
        properties = {"cleanup.policy": "delete"}
        change = in_thread(lambda: logs.manager.store_topic_config("foo", properties))
        wait_until(lambda: is_waiting(cleaner, FOO))
        gate.is_open.set()
        change.join(PATIENCE_SECONDS)
        assert not logs.log().config.is_compact
        assert records_of(logs.log()) == before


@pytest.mark.parametrize("ends", ["the cleaner", "the manager", "the manager, as by a crash"])
def test_the_end_leaves_a_log_that_was_being_cleaned_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    logs = CompactedLogs(tmp_path)
    logs.append(b"a", b"b", b"a", b"c", b"b")
    before, kept = names(tmp_path / "foo-0"), records_of(logs.log())
    gate = Gate(monkeypatch)
    cleaner = LogCleaner(logs.manager, SOON).startup()
    assert gate.is_reached.wait(PATIENCE_SECONDS)
    log = logs.log()
    ending = in_thread(
        {
            "the cleaner": cleaner.shutdown,
            "the manager": logs.manager.shutdown,
            "the manager, as by a crash": logs.manager.abandon,
        }[ends]
    )
    wait_until(cleaner._stopping.is_set)
    gate.is_open.set()
    ending.join(PATIENCE_SECONDS)
    assert not ending.is_alive()
    if ends == "the cleaner":
        assert (names(tmp_path / "foo-0"), records_of(log)) == (before, kept)
        logs.manager.abandon()
    assert not [each for each in names(tmp_path / "foo-0") if "cleaned" in each or "swap" in each]


def test_the_longest_delay_is_told_though_other_threads_had_none(tmp_path: Path) -> None:
    logs = CompactedLogs(tmp_path, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1_000)
    logs.append(b"a", b"b", b"a", b"c")
    logs.clock.sleep(1_000 + 3_500)
    with (
        logs,
        LogCleaner(logs.manager, replace(SOON, threads=2, dedupe_buffer_size=4 << 20)) as cleaner,
    ):
        wait_until(lambda: cleaner.metrics().rounds == 1)
        assert cleaner.metrics().max_compaction_delay_secs == 3


def test_a_log_that_cannot_be_cleaned_is_left_alone_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logs = CompactedLogs(tmp_path)
    for each in (FOO, BAR):
        logs.append(*[b"a"] * 5, to=each)
    path = logs.log().segments[1].log.path
    with open(path, "r+b") as file:  # noqa: PTH123
        file.seek(70)
        file.write(b"\xff")
    with logs, LogCleaner(logs.manager, SOON) as cleaner:
        wait_until(lambda: cleaner.metrics().rounds >= 1 and cleaner.metrics().failed_rounds >= 1)
        metrics = cleaner.metrics()
        assert metrics.uncleanable_partitions_count == {str(tmp_path): 1}
        dirty = sum(segment.size_bytes for segment in logs.log().segments[:4])
        assert metrics.uncleanable_bytes == {str(tmp_path): dirty}
        assert metrics.dead_thread_count == 0
        assert [offset for offset, _, _ in records_of(logs.log(BAR))] == [3, 4]
        logs.append(b"a")  # it can still be appended to
    assert "log of foo-0" in caplog.text
    assert CorruptRecordError.__name__ in caplog.text


@pytest.mark.parametrize("kind", [Kind.CREATE, Kind.WRITE, Kind.SYNC])
def test_a_disk_that_fails_takes_its_directory_offline(tmp_path: Path, kind: Kind) -> None:
    io = FaultyIO()
    logs = CompactedLogs(tmp_path, io=io)
    logs.append(b"a", b"b", b"a", b"c", b"b")
    newest = {key: offset for offset, key, _ in records_of(logs.log())}
    io.faults.append(Fault(kinds=frozenset({kind}), path_end=".log.cleaned"))
    cleaner = LogCleaner(logs.manager, SOON).startup()
    wait_until(lambda: cleaner.metrics().failed_rounds == 1)
    cleaner.shutdown()
    assert logs.manager.metrics().offline_log_directories == (str(tmp_path),)
    assert cleaner.metrics().uncleanable_partitions_count == {str(tmp_path): 0}
    logs.manager.abandon()
    again = CompactedLogs(tmp_path)
    assert {key: offset for offset, key, _ in records_of(again.log())} == newest
    again.manager.abandon()


def test_a_manager_has_one_cleaner_at_a_time(tmp_path: Path) -> None:
    logs = CompactedLogs(tmp_path)
    with logs:
        with (
            LogCleaner(logs.manager, SOON),
            pytest.raises(RuntimeError, match="has a cleaner already"),
        ):
            LogCleaner(logs.manager, SOON).startup()
        with LogCleaner(logs.manager, SOON):
            pass


def test_a_cleaner_that_is_turned_off_cleans_nothing(tmp_path: Path) -> None:
    logs = CompactedLogs(tmp_path)
    logs.append(b"a", b"b", b"a", b"c", b"b")
    config = CleanerConfig(enable=False, backoff_ms=1)
    with logs, LogCleaner(logs.manager, config) as cleaner:
        time.sleep(0.05)
        assert (cleaner.metrics().rounds, cleaner.metrics().dead_thread_count) == (0, 0)
    assert len(records_of(CompactedLogs(tmp_path).log())) == 5


def test_threads_append_truncate_delete_and_read_while_others_clean(tmp_path: Path) -> None:
    logs = CompactedLogs(tmp_path, batches_per_segment=3, min_cleanable_dirty_ratio=0.01)
    topics = [FOO, BAR, TopicPartition("baz", 0)]
    config = CleanerConfig(threads=2, backoff_ms=1, dedupe_buffer_size=4 << 20)
    failures: list[BaseException] = []
    newest: dict[TopicPartition, dict[bytes, int]] = {each: {} for each in topics}

    def work(topic_partition: TopicPartition, number: int) -> None:
        try:
            for step in range(150):
                key = b"%d" % (step * 7 % 11)
                log = logs.manager.get_or_create_log(topic_partition)
                offset = log.append_as_leader(one_batch(b"%d" % step, key=key)).first_offset
                newest[topic_partition][key] = offset
                if step % 50 == 30 + number:
                    logs.manager.delete_log(topic_partition)
                    newest[topic_partition].clear()
                elif step % 20 == 10:
                    target = log.log_end_offset - 5
                    if target > 0:
                        log.truncate_to(target)
                        kept = {record[1]: record[0] for record in records_of(log)}
                        newest[topic_partition] = {
                            each: at for each, at in kept.items() if each is not None
                        }
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            failures.append(error)

    metrics: CleanerMetrics | None = None
    with logs, LogCleaner(logs.manager, config) as cleaner:
        workers = [
            threading.Thread(target=work, args=(each, number), daemon=True)
            for number, each in enumerate(topics)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(PATIENCE_SECONDS)
            assert not worker.is_alive(), "threads wait for each other"
        metrics = cleaner.metrics()
        assert failures == []
        assert metrics.failed_rounds == 0
        assert metrics.rounds > 0
        for each in topics:
            latest = {key: offset for offset, key, _ in records_of(logs.log(each))}
            assert latest == newest[each]
            entry = logs.manager.cleaner_checkpoints[str(tmp_path)].offset(each)
            assert entry <= logs.log(each).segments[-1].base_offset

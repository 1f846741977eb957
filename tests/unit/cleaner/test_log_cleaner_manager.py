"""Which log is cleaned next, and from where to where: cases of Kafka's LogCleanerManagerTest."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pylog.cleaner.cleaning_states import CleaningAbortedError
from pylog.errors import CorruptRecordError, KafkaStorageError
from pylog.model import AppendOrigin, TopicPartition
from tests.support.batches import marker
from tests.unit.cleaner.compacted_logs import BAR, CHECKPOINT, COMPACT, DELETE, FOO, CompactedLogs
from tests.unit.log.owned_log import ABORT, NOW_MS, one_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pylog.cleaner.cleanable_offsets import LogToClean

    Making = Callable[..., CompactedLogs]

HOUR_MS = 3_600_000
BAZ = TopicPartition("baz", 0)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Making]:
    made: list[CompactedLogs] = []

    def make_logs(policy: frozenset[str] = COMPACT, **arguments: float) -> CompactedLogs:
        made.append(CompactedLogs(tmp_path, policy=policy, **arguments))  # type: ignore[arg-type]
        return made[-1]

    yield make_logs
    for each in made:
        each.manager.abandon()


@pytest.fixture
def logs(make: Making) -> CompactedLogs:
    return make()


def grab(logs: CompactedLogs) -> LogToClean | None:
    return logs.cleaner_manager().grab_filthiest_compacted_log(logs.clock.milliseconds())


def grabbed(logs: CompactedLogs) -> LogToClean:
    found = grab(logs)
    assert found is not None
    return found


# ---- which log


class Filth(NamedTuple):
    """Three logs of 20, 25 and 30 batches that are clean up to 15, and which is to be chosen."""

    uncleanable: tuple[TopicPartition, ...]
    in_progress: tuple[TopicPartition, ...]
    expected: TopicPartition | None


@pytest.mark.parametrize(
    "filth",
    [
        Filth((), (), BAZ),
        Filth((BAZ,), (), BAR),
        Filth((), (BAZ,), BAR),
        Filth((BAZ,), (BAR,), None),
        Filth((), (BAZ, BAR), None),
    ],
    ids=["filthiest", "uncleanable", "in-progress", "one-of-each", "two-in-progress"],
)
def test_of_the_logs_that_may_be_cleaned_the_one_with_the_largest_dirty_ratio_is(
    make: Making, filth: Filth
) -> None:
    logs = make(min_cleanable_dirty_ratio=0.3)
    for topic_partition, count in ((FOO, 20), (BAR, 25), (BAZ, 30)):
        logs.append(*[b"key"] * count, to=topic_partition)
        logs.checkpoint(topic_partition, 15)
    manager = logs.cleaner_manager()
    for each in filth.uncleanable:
        manager.mark_uncleanable(logs.log(each), CorruptRecordError("damaged"))
    manager.states.begin(filth.in_progress)
    chosen = manager.grab_filthiest_compacted_log(NOW_MS)
    assert (chosen and chosen.topic_partition) == filth.expected
    if chosen is not None:
        assert str(manager.states.state_of(chosen.topic_partition)) == "in progress"


@pytest.mark.parametrize(
    ("ratio", "checkpoint", "is_chosen"),
    [
        (0.5, 5, False),  # 5 of 10 are clean, and a half is not above a half
        (0.5, 4, True),
        (0.0, 10, False),
        (0.0, 9, True),
        (1.0, 0, False),  # never by its ratio
    ],
)
def test_a_log_is_cleaned_if_its_dirty_ratio_is_above_the_one_that_is_configured(
    make: Making, ratio: float, checkpoint: int, *, is_chosen: bool
) -> None:
    logs = make(min_cleanable_dirty_ratio=ratio)
    logs.append(*[b"key"] * 11)  # the last segment is active
    logs.checkpoint(FOO, checkpoint)
    assert (grab(logs) is not None) is is_chosen


def test_the_ratio_is_that_of_whole_segments(make: Making) -> None:
    logs = make(batches_per_segment=2, min_cleanable_dirty_ratio=0.1)
    logs.append(*[b"key"] * 9)
    logs.checkpoint(FOO, 3)  # inside the second of four, which counts on both sides
    chosen = grabbed(logs)
    size = logs.log().segments[0].size_bytes
    assert (chosen.clean_bytes, chosen.cleanable_bytes) == (2 * size, 3 * size)
    assert (chosen.cleanable_ratio, chosen.total_bytes) == (0.6, 5 * size)
    assert (chosen.first_dirty_offset, chosen.first_uncleanable_offset) == (3, 8)


def test_logs_that_are_not_compacted_are_no_candidates(make: Making) -> None:
    logs = make(DELETE, min_cleanable_dirty_ratio=0.0)
    logs.append(b"a", b"b", b"c")
    assert grab(logs) is None


def test_an_empty_log_is_no_candidate(logs: CompactedLogs) -> None:
    logs.log()
    assert grab(logs) is None


def test_a_log_that_waits_longer_than_the_longest_lag_is_cleaned_whatever_its_ratio(
    make: Making,
) -> None:
    logs = make(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=HOUR_MS)
    logs.append(b"a", b"b", b"c")
    manager = logs.cleaner_manager()
    logs.clock.sleep(HOUR_MS)
    assert manager.grab_filthiest_compacted_log(logs.clock.milliseconds()) is None
    logs.clock.sleep(1)
    chosen = manager.grab_filthiest_compacted_log(logs.clock.milliseconds())
    assert chosen is not None
    assert chosen.needs_compaction_now
    assert manager.max_compaction_delay_ms == 1


def test_a_log_that_waits_too_long_with_nothing_to_clean_is_left(make: Making) -> None:
    logs = make(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=HOUR_MS)
    logs.append(b"a", b"b", b"c")
    logs.checkpoint(FOO, 2)
    logs.clock.sleep(2 * HOUR_MS)
    assert grab(logs) is None


def test_logs_in_a_directory_whose_disk_has_failed_are_left_alone(logs: CompactedLogs) -> None:
    logs.append(b"a", b"b", b"c")
    [path] = logs.manager.cleaner_checkpoints
    logs.manager.context.failures.add_offline_log_directory(path, KafkaStorageError("broken"))
    manager = logs.cleaner_manager()
    assert manager.grab_filthiest_compacted_log(NOW_MS) is None
    assert manager.delete_old_segments() == {}


def test_a_log_whose_ratio_cannot_be_told_is_left_alone_and_others_are_cleaned(
    logs: CompactedLogs, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    logs.append(*[b"key"] * 9)
    logs.append(*[b"key"] * 3, to=BAR)
    damaged = logs.log().segments[0]

    def fail() -> int:
        raise CorruptRecordError("no batch header", damaged.log.path, 0)

    monkeypatch.setattr(damaged, "first_batch_timestamp", fail)
    manager = logs.cleaner_manager()
    with caplog.at_level(logging.WARNING, "pylog"):
        chosen = manager.grab_filthiest_compacted_log(NOW_MS)
    assert chosen is not None
    assert chosen.topic_partition == BAR
    assert manager.uncleanable_partitions() == {str(logs.directory): [FOO]}
    assert "log of foo-0" in caplog.text
    assert "is not cleaned any more" in caplog.text


# ---- from where to where


@pytest.mark.parametrize(
    ("start", "checkpoint", "first_dirty", "in_file"),
    [
        (0, None, 0, None),
        (0, 15, 15, 15),
        (10, 15, 15, 15),
        (10, 5, 10, 10),  # below the log's start
        (0, 200, 0, 0),  # above its end
        (10, 200, 10, 10),
        (10, None, 10, None),
    ],
)
def test_a_checkpoint_outside_of_the_log_goes_back_to_its_start(
    make: Making, start: int, checkpoint: int | None, first_dirty: int, in_file: int | None
) -> None:
    logs = make(min_cleanable_dirty_ratio=0.1)
    logs.append(*[b"key"] * 20)
    logs.log().maybe_increment_log_start_offset(start)
    if checkpoint is not None:
        logs.checkpoint(FOO, checkpoint)
    assert grabbed(logs).first_dirty_offset == first_dirty
    if in_file is not None:
        assert logs.checkpointed() == {"foo-0": in_file}


def test_a_wrong_checkpoint_is_put_right_although_the_log_is_not_chosen(
    logs: CompactedLogs, caplog: pytest.LogCaptureFixture
) -> None:
    logs.append(*[b"key"] * 20)
    logs.append(*[b"key"] * 25, to=BAR)
    logs.log(FOO).maybe_increment_log_start_offset(15)
    logs.checkpoint(FOO, 10)
    logs.checkpoint(BAR, 5)
    assert grabbed(logs).topic_partition == BAR
    assert logs.checkpointed() == {"foo-0": 15, "bar-0": 5}
    assert "all of foo-0 counts as dirty again: the checkpoint says 10" in caplog.text


def test_a_checkpoint_is_put_right_where_nothing_has_to_be_cleaned(logs: CompactedLogs) -> None:
    logs.append(*[b"key"] * 20)
    logs.log().maybe_increment_log_start_offset(20)
    logs.checkpoint(FOO, 15)
    assert grab(logs) is None
    assert logs.checkpointed() == {"foo-0": 20}


def test_the_start_of_a_log_that_is_trimmed_passes_the_checkpoint_without_a_warning(
    make: Making, caplog: pytest.LogCaptureFixture
) -> None:
    logs = make(COMPACT | DELETE)
    logs.append(*[b"key"] * 20)
    logs.log().maybe_increment_log_start_offset(15)
    logs.checkpoint(FOO, 10)
    grab(logs)
    assert logs.checkpointed() == {"foo-0": 15}
    assert caplog.text == ""


@pytest.mark.parametrize(("start", "checkpoint"), [(2, 0), (0, 3)])
def test_the_active_segment_is_never_dirty(make: Making, start: int, checkpoint: int) -> None:
    logs = make(batches_per_segment=10)
    logs.append(*[b"key"] * 9)
    logs.log().maybe_increment_log_start_offset(start)
    logs.checkpoint(FOO, checkpoint)
    assert grab(logs) is None


def bounds(logs: CompactedLogs) -> tuple[int, int]:
    now_ms = logs.clock.milliseconds()
    each = logs.cleaner_manager().candidate(logs.log(), now_ms).log_to_clean
    return each.first_dirty_offset, each.first_uncleanable_offset


def test_nothing_is_cleaned_from_the_high_watermark_on(logs: CompactedLogs) -> None:
    logs.log().follows_end = False
    logs.append(*[b"key"] * 8)
    logs.log().update_high_watermark(5)
    assert bounds(logs) == (0, 5)
    logs.log().update_high_watermark(8)
    assert bounds(logs) == (0, 7)  # where the active segment begins


def test_nothing_is_cleaned_that_is_younger_than_the_least_lag(make: Making) -> None:
    logs = make(min_compaction_lag_ms=HOUR_MS)
    logs.append(*[b"key"] * 4)
    logs.clock.sleep(HOUR_MS - 1)
    assert bounds(logs) == (0, 0)
    logs.clock.sleep(1)
    assert bounds(logs) == (0, 3)
    logs.append(*[b"key"] * 4)
    assert bounds(logs) == (0, 4)
    logs.clock.sleep(HOUR_MS)
    assert bounds(logs) == (0, 7)


def test_nothing_is_cleaned_of_a_transaction_that_is_undecided(make: Making) -> None:
    logs = make(batches_per_segment=100, min_compaction_lag_ms=HOUR_MS)
    log = logs.log()
    for sequence, count in ((0, 2), (2, 1)):
        data = one_batch(
            *[b"value"] * count,
            key=b"key",
            producer_id=15,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=True,
        )
        log.append_as_leader(data)
    log.roll()
    logs.clock.sleep(HOUR_MS + 1)
    assert bounds(logs) == (0, 0)
    now_ms = logs.clock.milliseconds()
    ending = marker(0, ABORT, producer_id=15, producer_epoch=0, timestamp=now_ms)
    log.append_as_leader(ending.data, origin=AppendOrigin.COORDINATOR)
    log.roll()
    assert bounds(logs) == (0, 3)  # the marker is too young
    logs.clock.sleep(HOUR_MS + 1)
    assert bounds(logs) == (0, 4)


# ---- afterwards


def test_a_log_that_was_cleaned_is_clean_up_to_there(logs: CompactedLogs) -> None:
    logs.append(*[b"key"] * 8)
    log, manager = logs.log(), logs.cleaner_manager()
    with pytest.raises(RuntimeError, match="its state is none"):
        manager.done_cleaning(log, 1)
    manager.states.begin([FOO])
    manager.done_cleaning(log, 7)
    assert logs.checkpointed() == {"foo-0": 7}
    assert manager.states.state_of(FOO) is None


def test_a_log_whose_cleaning_was_aborted_is_as_dirty_as_before(logs: CompactedLogs) -> None:
    logs.append(*[b"key"] * 8)
    logs.checkpoint(FOO, 2)
    manager = logs.cleaner_manager()
    manager.states.begin([FOO])
    waiting = threading.Thread(target=manager.states.abort_and_pause, args=(FOO,), daemon=True)
    waiting.start()
    while not manager.states.is_aborted(FOO):
        threading.Event().wait(0.001)
    with pytest.raises(CleaningAbortedError):
        manager.check_cleaning_aborted(FOO)
    manager.check_cleaning_aborted(BAR)
    manager.done_cleaning(logs.log(), 7)
    waiting.join(20)
    assert logs.checkpointed() == {"foo-0": 2}
    assert str(manager.states.state_of(FOO)) == "paused (1)"


def test_a_log_is_let_go_of_when_its_directory_went_offline(logs: CompactedLogs) -> None:
    logs.append(*[b"key"] * 8)
    manager = logs.cleaner_manager()
    manager.states.begin([FOO])
    [path] = logs.manager.cleaner_checkpoints
    logs.manager.context.failures.add_offline_log_directory(path, KafkaStorageError("broken"))
    manager.done_cleaning(logs.log(), 7)
    assert manager.states.state_of(FOO) is None
    assert not (logs.directory / CHECKPOINT).exists()


@pytest.mark.parametrize(
    ("policy", "is_trimmed"), [(COMPACT, True), (COMPACT | DELETE, True), (DELETE, False)]
)
def test_retention_is_run_over_compacted_logs(
    make: Making, policy: frozenset[str], *, is_trimmed: bool
) -> None:
    logs = make(policy)
    logs.append(*[b"key"] * 5)
    logs.log().maybe_increment_log_start_offset(2)
    deleted = logs.cleaner_manager().delete_old_segments()
    assert [each.base_offset for each in deleted.get(FOO, [])] == ([0, 1] if is_trimmed else [])


def test_retention_passes_over_logs_that_are_cleaned_paused_or_uncleanable(
    logs: CompactedLogs,
) -> None:
    manager = logs.cleaner_manager()
    for each in (FOO, BAR, BAZ):
        logs.append(*[b"key"] * 5, to=each)
        logs.log(each).maybe_increment_log_start_offset(2)
    manager.states.begin([FOO])
    manager.states.abort_and_pause(BAR)
    manager.mark_uncleanable(logs.log(BAZ), CorruptRecordError("damaged"))
    assert manager.delete_old_segments() == {}
    manager.states.finish(FOO)
    assert list(manager.delete_old_segments()) == [FOO]


def test_a_log_whose_retention_fails_is_left_alone_and_the_others_are_trimmed(
    logs: CompactedLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in (FOO, BAR):
        logs.append(*[b"key"] * 5, to=each)
        logs.log(each).maybe_increment_log_start_offset(2)

    def fail(_now_ms: int | None) -> None:
        raise ValueError("whatever it is")

    monkeypatch.setattr(logs.log(BAR), "delete_old_segments", fail)
    manager = logs.cleaner_manager()
    assert list(manager.delete_old_segments()) == [FOO]
    assert manager.uncleanable_partitions() == {str(logs.directory): [BAR]}
    assert manager.states.state_of(BAR) is None


# ---- logs that cannot be cleaned


def test_bytes_that_would_be_cleaned_of_logs_that_are_left_alone_are_counted(
    logs: CompactedLogs,
) -> None:
    logs.append(*[b"key"] * 5)
    manager = logs.cleaner_manager()
    assert manager.uncleanable_bytes(NOW_MS) == {str(logs.directory): 0}
    manager.mark_uncleanable(logs.log(), CorruptRecordError("damaged"))
    size = logs.log().segments[0].size_bytes
    assert manager.uncleanable_bytes(NOW_MS) == {str(logs.directory): 4 * size}
    logs.checkpoint(FOO, 3)
    assert manager.uncleanable_bytes(NOW_MS) == {str(logs.directory): size}


def test_a_log_that_is_made_again_can_be_cleaned_again(logs: CompactedLogs) -> None:
    logs.append(*[b"key"] * 5)
    manager = logs.cleaner_manager()
    manager.mark_uncleanable(logs.log(), CorruptRecordError("damaged"))
    assert manager.grab_filthiest_compacted_log(NOW_MS) is None
    logs.manager.delete_log(FOO)
    assert manager.uncleanable_partitions() == {str(logs.directory): []}
    logs.append(*[b"key"] * 5)
    assert manager.grab_filthiest_compacted_log(NOW_MS) is not None

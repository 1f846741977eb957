"""Which segments retention removes, in which order, and what goes with them.

The cases are those of Kafka's UnifiedLogTest and LocalLogTest; ``tests/kafka_tests.md`` says which
is which.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pylog.config import LogConfig
from pylog.errors import CorruptRecordError, KafkaStorageError, OffsetOutOfRangeError
from pylog.files.leader_epochs import EpochEntry
from pylog.log.retention import (
    DeletedSegment,
    RetentionParams,
    RetentionReason,
    deletable_segments,
)
from tests.unit.log.owned_log import ABORT, NOW_MS, OwnedLog, Transactional, one_batch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MESSAGE = b"test"
SIZE = len(one_batch(MESSAGE, key=b"k"))
PER_SEGMENT = 5
OLD, YOUNG, FUTURE = NOW_MS - 10_000, NOW_MS - 10, NOW_MS + 10_000
START, BYTES, MS = RetentionReason.LOG_START_OFFSET, RetentionReason.SIZE, RetentionReason.TIME


# ---- the decision


@dataclass
class Segment:
    """A segment of a hundred offsets."""

    base_offset: int
    size_bytes: int = 100
    largest_timestamp: int = YOUNG
    read: int | None = None

    @property
    def largest_record_timestamp(self) -> int:
        return self.largest_timestamp

    def read_largest_timestamp(self) -> int:
        return self.largest_timestamp if self.read is None else self.read


def deletable(
    segments: Sequence[Segment], *, end: int | None = None, **params: int
) -> list[tuple[int, str]]:
    """Return base offset and reason of what is removed; by default nothing is limited."""
    end = segments[-1].base_offset + 100 if end is None else end
    values = {
        "retention_ms": -1,
        "retention_bytes": -1,
        "log_start_offset": 0,
        "high_watermark": end,
        "log_end_offset": end,
        "now_ms": NOW_MS,
    } | params
    found = deletable_segments(segments, RetentionParams(**values))
    return [(segment.base_offset, reason) for segment, reason in found]


def of_sizes(*sizes: int, timestamp: int = YOUNG) -> list[Segment]:
    return [Segment(100 * place, size, timestamp) for place, size in enumerate(sizes)]


def of_times(*timestamps: int) -> list[Segment]:
    return [Segment(100 * place, 100, each) for place, each in enumerate(timestamps)]


@pytest.mark.parametrize(
    ("sizes", "limit", "removed"),
    [
        ([100, 100, 100], 300, 0),  # nothing is above the limit
        ([100, 100, 100], 301, 0),
        ([100, 100, 100], 201, 0),  # without the first one it would be below the limit
        ([100, 100, 100], 200, 1),  # without it, it is exactly at the limit
        ([100, 100, 100], 199, 1),
        ([100, 100, 100], 1, 2),
        ([100, 100, 100], 0, 3),  # the active one, too
        ([100, 100, 0], 0, 2),  # but not if it is empty
        ([300, 1, 1], 250, 0),  # the oldest one is large, and stops the smaller ones after it
        ([0, 0, 300], 300, 2),  # what compaction emptied is free
        ([100, 100, 100], -1, 0),
        ([100, 100, 100], -(2**63), 0),
    ],
)
def test_segments_go_while_the_log_keeps_its_bytes_without_them(
    sizes: list[int], limit: int, removed: int
) -> None:
    expected = [(100 * place, BYTES) for place in range(removed)]
    assert deletable(of_sizes(*sizes), retention_bytes=limit) == expected


@pytest.mark.parametrize(
    ("timestamps", "limit", "removed"),
    [
        ([NOW_MS - 1000, YOUNG], 1000, 0),  # exactly as old as is allowed
        ([NOW_MS - 1001, YOUNG], 1000, 1),
        ([OLD, OLD, OLD], 1000, 3),  # the active one, too
        ([YOUNG, OLD, OLD], 1000, 0),  # a young one keeps the old ones after it
        ([OLD, YOUNG, OLD], 1000, 1),
        ([OLD, FUTURE, OLD], 1000, 1),
        ([OLD, OLD], 0, 2),
        ([NOW_MS, NOW_MS], 0, 0),
        ([NOW_MS - 1], 0, 1),
        ([OLD, OLD], -1, 0),
    ],
)
def test_segments_go_whose_newest_record_is_too_old(
    timestamps: list[int], limit: int, removed: int
) -> None:
    expected = [(100 * place, MS) for place in range(removed)]
    assert deletable(of_times(*timestamps), retention_ms=limit) == expected


@pytest.mark.parametrize(
    ("log_start_offset", "removed"), [(0, 0), (99, 0), (100, 1), (199, 1), (200, 2), (300, 2)]
)
def test_segments_go_that_lie_below_the_log_start(log_start_offset: int, removed: int) -> None:
    expected = [(100 * place, START) for place in range(removed)]
    assert deletable(of_sizes(9, 9, 9), log_start_offset=log_start_offset) == expected


def test_an_empty_last_segment_is_never_removed() -> None:
    segments = [Segment(0, 100, OLD), Segment(100, 0, OLD)]
    assert deletable(segments, end=100, retention_ms=0) == [(0, MS)]
    assert deletable(segments[1:], end=100, retention_ms=0, retention_bytes=0) == []


def test_an_empty_segment_in_the_middle_is_removed_by_its_file_time() -> None:
    assert deletable([Segment(0, 0, OLD), Segment(100, 100, YOUNG)], retention_ms=1000) == [(0, MS)]
    assert deletable([Segment(0, 0, YOUNG), Segment(100, 100, OLD)], retention_ms=1000) == []


@pytest.mark.parametrize(
    ("high_watermark", "removed"), [(0, 0), (99, 0), (100, 1), (299, 2), (300, 3)]
)
def test_what_is_not_replicated_is_kept(high_watermark: int, removed: int) -> None:
    segments = of_sizes(100, 100, 100, timestamp=OLD)
    for limits in ({"retention_ms": 0}, {"retention_bytes": 0}):
        found = deletable(segments, high_watermark=high_watermark, **limits)
        assert [base for base, _ in found] == [0, 100, 200][:removed]


def test_each_rule_works_on_what_the_ones_before_have_left() -> None:
    segments = [
        Segment(0, 1000),
        Segment(100, 50),
        Segment(200, 50, OLD),
        Segment(300, 50, OLD),
        Segment(400, 50),
    ]
    # 200 bytes are left once the first one is gone: the second may go, and then no more.
    found = deletable(segments, log_start_offset=150, retention_bytes=150, retention_ms=1000)
    assert found == [(0, START), (100, BYTES), (200, MS), (300, MS)]


def test_a_segment_is_as_young_as_its_batches_whatever_the_time_index_says(
    caplog: pytest.LogCaptureFixture,
) -> None:
    segments = [Segment(0, 100, OLD, read=YOUNG), Segment(100, 100, OLD)]
    assert deletable(segments, retention_ms=1000) == []
    assert "segment 0 is kept" in caplog.text


def test_the_limits_hold_for_topics_whose_policy_is_to_delete() -> None:
    def params(policy: str) -> RetentionParams:
        config = LogConfig.from_properties(
            {"cleanup.policy": policy, "retention.ms": "5", "retention.bytes": "7"}
        )
        return RetentionParams.of(
            config, NOW_MS, log_start_offset=1, high_watermark=2, log_end_offset=3
        )

    rest = (1, 2, 3, NOW_MS)
    assert params("delete") == params("compact,delete") == (5, 7, *rest)
    assert params("compact") == params("") == (-1, -1, *rest)


# ---- a log


def make(tmp_path: Path, segments: int = 3, **properties: int | frozenset[str]) -> OwnedLog:
    """Return a log of so many segments, the last one not full, all of it replicated."""
    config = LogConfig(segment_bytes=PER_SEGMENT * SIZE, file_delete_delay_ms=1000, **properties)  # type: ignore[arg-type]
    owned = OwnedLog(tmp_path, config)
    for _ in range(PER_SEGMENT * segments - 1):
        append(owned)
    owned.raise_high_watermark()
    return owned


def append(owned: OwnedLog, leader_epoch: int = 0) -> int:
    """Append one record; return its offset."""
    data = one_batch(MESSAGE, key=b"k", timestamp=owned.clock.milliseconds())
    return owned.log.append_as_leader(data, leader_epoch).first_offset


def expired(owned: OwnedLog) -> int:
    """Return a time when all records are older than `make` lets them become."""
    return owned.clock.milliseconds() + 1001


def files(owned: OwnedLog, suffix: str) -> list[int]:
    return sorted(int(path.name[:20]) for path in owned.directory.glob(f"*{suffix}"))


def test_segments_above_the_size_are_removed(tmp_path: Path) -> None:
    owned = make(tmp_path, retention_bytes=9 * SIZE, retention_ms=-1)
    assert owned.log.delete_old_segments() == [
        DeletedSegment(0, PER_SEGMENT, PER_SEGMENT * SIZE, RetentionReason.SIZE)
    ]
    assert (owned.base_offsets, owned.log.log_start_offset) == ([5, 10], 5)
    assert owned.log.delete_old_segments() == []


def test_a_log_below_the_size_keeps_everything(tmp_path: Path) -> None:
    owned = make(tmp_path, retention_bytes=15 * SIZE, retention_ms=-1)
    assert owned.log.delete_old_segments() == []
    assert owned.base_offsets == [0, 5, 10]


def test_without_a_time_the_clock_decides(tmp_path: Path) -> None:
    owned = make(tmp_path, retention_ms=1000)
    owned.clock.sleep(1000)
    assert owned.log.delete_old_segments() == []
    owned.clock.sleep(1)
    assert [each.base_offset for each in owned.log.delete_old_segments()] == [0, 5, 10]


@pytest.mark.parametrize(
    ("policy", "bases"),
    [("compact", [0, 5, 10]), ("compact,delete", [14]), ("delete", [14]), ("", [0, 5, 10])],
)
def test_age_and_size_count_where_the_policy_is_to_delete(
    tmp_path: Path, policy: str, bases: list[int]
) -> None:
    words = frozenset(policy.split(",")) - {""}
    owned = make(tmp_path, cleanup_policy=words, retention_ms=1000, retention_bytes=1)
    owned.log.delete_old_segments(expired(owned))
    assert owned.base_offsets == bases


@pytest.mark.parametrize("policy", ["delete", "compact", ""])
def test_segments_below_the_log_start_are_removed_whatever_the_policy(
    tmp_path: Path, policy: str
) -> None:
    owned = make(tmp_path, cleanup_policy=frozenset({policy} - {""}), retention_ms=-1)
    for start, bases in ((4, [0, 5, 10]), (5, [5, 10]), (8, [5, 10]), (14, [10])):
        owned.log.maybe_increment_log_start_offset(start)
        owned.log.delete_old_segments()
        assert (owned.base_offsets, owned.log.log_start_offset) == (bases, start)


def test_a_log_of_which_all_is_removed_goes_on_at_its_end(tmp_path: Path) -> None:
    owned = make(tmp_path, retention_ms=1000)
    deleted = owned.log.delete_old_segments(expired(owned))
    assert [(each.base_offset, each.next_offset) for each in deleted] == [(0, 5), (5, 10), (10, 14)]
    log = owned.log
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (14, 14, 14)
    assert (owned.base_offsets, log.size_bytes) == ([14], 0)
    assert log.delete_old_segments(expired(owned)) == []
    assert append(owned) == 14
    with pytest.raises(OffsetOutOfRangeError):
        owned.read(13, 100)


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_log_of_which_all_was_removed_goes_on_at_its_end_after_a_start(
    tmp_path: Path, *, is_clean: bool
) -> None:
    owned = make(tmp_path, retention_ms=1000)
    owned.log.delete_old_segments(expired(owned))
    if is_clean:
        owned.log.close()
    log = owned.open(is_clean=is_clean)
    assert (log.log_start_offset, log.log_end_offset) == (14, 14)


def test_an_active_segment_in_use_is_kept_until_it_is_replicated(tmp_path: Path) -> None:
    owned = make(tmp_path, retention_ms=1000)
    log = owned.log
    for high_watermark, bases in ((3, [0, 5, 10]), (7, [5, 10]), (13, [10]), (14, [14])):
        log.update_high_watermark(high_watermark)
        log.delete_old_segments(expired(owned))
        assert owned.base_offsets == bases
        assert log.log_start_offset <= log.high_watermark


def test_a_log_whose_high_watermark_is_not_known_yet_keeps_everything(tmp_path: Path) -> None:
    owned = make(tmp_path, retention_ms=1000)
    owned.log.close()
    log = owned.open()
    assert log.high_watermark == 0
    assert log.delete_old_segments(expired(owned)) == []
    owned.raise_high_watermark()
    assert len(log.delete_old_segments(expired(owned))) == 3


def test_a_segment_without_timestamps_is_as_old_as_its_file(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=PER_SEGMENT * SIZE, retention_ms=1000)
    owned = OwnedLog(tmp_path, config)
    for offset in range(8):
        data = one_batch(MESSAGE, base_offset=offset, timestamp=-1)
        owned.log.append_as_follower(data)
    owned.raise_high_watermark()
    for segment, seconds in zip(owned.log.segments, (NOW_MS - 9000, NOW_MS - 500), strict=True):
        os.utime(segment.log.path, ns=(seconds * 1_000_000,) * 2)
    assert [each.base_offset for each in owned.log.delete_old_segments()] == [0]


def test_files_are_renamed_at_once_and_removed_after_the_delay(tmp_path: Path) -> None:
    owned = make(tmp_path, retention_bytes=9 * SIZE, retention_ms=-1)
    owned.log.delete_old_segments()
    for suffix in (".log", ".index", ".timeindex"):
        assert files(owned, suffix) == [5, 10]
        assert files(owned, suffix + ".deleted") == [0]
    owned.clock.sleep(999)
    owned.scheduler.tick()
    assert files(owned, ".log.deleted") == [0]
    owned.clock.sleep(1)
    owned.scheduler.tick()
    assert list(owned.directory.glob("*.deleted")) == []


def test_files_may_be_removed_at_once(tmp_path: Path) -> None:
    owned = make(tmp_path, retention_ms=1000)
    owned.log.delete_old_segments(expired(owned), is_async=False)
    assert list(owned.directory.glob("*.deleted")) == []
    assert files(owned, ".log") == [14]


def test_who_reads_a_segment_that_is_removed_comes_to_its_end(tmp_path: Path) -> None:
    owned = make(tmp_path, retention_ms=1000)
    segment = owned.log.segments[0]
    assert segment.read(0, SIZE) is not None
    owned.log.delete_old_segments(expired(owned))
    fetched = segment.read(0, PER_SEGMENT * SIZE)
    assert fetched is not None
    assert len(fetched.records) == PER_SEGMENT * SIZE


def test_leader_epochs_below_the_new_start_are_removed(tmp_path: Path) -> None:
    owned = OwnedLog(
        tmp_path, LogConfig(segment_bytes=PER_SEGMENT * SIZE, retention_bytes=9 * SIZE)
    )
    for epoch, count in ((0, 3), (1, 4), (2, 7)):
        for _ in range(count):
            append(owned, epoch)
    owned.raise_high_watermark()
    owned.log.delete_old_segments()
    # Epoch 1 began at offset 3; what is left of it begins at 5.
    assert list(owned.log.leader_epochs.entries) == [EpochEntry(1, 5), EpochEntry(2, 7)]
    text = (owned.directory / "leader-epoch-checkpoint").read_text()
    assert text == "0\n2\n1 5\n2 7\n"


def test_producer_snapshots_go_with_their_segments(tmp_path: Path) -> None:
    owned = make(tmp_path, retention_bytes=9 * SIZE, retention_ms=-1)
    assert owned.snapshot_offsets == [5, 10]
    owned.log.maybe_increment_log_start_offset(2)
    assert owned.snapshot_offsets == [5, 10]
    owned.log.delete_old_segments()
    assert owned.snapshot_offsets == [5, 10]  # the first segment has none
    owned.log.maybe_increment_log_start_offset(12)
    owned.log.delete_old_segments()
    assert owned.snapshot_offsets == [10]
    assert files(owned, ".snapshot.deleted") == [5]
    owned.clock.sleep(1000)
    owned.scheduler.tick()
    assert files(owned, ".snapshot.deleted") == []


def test_producers_are_known_after_all_their_records_are_gone(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=2 * SIZE, retention_ms=1000))

    def append_numbered(sequence: int) -> int:
        data = one_batch(
            MESSAGE, producer_id=1, producer_epoch=0, base_sequence=sequence, timestamp=NOW_MS
        )
        return owned.log.append_as_leader(data).first_offset

    for sequence in range(3):
        append_numbered(sequence)
    owned.raise_high_watermark()
    owned.log.delete_old_segments(expired(owned))
    assert owned.base_offsets == [3]
    assert append_numbered(2) == 2  # a repetition of what the log no longer has
    assert append_numbered(3) == 3


def test_nothing_below_the_new_start_is_unstable(tmp_path: Path) -> None:
    owned = OwnedLog(
        tmp_path, LogConfig(segment_bytes=PER_SEGMENT * SIZE, retention_bytes=4 * SIZE)
    )
    Transactional(owned, 9).append(1)
    for _ in range(8):
        append(owned)
    owned.raise_high_watermark()
    assert owned.first_unstable_offset() == 0
    owned.log.delete_old_segments()
    assert owned.first_unstable_offset() == owned.log.log_start_offset > 0


def test_the_transaction_index_goes_with_its_segment(tmp_path: Path) -> None:
    owned = make(tmp_path, segments=1, retention_bytes=1, retention_ms=-1)
    producer = Transactional(owned, 9)
    producer.append(1)
    producer.end(ABORT)
    owned.log.roll()
    append(owned)
    owned.raise_high_watermark()
    assert files(owned, ".txnindex") == [5]
    owned.log.delete_old_segments()
    assert files(owned, ".txnindex") == []
    assert owned.aborted() == []


def test_a_time_index_that_has_lost_its_last_entries_costs_no_record(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=8 * SIZE, index_interval_bytes=0, retention_ms=1000)
    owned = OwnedLog(tmp_path, config)
    for _ in range(10):
        append(owned)
        owned.clock.sleep(1000)
    owned.raise_high_watermark()
    owned.log.close()
    index = owned.directory / f"{0:020}.timeindex"
    os.truncate(index, 24)  # now it ends with the third batch
    log = owned.open()
    owned.raise_high_watermark()
    now_ms = NOW_MS + 7000 + 1000
    assert log.delete_old_segments(now_ms) == []
    assert [each.base_offset for each in log.delete_old_segments(now_ms + 1)] == [0]


def test_a_damaged_segment_that_may_be_younger_is_kept(tmp_path: Path) -> None:
    owned = make(tmp_path, retention_ms=1000)
    owned.log.close()
    path = owned.directory / f"{0:020}.log"
    content = bytearray(path.read_bytes())
    content[8:12] = b"\xff\xff\xff\xff"  # the size of the first batch
    path.write_bytes(content)
    log = owned.open()
    owned.raise_high_watermark()
    with pytest.raises(CorruptRecordError):
        log.delete_old_segments(expired(owned))
    assert owned.base_offsets == [0, 5, 10]


def test_a_closed_log_removes_nothing(tmp_path: Path) -> None:
    owned = make(tmp_path, retention_ms=1000)
    owned.log.close()
    with pytest.raises(KafkaStorageError, match="closed"):
        owned.log.delete_old_segments(expired(owned))
    assert files(owned, ".log") == [0, 5, 10]

"""A log directory that is looked at again and again: what each look shows, and what it costs."""

from __future__ import annotations

import os
import random
import shutil
import time
from typing import TYPE_CHECKING, NoReturn

import pytest

import pylog
from pylog import TopicPartition
from pylog.errors import (
    CorruptRecordError,
    LogDirectoryError,
    OffsetOutOfRangeError,
    UnreadableFileError,
)
from pylog.reading import followed_partition, log_end
from pylog.reading.log_view import LogView
from pylog.reading.segments import LogSegmentView
from tests.support.batches import ABORT, COMMIT, batch_v2, joined, marker, plain_records
from tests.support.log_files import (
    segment_path,
    write_log_start_offsets,
    write_partition,
    write_segment,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.results import FollowedDirectory

ORDERS = TopicPartition("orders", 0)
ONE_ID, OTHER_ID = "7bGSu7gYRDuEkZTQ2w4F_g", "a8GSu7gYRDuEkZTQ2w4F_g"


def ends(followed: FollowedDirectory) -> dict[str, int]:
    return {str(each): log.end_offset for each, log in followed.refresh().items()}


def batch(base: int, count: int = 2) -> bytes:
    return batch_v2(plain_records(base, count)).data


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def settle(log_directory: Path) -> None:
    """Let a minute pass for every file and directory: what a look then remembers holds."""
    then = time.time() - 60
    for path in [log_directory, *log_directory.rglob("*")]:
        os.utime(path, (then, then))
    time.sleep(0.02)  # nobody can set back when that was


def offsets_read(followed: FollowedDirectory) -> list[int]:
    read: list[int] = pylog.scan(followed.directory).to_table().column("offset").to_pylist()
    return read


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]})
    settle(tmp_path)
    return tmp_path


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record which partitions are listed."""
    listed: list[str] = []

    def listing(
        directory: pylog.results.PartitionDirectory, *arguments: object
    ) -> pylog.results.LogView:
        listed.append(str(directory.topic_partition))
        return LogView(directory, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(followed_partition, "LogView", listing)
    return listed


def test_what_was_appended_since_the_last_look_is_seen(logs: Path) -> None:
    followed = pylog.follow(logs)
    assert ends(followed) == {"orders-0": 2}
    append(segment_path(logs / "orders-0", 0), batch(2) + batch(4))
    assert ends(followed) == {"orders-0": 6}
    assert offsets_read(followed) == list(range(6))


def test_a_batch_that_is_not_whole_yet_does_not_count(logs: Path) -> None:
    followed = pylog.follow(logs)
    following = batch(2)
    assert ends(followed) == {"orders-0": 2}
    append(segment_path(logs / "orders-0", 0), following[:70])
    assert ends(followed) == {"orders-0": 2}
    append(segment_path(logs / "orders-0", 0), following[70:])
    assert ends(followed) == {"orders-0": 4}


def test_a_preallocated_file_grows_within_its_length(logs: Path) -> None:
    path = segment_path(logs / "orders-0", 0)
    used = path.stat().st_size
    append(path, bytes(1000))
    settle(logs)
    followed = pylog.follow(logs)
    assert ends(followed) == {"orders-0": 2}
    following = batch(2)
    with path.open("r+b") as file:
        file.seek(used)
        file.write(following)
    assert ends(followed) == {"orders-0": 4}


def test_nothing_is_listed_where_nothing_has_changed(logs: Path, listings: list[str]) -> None:
    write_partition(logs, {0: [batch_v2(plain_records(0, 2))]}, name="orders-1")
    settle(logs)
    followed = pylog.follow(logs)
    assert ends(followed) == {"orders-0": 2, "orders-1": 2}
    listings.clear()
    assert ends(followed) == {"orders-0": 2, "orders-1": 2}
    append(segment_path(logs / "orders-1", 0), batch(2))
    assert ends(followed) == {"orders-0": 2, "orders-1": 4}
    assert listings == []
    write_segment(logs / "orders-1", 4, [batch_v2(plain_records(4, 1))])
    assert ends(followed) == {"orders-0": 2, "orders-1": 5}
    assert set(listings) == {"orders-1"}


def test_only_what_was_appended_is_walked_over(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    followed = pylog.follow(logs)
    followed.refresh()
    monkeypatch.setattr(log_end, "find_log_end", None)
    append(segment_path(logs / "orders-0", 0), batch(2))
    assert ends(followed) == {"orders-0": 4}


def test_segments_that_are_rolled_and_deleted(logs: Path) -> None:
    followed = pylog.follow(logs)
    followed.refresh()
    write_segment(logs / "orders-0", 2, [batch_v2(plain_records(2, 3))])
    segment_path(logs / "orders-0", 0).unlink()
    [log] = followed.refresh().values()
    assert (log.log_start_offset, log.end_offset, log.rewritten_below) == (2, 5, None)
    assert offsets_read(followed) == [2, 3, 4]


def test_a_log_whose_last_segments_both_went_is_looked_at_as_a_new_one(logs: Path) -> None:
    followed = pylog.follow(logs)
    followed.refresh()
    shutil.rmtree(logs / "orders-0")
    write_partition(logs, {9: [batch_v2(plain_records(9, 1))]})
    [log] = followed.refresh().values()
    assert (log.log_start_offset, log.end_offset) == (9, 10)


def test_a_raised_log_start_is_seen(logs: Path) -> None:
    write_log_start_offsets(logs, {("orders", 0): 0})
    settle(logs)
    followed = pylog.follow(logs)
    assert followed.refresh()[ORDERS].log_start_offset == 0
    write_log_start_offsets(logs, {("orders", 0): 1})
    log = followed.refresh()[ORDERS]
    assert (log.log_start_offset, log.end_offset) == (1, 2)
    settle(logs)
    write_log_start_offsets(logs, {("orders", 0): 5})
    assert followed.refresh()[ORDERS].end_offset == 5  # a broker starts an empty log there


@pytest.mark.parametrize("is_settled", [True, False])
@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED"])
@pytest.mark.parametrize("count", [1, 2, 7], ids=["shorter", "as long", "longer"])
def test_a_log_that_was_truncated_and_written_anew_is_noticed(
    logs: Path, count: int, mode: str, *, is_settled: bool
) -> None:
    path = segment_path(logs / "orders-0", 0)
    if not is_settled:
        path.touch()
    followed = pylog.follow(logs, mode=mode)
    followed.refresh()
    with path.open("r+b") as file:  # the same file, as a broker truncates
        file.truncate(0)
        file.write(joined([batch_v2(plain_records(0, count, timestamp=77))]))
    [log] = followed.refresh().values()
    assert (log.end_offset, log.rewritten_below) == (count, 2)
    [log] = followed.refresh().values()
    assert (log.end_offset, log.rewritten_below) == (count, None)


def test_a_truncation_before_a_roll_is_noticed(logs: Path) -> None:
    followed = pylog.follow(logs)
    followed.refresh()
    path = segment_path(logs / "orders-0", 0)
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(joined([batch_v2(plain_records(0, 1, timestamp=77))]))
    write_segment(logs / "orders-0", 1, [batch_v2(plain_records(1, 5))])
    [log] = followed.refresh().values()
    assert (log.end_offset, log.rewritten_below) == (6, 2)


@pytest.mark.parametrize("epoch", [None, 0, 1])
@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED"])
@pytest.mark.parametrize("end", [3, 9], ids=["shorter", "longer"])
def test_a_truncation_that_takes_the_last_file_is_noticed(
    logs: Path, epoch: int | None, end: int, mode: str
) -> None:
    directory = logs / "orders-0"
    write_segment(directory, 2, [batch_v2(plain_records(2, 3))])
    settle(logs)
    followed = pylog.follow(logs, mode=mode)
    assert ends(followed) == {"orders-0": 5}
    segment_path(directory, 2).unlink()
    with segment_path(directory, 0).open("r+b") as file:
        file.truncate(0)
        file.write(batch_v2(plain_records(0, end, timestamp=77), leader_epoch=epoch or 0).data)
    if epoch is not None:
        epochs = {0: "0 0\n", 1: "0 0\n1 1\n"}[epoch]
        (directory / "leader-epoch-checkpoint").write_text(
            f"0\n{len(epochs.splitlines())}\n{epochs}", "utf-8"
        )
    [log] = followed.refresh().values()
    # What the same leader has written, and more of it, looks like retention.
    is_noticed = end < 5 or epoch == 1
    assert (log.end_offset, log.rewritten_below) == (end, 5 if is_noticed else None)


def test_a_truncation_right_after_a_roll_is_noticed(logs: Path) -> None:
    directory = logs / "orders-0"
    write_segment(directory, 2, [])
    checkpoint = directory / "leader-epoch-checkpoint"
    checkpoint.write_text("0\n1\n0 0\n", "utf-8")
    settle(logs)
    followed = pylog.follow(logs)
    assert ends(followed) == {"orders-0": 2}
    segment_path(directory, 2).unlink()
    with segment_path(directory, 0).open("r+b") as file:
        file.truncate(0)
        file.write(batch_v2(plain_records(0, 9, timestamp=77), leader_epoch=1).data)
    checkpoint.write_text("0\n2\n0 0\n1 1\n", "utf-8")
    [log] = followed.refresh().values()
    assert (log.end_offset, log.rewritten_below) == (9, 2)


@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED"])
def test_a_rolled_segment_that_compaction_has_replaced_is_no_truncation(
    logs: Path, mode: str
) -> None:
    directory = logs / "orders-0"
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n", "utf-8")
    settle(logs)
    followed = pylog.follow(logs, mode=mode)
    assert ends(followed) == {"orders-0": 2}
    write_segment(directory, 2, [batch_v2(plain_records(2, 3))])
    cleaned = write_segment(logs / "aside", 0, [batch_v2(plain_records(1, 1))])
    cleaned.rename(segment_path(directory, 0))
    [log] = followed.refresh().values()
    assert (log.end_offset, log.rewritten_below) == (5, None)


def test_a_log_that_cannot_be_read_any_more_is_followed_where_damage_is_left_out(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed = pylog.follow(logs, mode="DROPMALFORMED")
    assert ends(followed) == {"orders-0": 2}
    append(segment_path(logs / "orders-0", 0), batch(2))
    monkeypatch.setattr(LogSegmentView, "open_log", refuse)
    [log] = followed.refresh().values()
    assert log.rewritten_below is None


def refuse(segment: LogSegmentView) -> NoReturn:
    reason = "cannot open the file: Input/output error"
    raise UnreadableFileError(reason, segment.file_path())


def test_views_are_made_anew_when_a_file_comes_into_the_log_directory(logs: Path) -> None:
    followed = pylog.follow(logs)
    before = followed.refresh()[ORDERS].view
    settle(logs)
    assert followed.refresh()[ORDERS].view is not before
    before = followed.refresh()[ORDERS].view
    assert followed.refresh()[ORDERS].view is before
    (logs / "recovery-point-offset-checkpoint").write_text("0\n0\n", "utf-8")
    assert followed.refresh()[ORDERS].view is not before


def test_a_truncated_log_without_anything_new_ends_earlier(logs: Path) -> None:
    append(segment_path(logs / "orders-0", 0), batch(2))
    settle(logs)
    followed = pylog.follow(logs)
    assert ends(followed) == {"orders-0": 4}
    os.truncate(segment_path(logs / "orders-0", 0), len(batch(0)))
    [log] = followed.refresh().values()
    assert (log.end_offset, log.rewritten_below) == (2, 4)


@pytest.mark.parametrize(
    ("before", "after", "is_other"),
    [(None, None, True), (ONE_ID, OTHER_ID, True), (ONE_ID, None, True), (ONE_ID, ONE_ID, False)],
)
def test_a_topic_that_was_made_anew_is_noticed(
    tmp_path: Path, before: str | None, after: str | None, *, is_other: bool
) -> None:
    def make(topic_id: str | None, place: Path) -> Path:
        directory = write_partition(place, {0: [batch_v2(plain_records(0, 4))]})
        if topic_id is not None:
            text = f"version: 0\ntopic_id: {topic_id}"
            (directory / "partition.metadata").write_text(text, "utf-8")
        return directory

    logs = tmp_path / "logs"
    make(before, logs)
    settle(logs)
    followed = pylog.follow(logs)
    assert followed.refresh()[ORDERS].topic_id == before
    other = make(after, tmp_path / "aside")  # first, so that it gets another inode
    shutil.rmtree(logs / "orders-0")
    other.rename(logs / "orders-0")
    log = followed.refresh()[ORDERS]
    assert log.rewritten_below == (4 if is_other else None)
    assert (log.topic_id, log.end_offset) == (after, 4)


def test_new_partitions_and_topics_are_found_and_deleted_ones_go(logs: Path) -> None:
    followed = pylog.follow(logs)
    followed.refresh()
    (logs / "orders-1").mkdir()  # a broker makes the directory first
    assert ends(followed) == {"orders-0": 2}
    write_partition(logs, {0: []}, name="orders-1")
    write_partition(logs, {0: [batch_v2(plain_records(0, 1))]}, name="payments-0")
    assert ends(followed) == {"orders-0": 2, "orders-1": 0, "payments-0": 1}
    deleted = logs / f"orders-0.{'a' * 32}-delete"
    (logs / "orders-0").rename(deleted)
    assert ends(followed) == {"orders-1": 0, "payments-0": 1}


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, ["orders-0", "orders-1", "payments-0"]),
        ({"topics": ["payments", "absent"]}, ["payments-0"]),
        ({"topics": ["__consumer_offsets"]}, ["__consumer_offsets-0"]),
        ({"assign": {"orders": [1, 9]}}, ["orders-1"]),
        ({"pattern": "a|_"}, ["payments-0"]),
    ],
)
def test_which_partitions_are_followed(
    logs: Path, chosen: dict[str, object], expected: list[str]
) -> None:
    for name in ("orders-1", "payments-0", "__consumer_offsets-0"):
        write_partition(logs, {0: []}, name=name)
    followed = pylog.follow(logs, **chosen)  # type: ignore[arg-type]
    assert list(ends(followed)) == expected


def test_two_ways_to_choose_are_refused(logs: Path) -> None:
    with pytest.raises(ValueError, match="give only one of topics"):
        pylog.follow(logs, topics=["orders"], pattern="o")


def test_a_path_that_goes_is_an_error(logs: Path) -> None:
    followed = pylog.follow(logs)
    followed.refresh()
    shutil.rmtree(logs)
    with pytest.raises(LogDirectoryError, match="no such directory"):
        followed.refresh()


def test_damage_at_the_end_is_an_error_unless_it_is_skipped(logs: Path) -> None:
    strict, lenient = pylog.follow(logs), pylog.follow(logs, mode="DROPMALFORMED")
    assert ends(strict) == ends(lenient) == {"orders-0": 2}
    append(segment_path(logs / "orders-0", 0), b"\x07" * 100 + batch(2))
    with pytest.raises(CorruptRecordError):
        strict.refresh()
    assert ends(lenient) == {"orders-0": 4}
    append(segment_path(logs / "orders-0", 0), batch(4))
    assert ends(lenient) == {"orders-0": 6}


def transactional(base: int, *, producer_id: int = 1) -> bytes:
    return batch_v2(plain_records(base, 1), producer_id=producer_id, is_transactional=True).data


def test_the_end_of_what_is_committed_follows_the_markers(logs: Path) -> None:
    path = segment_path(logs / "orders-0", 0)
    followed = pylog.follow(logs, isolation="read_committed")
    steps: list[tuple[bytes, int]] = [
        (b"", 2),
        (transactional(2), 2),
        (transactional(3, producer_id=2), 2),
        (marker(4, COMMIT).data, 3),
        (batch(5), 3),
        (marker(7, ABORT, producer_id=2).data, 8),
    ]
    for data, expected in steps:
        append(path, data)
        assert ends(followed) == {"orders-0": expected}
        settle(logs)
        assert ends(followed) == {"orders-0": expected}
    write_segment(logs / "orders-0", 8, [])
    append(segment_path(logs / "orders-0", 8), transactional(8) + batch(9))
    assert ends(followed) == {"orders-0": 8}
    read = pylog.scan(followed.directory, isolation="read_committed").to_table()
    assert read.column("offset").to_pylist() == [0, 1, 2, 5, 6]


def test_what_was_open_in_a_file_that_was_replaced_is_forgotten(logs: Path) -> None:
    path = segment_path(logs / "orders-0", 0)
    append(path, transactional(2) + batch(3))
    followed = pylog.follow(logs, isolation="read_committed")
    assert ends(followed) == {"orders-0": 2}
    for count in (3, 9):  # fewer and more than there were
        other = logs / "other"
        other.write_bytes(batch(0, count))
        other.rename(path)
        assert ends(followed) == {"orders-0": count}


def test_an_error_is_not_forgotten_at_the_next_look(logs: Path) -> None:
    followed = pylog.follow(logs)
    followed.refresh()
    path = segment_path(logs / "orders-0", 0)
    append(path, b"\x07" * 100)
    os.utime(path, (1, 1))
    for _ in range(2):
        with pytest.raises(CorruptRecordError):
            followed.refresh()


def test_a_change_within_a_step_of_the_clock_is_seen(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = segment_path(logs / "orders-0", 0)
    used = path.stat().st_size
    append(path, bytes(1000))  # preallocated: the length does not change
    settle(logs)
    now = path.stat().st_mtime_ns + 1
    monkeypatch.setattr("pylog.files.storage.time.time_ns", lambda: now)
    followed = pylog.follow(logs)
    assert ends(followed) == {"orders-0": 2}
    with path.open("r+b") as file:
        file.seek(used)
        file.write(batch(2))
    os.utime(path, ns=(now - 1, now - 1))
    assert ends(followed) == {"orders-0": 4}


def test_positions_are_resolved_as_the_last_look_has_shown_them(logs: Path) -> None:
    write_partition(logs, {0: [batch_v2(plain_records(0, 4))]}, name="orders-1")
    followed = pylog.follow(logs)
    followed.refresh()
    one = TopicPartition("orders", 1)
    assert followed.resolve("latest") == {ORDERS: 2, one: 4}
    assert followed.resolve({one: 3}, "latest") == {ORDERS: 2, one: 3}
    assert followed.resolve({one: 3}) == {ORDERS: 0, one: 3}
    with pytest.raises(OffsetOutOfRangeError):
        followed.resolve({one: 5})
    assert followed.resolve({one: 5}, fail_on_data_loss=False) == {ORDERS: 0, one: 4}
    with pytest.raises(ValueError, match="a position is given for orders-7, which is not read"):
        followed.resolve({TopicPartition("orders", 7): 5})


class ChangingLog:
    """A partition that is appended to, rolled, deleted from and truncated at random."""

    def __init__(self, logs: Path, seed: int) -> None:
        self.logs = logs
        self._directory = logs / "orders-0"
        self._random = random.Random(seed)
        self._sizes = {0: [len(batch(0))]}
        self._end = 2
        self._is_open = False

    def change(self) -> None:
        """Do one of them."""
        self._random.choice(
            [self._roll, self._delete, self._truncate, self._begin, self._decide]
            + [self._append_plain] * 3
        )()
        if self._random.random() < 0.3:
            settle(self.logs)

    def _append(self, data: bytes, count: int) -> None:
        append(segment_path(self._directory, max(self._sizes)), data)
        self._sizes[max(self._sizes)].append(len(data))
        self._end += count

    def _append_plain(self) -> None:
        count = self._random.randrange(1, 4)
        timestamp = self._random.randrange(10**6)
        records = plain_records(self._end, count, timestamp=timestamp)
        self._append(batch_v2(records).data, count)

    def _begin(self) -> None:
        self._append(transactional(self._end), 1)
        self._is_open = True

    def _decide(self) -> None:
        if self._is_open:
            self._append(marker(self._end, self._random.choice([ABORT, COMMIT])).data, 1)
            self._is_open = False

    def _roll(self) -> None:
        if self._end not in self._sizes:
            self._sizes[self._end] = []
            write_segment(self._directory, self._end, [])

    def _delete(self) -> None:
        # Without a producer snapshot, a first look knows nothing of what began before the log.
        if len(self._sizes) > 1 and not self._is_open:
            oldest = min(self._sizes)
            del self._sizes[oldest]
            segment_path(self._directory, oldest).unlink()

    def _truncate(self) -> None:
        sizes = self._sizes[max(self._sizes)]
        if len(sizes) > 1 and not self._is_open:
            sizes.pop()
            os.truncate(segment_path(self._directory, max(self._sizes)), sum(sizes))
            [log] = pylog.follow(self.logs).refresh().values()
            self._end = log.view.log_end_offset
            # A marker may have gone: then its transaction is open again.
            [log] = pylog.follow(self.logs, isolation="read_committed").refresh().values()
            self._is_open = log.end_offset < self._end


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("seed", range(12))
def test_every_look_shows_what_a_first_look_would(logs: Path, seed: int, isolation: str) -> None:
    changing = ChangingLog(logs, seed)
    followed = pylog.follow(logs, isolation=isolation)
    for step in range(60):
        changing.change()
        [log] = followed.refresh().values()
        [first] = pylog.follow(logs, isolation=isolation).refresh().values()
        found = (log.log_start_offset, log.end_offset, log.view.log_end_offset)
        assert found == (first.log_start_offset, first.end_offset, first.view.log_end_offset)
        if step % 10 == 0:
            fresh = pylog.scan(logs, isolation=isolation).to_table()
            scanned = pylog.scan(followed.directory, isolation=isolation).to_table()
            assert scanned.equals(fresh)

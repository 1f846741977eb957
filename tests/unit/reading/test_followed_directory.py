"""A log directory that is looked at again and again: what each look shows, and what it costs."""

from __future__ import annotations

import os
import random
import shutil
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
from pylog.reading import followed_partition
from pylog.reading.log_view import LogView
from pylog.reading.segments import LogSegmentView
from tests.support.batches import ABORT, COMMIT, batch_v2, marker, plain_records
from tests.support.log_files import (
    move_partition,
    segment_path,
    write_meta_properties,
    write_partition,
    write_segment,
    write_topic_id,
)
from tests.unit.reading.followed_logs import (
    ORDERS,
    append,
    batch,
    ends,
    offsets_read,
    settle,
    transactional,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.model import IsolationName


ONE_ID, OTHER_ID = "7bGSu7gYRDuEkZTQ2w4F_g", "a8GSu7gYRDuEkZTQ2w4F_g"


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


@pytest.mark.parametrize("has_id", [True, False])
def test_a_partition_is_followed_to_another_disk_and_a_new_topic_is_noticed_there(
    tmp_path: Path, *, has_id: bool
) -> None:
    disks = [tmp_path / "a", tmp_path / "b"]
    for disk, name in zip(disks, ("orders-0", "payments-0"), strict=True):
        place = write_partition(disk, {0: [batch_v2(plain_records(0, 4))]}, name=name)
        write_meta_properties(disk)
        if has_id:
            write_topic_id(place, ONE_ID)
    followed = pylog.follow(*disks, topics=["orders"])
    assert ends(followed) == {"orders-0": 4}
    moved = move_partition(disks[0] / "orders-0", disks[1])
    append(segment_path(moved, 0), batch(4))
    log = followed.refresh()[ORDERS]
    assert (log.rewritten_below, log.end_offset) == (None, 6)
    assert log.view.directory.path == str(moved)
    there = move_partition(moved, disks[0])
    if has_id:
        write_topic_id(there, OTHER_ID)
    assert followed.refresh()[ORDERS].rewritten_below == (6 if has_id else None)


def test_a_partition_that_is_moved_between_listing_and_look_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disks = [tmp_path / "a", tmp_path / "b"]
    for disk, name in zip(disks, ("orders-0", "payments-0"), strict=True):
        write_partition(disk, {0: [batch_v2(plain_records(0, 4))]}, name=name)
        write_meta_properties(disk)
    followed = pylog.follow(*disks, topics=["orders"])
    to_move = [disks[0] / "orders-0"]

    def moved_first(
        directory: pylog.results.PartitionDirectory, *arguments: object
    ) -> pylog.results.LogView:
        while to_move:
            move_partition(to_move.pop(), disks[1])
        return LogView(directory, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(followed_partition, "LogView", moved_first)
    assert ends(followed) == {"orders-0": 4}
    assert not to_move


def test_what_was_rewritten_is_said_where_another_partition_goes_at_the_same_look(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_partition(logs, {0: [batch_v2(plain_records(0, 4))]}, name="payments-0")
    write_meta_properties(logs)
    settle(logs)
    followed = pylog.follow(logs)
    followed.refresh()
    shutil.rmtree(logs / "orders-0")
    write_partition(logs, {0: [batch_v2(plain_records(0, 1))]}, name="orders-0")
    write_partition(logs, {9: [batch_v2(plain_records(9, 1))]}, name="payments-0")

    def gone_first(
        directory: pylog.results.PartitionDirectory, *arguments: object
    ) -> pylog.results.LogView:
        if directory.topic_partition.topic == "payments":
            shutil.rmtree(directory.path, ignore_errors=True)
        return LogView(directory, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(followed_partition, "LogView", gone_first)
    found = followed.refresh()
    assert list(found) == [ORDERS]
    assert found[ORDERS].rewritten_below == 2
    assert followed.refresh()[ORDERS].rewritten_below is None


def test_a_replica_of_another_node_is_no_log_that_was_rewritten(tmp_path: Path) -> None:
    nodes = [tmp_path / "1", tmp_path / "2"]
    for number, (node, records) in enumerate(zip(nodes, (10, 8), strict=True), 1):
        place = write_partition(node, {0: [batch_v2(plain_records(0, records))]})
        write_partition(node, {0: [batch_v2(plain_records(0, 1))]}, name=f"own{number}-0")
        write_topic_id(place, ONE_ID)
        (node / "meta.properties").write_text(f"version=1\nnode.id={number}\ncluster.id=c\n")
    followed = pylog.follow(*nodes, topics=["orders"])
    assert ends(followed) == {"orders-0": 10}
    shutil.rmtree(nodes[0] / "orders-0")
    log = followed.refresh()[ORDERS]
    assert (log.end_offset, log.rewritten_below) == (8, None)


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
def test_every_look_shows_what_a_first_look_would(
    logs: Path, seed: int, isolation: IsolationName
) -> None:
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

"""One partition that is looked at again and again: what a look remembers, and what it notices."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.reading import log_end
from tests.support.batches import ABORT, COMMIT, batch_v2, joined, marker, plain_records
from tests.support.log_files import (
    segment_path,
    write_log_start_offsets,
    write_partition,
    write_segment,
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

    from pylog.reading.damage import ReadModeName


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
    logs: Path, count: int, mode: ReadModeName, *, is_settled: bool
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
    logs: Path, epoch: int | None, end: int, mode: ReadModeName
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
    logs: Path, mode: ReadModeName
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


def test_a_truncated_log_without_anything_new_ends_earlier(logs: Path) -> None:
    append(segment_path(logs / "orders-0", 0), batch(2))
    settle(logs)
    followed = pylog.follow(logs)
    assert ends(followed) == {"orders-0": 4}
    os.truncate(segment_path(logs / "orders-0", 0), len(batch(0)))
    [log] = followed.refresh().values()
    assert (log.end_offset, log.rewritten_below) == (2, 4)


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

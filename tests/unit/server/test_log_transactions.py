"""The last stable offset of logs that change, and of walks that take long."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial, partialmethod
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.reading.transactions import _FileGaps
from pylog.server.log_transactions import (
    LogTransactions,
    LogWalks,
    NotWalkedError,
    WalkGivenUpError,
)
from tests.support.batches import COMMIT, Built, joined, marker
from tests.support.log_files import (
    segment_path,
    write_high_watermarks,
    write_partition,
    write_segment,
)
from tests.support.raw_client import RawClient
from tests.unit.server.followed import content, fetched, followed
from tests.unit.server.test_partition import COMMITTED, batches
from tests.unit.server.test_replica_manager import CORRUPT_MESSAGE, fetch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pylog.reading.log_view import LogView
    from pylog.reading.task_range import SegmentSlice
    from pylog.record.batch_scan import Window

EMPTY_SNAPSHOT = bytes.fromhex("000148674bc700000000")
OPEN = [*batches(*range(4)), *batches(*range(4, 10), producer_id=7)]
MARKER = marker(10, COMMIT, producer_id=7)


def write_snapshot(directory: Path, offset: int) -> None:
    """Write the producer snapshot of a log in which no transaction is open."""
    segment_path(directory, offset, ".snapshot").write_bytes(EMPTY_SNAPSHOT)


def end_and_roll(directory: Path) -> None:
    """Do what a broker does that ends the transaction, and then rolls the log."""
    with segment_path(directory, 0).open("ab") as file:
        file.write(MARKER.data)
    write_segment(directory, 11, batches(*range(11, 20)))
    write_snapshot(directory, 11)


def delete_first(directory: Path) -> None:
    end_and_roll(directory)
    remove(directory, 0)


def delete_first_without_snapshots(directory: Path) -> None:
    delete_first(directory)
    remove(directory, 11, ".snapshot")


def compact(directory: Path) -> None:
    """Remove the transaction's records, its marker too, as delete.retention.ms allows later."""
    end_and_roll(directory)
    cleaned = directory / "aside"
    cleaned.write_bytes(joined(OPEN[:4]))
    cleaned.rename(segment_path(directory, 0))


def truncate_fully(directory: Path) -> None:
    """Do what a follower does whose leader's log begins after the end of its own."""
    remove(directory, 0)
    write_segment(directory, 15, batches(*range(15, 20)))


def remove(directory: Path, base: int, suffix: str = ".*") -> None:
    for path in directory.glob(f"{base:020d}{suffix}"):
        path.unlink()


@pytest.mark.parametrize(
    "change", [delete_first, delete_first_without_snapshots, compact, truncate_fully]
)
def test_a_transaction_whose_marker_is_gone_does_not_stay_open(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    directory = write_partition(tmp_path, {0: OPEN})
    with followed(tmp_path) as replicas:
        assert fetched(replicas, 0, isolation=1)["lastStableOffset"] == 4
        change(directory)
        replicas.refresh()
        answer = fetched(replicas, 15, isolation=1)
    assert (answer["errorCode"], answer["lastStableOffset"]) == (0, 20)


@pytest.mark.parametrize("has_snapshot", [False, True])
def test_a_marker_at_the_checkpointed_watermark_ends_no_transaction_below_it(
    tmp_path: Path, *, has_snapshot: bool
) -> None:
    plain = batches(*range(11, 20))
    directory = write_partition(tmp_path, {0: [*OPEN, MARKER], 11: plain})
    if has_snapshot:
        write_snapshot(directory, 11)
    write_high_watermarks(tmp_path, {("orders", 0): 10})
    with followed(tmp_path, high_watermark="checkpoint") as replicas:
        answer = fetched(replicas, 0, isolation=1)
        assert (answer["highWatermark"], answer["lastStableOffset"]) == (10, 4)
        assert content(answer) == joined(OPEN[:4])
        for watermark in (11, 10, 20):
            write_high_watermarks(tmp_path, {("orders", 0): watermark})
            replicas.refresh()
            expected = 4 if watermark == 10 else watermark
            assert fetched(replicas, 0, isolation=1)["lastStableOffset"] == expected


def test_an_open_transaction_is_not_among_the_aborted_ones(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: OPEN})
    with pylog.serve(tmp_path) as server, RawClient(server.address) as client:
        answer = fetch(client, 0, **COMMITTED)
    assert (answer["records"], answer["abortedTransactions"]) == (joined(OPEN[:4]), [])


class LongWalk:
    """A walk over the log that takes until somebody lets it end."""

    def __init__(self, walk: Callable[..., int]) -> None:
        self._walk = walk
        self.has_begun, self.may_end = threading.Event(), threading.Event()
        self.count = 0

    def __call__(self, log: LogTransactions, view: LogView, *arguments: Any) -> int:  # noqa: ANN401
        if view.topic == "large":
            self.count += 1
            self.has_begun.set()
            assert self.may_end.wait(20)
        return self._walk(log, view, *arguments)


def latest_offset(client: RawClient, topic: str, **fields: int) -> int:
    """Return the latest offset that ListOffsets has."""
    partition = {"partitionIndex": 0, "timestamp": -1}
    topics = [{"name": topic, "partitions": [partition]}]
    asked = {"replicaId": -1, "topics": topics, **fields}
    (listed,) = client.ask("ListOffsets", 7, asked)["topics"]
    offset: int = listed["partitions"][0]["offset"]
    return offset


def test_clients_that_wait_for_one_walk_keep_no_other_from_being_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data: list[Built] = batches(*range(5))
    for name in ("large-0", "orders-0"):
        write_partition(tmp_path, {0: data}, name=name)
    walk = LongWalk(LogTransactions.last_stable_offset)
    monkeypatch.setattr(LogTransactions, "last_stable_offset", partialmethod(walk))

    def ask(number: int) -> int:
        with RawClient(address) as client:
            if number % 2:
                return latest_offset(client, "large", **COMMITTED)
            offset: int = fetch(client, 0, "large", **COMMITTED)["lastStableOffset"]
            return offset

    with pylog.serve(tmp_path) as server, ThreadPoolExecutor(12) as pool:
        address = server.address
        waiting = [pool.submit(ask, number) for number in range(12)]
        try:
            assert walk.has_begun.wait(20)
            with RawClient(address) as client:
                for isolation in ({}, COMMITTED):
                    assert fetch(client, 0, **isolation)["records"] == joined(data)
            assert not [each.result() for each in waiting if each.done()]
        finally:
            walk.may_end.set()
        assert [each.result() for each in waiting] == [5] * 12
    assert walk.count == 1


def test_a_walk_that_fails_is_told_for_its_partition_only(tmp_path: Path) -> None:
    data = batches(*range(5))
    for name in ("large-0", "orders-0"):
        write_partition(tmp_path, {0: data[:2], 2: data[2:]}, name=name)
    with pylog.serve(tmp_path) as server, RawClient(server.address) as client:
        assert latest_offset(client, "large") == 5
        last = segment_path(tmp_path / "large-0", 2)
        last.unlink()
        last.mkdir()
        partition = {"partition": 0, "fetchOffset": 0, "partitionMaxBytes": 1 << 20}
        topics = [{"topic": each, "partitions": [partition]} for each in ("large", "orders")]
        request = {"maxWaitMs": 0, "minBytes": 1, "maxBytes": 1 << 20, "topics": topics}
        large, orders = client.ask("Fetch", 12, {**request, **COMMITTED})["responses"]
    assert large["partitions"][0]["errorCode"] == CORRUPT_MESSAGE
    assert orders["partitions"][0]["records"] == joined(data[:2])


@pytest.mark.parametrize("asked", ["last_stable_offset", "of_segment"])
def test_a_close_does_not_wait_for_the_end_of_a_walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    write_partition(tmp_path, {0: OPEN, 10: batches(*range(10, 20)), 20: batches(*range(20, 30))})
    windows = 0
    has_begun, may_go_on = threading.Event(), threading.Event()
    look = _FileGaps.look

    def counted(gaps: _FileGaps, scan: Window, segment_slice: SegmentSlice) -> None:
        nonlocal windows
        windows += 1
        has_begun.set()
        assert may_go_on.wait(20)
        look(gaps, scan, segment_slice)

    monkeypatch.setattr(_FileGaps, "look", counted)
    log, walks = LogTransactions(), LogWalks()
    view = pylog.open_directory(tmp_path)["orders", 0]
    walk: Callable[[], Any] = (
        partial(log.last_stable_offset, view, 30)
        if asked == "last_stable_offset"
        else partial(log.of_segment, view, 0)
    )
    running = walks.start(NotWalkedError(log, walk))
    assert has_begun.wait(20)
    closing = threading.Thread(target=walks.close)
    closing.start()
    while log._is_wanted:
        closing.join(0.001)
    may_go_on.set()
    closing.join(20)
    assert isinstance(running.exception(20), WalkGivenUpError)
    assert windows == 1


@pytest.mark.parametrize(("longest_walk", "told"), [(1 << 20, 4), (0, -1)])
def test_a_fetch_of_all_tells_a_last_stable_offset_whatever_others_have_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, longest_walk: int, told: int
) -> None:
    monkeypatch.setattr("pylog.server.partition._SHORT_WALK_BYTES", longest_walk)
    write_partition(tmp_path, {0: OPEN})
    for first in ({}, COMMITTED):
        with pylog.serve(tmp_path) as server, RawClient(server.address) as client:
            assert fetch(client, 0, **first)["lastStableOffset"] == (4 if first else told)
            assert fetch(client, 0)["lastStableOffset"] == told
            assert fetch(client, 0, **COMMITTED)["lastStableOffset"] == 4
            assert fetch(client, 0)["lastStableOffset"] == told


def test_a_snapshot_at_the_end_tells_the_last_stable_offset_without_a_walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pylog.server.partition._SHORT_WALK_BYTES", 0)
    data = batches(*range(5))
    directory = write_partition(tmp_path, {0: data})
    write_snapshot(directory, 5)
    with pylog.serve(tmp_path) as server, RawClient(server.address) as client:
        assert fetch(client, 0)["lastStableOffset"] == 5

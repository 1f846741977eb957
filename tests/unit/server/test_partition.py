"""What is served of logs that change: truncated, damaged, repaired, with other watermarks."""

from __future__ import annotations

import errno
import os
import time
from array import array
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

import pylog
from pylog.errors import CorruptRecordError
from pylog.reading import transactions as transactions_module
from pylog.reading.checked_windows import CheckedWindows
from pylog.reading.damage import DamagedRange, DamageReport, ReadMode
from pylog.reading.log_directory import TopicChoice
from pylog.server.log_transactions import LogTransactions, NotWalkedError
from pylog.server.replica_manager import ReplicaManager, ServedLogs
from pylog.server.segment_proof import BatchCache, Batches, ProvedWindow, SegmentProof
from tests.support.batches import ABORT, COMMIT, Built, batch_v2, joined, marker, plain_records
from tests.support.log_files import (
    TRANSACTION_ENTRY,
    segment_path,
    write_high_watermarks,
    write_partition,
)
from tests.support.raw_client import RawClient
from tests.unit.server.test_replica_manager import CORRUPT_MESSAGE, fetch

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.reading.damage import ReadModeName
    from pylog.reading.log_view import LogView

COMMITTED: dict[str, Any] = {"isolationLevel": 1}
KAFKA_STORAGE_ERROR = 56
MODES = ["FAILFAST", "DROPMALFORMED"]


def batches(*offsets: int, size: int = 10, epoch: int = 0, producer_id: int = -1) -> list[Built]:
    """Return a batch of one record at each offset; transactional if there is a producer."""
    return [
        batch_v2(
            plain_records(each, 1, value_size=size),
            leader_epoch=epoch,
            producer_id=producer_id,
            is_transactional=producer_id >= 0,
        )
        for each in offsets
    ]


def served_until(client: RawClient, high_watermark: int, offset: int, **options: Any) -> Any:  # noqa: ANN401
    """Return what is fetched once the server has seen the end of the log."""
    for _ in range(100):
        answer = fetch(client, 0)
        if answer["highWatermark"] == high_watermark:
            return fetch(client, offset, **options)
        time.sleep(0.05)
    pytest.fail(f"the server has not seen the end {high_watermark}")


def truncate_to(directory: Path, base: int, kept: list[Built], appended: list[Built]) -> None:
    """Do what a follower does whose leader has other records: in the same file."""
    for log in directory.glob("*.log"):
        if int(log.stem) > base:
            log.unlink()
    with segment_path(directory, base).open("r+b") as file:
        file.truncate(len(joined(kept)))
        file.seek(0, 2)
        file.write(joined(appended))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("base", [0, 10], ids=["below the last segment", "in the last segment"])
def test_what_takes_the_place_of_truncated_records_is_served_as_it_is(
    tmp_path: Path, base: int, mode: ReadModeName
) -> None:
    first, last = batches(*range(10), size=50), batches(*range(10, 20), size=50)
    directory = write_partition(tmp_path, {0: first, 10: last})
    kept = [each for each in (last if base else first) if each.base_offset < base + 4]
    appended = batches(*range(base + 4, base + 40), size=31, epoch=1)
    with (
        pylog.serve(tmp_path, follow=True, mode=mode) as server,
        RawClient(server.address) as client,
    ):
        for offset in (0, 10):
            assert fetch(client, offset)["records"]
        truncate_to(directory, base, kept, appended)
        (directory / "leader-epoch-checkpoint").write_text(f"0\n2\n0 0\n1 {base + 4}\n")
        answer = served_until(client, base + 40, base + 8)
    assert (answer["errorCode"], answer["records"]) == (0, joined(appended[4:]))


def test_truncated_records_are_not_served_where_the_new_ones_are_damaged(tmp_path: Path) -> None:
    before = batches(*range(10), size=50)
    directory = write_partition(tmp_path, {0: before})
    appended = batches(*range(4, 14), size=31, epoch=1)
    cut = bytearray(joined(appended))
    cut[-len(appended[-1].data) + 8 : -len(appended[-1].data) + 12] = (1 << 20).to_bytes(4)
    cut += batches(14)[0].data
    with pylog.serve(tmp_path, follow=True) as server, RawClient(server.address) as client:
        assert fetch(client, 0)["records"] == joined(before)
        with segment_path(directory, 0).open("r+b") as file:
            file.truncate(len(joined(before[:4])))
            file.seek(0, 2)
            file.write(cut)
        answer = served_until(client, 14, 5)
    assert (answer["errorCode"], answer["records"]) == (0, joined(appended[1:-1]))


def test_open_transactions_of_truncated_records_are_forgotten(tmp_path: Path) -> None:
    open_one = [*batches(*range(4)), *batches(*range(4, 10), producer_id=7)]
    directory = write_partition(tmp_path, {0: open_one, 10: batches(*range(10, 20))})
    appended = batches(*range(4, 40), size=31, epoch=1)
    with pylog.serve(tmp_path, follow=True) as server, RawClient(server.address) as client:
        assert fetch(client, 0, **COMMITTED)["lastStableOffset"] == 4
        truncate_to(directory, 0, open_one[:4], appended)
        (directory / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n1 4\n")
        answer = served_until(client, 40, 4, **COMMITTED)
    assert (answer["lastStableOffset"], answer["records"]) == (40, joined(appended))


def test_records_up_to_a_checkpointed_watermark_are_served_once_it_is_there(
    tmp_path: Path,
) -> None:
    data = batches(*range(5))
    write_partition(tmp_path, {0: data})
    write_high_watermarks(tmp_path, {("orders", 0): 3})
    with (
        pylog.serve(tmp_path, follow=True, high_watermark="checkpoint") as server,
        RawClient(server.address) as client,
    ):
        assert fetch(client, 0)["highWatermark"] == 3
        time.sleep(1)
        write_high_watermarks(tmp_path, {("orders", 0): 5})
        assert fetch(client, 3, maxWaitMs=10_000)["records"] == joined(data[3:])


def test_damage_that_is_left_out_while_a_log_is_followed_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = batches(*range(5))
    damaged = bytearray(joined(data))
    damaged[len(data[0].data) + 70] ^= 1
    directory = write_partition(tmp_path, {0: data})
    segment_path(directory, 0).write_bytes(damaged)
    with (
        pylog.serve(tmp_path, follow=True, mode="DROPMALFORMED") as server,
        RawClient(server.address) as client,
    ):
        assert fetch(client, 1)["records"] == joined(data[2:])
    missing = "1 record may be missing, offset 1"
    assert any(missing in each for each in caplog.messages)


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """Return a partition with damage in front of its last batch."""
    data = batches(*range(5))
    damaged = bytearray(joined(data))
    damaged[len(data[0].data) + 8 : len(data[0].data) + 12] = (1 << 20).to_bytes(4)
    directory = write_partition(tmp_path / "logs", {0: data})
    segment_path(directory, 0).write_bytes(damaged)
    return directory


def test_a_damaged_log_that_stays_as_it_is_is_not_looked_at_again(cut: Path) -> None:
    replicas = ReplicaManager(
        ServedLogs(
            paths=(cut.parent,),
            choice=TopicChoice.of(topics=None, assign=None, pattern=None),
            mode=ReadMode.FAILFAST,
            follows=True,
        )
    )
    time.sleep(0.05)
    replicas.refresh()
    assert [replicas.refresh() for _ in range(3)] == [False] * 3
    replicas.close()


@pytest.mark.parametrize("at", [8, 70], ids=["size", "record"])
def test_a_log_that_is_repaired_is_served_on(tmp_path: Path, at: int) -> None:
    data = batches(*range(3))
    damaged = bytearray(joined(data))
    damaged[len(data[0].data) + at] ^= 1
    directory = write_partition(tmp_path, {0: data})
    segment_path(directory, 0).write_bytes(damaged)
    with pylog.serve(tmp_path, follow=True) as server, RawClient(server.address) as client:
        assert fetch(client, 0)["records"] == data[0].data
        assert fetch(client, 1)["errorCode"] == CORRUPT_MESSAGE
        truncate_to(directory, 0, data[:1], batches(1, 2, 3))
        answer = served_until(client, 4, 1)
    assert (answer["errorCode"], answer["records"]) == (0, joined(batches(1, 2, 3)))


def test_batches_in_front_of_damage_are_served_whatever_was_asked_before(tmp_path: Path) -> None:
    data = batches(*range(5))
    damaged = bytearray(joined(data))
    size = len(data[0].data)
    damaged[3 * size + 70] ^= 1
    directory = write_partition(tmp_path, {0: data})
    segment_path(directory, 0).write_bytes(damaged)
    replicas = ReplicaManager(
        ServedLogs(paths=(tmp_path,), choice=TopicChoice.of(topics=None, assign=None, pattern=None))
    )
    partition = replicas.partition("orders", 0)
    for max_bytes in (size, 1 << 20):
        partition.prove(0, max_bytes, is_committed=False)
    found = partition.read(0, 1 << 20, is_committed=False, whole_batch=True, is_fresh=True)
    assert found.size_bytes == 3 * size
    replicas.close()


def transactions() -> list[Built]:
    """Return two transactions that were aborted, and one that is open."""
    return [
        *batches(0, producer_id=1),
        marker(1, ABORT, producer_id=1),
        *batches(2, producer_id=2),
        marker(3, ABORT, producer_id=2),
        *batches(4, producer_id=3),
        *batches(5),
    ]


def test_a_transaction_index_that_lacks_an_entry_hides_no_aborted_records(tmp_path: Path) -> None:
    data = transactions()
    directory = write_partition(tmp_path, {0: data})
    index = TRANSACTION_ENTRY.pack(0, 1, 0, 1, 2)
    segment_path(directory, 0, ".txnindex").write_bytes(index)
    with pylog.serve(tmp_path) as server, RawClient(server.address) as client:
        answer = fetch(client, 0, **COMMITTED)
    aborted = [(each["producerId"], each["firstOffset"]) for each in answer["abortedTransactions"]]
    assert aborted[:2] == [(1, 0), (2, 2)]


def test_a_transaction_that_damage_leaves_undecided_is_not_served_as_committed(
    tmp_path: Path,
) -> None:
    data = transactions()
    damaged = bytearray(joined(data))
    damaged[-1] ^= 1
    directory = write_partition(tmp_path, {0: data})
    segment_path(directory, 0).write_bytes(damaged)
    index = TRANSACTION_ENTRY.pack(0, 1, 0, 1, 2) + TRANSACTION_ENTRY.pack(0, 2, 2, 3, 4)
    segment_path(directory, 0, ".txnindex").write_bytes(index)
    with pylog.serve(tmp_path) as server, RawClient(server.address) as client:
        assert fetch(client, 0, **COMMITTED)["records"] == joined(data[:4])
        assert fetch(client, 4, **COMMITTED)["errorCode"] == CORRUPT_MESSAGE


def test_only_what_is_new_is_asked_for_transactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked: list[tuple[int, int]] = []

    def recorded(view: LogView, start: int, end: int) -> Any:  # noqa: ANN401
        walked.append((start, end))
        return windows(view, start, end)

    windows = transactions_module._windows
    monkeypatch.setattr(transactions_module, "_windows", recorded)
    directory = write_partition(tmp_path, {0: transactions()})
    with pylog.serve(tmp_path, follow=True) as server, RawClient(server.address) as client:
        assert fetch(client, 0, **COMMITTED)["lastStableOffset"] == 4
        walked.clear()
        with segment_path(directory, 0).open("ab") as file:
            file.write(marker(6, ABORT, producer_id=3).data)
        answer = served_until(client, 7, 0, **COMMITTED)
    assert {start for start, _ in walked} == {6}
    aborted = [(each["producerId"], each["firstOffset"]) for each in answer["abortedTransactions"]]
    assert aborted == [(1, 0), (2, 2), (3, 4)]


def test_damage_that_another_thread_skips_aborts_no_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = [*batches(0, producer_id=1), *batches(1), marker(2, COMMIT, producer_id=1)]
    write_partition(tmp_path, {0: data})
    report = DamageReport(is_logged=False)
    (view,) = [each.with_damage(report) for each in pylog.open_directory(tmp_path)]

    class Interrupted(CheckedWindows):
        def __iter__(self) -> Any:  # noqa: ANN401
            for window in super().__iter__():
                for place in range(len(window.headers)):
                    report.add(DamagedRange("/another.log", 0, 1, 0, 1, "not this log"))
                    yield window.select(slice(place, place + 1))

    monkeypatch.setattr(transactions_module, "CheckedWindows", Interrupted)
    assert transactions_module.find_aborted_transactions(view, 0, 3) == ()


def test_what_is_proved_meanwhile_does_not_move_what_is_given(tmp_path: Path) -> None:
    data = batches(*range(5))
    write_partition(tmp_path, {0: data})
    (view,) = pylog.open_directory(tmp_path)
    size = len(data[0].data)
    ends = {each: (each + 1) * size for each in range(5)}
    path = view.segments[0].file_path()
    proof = SegmentProof(BatchCache(), path)
    proof.prove(view, 0, 0, 5 * size, 5)
    (whole,) = proof.windows

    def window(offset: int) -> ProvedWindow:
        return whole._replace(
            position=offset * size,
            end_position=ends[offset],
            lowest_offset=offset,
            next_offset=offset + 1,
        )

    class Meanwhile(SegmentProof):
        def _batches(self, window_of: ProvedWindow) -> Batches:
            self.windows = tuple(map(window, (0, 2, 3)))
            self._defects[size] = CorruptRecordError("damage after the new one")
            at = window_of.lowest_offset
            return Batches(array("q", [at * size]), array("q", [at]))

    seen = proof._seen
    proof = Meanwhile(BatchCache(), path)
    proof.windows, proof._seen, proof.look = (window(2), window(3)), seen, whole.look
    proof.source = view.segments[0].open_log()
    found = proof.locate(2, 2 * size, 4, whole_batch=True, end=5 * size, is_fresh=True)
    assert found is not None
    assert (found.position, found.size_bytes) == (2 * size, 2 * size)


@pytest.mark.parametrize("mode", MODES)
def test_files_that_cannot_be_opened_beside_all_others_are_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: ReadModeName
) -> None:
    first, last = batches(*range(5)), batches(*range(5, 10))
    write_partition(tmp_path, {0: first, 5: last})

    def refuse(path: str, *_: object, **__: object) -> NoReturn:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)

    with pylog.serve(tmp_path, mode=mode) as server, RawClient(server.address) as client:
        for offset in (0, 7):
            with monkeypatch.context() as starved:
                starved.setattr(os, "open", refuse)
                assert fetch(client, offset)["errorCode"] == KAFKA_STORAGE_ERROR
        assert fetch(client, 0)["records"] == joined(first)


def test_a_walk_that_is_asked_for_as_another_one_ends_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_partition(tmp_path, {0: batches(*range(5))})
    replicas = ReplicaManager(
        ServedLogs(paths=(tmp_path,), choice=TopicChoice.of(topics=None, assign=None, pattern=None))
    )
    partition = replicas.partition("orders", 0)
    needed = []
    for _ in range(2):
        with pytest.raises(NotWalkedError) as caught:
            partition.find_last_stable_offset()
        needed.append(caught.value)
    needed[0].walk()
    monkeypatch.setattr(LogTransactions, "last_stable_offset", None)  # who calls it, fails
    needed[1].walk()
    assert partition.find_last_stable_offset() == 5
    replicas.close()

"""What transaction indexes and producer snapshots cost consumers of committed records."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import ABORT, COMMIT, batch_v2, crc32c, marker, plain_records
from tests.support.damage import flip
from tests.support.log_files import (
    TRANSACTION_ENTRY,
    Transactions,
    mark_clean_shutdown,
    segment_path,
    write_high_watermarks,
    write_partition,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.support.batches import Built

PRODUCER = 7
_ENTRY = struct.Struct(">qhiqiqiq")


def data(first: int) -> Built:
    """Return three records of a transaction."""
    return batch_v2(
        plain_records(first, 3),
        producer_id=PRODUCER,
        producer_epoch=0,
        base_sequence=3 * (first // 4),
        is_transactional=True,
    )


ABORTED = [data(0), marker(3, ABORT, producer_id=PRODUCER)]
COMMITTED = [data(4), marker(7, COMMIT, producer_id=PRODUCER)]
AGAIN = [data(8), marker(11, ABORT, producer_id=PRODUCER)]


def write(directory: Path, first: Sequence[Built], second: Sequence[Built]) -> Path:
    """Write a log of two segments that was closed in order."""
    mark_clean_shutdown(directory)
    segments = {each[0].base_offset: each for each in (first, second)}
    partition = write_partition(directory, segments)
    known = Transactions([*first, *second])
    middle, end = second[0].base_offset, second[-1].last_offset + 1
    for base, limit in ((first[0].base_offset, middle), (middle, end)):
        content = known.index_bytes(base, limit)
        if content:
            segment_path(partition, base, ".txnindex").write_bytes(content)
    return partition


def write_snapshot(partition: Path, offset: int, open_since: int | None = None) -> None:
    """Write what a broker writes when it stops: of one producer, which may have something open."""
    first = -1 if open_since is None else open_since
    entry = _ENTRY.pack(PRODUCER, 0, 2, offset - 2, 2, 1_000, 0, first)
    body = struct.pack(">i", 1) + entry
    path = partition / f"{offset:020d}.snapshot"
    path.write_bytes(struct.pack(">hI", 1, crc32c(body)) + body)


def affected(directory: Path) -> list[tuple[int | None, int | None]]:
    verdict = pylog.doctor(directory).verdict
    assert verdict.would_start
    return [(each.from_offset, each.to_offset) for each in verdict.consumers]


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    directory = write(tmp_path, [*ABORTED, *COMMITTED], AGAIN)
    assert affected(tmp_path) == []
    return directory


def test_without_an_index_aborted_records_are_served(partition: Path) -> None:
    segment_path(partition, 0, ".txnindex").unlink()
    report = pylog.doctor(partition.parent)
    [finding] = report.findings
    assert (finding.code, finding.next_offset, finding.end_offset) == (
        "wrong_transaction_index",
        0,
        4,
    )
    assert affected(partition.parent) == [(0, 4)]
    assert "aborted at offset 3" in report.verdict.reasons[0]


def test_an_index_that_the_start_builds_again_costs_nothing(partition: Path) -> None:
    segment_path(partition, 0, ".txnindex").unlink()
    (partition.parent / ".kafka_cleanshutdown").unlink()
    report = pylog.doctor(partition.parent)
    assert [each.code for each in report.findings] == ["wrong_transaction_index"]
    assert report.verdict.consumers == []


def test_an_entry_of_a_committed_transaction_hides_records_up_to_the_next_abort(
    partition: Path,
) -> None:
    path = segment_path(partition, 0, ".txnindex")
    path.write_bytes(path.read_bytes() + TRANSACTION_ENTRY.pack(0, PRODUCER, 4, 7, 8))
    assert affected(partition.parent) == [(4, 12)]


def test_an_entry_hides_nothing_after_its_producers_next_abort(tmp_path: Path) -> None:
    rest = [batch_v2(plain_records(12, 3)), marker(15, ABORT, producer_id=PRODUCER + 1)]
    directory = write(tmp_path, [*ABORTED, *COMMITTED], [*AGAIN, *rest])
    path = segment_path(directory, 0, ".txnindex")
    path.write_bytes(path.read_bytes() + TRANSACTION_ENTRY.pack(0, PRODUCER, 4, 7, 8))
    assert affected(tmp_path) == [(4, 12)]


def test_an_entry_that_begins_too_late_leaves_records_in(partition: Path) -> None:
    path = segment_path(partition, 8, ".txnindex")
    path.write_bytes(TRANSACTION_ENTRY.pack(0, PRODUCER, 10, 11, 12))
    assert affected(partition.parent) == [(8, 10)]


def test_an_entry_is_believed_where_a_marker_before_it_is_missing(tmp_path: Path) -> None:
    """Offsets 7 to 19 are gone: the first transaction has ended there, and another has begun."""
    second = [data(20), marker(23, ABORT, producer_id=PRODUCER)]
    directory = write(tmp_path, [*ABORTED, data(4)], second)
    entry = TRANSACTION_ENTRY.pack(0, PRODUCER, 20, 23, 24)
    segment_path(directory, 20, ".txnindex").write_bytes(entry)
    codes = [each.code for each in pylog.doctor(tmp_path).findings]
    assert codes == ["missing_segment"]


class TestWhatIsOpen:
    def test_in_a_snapshot_alone_stops_consumers(self, partition: Path) -> None:
        write_snapshot(partition, 12, open_since=4)
        report = pylog.doctor(partition.parent)
        [finding] = report.findings
        assert finding.code == "wrong_stable_offset"
        assert "open since offset 4 by producer snapshots" in finding.message
        assert affected(partition.parent) == [(4, 12)]
        (partition.parent / ".kafka_cleanshutdown").unlink()
        assert affected(partition.parent) == []  # the log is read, and the snapshot written again

    def test_in_both_is_a_transaction_that_goes_on(self, tmp_path: Path) -> None:
        directory = write(tmp_path, [*ABORTED, *COMMITTED], [data(8)])
        write_snapshot(directory, 11, open_since=8)
        assert affected(tmp_path) == []

    def test_in_a_snapshot_from_further_back_stops_consumers_there(self, tmp_path: Path) -> None:
        directory = write(tmp_path, [*ABORTED, *COMMITTED], [data(8)])
        write_snapshot(directory, 11, open_since=4)
        assert affected(tmp_path) == [(4, 11)]

    def test_in_the_log_alone_is_served_as_committed(self, tmp_path: Path) -> None:
        directory = write(tmp_path, [*ABORTED, *COMMITTED], [data(8)])
        write_snapshot(directory, 11)
        assert affected(tmp_path) == [(8, 11)]

    def test_before_a_lost_end_may_have_ended_there(self, tmp_path: Path) -> None:
        directory = write(tmp_path, [*ABORTED, *COMMITTED], [data(8)])
        write_snapshot(directory, 11, open_since=8)
        write_high_watermarks(tmp_path, {("orders", 0): 20})
        (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 20\n")
        [finding] = [each for each in pylog.doctor(tmp_path).findings if "stable" in each.code]
        assert "its end may be what is missing" in finding.message
        assert affected(tmp_path) == [(8, 11)]

    def test_in_zeros_ends_a_broker_which_looks_it_up(self, tmp_path: Path) -> None:
        directory = write(tmp_path, [*ABORTED, *COMMITTED], [data(8)])
        path = segment_path(directory, 0, ".log")
        path.write_bytes(bytes(path.stat().st_size))
        write_snapshot(directory, 11)
        assert pylog.doctor(tmp_path).verdict.would_start is True
        write_snapshot(directory, 11, open_since=4)
        report = pylog.doctor(tmp_path)
        [refusal] = [each for each in report.findings if each.refuses_start]
        assert (refusal.code, refusal.path) == ("start_refused", str(path))
        assert report.verdict.would_start is False


def test_an_entry_before_damage_is_judged_and_one_of_what_is_damaged_is_not(
    partition: Path,
) -> None:
    last = segment_path(partition, 8, ".log")
    flip(last, -1)  # the marker at offset 11
    path = segment_path(partition, 0, ".txnindex")
    path.write_bytes(path.read_bytes() + TRANSACTION_ENTRY.pack(0, PRODUCER, 4, 7, 8))
    found = [each for each in pylog.doctor(partition.parent).findings if "index" in each.code]
    assert [(each.path, each.next_offset) for each in found] == [(str(path), 4)]

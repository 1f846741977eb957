"""The records of `__consumer_offsets` that count."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pylog
from pylog.reading import group_records
from pylog.reading.producer_transactions import find_transactions
from tests.support.batches import ABORT, COMMIT, Stored, batch_v2, joined, marker
from tests.support.damage import flip
from tests.support.log_files import segment_path, write_partition
from tests.unit.admin.committed_offsets import commit_key, commit_value, commits, committed, written

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

    from pylog.reading.log_view import LogView
    from pylog.reading.producer_transactions import Transaction


def test_offsets_of_a_transaction_count_once_it_is_committed(tmp_path: Path) -> None:
    transaction = {"is_transactional": True, "producer_epoch": 0, "base_sequence": 0}
    batches = [
        commits((0, 0, 10), (1, 1, 10), (2, 2, 10), (3, 3, 10)),
        commits((4, 0, 20), producer_id=1, **transaction),
        commits((5, 1, 20), producer_id=2, **transaction),
        commits((6, 2, 20), producer_id=3, **transaction),
        marker(7, COMMIT, producer_id=1, timestamp=7000),
        marker(8, ABORT, producer_id=2, timestamp=8000),
        # A plain commit that comes after the transaction's, and before its marker, wins.
        commits((9, 3, 20), producer_id=4, **transaction),
        commits((10, 3, 30)),
        marker(11, COMMIT, producer_id=4, timestamp=11_000),
    ]
    written(tmp_path, batches)
    of_g = {("g", "orders", each): offset for each, offset in enumerate((20, 10, 10, 30))}
    assert committed(pylog.groups(tmp_path)) == of_g
    before = {("g", "orders", each): 10 for each in range(4)}
    assert committed(pylog.groups(tmp_path, at_ms=6_999)) == before


def test_transactions_of_a_partition_that_is_compacted_meanwhile_are_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction = {"is_transactional": True, "producer_epoch": 0, "base_sequence": 0}
    batches = [
        commits((0, 0, 10)),
        commits((1, 0, 20), producer_id=1, **transaction),
        marker(2, COMMIT, producer_id=1),
    ]
    path = segment_path(written(tmp_path, batches) / "__consumer_offsets-0", 0)
    compacted = [joined(batches[1:])]

    def compacted_first(view: LogView) -> Iterator[Transaction]:
        if compacted:
            swap = path.with_name(path.name + ".swap")
            swap.write_bytes(compacted.pop())
            path.rename(path.with_name(path.name + ".deleted"))
            swap.rename(path)
        return find_transactions(view)

    monkeypatch.setattr(group_records, "find_transactions", compacted_first)
    listing = pylog.groups(tmp_path)
    assert listing.errors == []
    assert committed(listing) == {("g", "orders", 0): 20}


def test_what_compaction_has_removed_is_not_known_of_a_past_instant(tmp_path: Path) -> None:
    # Offset 0 was a commit of partition 0, which the one at 5 replaced.
    written(tmp_path, [commits((1, 1, 7)), commits((5, 0, 9), (6, 2, 9))])
    assert committed(pylog.groups(tmp_path, at_ms=1500)) == {
        ("g", "orders", 0): None,
        ("g", "orders", 1): 7,
        ("g", "orders", 2): None,
    }


def test_without_compaction_a_later_commit_is_no_commit_of_earlier(tmp_path: Path) -> None:
    written(tmp_path, [commits((0, 1, 7)), commits((1, 0, 9))])
    assert committed(pylog.groups(tmp_path, at_ms=500)) == {("g", "orders", 1): 7}


def test_a_tombstone_removes_an_offset(tmp_path: Path) -> None:
    written(tmp_path, [commits((0, 0, 7), (1, 1, 8), (2, 0, None))])
    assert committed(pylog.groups(tmp_path)) == {("g", "orders", 1): 8}


def test_records_that_are_not_understood_are_counted(tmp_path: Path) -> None:
    odd = [Stored(1, 1, b"\x00\x63", b"x"), Stored(2, 1, commit_key("g", "t", 0), b"\x00")]
    written(tmp_path, [commits((0, 0, 7)), batch_v2(odd)])
    listing = pylog.groups(tmp_path)
    assert listing.unreadable_records == 2
    assert committed(listing) == {("g", "orders", 0): 7}


def test_records_of_a_type_that_only_an_earlier_kafka_has_are_ignored(tmp_path: Path) -> None:
    share_partitions = b"\x00\x09" + struct.pack(">h", 1) + b"g"  # of 4.0 alone
    records = [Stored(1, 1, share_partitions, b"\x00\x00\x01\x00")]
    written(tmp_path, [commits((0, 0, 7)), batch_v2(records)])
    listing = pylog.groups(tmp_path)
    assert (listing.unreadable_records, listing.ignored_records) == (0, 1)
    assert committed(listing) == {("g", "orders", 0): 7}


def test_a_damaged_partition_does_not_hide_the_groups_of_others(tmp_path: Path) -> None:
    written(tmp_path, [commits((0, 0, 7))])
    damaged = write_partition(tmp_path, {0: [commits((0, 0, 8))]}, name="__consumer_offsets-1")
    log = damaged / f"{0:020d}.log"
    flip(log, -1)
    listing = pylog.groups(tmp_path)
    assert committed(listing) == {("g", "orders", 0): 7}
    (error,) = listing.errors
    assert str(log) in str(error)


def test_partitions_read_side_by_side_give_the_same(tmp_path: Path) -> None:
    for number in range(5):
        key = commit_key(f"g{number}", "orders", 0)
        batch = batch_v2([Stored(0, 1000, key, commit_value(10 * number))])
        write_partition(tmp_path, {0: [batch]}, name=f"__consumer_offsets-{number}")
    (log,) = (tmp_path / "__consumer_offsets-3").glob("*.log")
    flip(log, -3)
    one = pylog.groups(tmp_path, threads=1)
    assert list(committed(one).values()) == [0, 10, 20, 40]
    assert [str(log) in str(error) for error in one.errors] == [True]
    for threads in (2, 3, 8):
        passed: list[int] = []

        def progress(done: int, total: int, passed: list[int] = passed) -> None:
            passed[:] = [done, total]

        several = pylog.groups(tmp_path, threads=threads, progress=progress)
        assert several.groups == one.groups
        assert list(map(str, several.errors)) == list(map(str, one.errors))
        size = sum(path.stat().st_size for path in tmp_path.rglob("*.log"))
        assert passed == [size, size]

"""What merge puts at the ends of logs: lost markers, and positions of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pylog
from pylog.jobs import merge
from tests.support.batches import batch_v2, plain_records
from tests.support.group_records import classic, commit, stored
from tests.support.log_files import segment_path
from tests.support.replica_histories import stored_batches
from tests.unit.recovery.test_merge import diverged, replica
from tests.unit.recovery.test_merge_until import part

if TYPE_CHECKING:
    from pathlib import Path


def test_a_marker_that_only_a_branch_has_is_appended_where_that_is_wanted(tmp_path: Path) -> None:
    ones = diverged(tmp_path)
    done = merge(*ones, to=tmp_path / "out", appends_markers=True)
    (merged,) = done.partitions
    (ended,) = merged.transactions
    assert (ended.marker, ended.marker_offset) == ("COMMIT", 45)
    assert (ended.appended, ended.appended_at) == ("COMMIT", 70)
    assert merged.end_offset == 71
    batches = list(stored_batches(tmp_path / "out/orders-0"))
    assert batches[:-1] == list(stored_batches(ones[2]))
    scan = pylog.scan(tmp_path / "out", topics=["orders"], isolation="read_committed")
    assert scan.to_table()["offset"].to_pylist() == list(range(70))
    assert list(pylog.doctor(tmp_path / "out").findings) == []


def test_a_transaction_whose_marker_nobody_has_stays_open_and_is_told(tmp_path: Path) -> None:
    ones = diverged(tmp_path)
    still_open = batch_v2(
        plain_records(70, 5),
        leader_epoch=3,
        producer_id=2,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    with segment_path(ones[2], 10).open("ab") as file:
        file.write(still_open.data)
    (merged,) = merge(*ones, to=tmp_path / "out", appends_markers=True).partitions
    assert [(each.producer_id, each.appended_at) for each in merged.transactions] == [
        (1, 75),
        (2, None),
    ]


def committed(directory: Path) -> dict[tuple[str, int], int | None]:
    return {
        (group.group_id, each.partition): each.offset
        for group in pylog.groups(directory).groups
        for each in group.offsets
    }


def test_positions_behind_the_new_end_are_brought_back_to_it(tmp_path: Path) -> None:
    replica(tmp_path / "1", {0: [part(at, 10, 1000 + at) for at in range(0, 100, 10)]})
    replica(tmp_path / "1", {0: [part(0, 10, 1000)]}, name="orders-1")
    commits = [
        classic("ahead"),
        commit("ahead", offset=70, at=1),
        commit("ahead", partition=1, offset=10, at=1),
        commit("behind", offset=20, at=1),
        commit("elsewhere", "other", offset=500, at=1),
    ]
    late = [commit("ahead", offset=90, at=1)]
    batches = [
        batch_v2(stored(commits, timestamp=1000)),
        batch_v2(stored(late, base_offset=len(commits), timestamp=1080)),
    ]
    replica(tmp_path / "1", {0: batches}, name="__consumer_offsets-0")
    until = pylog.Timestamp(1056)
    planned = merge(tmp_path / "1", to=tmp_path / "out", until=until, dry_run=True)
    assert not (tmp_path / "out").exists()
    done = merge(tmp_path / "1", to=tmp_path / "out", until=until)
    assert [tuple(each) for each in done.groups] == [("ahead", "orders", 0, 70, 56)]
    assert planned.groups == done.groups
    assert committed(tmp_path / "out") == {
        ("ahead", 0): 56,
        ("ahead", 1): 10,
        ("behind", 0): 20,
        ("elsewhere", 0): 500,
    }
    assert committed(tmp_path / "1")["ahead", 0] == 90
    later = merge(tmp_path / "1", to=tmp_path / "later", until=pylog.Timestamp(1200))
    assert later.groups == []

"""What merge says of one partition: whose history it is, and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.errors import LogDirectoryError
from pylog.jobs import merge
from tests.support.damage import flip
from tests.support.log_files import segment_path, write_high_watermarks, write_log_start_offsets
from tests.support.metadata_log import partition_record, topic_record, write_metadata_log
from tests.support.replica_histories import write_epochs
from tests.unit.recovery.test_merge import diverged, gaps, log, only, replica

if TYPE_CHECKING:
    from pathlib import Path


def test_a_gap_is_named_with_what_each_replica_has_there(tmp_path: Path) -> None:
    one = replica(tmp_path / "1", {0: log(0, 20), 20: log(20, 40), 40: log(40, 60)})
    two = replica(tmp_path / "2", {0: log(0, 20)})
    three = replica(tmp_path / "3", {40: log(40, 60)}, [(0, 0)])
    flip(segment_path(one, 20), 100)
    empty = tmp_path / "4" / "orders-0"
    empty.mkdir(parents=True)
    merged = only(one, two, three, empty, to=tmp_path / "out")
    assert gaps(merged) == [(20, 25)]
    (gap,) = merged.gaps
    said = {each.source.split("/")[-2]: each.found for each in gap.causes}
    assert said["1"].startswith("damaged: ")
    assert "batch CRC stored" in said["1"]
    assert said["2"] == "ends at offset 20"
    assert said["3"] == "starts at offset 40"
    assert said["4"] == "nothing"
    assert not gap.is_cleaned_or_lost


def test_what_was_lost_before_the_first_and_after_the_last_record_is_a_gap(tmp_path: Path) -> None:
    one = replica(tmp_path / "1", {20: log(20, 40)}, [(0, 0)])
    write_high_watermarks(tmp_path / "1", {("orders", 0): 50})
    merged = only(one, to=tmp_path / "out")
    assert gaps(merged) == [(0, 20), (40, 50)]


def test_a_dry_run_says_the_same_and_writes_nothing(tmp_path: Path) -> None:
    ones = diverged(tmp_path)
    planned = only(*ones, to=tmp_path / "out", dry_run=True)
    assert not (tmp_path / "out").exists()
    done = only(*ones, to=tmp_path / "out")
    assert (planned.ranges, planned.gaps, planned.branches, planned.notes) == (
        *(done.ranges, done.gaps, done.branches, done.notes),
    )


def test_the_metadata_beside_a_replica_or_given_say_who_led_last(tmp_path: Path) -> None:
    one = replica(tmp_path / "1", {0: log(0, 40)}, node=1)
    two = replica(tmp_path / "2", {0: log(0, 30)}, node=2)
    values = [topic_record("orders"), partition_record(0, 2, (1, 2), leader_epoch=0)]
    write_metadata_log(tmp_path / "controller", values)
    assert only(one, two, to=tmp_path / "without").end_offset == 40
    for given in (tmp_path / "controller", tmp_path / "controller/__cluster_metadata-0"):
        merged = only(one, two, to=tmp_path / "out", metadata=given, dry_run=True)
        assert merged.is_proven
        assert (merged.leader or "").endswith("2/orders-0")
        assert not any("not proven that" in each for each in merged.notes)
    write_metadata_log(tmp_path / "2", values)
    assert only(one, two, to=tmp_path / "out", dry_run=True).is_proven
    (tmp_path / "2").rename(tmp_path / "disk-2")  # which is no partition
    disks = tmp_path / "1", tmp_path / "disk-2"
    assert only(*disks, to=tmp_path / "out", dry_run=True, topics=["orders"]).is_proven
    two = tmp_path / "disk-2" / "orders-0"
    with pytest.raises(LogDirectoryError, match="no log of the cluster's metadata"):
        merge(one, two, to=tmp_path / "out", metadata=tmp_path / "1")


def test_a_compacted_log_that_begins_above_0_says_so(tmp_path: Path) -> None:
    one = replica(tmp_path / "1", {20: log(20, 40)}, [])

    def says() -> bool:
        merged = only(one, to=tmp_path / "out", dry_run=True)
        return any("begins at offset 20" in each for each in merged.notes)

    assert not says()
    (tmp_path / "1" / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 30\n")
    assert says()
    write_epochs(one, [(0, 0)])  # it is a gap now
    assert not says()
    write_epochs(one, [])
    write_log_start_offsets(tmp_path / "1", {("orders", 0): 20})
    assert not says()

"""Positions of groups come to another ``__consumer_offsets``; a broker judges in tests/broker."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import LogDirectoryError, LogLockedError, UnknownTopicOrPartitionError
from pylog.files.directory_lock import DirectoryLock
from pylog.jobs import restore_groups
from tests.support.log_files import tree
from tests.support.metadata_log import feature_record, write_metadata_log

if TYPE_CHECKING:
    from pathlib import Path


LATE = ("grp-late", "orders", 1)


def positions(directory: Path) -> dict[tuple[str, str, int], tuple[int | None, int | None]]:
    return {
        (group.group_id, each.topic, each.partition): (each.offset, each.leader_epoch)
        for group in pylog.groups(directory).groups
        for each in group.offsets
    }


def test_a_new_directory_gets_all_positions_without_leader_epochs(
    source: Path, tmp_path: Path
) -> None:
    before = tree(source)
    expected = positions(source)
    done = restore_groups(source, to=tmp_path / "new")
    assert tree(source) == before
    found = positions(tmp_path / "new")
    assert {key: offset for key, (offset, _) in found.items()} == {
        key: offset for key, (offset, _) in expected.items()
    }
    assert {epoch for _, epoch in found.values()} == {None}
    assert {epoch for _, epoch in expected.values()} != {None}
    assert done.losses == []
    assert len(done.offsets) == len(found) == 3


def test_partitions_of_groups_that_no_disk_has_are_a_loss(source: Path, tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__consumer_offsets-0")
    shutil.copytree(source, tmp_path / "part", ignore=ignored, copy_function=shutil.copy)
    done = restore_groups(tmp_path / "part", to=tmp_path / "new")
    assert done.offsets == []
    [loss] = done.losses
    assert "of __consumer_offsets is not here (0): groups in it are not known" in loss


def test_a_map_moves_positions_and_what_it_lacks_is_named(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "map.csv"
    path.write_text("orders,1,5,0\norders,1,9,2\ninvoices-eu,0,38,7\n")
    done = restore_groups(source, to=tmp_path / "new", offset_map=path)
    found = {key: offset for key, (offset, _) in positions(tmp_path / "new").items()}
    assert found == {LATE: 2, ("grp-member", "invoices-eu", 0): 8}
    assert done.losses == ["not in the map: grp-member in invoices-eu-1"]
    assert [(each.before, each.offset) for each in done.offsets] == [(9, 2), (39, 8)]


def test_positions_that_are_there_are_left_alone_unless_they_are_replaced(
    source: Path, tmp_path: Path
) -> None:
    path = tmp_path / "map.csv"
    path.write_text("orders,1,9,2\n")
    new = tmp_path / "new"
    restore_groups(source, to=new, groups=["grp-late"])
    restore_groups(source, to=new, groups=["grp-late"])  # the same again
    before = tree(new)
    with pytest.raises(LogDirectoryError, match="group grp-late in orders-1 at 9 and not 2"):
        restore_groups(source, to=new, groups=["grp-late"], offset_map=path)
    assert tree(new) == before
    restore_groups(source, to=new, groups=["grp-late"], offset_map=path, replaces=True)
    assert positions(new) == {LATE: (2, None)}


def test_a_dry_run_writes_nothing(source: Path, tmp_path: Path) -> None:
    done = restore_groups(source, to=tmp_path / "new", dry_run=True)
    assert (len(done.offsets), done.is_written) == (3, False)
    assert not (tmp_path / "new").exists()


def test_partitions_that_a_cluster_has_elsewhere_are_not_made(source: Path, tmp_path: Path) -> None:
    node = tmp_path / "node"
    shutil.copytree(source, node)
    for each in node.glob("__consumer_offsets-*"):
        shutil.rmtree(each)
    with pytest.raises(LogDirectoryError, match=r"__consumer_offsets-\d is not here"):
        restore_groups(source, to=node, groups=["grp-late"])
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    write_metadata_log(fresh, [feature_record(25)])
    with pytest.raises(LogDirectoryError, match="let any consumer commit once"):
        restore_groups(source, to=fresh)
    assert not list(fresh.glob("__consumer_offsets-*"))


def test_what_cannot_be_done_is_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownTopicOrPartitionError):
        restore_groups(source, to=tmp_path / "new", groups=["no such"])
    with pytest.raises(LogDirectoryError, match="lies in"):
        restore_groups(source, to=source / "new")
    new = tmp_path / "new"
    restore_groups(source, to=new)
    with DirectoryLock(new), pytest.raises(LogLockedError):
        restore_groups(source, to=new)

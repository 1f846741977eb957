from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pylog.model import TopicPartition
from pylog.recovery.offset_translation import read_offset_translation
from tests.support.batches import batch_v2, plain_records
from tests.unit.recovery.test_merge import diverged, log, replica

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome


def test_what_is_alike_ends_with_0(tmp_path: Path, pylog_run: Callable[..., Outcome]) -> None:
    ones = diverged(tmp_path)
    done = pylog_run("diff", ones[0], ones[1])
    assert done.status == 0
    assert done.lines == ["orders-0: alike, 76 records (replicas)", "1 pair of logs: alike"]


def test_what_differs_ends_with_1_and_is_named(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    ones = diverged(tmp_path)
    done = pylog_run("diff", ones[0], ones[2])
    assert done.status == 1
    assert done.lines[0].startswith("orders-0: different from offset 45 on (replicas): ")
    assert done.lines[1:3] == [f"  left: {ones[0]}", f"  right: {ones[2]}"]
    assert any(line.startswith("  only-left: offset") for line in done.lines)
    assert any("by leader epochs" in line for line in done.lines)
    assert done.lines[-1] == "1 pair of logs: 1 different"
    document = json.loads(pylog_run("diff", ones[0], ones[2], "--json").output)
    assert document["isAlike"] is False
    (partition,) = document["partitions"]
    assert partition["differences"][0]["startOffset"] == 45
    assert sum(partition["counts"].values()) == 31


def test_a_partition_of_one_side_alone_is_named(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    for name in ("orders-0", "orders-1"):
        replica(tmp_path / "1", {0: log(0, 20)}, name=name)
    replica(tmp_path / "2", {0: log(0, 20)}, name="orders-0")
    replica(tmp_path / "2", {0: log(0, 20)}, name="users-0")
    done = pylog_run("diff", tmp_path / "1", tmp_path / "2", "--headers")
    assert done.status == 1
    assert f"orders-1: only in {tmp_path}/1/orders-1" in done.lines
    assert done.lines[-1] == "3 pairs of logs: 2 different"


def test_the_map_of_a_copy_is_written(tmp_path: Path, pylog_run: Callable[..., Outcome]) -> None:
    one = replica(tmp_path / "1", {0: [batch_v2(plain_records(0, 9))]})
    moved = [each._replace(offset=each.offset + 7) for each in plain_records(0, 9)]
    two = replica(tmp_path / "2", {7: [batch_v2(moved)]}, name="copy-0")
    path = tmp_path / "map.csv"
    done = pylog_run("diff", one, two, "--as", "copies", "--offset-map", path)
    assert (done.status, done.lines[0]) == (0, "orders-0: alike, 9 records (copies)")
    translation = read_offset_translation(path)
    assert translation.position(TopicPartition("orders", 0), 4) == 11


def test_what_cannot_be_read_ends_with_2(tmp_path: Path, pylog_run: Callable[..., Outcome]) -> None:
    one = replica(tmp_path / "1", {0: log(0, 20)})
    assert pylog_run("diff", one, tmp_path / "none").status == 2
    assert pylog_run("diff", one).status == 2
    assert pylog_run("diff", one, one, "--as", "twins").status == 2

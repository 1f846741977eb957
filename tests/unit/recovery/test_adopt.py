"""What adoption leaves in the target; what a broker makes of it is tried in tests/broker."""

from __future__ import annotations

import os
import uuid
from functools import partial
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.recovery.adoption_target import ADOPTION
from tests.support.adopted_disks import (
    TOPIC_ID,
    formatted,
    old,
    run,
)
from tests.support.counted_work import ensure_work_grows_in_proportion
from tests.support.log_files import tree, write_log_start_offsets
from tests.support.metadata_rows import fields_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize("make", [formatted, run])
def test_records_say_who_leads_and_the_copy_has_all(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    source = old(tmp_path / "old", epochs=(3, 5))
    target = make(tmp_path / "new")
    before = tree(source)
    summary = pylog.adopt(source, into=target)
    assert tree(source) == before
    assert (summary.losses, summary.topic_ids) == ([], {"t": TOPIC_ID})
    [partition] = fields_of(target, "PartitionRecord")
    assert partition["leaderEpoch"] == 6
    assert (partition["replicas"], partition["isr"], partition["leader"]) == ([7], [7], 7)
    assert partition["directories"] == [uuid.UUID("220a3be1-9019-0b15-89d6-5c5d4f3b3ebd")]
    [producer_ids] = fields_of(target, "ProducerIdsRecord")
    assert producer_ids["nextProducerId"] > 4_000
    assert pylog.scan(target, topics=["t"]).count() == 20
    assert pylog.doctor(target).verdict.would_start
    assert not (target / ADOPTION).exists()
    assert (summary.snapshot is None) == (make is run)


def test_a_dry_run_says_the_same_and_writes_nothing(tmp_path: Path) -> None:
    source, target = old(tmp_path / "old"), run(tmp_path / "new")
    before = tree(target)
    planned = pylog.adopt(source, into=target, dry_run=True)
    assert tree(target) == before
    done = pylog.adopt(source, into=target)
    assert planned.partitions == done.partitions
    assert (planned.is_written, done.is_written) == (False, True)


def test_deleted_records_do_not_come_back(tmp_path: Path) -> None:
    source, target = old(tmp_path / "old", epochs=(3, 3)), run(tmp_path / "new")
    write_log_start_offsets(source, {("t", 0): 10})
    write_log_start_offsets(target, {("own", 0): 4})
    pylog.adopt(source, into=target)
    stored = read_offset_checkpoint(target / "log-start-offset-checkpoint")
    assert stored == {("own", 0): 4, ("t", 0): 10}
    assert pylog.scan(target, topics=["t"]).count() == 10


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
def test_what_is_written_belongs_to_the_brokers_user(tmp_path: Path) -> None:
    source, target = old(tmp_path / "old"), run(tmp_path / "new")
    for each in [target, *target.rglob("*")]:
        os.chown(each, 4711, 4711)
    pylog.adopt(source, into=target)
    assert {each.stat().st_uid for each in [target, *target.rglob("*")]} == {4711}


def test_the_work_of_a_plan_grows_in_proportion_to_its_partitions(tmp_path: Path) -> None:
    def planning(count: int) -> Callable[[], object]:
        source = old(tmp_path / f"{count}-old", partitions=range(count))
        target = run(tmp_path / f"{count}-new")
        return partial(pylog.adopt, source, into=target, dry_run=True)

    ensure_work_grows_in_proportion({count: planning(count) for count in (50, 100, 200)})

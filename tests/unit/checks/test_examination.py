"""How partitions are examined: which, by how many threads, and what is told once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.checks import partition as partition_checks
from pylog.checks.doctor import doctor
from pylog.checks.files import read_checkpoints
from pylog.errors import LogDirectoryError
from pylog.files.directory_lock import DirectoryLock
from pylog.files.looks import MOST_PATIENCE_SECONDS
from tests.support.batches import batch_v2, plain_records, with_bad_crc
from tests.support.log_files import (
    move_partition,
    segment_path,
    write_meta_properties,
    write_partition,
    write_topic_id,
)
from tests.support.metadata_log import TOPIC_ID_TEXT
from tests.unit.checks.examined import FIRST, codes

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.checks.batches import LogWalk
    from pylog.checks.partition_check import PartitionCheck
    from pylog.reading.log_view import LogView

OTHER_ID_TEXT = "a8GSu7gYRDuEkZTQ2w4F_g"


def test_a_checkpoint_of_many_partitions_is_told_once(tmp_path: Path) -> None:
    for partition in range(3):
        write_partition(tmp_path, {0: FIRST}, name=f"orders-{partition}")
    (tmp_path / "replication-offset-checkpoint").write_text("7\n", "utf-8")
    report = pylog.doctor(tmp_path)
    assert codes(report) == [("error", "damaged_checkpoint")]
    assert len(report.directories[0].findings) == 1


def test_a_directory_that_is_not_live_is_looked_at_if_it_is_named(tmp_path: Path) -> None:
    name = f"orders-0.{'0123456789abcdef' * 2}-delete"
    directory = write_partition(tmp_path, {0: [FIRST[0], with_bad_crc(FIRST[1])]}, name=name)
    assert codes(pylog.doctor(directory)) == [("error", "damaged_batches")]


def test_a_disk_that_has_none_but_deleted_directories_is_looked_at_as_any_other(
    tmp_path: Path,
) -> None:
    """All partitions of it have just been moved to the other one."""
    disks = [tmp_path / "a", tmp_path / "b"]
    write_topic_id(write_partition(disks[0], {0: FIRST}, name="orders-0"), TOPIC_ID_TEXT)
    name = f"orders-0.{'0123456789abcdef' * 2}-delete"
    write_partition(disks[1], {0: [FIRST[0], with_bad_crc(FIRST[1])]}, name=name)
    for disk in disks:
        write_meta_properties(disk)
    assert codes(doctor(*disks)) == [("info", "deleted_directory")]
    assert ("error", "damaged_batches") in codes(doctor(disks[1]))


@pytest.mark.parametrize("is_damaged", [False, True])
@pytest.mark.parametrize("is_listed", [False, True])
def test_a_partition_that_is_moved_while_it_is_looked_at_is_looked_at_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_listed: bool, is_damaged: bool
) -> None:
    disks = [tmp_path / "a", tmp_path / "b"]
    batches = [FIRST[0], with_bad_crc(FIRST[1])] if is_damaged else FIRST
    for disk, name in zip(disks, ("orders-0", "payments-0"), strict=True):
        place = write_partition(disk, {0: batches if name == "orders-0" else FIRST}, name=name)
        write_topic_id(place, TOPIC_ID_TEXT if name == "orders-0" else OTHER_ID_TEXT)
        write_meta_properties(disk)
    look = partition_checks._check

    def moved_first(view: LogView, walk: LogWalk, **options: Any) -> PartitionCheck:  # noqa: ANN401
        if (disks[0] / "orders-0").exists():
            move_partition(disks[0] / "orders-0", disks[1])
            if not is_listed:
                raise LogDirectoryError("cannot look at directory", view.directory.path)
        return look(view, walk, **options)

    monkeypatch.setattr(partition_checks, "_check", moved_first)
    report = doctor(*disks)
    assert codes(report) == ([("error", "damaged_batches")] if is_damaged else [])
    assert [each.path for each in report.partitions] == [
        *(str(disks[1] / name) for name in ("orders-0", "payments-0")),
    ]


def test_damage_that_is_moved_between_two_looks_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disks = [tmp_path / "a", tmp_path / "b"]
    for disk, name in zip(disks, ("orders-0", "payments-0"), strict=True):
        batches = [FIRST[0], with_bad_crc(FIRST[1])] if name == "orders-0" else FIRST
        place = write_partition(disk, {0: batches}, name=name)
        write_topic_id(place, TOPIC_ID_TEXT if name == "orders-0" else OTHER_ID_TEXT)
        write_meta_properties(disk)
    pauses = 0

    def move(seconds: float) -> None:
        nonlocal pauses
        pauses += seconds >= 0.2  # others wait for the clock of the file system
        if pauses == 2 and (disks[0] / "orders-0").exists():
            move_partition(disks[0] / "orders-0", disks[1])

    monkeypatch.setattr(time, "sleep", move)
    with DirectoryLock(disks[0]), DirectoryLock(disks[1]):
        report = doctor(*disks)
    assert pauses >= 2
    assert codes(report) == [("error", "damaged_batches")]
    assert [each.path for each in report.findings] == [str(disks[1] / "orders-0" / f"{0:020d}.log")]


def test_many_lasting_faults_are_not_waited_for_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        place = write_partition(tmp_path, {0: FIRST}, name=f"orders-{number}")
        write_topic_id(place, TOPIC_ID_TEXT)
        segment_path(place, 0).write_bytes(b"damaged" * 20)
    write_meta_properties(tmp_path)
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    with DirectoryLock(tmp_path):
        found = codes(doctor(tmp_path, threads=1))
    assert found.count(("error", "damaged_batches")) == 40
    assert 20 < sum(waited) < 40 + MOST_PATIENCE_SECONDS * 0.9


def test_topics_and_partitions_choose(tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1", "clicks-0"):
        write_partition(tmp_path, {0: FIRST}, name=name)
    report = pylog.doctor(tmp_path, topics=["orders"], partitions=[1])
    assert [str(each.topic_partition) for each in report.partitions] == ["orders-1"]
    with pytest.raises(pylog.errors.UnknownTopicOrPartitionError, match="order"):
        pylog.doctor(tmp_path, topics=["order"])


def test_progress_comes_to_all_bytes(directory: Path) -> None:
    seen: list[tuple[int, int]] = []
    report = pylog.doctor(directory.parent, progress=lambda *done: seen.append(done))
    assert seen[-1] == (report.size_bytes, report.size_bytes)


def test_what_is_slow_stops_the_others_when_it_is_interrupted(tmp_path: Path) -> None:
    for partition in range(3):
        write_partition(tmp_path, {0: FIRST}, name=f"orders-{partition}")

    def interrupted(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pylog.doctor(tmp_path, progress=interrupted)


def test_a_log_that_is_appended_to_meanwhile_has_no_finding(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Side files are read first: what a broker writes later is about batches that are seen."""
    more = batch_v2(plain_records(30, 5, timestamp=1030))
    real = read_checkpoints
    place = "pylog.checks.partition.read_checkpoints"

    def appended_after(view: pylog.results.LogView) -> object:
        found = real(view)
        with segment_path(directory, 20).open("ab") as file:
            file.write(more.data)
        (directory.parent / "replication-offset-checkpoint").write_text(
            "0\n1\norders 0 35\n", "utf-8"
        )
        monkeypatch.setattr(place, real)
        return found

    monkeypatch.setattr(place, appended_after)
    report = pylog.doctor(directory.parent)
    assert codes(report) == []
    assert report.partitions[0].end_offset == 35

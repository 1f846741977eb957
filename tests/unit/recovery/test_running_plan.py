"""What is made ready for a running broker; that it serves it is tried in tests/broker."""

from __future__ import annotations

import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import KafkaStorageError, LogDirectoryError
from pylog.recovery.running_plan import PRODUCER_SHIFT
from tests.support.adopted_disks import NEW_CLUSTER, old, run
from tests.support.batch_parser import ParsedBatch, split_batches
from tests.support.damage import flip
from tests.support.log_files import segment_path, tree, write_log_start_offsets, write_partition
from tests.support.metadata_log import partition_record, topic_record

if TYPE_CHECKING:
    from pathlib import Path

NEW_ID = bytes(range(100, 116))


def running(directory: Path, *replicas: int, partitions: int = 1, records: bool = False) -> Path:
    """Write a log directory of a broker whose cluster has made the topic."""
    values = [topic_record("t", NEW_ID)] if replicas else []
    for number in range(partitions if replicas else 0):
        record = partition_record(number, replicas[0], replicas)
        values.append(record.replace(bytes(range(16)), NEW_ID))
    target = run(directory, values)
    for number in range(partitions if replicas else 0):
        source = old(directory.parent / f"more-{number}")
        log = (source / "t-0" / f"{0:020d}.log").read_bytes() if records else b""
        partition = target / f"t-{number}"
        partition.mkdir()
        (partition / f"{0:020d}.log").write_bytes(log)
    return target


def test_a_topic_may_be_called_copy(tmp_path: Path) -> None:
    """The copies from which the result is made lie beside it meanwhile."""
    source = old(tmp_path / "old")
    (source / "t-0").rename(source / "copy-0")
    partition = partition_record(0, 7, (7,)).replace(bytes(range(16)), NEW_ID)
    target = run(tmp_path / "new", [topic_record("copy", NEW_ID), partition])
    (target / "copy-0").mkdir()
    (target / "copy-0" / f"{0:020d}.log").touch()
    pylog.jobs.plan_for_running(source, running=target, into=tmp_path / "ready")
    assert pylog.scan(tmp_path / "ready" / "copy-0").count() == 10


def test_batches_get_the_epoch_and_ids_of_the_running_cluster(tmp_path: Path) -> None:
    source, target = old(tmp_path / "old", epochs=(3, 5)), running(tmp_path / "new", 7)
    before = tree(source), tree(target)
    done = pylog.jobs.plan_for_running(source, running=target, into=tmp_path / "ready")
    assert (tree(source), tree(target)) == before
    assert (done.is_written, done.losses, done.cluster_id) == (True, [], NEW_CLUSTER)
    names = {each.name for each in (tmp_path / "ready" / "t-0").iterdir()}
    assert names == {f"{0:020d}.log", "leader-epoch-checkpoint", "partition.metadata"}
    assert [each.name for each in (tmp_path / "ready").iterdir()] == ["t-0"]
    [old_log], [new_log] = [
        [each.read_bytes() for each in directory.glob("*.log")]
        for directory in (source / "t-0", tmp_path / "ready" / "t-0")
    ]
    olds, news = (
        [ParsedBatch.of(each) for each in split_batches(data)] for data in (old_log, new_log)
    )
    assert [each.leader_epoch for each in olds] == [3, 5]
    assert [each.leader_epoch for each in news] == [0, 0]
    assert [each.producer_id for each in news] == [4_000 + PRODUCER_SHIFT] * 2
    assert [each.records() for each in news] == [each.records() for each in olds]
    assert (tmp_path / "ready" / "t-0" / "leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"
    assert f"mv {target}/t-0 {target}.empty-t-0 && cp -a {tmp_path}/ready/t-0 {target}/t-0" in (
        done.steps
    )


def test_what_the_cluster_does_not_have_is_made_first(tmp_path: Path) -> None:
    source = old(tmp_path / "old", partitions=(0, 1))
    plan = pylog.jobs.plan_for_running(
        source, running=running(tmp_path / "new"), into=tmp_path / "ready", rename={"t": "u"}
    )
    assert plan.steps == [
        "kafka-topics.sh --bootstrap-server HOST:PORT --create --topic u --replica-assignment 7,7"
    ]
    assert (plan.is_written, plan.partitions, (tmp_path / "ready").exists()) == (False, [], False)


def test_a_log_that_starts_later_is_cut_by_kafkas_own_tool(tmp_path: Path) -> None:
    source = old(tmp_path / "old")
    write_log_start_offsets(source, {("t", 0): 4})
    done = pylog.jobs.plan_for_running(
        source, running=running(tmp_path / "new", 7), into=tmp_path / "ready"
    )
    [step] = [each for each in done.steps if "delete-records" in each]
    assert '{"topic": "t", "partition": 0, "offset": 4}' in step


@pytest.mark.parametrize(
    ("replicas", "partitions", "records", "text"),
    [
        ((7, 8), 1, False, "have it delete what was put in"),
        ((7,), 1, True, "has records in the running cluster"),
        ((7,), 1, False, "make as many"),
    ],
)
def test_what_the_cluster_would_destroy_is_refused(
    tmp_path: Path, replicas: tuple[int, ...], partitions: int, text: str, *, records: bool
) -> None:
    source = old(tmp_path / "old", partitions=(0, 1) if "many" in text else (0,))
    target = running(tmp_path / "new", *replicas, partitions=partitions, records=records)
    with pytest.raises(LogDirectoryError, match=text):
        pylog.jobs.plan_for_running(source, running=target, into=tmp_path / "ready")
    assert not (tmp_path / "ready").exists()


def test_a_cluster_whose_metadata_are_not_there_is_refused(tmp_path: Path) -> None:
    source, target = old(tmp_path / "old"), running(tmp_path / "new", 7)
    shutil.rmtree(target / "__cluster_metadata-0")
    with pytest.raises(LogDirectoryError, match="has the metadata of the cluster"):
        pylog.jobs.plan_for_running(source, running=target, into=tmp_path / "ready")


def test_kafkas_own_topics_are_refused(tmp_path: Path) -> None:
    source = old(tmp_path / "old")
    write_partition(source, {0: []}, name="__consumer_offsets-0")
    with pytest.raises(LogDirectoryError, match="restore-groups"):
        pylog.jobs.plan_for_running(
            source,
            running=running(tmp_path / "new", 7),
            into=tmp_path / "ready",
            topics=["__consumer_offsets"],
        )


def test_a_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        reason = "no space left"
        raise KafkaStorageError(reason, "disk")

    source, target = old(tmp_path / "old"), running(tmp_path / "new", 7)
    monkeypatch.setattr("pylog.recovery.running_plan.write_leader_epoch_checkpoint", fail)
    with pytest.raises(KafkaStorageError):
        pylog.jobs.plan_for_running(source, running=target, into=tmp_path / "ready")
    assert not (tmp_path / "ready").exists()


def test_without_room_for_a_copy_and_what_is_made_of_it_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = old(tmp_path / "old"), running(tmp_path / "new", 7)
    size_bytes = segment_path(source / "t-0", 0).stat().st_size
    usage = SimpleNamespace(free=(1 << 15) + size_bytes * 3 // 2, total=1 << 40)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    with pytest.raises(LogDirectoryError, match="nothing was written; make room"):
        pylog.jobs.plan_for_running(source, running=target, into=tmp_path / "ready")
    assert not (tmp_path / "ready").exists()


def test_a_partition_that_no_disk_has_is_a_loss(tmp_path: Path) -> None:
    source = old(tmp_path / "old", partitions=(1,))
    target = running(tmp_path / "new", 7, partitions=2)
    for is_dry in (True, False):
        done = pylog.jobs.plan_for_running(
            source, running=target, into=tmp_path / "ready", dry_run=is_dry
        )
        assert done.losses == ["t-0: no disk has it, and it stays empty"]


def test_a_dry_run_tells_of_the_losses_that_come(tmp_path: Path) -> None:
    source, target = old(tmp_path / "old", epochs=(3, 3)), running(tmp_path / "new", 7)
    flip(segment_path(source / "t-0", 0), 100)
    for is_dry in (True, False):
        done = pylog.jobs.plan_for_running(
            source, running=target, into=tmp_path / "ready", dry_run=is_dry
        )
        assert done.losses == ["t-0: offsets 0 to 9 are lost"]

"""What adoption leaves in the target; what a broker makes of it is tried in tests/broker."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import LogDirectoryError, LogLockedError
from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.files.directory_lock import DirectoryLock
from pylog.internal_topics.cluster_metadata import read_metadata_record
from pylog.reading.internal_logs import metadata_values
from pylog.reading.log_directory import open_directory
from pylog.recovery.adoption_target import ADOPTION
from pylog.recovery.metadata_batches import metadata_record
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import segment_path, write_log_start_offsets, write_partition
from tests.support.metadata_log import (
    METADATA,
    config_record,
    data_batch,
    feature_record,
    register_broker_record,
    topic_record,
    write_metadata_log,
    write_snapshot,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

NEW_CLUSTER = "qM6VaBEQIIV4rb6KS_2csw"
OLD_CLUSTER = "TGS49_DL2kqPGPzG1xseBg"
DIRECTORY_ID = "Igo74ZAZCxWJ1lxdTzs-vQ"
TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"
LEVEL = [feature_record(25)]


def properties(directory: Path, node_id: int, cluster: str, directory_id: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    text = f"version=1\ncluster.id={cluster}\nnode.id={node_id}\ndirectory.id={directory_id}\n"
    (directory / "meta.properties").write_text(text)
    return directory


def formatted(directory: Path, node_id: int = 7, level: int = 25) -> Path:
    """Write a log directory as formatting leaves it, with static voters and before Kafka 4.4."""
    properties(directory, node_id, NEW_CLUSTER, DIRECTORY_ID)
    (directory / "bootstrap.checkpoint").write_bytes(data_batch(0, [feature_record(level)]).data)
    return directory


def run(
    directory: Path, values: Sequence[bytes] = (), voters: Sequence[int] = (7,), node_id: int = 7
) -> Path:
    """Write a log directory of a node that has run and was stopped."""
    properties(directory, node_id, NEW_CLUSTER, DIRECTORY_ID)
    brokers = [register_broker_record(node_id, (bytes(15) + b"\x77",))]
    write_metadata_log(directory, [*LEVEL, *brokers, *values], voters=voters)
    (directory / ".kafka_cleanshutdown").write_bytes(b"")
    return directory


def old(directory: Path, *, epochs: Sequence[int] = (3,), partitions: Sequence[int] = (0,)) -> Path:
    """Write a log directory without metadata: ten records a leader epoch."""
    properties(directory, 1, OLD_CLUSTER, DIRECTORY_ID)
    for number in partitions:
        batches = [
            batch_v2(
                plain_records(at * 10, 10),
                leader_epoch=epoch,
                producer_id=4_000,
                producer_epoch=0,
                base_sequence=at * 10,
            )
            for at, epoch in enumerate(epochs)
        ]
        write_partition(directory, {0: batches}, name=f"t-{number}")
        metadata = f"version: 0\ntopic_id: {TOPIC_ID}\n"
        (directory / f"t-{number}" / "partition.metadata").write_text(metadata)
    return directory


def records(directory: Path) -> list[dict[str, Any]]:
    """Return the metadata records of a log directory, by name and fields."""
    view = open_directory(directory / METADATA)[("__cluster_metadata", 0)]
    found = []
    for value in metadata_values(view):
        record = read_metadata_record(value)
        found.append({"name": record.message.name, "fields": record.fields})
    return found


def fields_of(directory: Path, name: str) -> list[dict[str, Any]]:
    return [each["fields"] for each in records(directory) if each["name"] == name]


def tree(directory: Path) -> dict[str, bytes]:
    return {
        str(each.relative_to(directory)): each.read_bytes()
        for each in sorted(directory.rglob("*"))
        if each.is_file()
    }


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


def test_topics_that_the_cluster_has_are_refused_unless_renamed(tmp_path: Path) -> None:
    source = old(tmp_path / "old")
    same_name = run(tmp_path / "name", [topic_record("t", bytes(15) + b"\x09")])
    same_id = run(tmp_path / "id", [topic_record("other")])
    for target, why in ((same_name, "has a topic t"), (same_id, "has the id of topic t")):
        before = tree(target)
        with pytest.raises(LogDirectoryError, match=why):
            pylog.adopt(source, into=target)
        assert tree(target) == before
        summary = pylog.adopt(source, into=target, rename={"t": "u"})
        assert summary.topic_ids["u"] != TOPIC_ID
        metadata = (target / "u-0" / "partition.metadata").read_text()
        assert summary.topic_ids["u"] in metadata
        assert pylog.scan(target, topics=["u"]).count() == 10
    with pytest.raises(ValueError, match="is none of those that are adopted"):
        pylog.adopt(source, into=same_name, rename={"x": "y"})


def test_what_other_controllers_would_take_back_is_refused(tmp_path: Path) -> None:
    source = old(tmp_path / "old")
    one = run(tmp_path / "one", voters=(7, 8, 9))
    with pytest.raises(LogDirectoryError, match=r"1 of its 3 controllers .* was given"):
        pylog.adopt(source, into=one)
    two = properties(tmp_path / "two", 8, NEW_CLUSTER, "Igo74ZAZCxWJ1lxdTzs-vg")
    shutil.copytree(one / METADATA, two / METADATA)
    summary = pylog.adopt(source, into=[one, two])
    assert {tuple(each.replicas) for each in summary.partitions} == {(7,)}
    assert fields_of(one, "TopicRecord") == fields_of(two, "TopicRecord") != []


def test_what_is_no_stopped_node_is_refused(tmp_path: Path) -> None:
    source = old(tmp_path / "old")
    (tmp_path / "empty").mkdir()
    with pytest.raises(LogDirectoryError, match="format the node"):
        pylog.adopt(source, into=tmp_path / "empty")
    unformatted = properties(tmp_path / "bare", 7, NEW_CLUSTER, DIRECTORY_ID)
    with pytest.raises(LogDirectoryError, match=r"metadata\.version"):
        pylog.adopt(source, into=unformatted)
    target = run(tmp_path / "new")
    with DirectoryLock(target), pytest.raises(LogLockedError):
        pylog.adopt(source, into=target)
    with DirectoryLock(source), pytest.raises(LogLockedError):
        pylog.adopt(source, into=target)
    with pytest.raises(ValueError, match="at least one"):
        pylog.adopt(into=target)
    with pytest.raises(LogDirectoryError, match="lies in"):
        pylog.adopt(tmp_path, into=target)


def test_a_partition_that_no_disk_has_begins_empty_and_is_a_loss(tmp_path: Path) -> None:
    source, target = old(tmp_path / "old", partitions=(0, 2)), formatted(tmp_path / "new")
    summary = pylog.adopt(source, into=target)
    assert summary.losses == ["t-1: no disk has it, and it begins empty"]
    assert [each["partitionId"] for each in fields_of(target, "PartitionRecord")] == [0, 1, 2]
    assert pylog.doctor(target).verdict.would_start
    assert pylog.scan(target, topics=["t"]).count() == 20


def test_damage_is_left_out_and_named(tmp_path: Path) -> None:
    source, target = old(tmp_path / "old", epochs=(3, 3, 3)), formatted(tmp_path / "new")
    path = segment_path(source / "t-0", 0)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    summary = pylog.adopt(source, into=target)
    assert summary.losses == ["t-0: offsets 10 to 19 are lost"]
    assert pylog.scan(target, topics=["t"]).count() == 20


def test_the_replica_of_the_last_leader_is_taken_though_another_is_longer(tmp_path: Path) -> None:
    longer = old(tmp_path / "1", epochs=(3, 3, 3))
    leader = properties(old(tmp_path / "2", epochs=(3, 4)), 2, OLD_CLUSTER, DIRECTORY_ID)
    target = formatted(tmp_path / "new")
    summary = pylog.adopt(longer, leader, into=target)
    assert summary.partitions[0].source == str(leader / "t-0")
    assert any("goes further, to offset 30" in each for each in summary.notes)
    assert fields_of(target, "PartitionRecord")[0]["leaderEpoch"] == 5


@pytest.mark.parametrize(("level", "leader"), [(25, 8), (21, -1)])
def test_replicas_follow_where_the_cluster_has_several_nodes(
    tmp_path: Path, level: int, leader: int
) -> None:
    first = old(tmp_path / "1", epochs=(3,))
    second = properties(old(tmp_path / "2", epochs=(3, 4)), 2, OLD_CLUSTER, DIRECTORY_ID)
    one, two = formatted(tmp_path / "7", 7, level), formatted(tmp_path / "8", 8, level)
    summary = pylog.adopt(first, second, into=[one, two])
    [record] = fields_of(one, "PartitionRecord")
    assert (record["replicas"], record["isr"], record["leader"]) == ([8, 7], [8], leader)
    assert summary.partitions[0].directories == [str(two / "t-0"), str(one / "t-0")]
    assert pylog.scan(one, topics=["t"]).count() == 10
    assert pylog.scan(two, topics=["t"]).count() == 20


def test_deleted_records_do_not_come_back(tmp_path: Path) -> None:
    source, target = old(tmp_path / "old", epochs=(3, 3)), run(tmp_path / "new")
    write_log_start_offsets(source, {("t", 0): 10})
    write_log_start_offsets(target, {("own", 0): 4})
    pylog.adopt(source, into=target)
    stored = read_offset_checkpoint(target / "log-start-offset-checkpoint")
    assert stored == {("own", 0): 4, ("t", 0): 10}
    assert pylog.scan(target, topics=["t"]).count() == 10


def test_the_old_metadata_give_configurations_and_access(tmp_path: Path) -> None:
    source, target = old(tmp_path / "old"), run(tmp_path / "new", [acl("User:there", 1)])
    values = [
        *LEVEL,
        topic_record("t"),
        config_record(2, "t", "retention.ms", "-1"),
        config_record(4, "", "log.retention.hours", "1"),
        config_record(4, "1", "log.retention.hours", "2"),
        acl("User:there", 2),
        acl("User:kept", 3),
        acl("User:gone", 4),
        metadata_record("RemoveAccessControlEntryRecord", 0, {"id": uuid.UUID(int=4)}),
        scram("alice"),
        scram("bob"),
        metadata_record("RemoveUserScramCredentialRecord", 0, {"name": "bob", "mechanism": 1}),
    ]
    write_metadata_log(source, values)
    shutil.copytree(target, tmp_path / "other")
    summary = pylog.adopt(source, into=target)
    configs = {
        (each["resourceType"], each["resourceName"]): each["value"]
        for each in fields_of(target, "ConfigRecord")
    }
    assert configs == {(2, "t"): "-1", (4, ""): "1"}
    principals = [each["principal"] for each in fields_of(target, "AccessControlEntryRecord")]
    assert principals == ["User:there", "User:kept"]
    [user] = fields_of(target, "UserScramCredentialRecord")
    assert (user["name"], bytes(user["storedKey"])) == ("alice", b"stored-key")
    assert "stored-key" not in repr(summary)
    assert any("what was revoked" in each for each in summary.notes)
    pylog.adopt(source, into=tmp_path / "other", with_access=False)
    assert fields_of(tmp_path / "other", "UserScramCredentialRecord") == []


def acl(principal: str, number: int) -> bytes:
    fields = {
        "id": uuid.UUID(int=number),
        "resourceType": 2,
        "resourceName": "t",
        "patternType": 3,
        "principal": principal,
        "host": "*",
        "operation": 3,
        "permissionType": 3,
    }
    return metadata_record("AccessControlEntryRecord", 0, fields)


def scram(name: str) -> bytes:
    fields = {
        "name": name,
        "mechanism": 1,
        "salt": b"salt",
        "storedKey": b"stored-key",
        "serverKey": b"server-key",
        "iterations": 4096,
    }
    return metadata_record("UserScramCredentialRecord", 0, fields)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
def test_what_is_written_belongs_to_the_brokers_user(tmp_path: Path) -> None:
    source, target = old(tmp_path / "old"), run(tmp_path / "new")
    for each in [target, *target.rglob("*")]:
        os.chown(each, 4711, 4711)
    pylog.adopt(source, into=target)
    assert {each.stat().st_uid for each in [target, *target.rglob("*")]} == {4711}


_PROGRAM = """
import sys, pylog
pylog.adopt(sys.argv[1], into=sys.argv[2], dry_run=True)
print("ready", flush=True)
sys.stdin.readline()
pylog.adopt(sys.argv[1], into=sys.argv[2])
print("done", flush=True)
"""


@pytest.mark.thorough(one_in=75, of_all=6)
@pytest.mark.parametrize("milliseconds", range(0, 300, 1))
def test_a_kill_leaves_the_target_as_it_was_or_a_mark_that_tells_how_to_go_on(
    tmp_path: Path, milliseconds: int
) -> None:
    source = old(tmp_path / "old", partitions=(0, 1, 2))
    target = (run if milliseconds % 2 else formatted)(tmp_path / "new")
    before = tree(target)
    command = [sys.executable, "-c", _PROGRAM, str(source), str(target)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        process.stdin.write(b"\n")
        process.stdin.flush()
        time.sleep(milliseconds / 1e3)
        os.kill(process.pid, signal.SIGKILL)
        is_done = process.stdout.readline() == b"done\n"
    is_marked = (target / ADOPTION).exists()
    assert not (is_done and is_marked)
    is_adopted = not is_marked and fields_of_any(target, "TopicRecord") != []
    if is_marked:
        assert not pylog.doctor(target).verdict.would_start
        with pytest.raises(LogDirectoryError, match="interrupted"):
            pylog.adopt(source, into=target)
        is_adopted = pylog.jobs.end_adoption([target], undo=milliseconds % 4 > 1)
    (target / ".lock").unlink(missing_ok=True)
    if not is_adopted:
        assert tree(target) == before
        pylog.adopt(source, into=target)
    assert pylog.scan(target, topics=["t"]).count() == 30
    assert len(fields_of(target, "PartitionRecord")) == 3
    assert pylog.doctor(target).verdict.would_start


def fields_of_any(directory: Path, name: str) -> list[dict[str, Any]]:
    return fields_of(directory, name) if (directory / METADATA).exists() else []


class StoppedError(Exception):
    pass


def stop(*_: object) -> None:
    raise StoppedError


@pytest.mark.parametrize("step", ["_write", "_remove_marks"])
def test_a_controller_that_runs_meanwhile_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    source, target = old(tmp_path / "old"), run(tmp_path / "new")
    with monkeypatch.context() as patch:
        patch.setattr(f"pylog.recovery.adoption_steps.Adoption.{step}", stop)
        with pytest.raises(StoppedError):
            pylog.adopt(source, into=target)
    log = segment_path(target / METADATA, 0)
    end = open_directory(target / METADATA)[("__cluster_metadata", 0)].log_end_offset
    late = data_batch(end, [topic_record("late", bytes(15) + b"\x0c")]).data
    log.write_bytes(log.read_bytes() + late)
    before = tree(target)
    is_known = step == "_remove_marks"
    if is_known:
        with pytest.raises(LogDirectoryError, match="knows the topics"):
            pylog.jobs.end_adoption([target], undo=True)
        (target / ".lock").unlink(missing_ok=True)
        assert tree(target) == before
    assert pylog.jobs.end_adoption([target])
    names = [each["name"] for each in fields_of(target, "TopicRecord")]
    assert names == (["t", "late"] if is_known else ["late", "t"])
    assert pylog.scan(target, topics=["t"]).count() == 10


def test_what_a_controller_has_added_stays_when_an_adoption_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = old(tmp_path / "old"), run(tmp_path / "new")
    with monkeypatch.context() as patch:
        patch.setattr("pylog.recovery.adoption_steps.Adoption._write", stop)
        with pytest.raises(StoppedError):
            pylog.adopt(source, into=target)
    log = segment_path(target / METADATA, 0)
    log.write_bytes(log.read_bytes() + data_batch(3, [topic_record("late")]).data)
    pylog.jobs.end_adoption([target], undo=True)
    assert [each["name"] for each in fields_of(target, "TopicRecord")] == ["late"]
    assert not list(target.glob("t-*"))
    with pytest.raises(LogDirectoryError, match="no call was interrupted"):
        pylog.jobs.end_adoption([target])


def test_a_snapshot_of_formatting_is_replaced(tmp_path: Path) -> None:
    source = old(tmp_path / "old")
    target = properties(tmp_path / "new", 7, NEW_CLUSTER, DIRECTORY_ID)
    (target / METADATA).mkdir()
    write_snapshot(target / METADATA, 0, LEVEL)
    summary = pylog.adopt(source, into=target)
    assert [each.name for each in (target / METADATA).glob("*.checkpoint")] == [
        f"{1000:020d}-{1:010d}.checkpoint"
    ]
    assert summary.snapshot == str(target / METADATA / f"{1000:020d}-{1:010d}.checkpoint")
    assert fields_of(target, "FeatureLevelRecord")[0]["featureLevel"] == 25


def test_nodes_that_are_controllers_alone_get_no_partitions(tmp_path: Path) -> None:
    source = old(tmp_path / "old", partitions=(0, 1))
    controller, broker = formatted(tmp_path / "1", 1), formatted(tmp_path / "4", 4)
    summary = pylog.adopt(source, into=[controller, broker], brokers=[4])
    assert {tuple(each.replicas) for each in summary.partitions} == {(4,)}
    assert not list(controller.glob("t-*"))
    assert fields_of(controller, "TopicRecord") == fields_of(broker, "TopicRecord") != []
    with pytest.raises(ValueError, match="no log directory of broker 9"):
        pylog.adopt(source, into=[controller, broker], brokers=[9], dry_run=True)


def test_a_directory_of_the_metadata_alone_gets_no_partitions(tmp_path: Path) -> None:
    source, metadata = old(tmp_path / "old"), run(tmp_path / "metadata")
    (metadata / ".kafka_cleanshutdown").unlink()
    logs = properties(tmp_path / "logs", 7, NEW_CLUSTER, "Igo74ZAZCxWJ1lxdTzs-vg")
    summary = pylog.adopt(source, into=[metadata, logs])
    assert summary.partitions[0].directories == [str(logs / "t-0")]
    assert not (metadata / "t-0").exists()


def test_a_node_that_has_not_run_meanwhile_gets_more_topics(tmp_path: Path) -> None:
    first, second = old(tmp_path / "old"), old(tmp_path / "more", partitions=(0, 1))
    target = formatted(tmp_path / "new")
    pylog.adopt(first, into=target)
    summary = pylog.adopt(second, into=target, rename={"t": "u"})
    assert [each["name"] for each in fields_of(target, "TopicRecord")] == ["t", "u"]
    assert len(fields_of(target, "ProducerIdsRecord")) == 1
    names = [each.name for each in (target / METADATA).glob("*.checkpoint")]
    assert names == [f"{2000:020d}-{1:010d}.checkpoint"]
    assert summary.snapshot == str(target / METADATA / names[0])


@pytest.mark.parametrize("makes_snapshot", [False, True])
def test_what_was_all_but_done_can_be_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, makes_snapshot: bool
) -> None:
    source, target = old(tmp_path / "old"), formatted(tmp_path / "new")
    if makes_snapshot:
        (target / METADATA).mkdir()
        write_snapshot(target / METADATA, 0, LEVEL)
    before = [*tree(target).items(), *sorted(target.rglob("*"))]

    monkeypatch.setattr("pylog.recovery.adoption_steps.Adoption._remove_marks", stop)
    with pytest.raises(StoppedError):
        pylog.adopt(source, into=target)
    monkeypatch.undo()
    assert fields_of(target, "TopicRecord") != []
    pylog.jobs.end_adoption([target], undo=True)
    assert [*tree(target).items(), *sorted(target.rglob("*"))] == before


def test_one_log_directory_tells_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = [old(tmp_path / "a", partitions=(0,)), old(tmp_path / "b", partitions=(1, 2))]
    properties(sources[1], 2, OLD_CLUSTER, DIRECTORY_ID)
    one, two = formatted(tmp_path / "7", 7), formatted(tmp_path / "8", 8)
    before = [*tree(one).items(), *tree(two).items()]

    monkeypatch.chdir(tmp_path)
    for undo in (True, False):
        with monkeypatch.context() as patch:
            patch.setattr("pylog.recovery.adoption_steps.Adoption._write", stop)
            with pytest.raises(StoppedError):
                pylog.adopt(*sources, into=["7", "8"])
        with monkeypatch.context() as patch:
            patch.chdir("/")
            assert pylog.jobs.end_adoption([two], undo=undo) is not undo
        assert not list(tmp_path.glob(f"*/{ADOPTION}"))
        assert ([*tree(one).items(), *tree(two).items()] == before) is undo
    assert [pylog.scan(each, topics=["t"]).count() for each in (one, two)] == [10, 20]

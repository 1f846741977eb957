"""Which stopped nodes can take topics over, and where their metadata go on."""

from __future__ import annotations

import base64
import shutil
import uuid
from functools import partial
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import LogDirectoryError, LogLockedError
from pylog.files.directory_lock import DirectoryLock
from tests.support.adopted_disks import (
    DIRECTORY_ID,
    LEVEL,
    NEW_CLUSTER,
    formatted,
    old,
    properties,
    run,
)
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.support.metadata_log import (
    METADATA,
    data_batch,
    leader_change,
    register_broker_record,
    voters_batch,
    write_metadata_log,
    write_snapshot,
)
from tests.support.metadata_rows import fields_of

if TYPE_CHECKING:
    from pathlib import Path


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


def test_nodes_that_never_registered_have_no_partitions(tmp_path: Path) -> None:
    target = properties(tmp_path / "new", 7, NEW_CLUSTER, DIRECTORY_ID)
    write_metadata_log(target, [*LEVEL, register_broker_record(9, (bytes(16),))], voters=(7,))
    with pytest.raises(LogDirectoryError, match="none of these nodes has registered"):
        pylog.adopt(old(tmp_path / "old"), into=target)


def test_a_voter_on_another_log_directory_is_none(tmp_path: Path) -> None:
    """It listens to the voter that is gone, which would take back what is appended."""
    own = uuid.uuid4()
    for name, voter, is_refused in (("1", own, False), ("2", uuid.uuid4(), True)):
        text = base64.urlsafe_b64encode(own.bytes).decode().rstrip("=")
        target = properties(tmp_path / name, 7, NEW_CLUSTER, text)
        version = batch_v2([Stored(1, 1, b"\0\0\0\5", b"\0\0\0\1\0")], control_type=5)
        brokers = [register_broker_record(7, (bytes(15) + b"\x77",))]
        batches = [leader_change(0, (7,)), version, voters_batch(2, (7,), voter.bytes)]
        write_partition(target, {0: [*batches, data_batch(3, [*LEVEL, *brokers])]}, name=METADATA)
        call = partial(pylog.adopt, old(tmp_path / f"old-{name}"), into=target, dry_run=True)
        if is_refused:
            with pytest.raises(LogDirectoryError, match="0 of its 1 controller"):
                call()
        else:
            assert call().losses == []


def test_what_is_not_known_of_the_target_is_told(tmp_path: Path) -> None:
    two = register_broker_record(7, (bytes(15) + b"\x77", bytes(15) + b"\x78"))
    target = run(tmp_path / "new", [two])
    (target / METADATA / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n5 90\n")
    notes = pylog.adopt(old(tmp_path / "old"), into=target, dry_run=True).notes
    assert any("1 of 2 log directories of node 7 were given" in each for each in notes)
    assert any("its leader epochs reach to 90" in each for each in notes)

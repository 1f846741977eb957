from __future__ import annotations

import errno
import itertools
import json
import shutil
import struct
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import KafkaStorageError, LogDirectoryError, LogLockedError
from pylog.files.directory_lock import DirectoryLock
from pylog.files.durable_io import DurableIO
from pylog.results import Fate
from pylog.writing.new_log_directory import UNFINISHED
from tests.support.adopted_disks import OLD_CLUSTER, known, properties
from tests.support.batch_parser import ParsedBatch
from tests.support.batches import Stored, batch_v2, plain_records
from tests.support.counted_work import ensure_work_grows_in_proportion
from tests.support.killed_program import crashed_at
from tests.support.log_files import tree, write_partition, write_topic_id
from tests.support.metadata_log import (
    BEGIN,
    METADATA,
    TOPIC,
    config_record,
    data_batch,
    feature_record,
    leader_change,
    partition_record,
    register_broker_record,
    topic_record,
    voters_batch,
    write_metadata_log,
    write_snapshot,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pylog.results import FirstAid
    from tests.support.golden import GoldenRoot

CLUSTER = "qM6VaBEQIIV4rb6KS_2csw"
DIRECTORY_ID = "Igo74ZAZCxWJ1lxdTzs-vQ"
VERSIONS = [feature_record(25)]
LOG = f"{0:020d}.log"
STATE = (
    '{"clusterId":"","leaderId":3,"leaderEpoch":7,"votedId":-1,"appliedOffset":0,'
    '"currentVoters":[{"voterId":1},{"voterId":2},{"voterId":3}],"data_version":0}'
)


def node(directory: Path, node_id: int, values: Sequence[bytes], voters: Sequence[int]) -> Path:
    """Write a node's disk with a static quorum."""
    directory.mkdir(parents=True)
    meta = f"version=1\ncluster.id={CLUSTER}\nnode.id={node_id}\ndirectory.id={DIRECTORY_ID}\n"
    (directory / "meta.properties").write_text(meta)
    write_metadata_log(directory, values, voters=voters)
    return directory


def dynamic(directory: Path, node_id: int, values: Sequence[bytes], voters: Sequence[int]) -> Path:
    """Write a node's disk whose log names the voters."""
    directory.mkdir(parents=True)
    meta = f"version=1\ncluster.id={CLUSTER}\nnode.id={node_id}\ndirectory.id={DIRECTORY_ID}\n"
    (directory / "meta.properties").write_text(meta)
    version = struct.pack(">hhb", 0, 1, 0)
    kraft = batch_v2([Stored(1, 1, struct.pack(">hh", 0, 5), version)], control_type=5)
    batches = [leader_change(0, voters), kraft, voters_batch(2, voters), data_batch(3, values)]
    write_partition(directory, {0: batches}, name=METADATA)
    return directory


def with_topic(*replicas: int, leader: int | None = None) -> list[bytes]:
    """Return the records of a topic, all of whose replicas are in sync."""
    first = replicas[0] if leader is None else leader
    brokers = [register_broker_record(each, (bytes(15) + b"\x77",)) for each in sorted(replicas)]
    return [*VERSIONS, *brokers, topic_record("t"), partition_record(0, first, replicas)]


def test_the_source_is_as_before_and_the_copy_has_all_of_it(tmp_path: Path) -> None:
    source = node(tmp_path / "1", 1, with_topic(1, 2, 3), (1, 2, 3))
    (source / METADATA / "quorum-state").write_text(STATE)
    before = tree(source)
    aid = pylog.first_aid(source, to=tmp_path / "copy", voters=[1])
    assert tree(source) == before
    copy = tree(tmp_path / "copy")
    assert copy["meta.properties"] == before["meta.properties"]
    state = json.loads(copy[f"{METADATA}/quorum-state"])
    assert state.pop("currentVoters") == [{"voterId": 1}]
    assert state == {
        "clusterId": "",
        "leaderId": -1,
        "leaderEpoch": 8,  # the node has voted in 7
        "votedId": -1,
        "appliedOffset": 0,
        "data_version": 0,
    }
    data, log = before[f"{METADATA}/{LOG}"], copy[f"{METADATA}/{LOG}"]
    assert log == data + b"".join(each.data for each in aid.appended)
    assert not list(tmp_path.glob("*unfinished"))


def test_a_static_quorum_is_told_by_the_setting_alone(tmp_path: Path) -> None:
    source = node(tmp_path / "1", 1, VERSIONS, (1, 2, 3))
    aid = pylog.first_aid(source, to=tmp_path / "copy", voters=[1], endpoints={1: "host-1:9093"})
    assert (aid.appended, aid.kraft_version) == ([], 0)
    assert any("controller.quorum.voters=1@host-1:9093 " in each for each in aid.steps)


def test_a_dynamic_quorum_gets_a_control_batch_in_the_last_epoch(tmp_path: Path) -> None:
    source = dynamic(tmp_path / "1", 1, VERSIONS, (1, 2, 3))
    aid = pylog.first_aid(source, to=tmp_path / "copy", voters=[1], endpoints={1: "h:9093"})
    (append,) = aid.appended
    batch = ParsedBatch.of(append.data)
    assert (batch.base_offset, batch.leader_epoch, batch.attributes) == (4, 0, 0x20)
    assert (aid.voters[0].voter_id, aid.voters[0].directory_id) == (1, DIRECTORY_ID)
    found = pylog.info(tmp_path / "copy")
    assert [each.voter_id for each in found.voters] == [1]
    state = json.loads((tmp_path / "copy" / METADATA / "quorum-state").read_bytes())
    assert (state["leaderEpoch"], state["data_version"]) == (1, 1)
    assert found.voters[0].endpoints == (("CONTROLLER", "h", 9093),)
    assert found.quorum == (1, (1,))


def test_changed_addresses_keep_all_voters_and_no_partition_changes(tmp_path: Path) -> None:
    values = with_topic(1, 2, 3)
    disks = [dynamic(tmp_path / str(each), each, values, (1, 2, 3)) for each in (1, 2, 3)]
    endpoints = {each: f"new-{each}:9093" for each in (1, 2, 3)}
    aid = pylog.first_aid(*disks, to=tmp_path / "copy", endpoints=endpoints)
    assert len(aid.appended) == 1
    assert [each.fate for each in aid.partitions] == [Fate.UNTOUCHED]
    assert [each.voter_id for each in pylog.info(tmp_path / "copy").voters] == [1, 2, 3]


def test_a_replica_in_sync_becomes_the_leader(tmp_path: Path) -> None:
    source = node(tmp_path / "1", 1, with_topic(2, 1, 3), (1, 2, 3))
    aid = pylog.first_aid(source, to=tmp_path / "copy", voters=[1])
    assert [(each.fate, each.leader) for each in aid.partitions] == [(Fate.IN_SYNC, 1)]
    assert aid.losses == []
    (topic,) = pylog.topics(tmp_path / "copy").topics
    assert (topic.partitions[0].leader, topic.partitions[0].isr) == (1, (1,))
    assert topic.partitions[0].leader_epoch == 1
    assert topic.partitions[0].replicas == (2, 1, 3)


def out_of_sync(directory: Path, node_id: int) -> Path:
    """Write a disk of a cluster whose topic has brokers 2 and 3 in sync, and 1 as a replica."""
    shrink = b"\x01\x05\x00" + struct.pack(">i", 0) + bytes(range(16))
    shrink += b"\x01\x00\x09" + b"\x03" + struct.pack(">ii", 2, 3)  # a tagged field: the ISR
    return node(directory, node_id, [*with_topic(2, 3, 1), shrink], (1, 2, 3))


def test_a_replica_that_was_not_in_sync_waits_for_an_unclean_election(tmp_path: Path) -> None:
    source = out_of_sync(tmp_path / "1", 1)
    aid = pylog.first_aid(source, to=tmp_path / "copy", voters=[1])
    assert [(each.fate, each.leader) for each in aid.partitions] == [(Fate.NEEDS_ELECTION, None)]
    assert aid.losses
    assert any("--election-type UNCLEAN --topic t --partition 0" in each for each in aid.steps)
    (topic,) = pylog.topics(tmp_path / "copy").topics
    assert topic.partitions[0].isr == (2, 3)


def test_an_unclean_election_says_what_other_disks_have_beyond(tmp_path: Path) -> None:
    mine, other = out_of_sync(tmp_path / "1", 1), out_of_sync(tmp_path / "2", 2)
    write_partition(mine, {0: [batch_v2(plain_records(0, 5))]}, name="t-0")
    write_partition(other, {0: [batch_v2(plain_records(0, 12))]}, name="t-0")
    aid = pylog.first_aid(mine, other, to=tmp_path / "copy", voters=[1], elects_unclean=True)
    (planned,) = aid.partitions
    assert (planned.fate, planned.leader, planned.missing) == (Fate.UNCLEAN, 1, 7)
    assert "t-0 (7 offsets on other disks beyond it)" in aid.losses[0]
    (topic,) = pylog.topics(tmp_path / "copy").topics
    assert (topic.partitions[0].leader, topic.partitions[0].isr) == (1, (1,))


def test_what_fewer_brokers_cannot_acknowledge_is_lowered(tmp_path: Path) -> None:
    strict = config_record(TOPIC, "t", "min.insync.replicas", "2")
    source = node(tmp_path / "1", 1, [*with_topic(1, 2, 3), strict], (1, 2, 3))
    aid = pylog.first_aid(source, to=tmp_path / "copy", voters=[1])
    assert aid.appended[-1].text == "min.insync.replicas of t is lowered"
    lowered = config_record(TOPIC, "t", "min.insync.replicas", "1")
    assert lowered in aid.appended[-1].data
    both = pylog.first_aid(source, to=tmp_path / "both", voters=[1, 2])
    assert not any("min.insync" in each.text for each in both.appended)


def test_a_partition_without_a_replica_is_lost_or_reassigned(tmp_path: Path) -> None:
    me = register_broker_record(1, (bytes(15) + b"\x77",))
    source = node(tmp_path / "1", 1, [*with_topic(2, 3), me], (1, 2, 3))
    lost = pylog.first_aid(source, to=tmp_path / "copy", voters=[1])
    assert [each.fate for each in lost.partitions] == [Fate.LOST]
    moved = pylog.first_aid(source, to=tmp_path / "moved", voters=[1], reassigns=True)
    assert [(each.fate, each.leader) for each in moved.partitions] == [(Fate.REASSIGNED, 1)]
    assert lost.losses
    assert moved.losses
    (topic,) = pylog.topics(tmp_path / "moved").topics
    assert topic.partitions[0].replicas == topic.partitions[0].isr == (1,)


def test_brokers_that_are_no_voters_are_not_taken_for_lost(tmp_path: Path) -> None:
    source = node(tmp_path / "1", 1, with_topic(7, 8), (1, 2, 3))
    aid = pylog.first_aid(source, to=tmp_path / "copy", voters=[1])
    assert [each.fate for each in aid.partitions] == [Fate.UNTOUCHED]
    aid = pylog.first_aid(source, to=tmp_path / "other", voters=[1], lost=[8])
    assert [(each.fate, each.leader) for each in aid.partitions] == [(Fate.IN_SYNC, 7)]


def test_the_longest_copy_is_taken_though_it_is_another_nodes(tmp_path: Path) -> None:
    short = node(tmp_path / "1", 1, VERSIONS, (1, 2, 3))
    long = node(tmp_path / "9", 9, with_topic(1), (1, 2, 3))
    aid = pylog.first_aid(short, long, to=tmp_path / "copy", voters=[1])
    assert (aid.node_id, aid.seed) == (1, str(long / METADATA))
    assert [each.topic for each in pylog.topics(tmp_path / "copy").topics] == ["t"]
    assert "node.id=1" in (tmp_path / "copy" / "meta.properties").read_text()


def test_a_shorter_copy_has_to_be_named_and_what_it_lacks_is_a_loss(tmp_path: Path) -> None:
    short = node(tmp_path / "1", 1, VERSIONS, (1, 2, 3))
    long = node(tmp_path / "2", 2, with_topic(1), (1, 2, 3))
    aid = pylog.first_aid(short, long, to=tmp_path / "copy", voters=[1], use=short)
    assert "topics t aside as -stray" in aid.losses[0]
    assert pylog.topics(tmp_path / "copy").topics == []


def test_a_damaged_copy_is_refused_unless_another_one_is_named(tmp_path: Path) -> None:
    good = node(tmp_path / "1", 1, VERSIONS, (1, 2, 3))
    bad = node(tmp_path / "2", 2, with_topic(1), (1, 2, 3))
    log = bad / METADATA / LOG
    log.write_bytes(log.read_bytes()[:-1] + b"\xff")
    with pytest.raises(LogDirectoryError, match="cannot be read"):
        pylog.first_aid(good, bad, to=tmp_path / "copy", voters=[1])
    assert not (tmp_path / "copy").exists()
    assert pylog.first_aid(good, bad, to=tmp_path / "copy", voters=[1], use=good).losses


def test_a_torn_tail_is_cut_and_an_open_transaction_aborted(tmp_path: Path) -> None:
    source = node(tmp_path / "1", 1, [*VERSIONS, BEGIN, topic_record("half")], (1,))
    log = source / METADATA / LOG
    whole = log.read_bytes()
    log.write_bytes(whole + whole[:70])
    aid = pylog.first_aid(source, to=tmp_path / "copy", voters=[1])
    assert [each.text for each in aid.appended] == [
        "the metadata transaction that is open is aborted"
    ]
    copied = (tmp_path / "copy" / METADATA / LOG).read_bytes()
    assert copied == whole + aid.appended[0].data
    assert pylog.topics(tmp_path / "copy").topics == []


def test_a_log_that_its_snapshot_is_ahead_of_starts_after_it(tmp_path: Path) -> None:
    source = node(tmp_path / "1", 1, VERSIONS, (1, 2, 3))
    write_snapshot(source / METADATA, 70, with_topic(1, 2))
    aid = pylog.first_aid(source, to=tmp_path / "copy", voters=[1])
    assert (aid.seed_end_offset, aid.appended[0].base_offset) == (70, 70)
    names = {each.name for each in (tmp_path / "copy" / METADATA).iterdir()}
    assert names >= {f"{70:020d}.log", f"{70:020d}-{0:010d}.checkpoint"}
    assert LOG not in names
    (topic,) = pylog.topics(tmp_path / "copy").topics
    assert topic.partitions[0].isr == (1,)


def test_nothing_is_written_in_a_dry_run(tmp_path: Path) -> None:
    source = node(tmp_path / "1", 1, with_topic(1, 2, 3), (1, 2, 3))
    aid = pylog.first_aid(source, to=tmp_path / "copy", voters=[1], dry_run=True)
    assert (aid.to, len(aid.appended)) == (None, 1)
    assert [each.name for each in tmp_path.iterdir()] == ["1"]


def test_with_partitions_all_other_files_are_copied(tmp_path: Path) -> None:
    source = node(tmp_path / "1", 1, with_topic(1, 2, 3), (1, 2, 3))
    (source / "t-0").mkdir()
    (source / "t-0" / LOG).write_bytes(b"whatever")
    (source / ".lock").touch()
    pylog.first_aid(source, to=tmp_path / "copy", voters=[1], with_partitions=True)
    assert (tmp_path / "copy" / "t-0" / LOG).read_bytes() == b"whatever"
    assert not (tmp_path / "copy" / ".lock").exists()


def test_what_is_not_known_or_contradicts_itself_is_refused(tmp_path: Path) -> None:
    source = dynamic(tmp_path / "1", 1, VERSIONS, (1, 2, 3))
    with pytest.raises(ValueError, match="has to be one of the voters"):
        pylog.first_aid(source, to=tmp_path / "copy", voters=[2])
    with pytest.raises(ValueError, match="which is no voter"):
        pylog.first_aid(source, to=tmp_path / "copy", voters=[1], endpoints={3: "h:1"})
    with pytest.raises(ValueError, match="not of the form host:port"):
        pylog.first_aid(source, to=tmp_path / "copy", voters=[1], endpoints={1: "h"})
    with pytest.raises(LogDirectoryError, match="nothing tells where voter 1 listens"):
        pylog.first_aid(source, to=tmp_path / "copy", voters=[1])
    with pytest.raises(LogDirectoryError, match="nothing tells the directory id of voter 9"):
        pylog.first_aid(source, to=tmp_path / "copy", voters=[1, 9], endpoints={1: "h:1"})
    with pytest.raises(LogDirectoryError, match="is no broker"):
        pylog.first_aid(
            source, to=tmp_path / "copy", voters=[1], endpoints={1: "h:1"}, reassigns=True
        )
    with pytest.raises(LogDirectoryError, match="lies in"):
        pylog.first_aid(source, to=source / "copy", voters=[1])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(LogDirectoryError, match="not empty"):
        pylog.first_aid(source, to=tmp_path / "full", voters=[1])
    assert sorted(each.name for each in tmp_path.iterdir()) == ["1", "full"]


def test_a_locked_directory_is_refused_and_its_lock_file_stays(tmp_path: Path) -> None:
    source = node(tmp_path / "1", 1, VERSIONS, (1,))
    (source / ".lock").touch()
    pylog.first_aid(source, to=tmp_path / "copy", voters=[1])
    assert (source / ".lock").exists()
    with DirectoryLock(source), pytest.raises(LogLockedError):
        pylog.first_aid(source, to=tmp_path / "other", voters=[1])


def test_the_work_of_a_plan_grows_in_proportion_to_its_partitions(tmp_path: Path) -> None:
    def planning(count: int) -> Callable[[], FirstAid]:
        values = [*with_topic(2, 3)]
        values += [partition_record(number, 2, (2, 3)) for number in range(1, count)]
        source = node(tmp_path / f"{count}-1", 1, values, (1, 2, 3))
        other = node(tmp_path / f"{count}-2", 2, values, (1, 2, 3))
        batches = {0: [batch_v2(plain_records(0, 10))]}
        for number in range(count):
            write_partition(other, batches, name=f"t-{number}")
        places: Any = {"to": tmp_path / "copy", "voters": [1], "lost": [2, 3]}
        return partial(pylog.first_aid, source, other, **places, dry_run=True)

    plannings = {count: planning(count) for count in (50, 100, 200)}
    ensure_work_grows_in_proportion(plannings)
    aid = plannings[200]()
    assert [(each.fate, each.missing) for each in aid.partitions] == [(Fate.LOST, 10)] * 200


def test_a_crash_at_any_step_leaves_no_copy_a_whole_one_or_one_that_is_refused(
    tmp_path: Path,
) -> None:
    source = node(tmp_path / "1", 1, with_topic(1, 2, 3), (1, 2, 3))
    for number in range(20):
        (source / f"file-{number}").write_bytes(bytes(1000))
    before = tree(source)
    made_anew = {f"{METADATA}/{0:020d}.index", f"{METADATA}/{0:020d}.timeindex"}
    expected = (before.keys() - made_anew) | {f"{METADATA}/quorum-state"}
    seen = set()
    for step in itertools.count():
        copy, unfinished = tmp_path / f"copy-{step}", tmp_path / f"copy-{step}{UNFINISHED}"
        making = partial(pylog.first_aid, source, to=copy, voters=[1], with_partitions=True)
        has_crashed = crashed_at(step, making)
        assert tree(source) == before
        seen.add((copy.exists(), unfinished.exists()))
        if unfinished.exists():
            with pytest.raises(LogDirectoryError, match="interrupted"):
                making()
            shutil.rmtree(unfinished)
        if not copy.exists():
            making()
        assert tree(copy).keys() == expected
        assert pylog.info(copy).errors == []
        if not has_crashed:
            break
    assert seen == {(False, False), (False, True), (True, False)}


def test_a_failure_while_writing_says_what_to_remove(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    source = node(tmp_path / "1", 1, with_topic(1, 2, 3), (1, 2, 3))
    monkeypatch.setattr(DurableIO, "rename", fail)
    with pytest.raises(KafkaStorageError) as raised:
        pylog.first_aid(source, to=tmp_path / "copy", voters=[1])
    assert "the copy is not finished: remove" in raised.value.__notes__[0]
    assert not (tmp_path / "copy").exists()


def test_a_real_controllers_log_is_continued(golden_root: GoldenRoot, tmp_path: Path) -> None:
    case = golden_root.case("4.3.0/internal-logdir")
    aid = pylog.first_aid(case, to=tmp_path / "copy", voters=[1], endpoints={1: "127.0.0.2:1"})
    assert [(each.base_offset, each.records) for each in aid.appended] == [(236, 1)]
    assert len(aid.appended[0].data) in range(120, 140)
    assert pylog.info(tmp_path / "copy").metadata_copies[0].end_offset == 237


def test_what_the_disk_lacks_of_partitions_that_its_node_leads_is_a_loss(tmp_path: Path) -> None:
    source = known(tmp_path / "1", 1, (1, 2), voters=(1, 2))
    whole = pylog.first_aid(source, to=tmp_path / "whole", voters=[1])
    assert (whole.losses, [each.fate for each in whole.partitions]) == ([], [Fate.IN_SYNC])
    path = source / "t-0" / LOG
    path.write_bytes(path.read_bytes()[:-5])
    [loss] = pylog.first_aid(source, to=tmp_path / "cut", voters=[1]).losses
    assert loss.startswith("t-0: its log on node 1 ends at offset 10, and had reached 20")
    shutil.rmtree(source / "t-0")
    [loss] = pylog.first_aid(source, to=tmp_path / "none", voters=[1]).losses
    text = "t-0: no log directory of node 1 has it, and a broker begins with an empty log"
    assert loss == text


def test_a_broker_that_has_the_log_leads_before_one_that_has_lost_it(tmp_path: Path) -> None:
    empty = known(tmp_path / "1", 1, (1, 2), voters=(1, 2))
    other = known(tmp_path / "2", 2, (1, 2), voters=(1, 2), directory_id="4L6g3nShT-eMCtK--X86sw")
    shutil.rmtree(empty / "t-0")
    aid = pylog.first_aid(empty, other, to=tmp_path / "copy", voters=[1, 2])
    assert (aid.losses, [(each.fate, each.leader) for each in aid.partitions]) == (
        [],
        [(Fate.IN_SYNC, 2)],
    )
    (topic,) = pylog.topics(tmp_path / "copy").topics
    assert (topic.partitions[0].leader, topic.partitions[0].isr) == (2, (2,))


def test_a_directory_that_becomes_stray_is_a_loss(tmp_path: Path) -> None:
    source = known(tmp_path / "1")
    shutil.copytree(source / "t-0", source / "newer-0")
    write_topic_id(source / "newer-0", DIRECTORY_ID)
    [loss] = pylog.first_aid(source, to=tmp_path / "copy").losses
    assert loss.startswith(f"{source / 'newer-0'}: the metadata that is taken does not know")


def test_metadata_that_has_lost_its_end_is_told(tmp_path: Path) -> None:
    source = known(tmp_path / "1")
    epochs = source / METADATA / "leader-epoch-checkpoint"
    epochs.write_text("0\n2\n0 0\n5 90\n")
    notes = pylog.first_aid(source, to=tmp_path / "copy").notes
    assert any("its leader epochs reach to 90" in each for each in notes)
    epochs.unlink()
    (source / METADATA / LOG).write_bytes(b"")
    with pytest.raises(LogDirectoryError, match="has a copy of the metadata"):
        pylog.first_aid(source, to=tmp_path / "none")
    (source / ".pylog-adoption").mkdir()
    with pytest.raises(LogDirectoryError, match="earlier call was interrupted"):
        pylog.first_aid(source, to=tmp_path / "none")


def test_a_second_log_of_the_metadata_is_moved_away_too(tmp_path: Path) -> None:
    source = known(tmp_path / "1")
    second = properties(tmp_path / "2", 1, OLD_CLUSTER, "4L6g3nShT-eMCtK--X86sw")
    shutil.copytree(source / METADATA, second / METADATA)
    steps = pylog.first_aid(source, second, to=tmp_path / "copy").steps
    assert steps[:2] == [
        f"mv {each / METADATA} {each}.metadata-before" for each in (source, second)
    ]


def test_the_steps_look_for_damage_before_the_node_starts(tmp_path: Path) -> None:
    source = known(tmp_path / "1")
    aid = pylog.first_aid(source, to=tmp_path / "copy")
    assert aid.steps.index(f"pylog doctor {source}") < aid.steps.index("start node 1")
    assert any("pylog doctor says what is damaged" in each for each in aid.notes)
    assert aid.losses == []
    (source / "t-0" / f"{4:020d}.index").touch()
    aid = pylog.first_aid(source, to=tmp_path / "other", lost=[2, 3])
    assert any("has lost 4.log" in each for each in aid.losses)

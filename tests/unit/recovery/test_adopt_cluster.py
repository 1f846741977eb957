"""What a whole cluster is given elsewhere; what brokers make of it is tried in tests/broker."""

from __future__ import annotations

import json
import shutil
from functools import partial
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import LogDirectoryError
from pylog.recovery.adoption_target import ADOPTION
from tests.support.adopted_disks import NEW_CLUSTER, OLD_CLUSTER, formatted, old
from tests.support.batches import batch_v2, plain_records
from tests.support.counted_work import ensure_work_grows_in_proportion
from tests.support.damage import flip
from tests.support.killed_program import is_done_when_killed
from tests.support.log_files import tree, write_partition, write_topic_id
from tests.support.metadata_log import (
    METADATA,
    TOPIC,
    TOPIC_ID_TEXT,
    config_record,
    feature_record,
    partition_record,
    register_broker_record,
)
from tests.support.metadata_rows import fields_of
from tests.unit.recovery.test_first_aid import CLUSTER, dynamic, node, with_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.conftest import Counted

NEW_ID = "4L6g3nShT-eMCtK--X86sw"


def disks(
    directory: Path,
    make: Callable[..., Path] = node,
    ends: Sequence[int | None] = (10, 10, 10),
    more: Sequence[bytes] = (),
    leader: int = 1,
) -> list[Path]:
    """Write the disks of three nodes that have a partition of so many records each."""
    found = []
    for number, end in enumerate(ends, start=1):
        values = [*with_topic(1, 2, 3, leader=leader), *more]
        disk = make(directory / f"old-{number}", number, values, (1, 2, 3))
        meta = disk / "meta.properties"
        meta.write_text(meta.read_text().replace(CLUSTER, OLD_CLUSTER))
        if end is not None:
            batches = [batch_v2(plain_records(0, end), leader_epoch=0)] if end else []
            write_partition(disk, {0: batches}, name="t-0")
            metadata = f"version: 0\ntopic_id: {TOPIC_ID_TEXT}\n"
            (disk / "t-0" / "partition.metadata").write_text(metadata)
        found.append(disk)
    return found


def test_the_whole_cluster_keeps_its_records_and_gets_new_addresses(tmp_path: Path) -> None:
    given = disks(tmp_path, dynamic)
    before = [tree(each) for each in given]
    places = [tmp_path / f"new-{each}" for each in (1, 2, 3)]
    done = pylog.jobs.adopt_cluster(
        *given,
        into=places,
        cluster_id=NEW_ID,
        endpoints={each: f"host-{each}:9093" for each in (1, 2, 3)},
    )
    assert [tree(each) for each in given] == before
    assert (done.losses, done.cluster_id, done.is_written) == ([], NEW_ID, True)
    for number, each in enumerate(places, start=1):
        found = pylog.info(each)
        assert (found.cluster_id, found.nodes[0].node_id) == (NEW_ID, number)
        assert [one.endpoints[0].host for one in found.voters] == ["host-1", "host-2", "host-3"]
        assert (each / METADATA / "quorum-state").exists()
        assert not (each / ADOPTION).exists()
    [change] = fields_of(places[0], "PartitionChangeRecord")  # of the log directories alone
    assert ("leader" in change, "isr" in change, len(change["directories"])) == (False, False, 3)
    records = [list(pylog.scan(each / "t-0").records()) for each in [*given, *places]]
    assert all(each == records[0] for each in records)


def test_one_node_takes_what_three_had(tmp_path: Path) -> None:
    more = [config_record(TOPIC, "t", "min.insync.replicas", "2")]
    given = disks(tmp_path, more=more)
    place = tmp_path / "new"
    done = pylog.jobs.adopt_cluster(*given, into=place, nodes=[2], endpoints={2: "host:9093"})
    assert done.losses == []
    assert any("never run it beside the old one" in each for each in done.notes)
    assert any("min.insync.replicas of t is lowered" in each for each in done.notes)
    [change] = fields_of(place, "PartitionChangeRecord")
    assert (change["replicas"], change["isr"], change["leader"]) == ([2], [2], 2)
    assert [each["brokerId"] for each in fields_of(place, "UnregisterBrokerRecord")] == [1, 3]
    state = json.loads((place / METADATA / "quorum-state").read_bytes())
    assert state["currentVoters"] == [{"voterId": 2}]
    assert any("controller.quorum.voters=2@host:9093" in each for each in done.steps)
    [partition] = done.partitions
    assert (partition.replicas, partition.leader_epoch, partition.end_offset) == ([2], 1, 10)


def test_a_node_takes_what_only_the_disk_of_another_has(tmp_path: Path) -> None:
    given = disks(tmp_path, ends=(None, 10, 10), leader=2)
    done = pylog.jobs.adopt_cluster(*given, into=tmp_path / "new", nodes=[1])
    assert done.losses == []
    assert (done.partitions[0].source, done.partitions[0].end_offset) == (f"{given[1]}/t-0", 10)
    assert len(list(pylog.scan(tmp_path / "new" / "t-0").records())) > 0


def test_a_partition_without_a_replica_in_sync_is_named(tmp_path: Path) -> None:
    values = [*with_topic(1, 2, 3)[:-1], partition_record(0, 3, (3,))]
    given = node(tmp_path / "old", 1, values, (1,))
    done = pylog.jobs.adopt_cluster(given, into=tmp_path / "new")
    assert done.losses == ["t-0: no disk has it, and it begins empty"]
    assert (tmp_path / "new" / "t-0" / "partition.metadata").exists()
    assert any("only 0 of" in each or "begins" not in each for each in done.notes)


def test_a_directory_that_was_formatted_keeps_its_ids(tmp_path: Path) -> None:
    given = disks(tmp_path)
    places = [formatted(tmp_path / f"new-{each}", each) for each in (3, 1)]
    metas = [(each / "meta.properties").read_text() for each in places]
    done = pylog.jobs.adopt_cluster(*given, into=[*places, tmp_path / "new-2"])
    assert done.cluster_id == NEW_CLUSTER
    assert [pylog.info(each).nodes[0].node_id for each in places] == [3, 1]
    for each, meta in zip(places, metas, strict=True):
        kept = set((each / "meta.properties").read_text().split())
        assert kept == set(meta.split())
        assert not (each / "bootstrap.checkpoint").exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"nodes": [4]}, "node 4 is to go on, and none of its log directories was given"),
        ({"nodes": [1, 2]}, "2 nodes go on"),
        ({"nodes": [1], "voters": [2]}, "node 2 is to vote"),
        ({"nodes": [1], "endpoints": {2: "h:1"}}, "node 2, which is no voter"),
        ({"nodes": [1], "cluster_id": "no id"}, "'no id' is none"),
        ({"nodes": [1], "endpoints": {1: "nowhere"}}, "not of the form host:port"),
    ],
)
def test_contradictions_are_told_and_nothing_is_made(
    tmp_path: Path, arguments: dict[str, object], text: str
) -> None:
    given = disks(tmp_path)
    with pytest.raises(ValueError, match=text):
        pylog.jobs.adopt_cluster(*given, into=tmp_path / "new", **arguments)  # type: ignore[arg-type]
    assert not (tmp_path / "new").exists()


def test_disks_without_metadata_are_for_the_other_way(tmp_path: Path) -> None:
    with pytest.raises(LogDirectoryError, match="without --as-cluster"):
        pylog.jobs.adopt_cluster(old(tmp_path / "old"), into=tmp_path / "new")


def test_a_disk_that_names_no_node_is_refused(tmp_path: Path) -> None:
    given = disks(tmp_path)
    (given[2] / "meta.properties").unlink()
    shutil.rmtree(given[2] / METADATA)
    with pytest.raises(LogDirectoryError, match="nothing tells whose it is"):
        pylog.jobs.adopt_cluster(*given, into=tmp_path / "new", nodes=[1])


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    given = disks(tmp_path)
    done = pylog.jobs.adopt_cluster(*given, into=tmp_path / "new", nodes=[1], dry_run=True)
    assert (done.is_written, (tmp_path / "new").exists()) == (False, False)


def test_brokers_that_are_gone_are_not_in_the_metadata(tmp_path: Path) -> None:
    more = [register_broker_record(9, (bytes(15) + b"\x99",))]
    given = disks(tmp_path, more=more)
    places = [tmp_path / f"new-{each}" for each in (1, 2, 3)]
    pylog.jobs.adopt_cluster(*given, into=places)
    assert [each["brokerId"] for each in fields_of(places[0], "UnregisterBrokerRecord")] == [9]


def test_the_work_of_a_plan_grows_in_proportion_to_its_partitions(tmp_path: Path) -> None:
    def planning(count: int) -> Callable[[], object]:
        values = [*with_topic(1), *(partition_record(each, 1, (1,)) for each in range(1, count))]
        given = node(tmp_path / f"{count}", 1, values, (1,))
        for number in range(count):
            write_partition(given, {0: [batch_v2(plain_records(0, 10))]}, name=f"t-{number}")
        return partial(pylog.jobs.adopt_cluster, given, into=tmp_path / "new", dry_run=True)

    ensure_work_grows_in_proportion({count: planning(count) for count in (50, 100, 200)})


ENDPOINTS = {1: "host-1:9093", 2: "host-2:9093"}
_NODES = f"into=sys.argv[4:], nodes=[1, 2], voters=[1, 2], endpoints={ENDPOINTS}"
_PREPARE = f"import pylog; pylog.jobs.adopt_cluster(*sys.argv[1:4], {_NODES}, dry_run=True)"
_WORK = f"pylog.jobs.adopt_cluster(*sys.argv[1:4], {_NODES})"


@pytest.mark.thorough(one_in=75, of_all=6)
@pytest.mark.parametrize("milliseconds", range(0, 300, 1))
def test_a_kill_leaves_nothing_all_or_a_mark_with_which_no_node_starts(
    tmp_path: Path, milliseconds: int, counted: Counted
) -> None:
    """Three nodes become two; the third has a partition that is moved."""
    given = disks(tmp_path, dynamic, more=[partition_record(1, 3, (3,))])
    write_partition(given[2], {0: [batch_v2(plain_records(0, 10))]}, name="t-1")
    write_topic_id(given[2] / "t-1", TOPIC_ID_TEXT)
    sources = [tree(each) for each in given]
    places = [tmp_path / "new-1", tmp_path / "new-2"]
    is_done = is_done_when_killed(milliseconds / 1e3, _PREPARE, _WORK, *given, *places)
    marked = [each for each in places if (each / ADOPTION).exists()]
    assert not (is_done and marked)
    for each in given:
        (each / ".lock").unlink(missing_ok=True)
    assert [tree(each) for each in given] == sources
    call = partial(
        pylog.jobs.adopt_cluster,
        *given,
        into=places,
        nodes=[1, 2],
        voters=[1, 2],
        endpoints=ENDPOINTS,
    )
    is_moved = not marked and any((each / "t-1").exists() for each in places)
    if marked:
        with pytest.raises(LogDirectoryError, match="--undo"):
            call()
        try:
            is_moved = pylog.jobs.end_adoption([marked[0]], undo=milliseconds % 4 > 1)
        except LogDirectoryError:  # all is in its place at one node, which the message says
            is_moved = pylog.jobs.end_adoption([marked[0]])
    counted("killed moves of a cluster", {"ended" if marked else "all or nothing": 1})
    if not is_moved:
        assert not any((each / METADATA).exists() for each in places)
        call()
    found = [pylog.info(each) for each in places]
    assert [[one.voter_id for one in each.voters] for each in found] == [[1, 2], [1, 2]]
    moved = [each for each in places if (each / "t-1").exists()]
    assert [pylog.scan(each / "t-1").count() for each in moved] == [10]
    assert all(pylog.scan(each / "t-0").count() == 10 for each in places)


@pytest.mark.parametrize("damaged", [1, 2])
def test_a_damaged_replica_neither_leads_nor_follows_where_another_one_is_whole(
    tmp_path: Path, damaged: int
) -> None:
    given = disks(tmp_path, ends=(None, None, None))
    batches = [batch_v2(plain_records(at, 5), leader_epoch=0) for at in range(0, 30, 5)]
    for number, disk in enumerate(given, start=1):
        write_partition(disk, {0: batches}, name="t-0")
        (disk / "t-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID_TEXT}\n")
        if number == damaged:
            flip(disk / "t-0" / f"{0:020d}.log", len(batches[0].data) * 2 + 70)
    places = [tmp_path / f"new-{each}" for each in (1, 2, 3)]
    planned = pylog.jobs.adopt_cluster(*given, into=places, dry_run=True)
    done = pylog.jobs.adopt_cluster(*given, into=places)
    assert (planned.losses, done.losses) == ([], [])
    assert done.partitions[0].replicas[0] == (2 if damaged == 1 else 1)
    assert any(each.startswith("the run checks copies of followers") for each in planned.notes)
    [note] = [each for each in done.notes if "fetches all" in each]
    assert note.startswith(f"t-0 of node {damaged}: ")
    whole = [each for each in places if (each / "t-0").exists()]
    assert whole == [each for number, each in enumerate(places, start=1) if number != damaged]
    for each in whole:
        assert pylog.scan(each, topics=["t"]).count() == 30


@pytest.mark.parametrize("level", [21, 25])
def test_segments_that_kafka_4_refuses_are_raised_or_told(tmp_path: Path, level: int) -> None:
    more = [config_record(TOPIC, "t", "segment.bytes", "100000"), feature_record(level)]
    given = disks(tmp_path, more=more)
    done = pylog.jobs.adopt_cluster(*given, into=tmp_path / "new", nodes=[1])
    configs = [
        each["value"]
        for each in fields_of(tmp_path / "new", "ConfigRecord")
        if each["name"] == "segment.bytes"
    ]
    [note] = [each for each in done.notes if "segment.bytes" in each]
    if level == 21:
        assert configs == ["100000"]
        assert "raise it with Kafka 3.9" in note
    else:
        assert configs == ["100000", "1048576"]
        assert note.startswith("segment.bytes of t is raised to 1048576")
    aid = pylog.first_aid(*given, to=tmp_path / "aid", voters=[1], dry_run=True)
    assert any("raise it with Kafka 3.9" in each for each in aid.notes)

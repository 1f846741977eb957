from __future__ import annotations

import gzip
import json
import re
import shutil
import struct
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import CorruptRecordError, LogDirectoryError, UnknownTopicOrPartitionError
from tests.support.batches import Stored, batch_v2, plain_records
from tests.support.log_files import write_log_start_offsets, write_partition, write_topic_id
from tests.support.metadata_log import (
    ABORT,
    BEGIN,
    END,
    TOPIC_ID,
    partition_record,
    remove_topic_record,
    topic_record,
    write_metadata_log,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.golden import GoldenRoot

CASE = "4.3.0/internal-logdir"
METADATA = "__cluster_metadata-0"


def dumped(case: Path, type_name: str) -> list[dict[str, Any]]:
    """Return the fields of the records of a type in Kafka's dump of the metadata's log."""
    text = gzip.decompress((case / f"dump-decoded.{METADATA}.txt.gz").read_bytes()).decode()
    log = text.split("\nDumping ")[0]
    found = (json.loads(each) for each in re.findall(r"payload: ({.*})", log))
    return [each["data"] for each in found if each["type"] == type_name]


def test_topics_are_those_that_kafkas_dump_tells_of(golden_root: GoldenRoot) -> None:
    case = golden_root.case(CASE)
    described = pylog.topics(case)
    ids = {each["name"]: each["topicId"] for each in dumped(case, "TOPIC_RECORD")}
    removed = [each["topicId"] for each in dumped(case, "REMOVE_TOPIC_RECORD")]
    assert {each.topic: each.topic_id for each in described.deleted} == {"short-lived": removed[0]}
    assert {each.topic: each.topic_id for each in described.topics} == {
        name: topic_id for name, topic_id in ids.items() if topic_id not in removed
    }
    configs = {
        each["name"]: each["value"]
        for each in dumped(case, "CONFIG_RECORD")
        if each["resourceName"] == "orders"
    }
    orders = next(each for each in described.topics if each.topic == "orders")
    assert orders.configs == configs
    assert (orders.replication_factor, orders.is_in_metadata) == (1, True)
    # The broker was stopped: it leads nothing and is in sync with nothing, and is eligible.
    for partition in orders.partitions:
        changes = [
            each
            for each in dumped(case, "PARTITION_CHANGE_RECORD")
            if each["topicId"] == orders.topic_id and each["partitionId"] == partition.partition
        ]
        assert changes[-1]["isr"] == []
        assert (partition.leader, partition.leader_epoch) == (-1, len(changes))
        assert (partition.replicas, partition.isr) == ((1,), ())
        assert partition.eligible_leader_replicas == tuple(changes[-1]["eligibleLeaderReplicas"])
        assert partition.directories == (str(case / f"orders-{partition.partition}"),)
    assert described.metadata_end_offset == 236


@pytest.mark.parametrize(
    ("name", "cleared"), [(b"orders", {"orders"}), (b"", {"orders"}), (b"x", set())]
)
def test_eligible_leader_replicas_are_cleared_of_a_topic_or_of_all(
    golden_root: GoldenRoot, tmp_path: Path, name: bytes, cleared: set[str]
) -> None:
    case = golden_root.case(CASE)
    shutil.copytree(case / METADATA, tmp_path / METADATA, copy_function=shutil.copyfile)
    (tmp_path / METADATA).chmod(0o755)
    log = max((tmp_path / METADATA).glob("*.log"))
    clear = b"\x01\x1c\x00" + bytes([len(name) + 1]) + name + b"\x00"
    added = batch_v2([Stored(236, 5, None, clear)], leader_epoch=1)
    log.write_bytes(log.read_bytes() + added.data)

    def with_elr(directory: Path) -> set[str]:
        return {
            each.topic
            for each in pylog.topics(directory).topics
            if any(partition.eligible_leader_replicas for partition in each.partitions)
        }

    before = with_elr(case)
    assert cleared <= before
    assert with_elr(tmp_path) == (set() if not name else before - cleared)


@pytest.mark.parametrize("start", [60, 117, 173, 234])
def test_each_snapshot_and_the_log_from_there_on_say_the_same(
    golden_root: GoldenRoot, tmp_path: Path, start: int
) -> None:
    case = golden_root.case(CASE)
    shutil.copytree(case / METADATA, tmp_path / METADATA, copy_function=shutil.copyfile)
    for each in (tmp_path, tmp_path / METADATA):
        each.chmod(0o755)
    write_log_start_offsets(tmp_path, {("__cluster_metadata", 0): start})
    for path in (tmp_path / METADATA).glob("*.checkpoint"):
        if int(path.name[:20]) < start:
            path.unlink()

    def description(directory: Path) -> list[tuple[Any, ...]]:
        return [
            (each.topic, each.topic_id, each.configs, [p.leader_epoch for p in each.partitions])
            for each in pylog.topics(directory).topics
        ]

    assert description(tmp_path) == description(case)


def test_a_log_that_no_snapshot_leads_up_to_is_an_error(tmp_path: Path) -> None:
    write_metadata_log(tmp_path, [topic_record("orders")], base=100)
    with pytest.raises(LogDirectoryError, match="begins at offset 100, and no snapshot"):
        pylog.topics(tmp_path)


def test_a_damaged_snapshot_is_an_error_that_names_it(
    golden_root: GoldenRoot, tmp_path: Path
) -> None:
    source = golden_root.case(CASE) / METADATA
    (tmp_path / METADATA).mkdir()
    for path in [*source.glob("*.log"), *source.glob("*060-*.checkpoint")]:
        shutil.copyfile(path, tmp_path / METADATA / path.name)
    (snapshot,) = (tmp_path / METADATA).glob("*.checkpoint")
    data = bytearray(snapshot.read_bytes())
    data[-200] ^= 1
    snapshot.write_bytes(data)
    with pytest.raises(CorruptRecordError, match=rf"{snapshot.name} at byte \d+: batch CRC stored"):
        pylog.topics(tmp_path)
    data[-200] ^= 1
    snapshot.write_bytes(bytes(data)[:-20])
    with pytest.raises(CorruptRecordError, match="does not end with its footer"):
        pylog.topics(tmp_path)


def written(directory: Path, values: list[bytes]) -> Path:
    records = [Stored(at, 1, None, value) for at, value in enumerate(values)]
    write_partition(directory, {0: [batch_v2(records)]}, name=METADATA)
    return directory


def test_of_two_copies_that_of_the_later_epoch_is_taken_also_if_it_is_shorter(
    tmp_path: Path,
) -> None:
    for name, epoch, topics in (("longer", 1, ["old", "orders"]), ("later", 2, ["orders"])):
        ids = {topic: bytes([number]) * 16 for number, topic in enumerate(["old", "orders"])}
        values = [topic_record(topic, ids[topic]) for topic in topics]
        records = [Stored(at, 1, None, value) for at, value in enumerate(values)]
        batch = batch_v2(records, leader_epoch=epoch)
        write_partition(tmp_path / name, {0: [batch]}, name=METADATA)
    paths = tmp_path / "longer", tmp_path / "later"
    assert [each.topic for each in pylog.topics(*paths).topics] == ["orders"]
    assert [each.topic for each in pylog.topics(*reversed(paths)).topics] == ["orders"]


def test_records_of_a_metadata_transaction_count_when_it_ends(tmp_path: Path) -> None:
    topic, partition = topic_record("orders"), partition_record(0, 2, (2, 3))
    written(tmp_path / "ended", [BEGIN, topic, partition, END])
    (described,) = pylog.topics(tmp_path / "ended").topics
    assert described.topic_id == "AAECAwQFBgcICQoLDA0ODw"
    (found,) = described.partitions
    assert (found.leader, found.replicas, found.isr) == (2, (2, 3), (2, 3))
    assert found.directories == ()
    for name, values in {
        "aborted": [BEGIN, topic, ABORT],
        "open": [BEGIN, topic],
    }.items():
        assert pylog.topics(written(tmp_path / name, values)).topics == []


def test_a_change_replaces_what_it_names_alone(tmp_path: Path) -> None:
    # Tags 0 and 1: in sync is 3 alone, which leads.
    change = b"\x01\x05\x00" + struct.pack(">i", 0) + TOPIC_ID
    change += b"\x02\x00\x05\x02" + struct.pack(">i", 3) + b"\x01\x04" + struct.pack(">i", 3)
    written(tmp_path, [topic_record("orders"), partition_record(0, 2, (2, 3)), change])
    ((found,),) = (each.partitions for each in pylog.topics(tmp_path).topics)
    assert (found.leader, found.leader_epoch) == (3, 1)
    assert (found.replicas, found.isr) == ((2, 3), (3,))


def test_a_record_of_a_later_version_is_left_out_and_named(tmp_path: Path) -> None:
    later = b"\x01\x63\x00\x00"
    written(tmp_path, [topic_record("orders"), later, partition_record(0, 2, (2,)), later])
    described = pylog.topics(tmp_path)
    assert len(described.topics[0].partitions) == 1
    (error,) = described.errors
    assert "a later version of Kafka wrote are left out: 2 of type 99" in str(error)
    assert METADATA in str(error)


def test_a_topic_that_no_record_introduces_is_named(tmp_path: Path) -> None:
    written(tmp_path, [partition_record(0, 2, (2,))])
    described = pylog.topics(tmp_path)
    assert described.topics == []
    (error,) = described.errors
    assert "records name topics that no record has introduced (ids AAECAwQFBgcICQoLDA0ODw)" in str(
        error
    )


def test_what_lies_here_and_is_not_in_the_metadata_is_marked(tmp_path: Path) -> None:
    written(tmp_path, [topic_record("orders")])
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]}, name="stray-3")
    described = pylog.topics(tmp_path)
    assert [(each.topic, each.is_in_metadata) for each in described.topics] == [
        ("orders", True),
        ("stray", False),
    ]


def test_without_metadata_directories_tell_what_they_can(tmp_path: Path) -> None:
    pylog.create_topic(tmp_path, "orders", 2, properties={"cleanup.policy": "compact"})
    gone = f"gone-1.{'0' * 32}-delete"
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]}, name=gone)
    described = pylog.topics(tmp_path)
    (orders,) = described.topics
    assert (orders.topic, len(orders.partitions), orders.is_in_metadata) == ("orders", 2, None)
    assert orders.configs == {"cleanup.policy": "compact"}
    assert orders.topic_id is not None
    assert orders.partitions[0].leader is None
    assert [(each.topic, each.partitions[0].partition) for each in described.deleted] == [
        ("gone", 1)
    ]
    assert described.metadata_path is None


def test_a_topic_that_is_being_deleted_is_listed_once(tmp_path: Path) -> None:
    removed = [topic_record("gone"), partition_record(0, 2, (2,)), remove_topic_record()]
    written(tmp_path, removed)
    directory = tmp_path / f"gone-0.{'0' * 32}-delete"
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]}, name=directory.name)
    for text, ids in (
        ("AAECAwQFBgcICQoLDA0ODw", ["AAECAwQFBgcICQoLDA0ODw"]),
        # An earlier topic of that name.
        ("sjhcX-UcQSKqZ9r7sV6gLw", ["AAECAwQFBgcICQoLDA0ODw", "sjhcX-UcQSKqZ9r7sV6gLw"]),
    ):
        write_topic_id(directory, text)
        assert [each.topic_id for each in pylog.topics(tmp_path).deleted] == ids


def test_topics_are_chosen_by_name_or_pattern(golden_root: GoldenRoot) -> None:
    case = golden_root.case(CASE)

    def names(**options: Any) -> list[str]:  # noqa: ANN401 - as of topics
        return [each.topic for each in pylog.topics(case, **options).topics]

    assert names(topics=["orders"]) == ["orders"]
    assert names(pattern="^inv|state$") == ["__transaction_state", "invoices-eu"]
    with pytest.raises(UnknownTopicOrPartitionError, match="'order'"):
        names(topics=["order"])
    with pytest.raises(UnknownTopicOrPartitionError):
        names(pattern="^x")
    with pytest.raises(ValueError, match="not both"):
        names(topics=["orders"], pattern="o")


def test_topics_of_two_clusters_are_refused_with_both_ids_and_paths(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_partition(tmp_path / name, {0: [batch_v2(plain_records(0, 1))]}, name=f"{name}-0")
        (tmp_path / name / "meta.properties").write_text(
            f"version=1\nnode.id=1\ncluster.id=cluster-{name}\n"
        )
    # A directory that is not live names its cluster, too.
    (tmp_path / "two" / "two-0").rename(tmp_path / "two" / f"two-0.{'0' * 32}-delete")
    with pytest.raises(LogDirectoryError) as caught:
        pylog.topics(tmp_path / "one", tmp_path / "two")
    assert str(caught.value) == (
        f"{tmp_path / 'one'} is of cluster cluster-one, and {tmp_path / 'two'} of cluster "
        "cluster-two; read one cluster at a time"
    )

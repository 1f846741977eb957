"""Topics of a cluster that is gone are served by another one, on real brokers."""

from __future__ import annotations

import subprocess
import warnings
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.broker.test_first_aid import PROPERTIES as REPLICATED
from tests.broker.test_first_aid import produced, read, tree_hash
from tests.support.damage import flip
from tests.support.kafka_broker import BrokerFailedError, KafkaBroker, free_ports
from tests.support.kafka_broker_jars import LAST_VERSION_3, NEWEST_VERSION, VERSION_BEFORE
from tests.support.kafka_cluster import KafkaCluster
from tests.support.waiting import wait_for

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, TopicPartition
    from kafka.errors import KafkaError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.batches import Stored

pytestmark = pytest.mark.broker

PARTITIONS = 3
RECORDS = 60
GROUP_OFFSET = 7
VERSIONS = [NEWEST_VERSION, VERSION_BEFORE, LAST_VERSION_3]


def write_old_cluster(broker: KafkaBroker) -> dict[int, list[Stored]]:
    """Write a topic with transactions, and let a group commit; return what a consumer gets."""
    broker.create_topic("orders", PARTITIONS, {"retention.ms": "-1", "segment.bytes": "1048576"})
    with broker.producer(transactional_id="old") as producer:
        producer.init_transactions()
        for number in range(RECORDS):
            producer.begin_transaction()
            producer.send("orders", b"v%d" % number, b"k", partition=number % PARTITIONS)
            if number % 5:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    with broker.producer() as producer:
        for number in range(RECORDS):
            producer.send("orders", b"w%d" % number, partition=number % PARTITIONS).get(30)
    with consumer_of(broker) as consumer:
        consumer.commit()
    return broker.consume("orders", PARTITIONS, "read_committed")


def consumer_of(broker: KafkaBroker) -> KafkaConsumer:
    """Return a member of the group, at its offset if it has committed none."""
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, group_id="billing", enable_auto_commit=False
    )
    partition = TopicPartition("orders", 1)
    consumer.assign([partition])
    if consumer.committed(partition) is None:
        consumer.seek(partition, GROUP_OFFSET)
    return consumer


def ensure_served(broker: KafkaBroker, expected: dict[int, list[Stored]]) -> None:
    """Read all, append to all, and go on with a transaction and a group."""
    assert broker.consume("orders", PARTITIONS, "read_committed") == expected
    with broker.producer() as producer:
        for number in range(PARTITIONS):
            producer.send("orders", b"after", partition=number).get(30)
    with broker.producer(transactional_id="new") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"in a transaction", partition=0).get(30)
        producer.commit_transaction()
    after = broker.consume("orders", PARTITIONS, "read_committed")
    for number, records in expected.items():
        assert after[number][: len(records)] == records
        new = [each.value for each in after[number][len(records) :]]
        assert new == [b"after", *([b"in a transaction"] if number == 0 else [])]


def committed(broker: KafkaBroker) -> int | None:
    with consumer_of(broker) as consumer:
        offset: int | None = consumer.committed(TopicPartition("orders", 1))
        return offset


@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_new_cluster_serves_what_a_dead_one_had(
    tmp_path: Path, version: str, *, is_dynamic: bool
) -> None:
    with KafkaBroker(tmp_path / "old", version=version) as old:
        expected = write_old_cluster(old)
        old.kill()
    before = tree_hash(old.log_dir)
    ports = free_ports(2)
    new = KafkaBroker(
        tmp_path / "new",
        version=version,
        ports=(ports[0], ports[1]),
        properties={
            "node.id": "7",
            **(
                {
                    "controller.quorum.voters": "",
                    "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports[1]}",
                }
                if is_dynamic
                else {"controller.quorum.voters": f"7@127.0.0.1:{ports[1]}"}
            ),
        },
        format_options=["--standalone"] if is_dynamic else [],
    )
    new.format()
    summary = pylog.adopt(old.log_dir, into=new.log_dir)
    assert tree_hash(old.log_dir) == before
    assert (summary.losses, summary.appended) == ([], None)
    assert summary.topic_ids["orders"] == stored_topic_id(old.log_dir)
    with new:
        ensure_served(new, expected)
        assert committed(new) == GROUP_OFFSET
        configs = new.admin().describe_configs(
            [pylog_config_resource("orders")],
        )
        assert "retention.ms" in str(configs)
        new.stop()
        new.start()
        assert len(new.consume("orders", PARTITIONS)[1]) > 0
        new.stop()
    assert not list(new.log_dir.glob("*-stray"))
    assert pylog.doctor(new.log_dir).verdict.would_start


def stored_topic_id(log_dir: Path) -> str:
    text = (log_dir / "orders-0" / "partition.metadata").read_text()
    return text.split("topic_id: ")[1].strip()


def pylog_config_resource(topic: str) -> object:
    from kafka.admin import ConfigResource  # noqa: PLC0415

    return ConfigResource("topic", topic)


@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_cluster_that_has_run_serves_its_topics_and_those_of_another_one(
    tmp_path: Path, version: str
) -> None:
    with KafkaBroker(tmp_path / "old", version=version) as old:
        expected = write_old_cluster(old)
        old.stop()
    with KafkaBroker(tmp_path / "new", version=version) as new:
        new.create_topic("own", 2)
        with new.producer() as producer:
            for number in range(10):
                producer.send("own", b"own %d" % number, partition=number % 2).get(30)
        own = new.consume("own", 2)
        with consumer_of_own(new) as consumer:
            consumer.commit()
        new.stop()
        summary = pylog.adopt(old.log_dir, into=new.log_dir)
        assert summary.losses == []
        assert summary.snapshot is None
        assert any("__consumer_offsets" in each for each in summary.notes)
        new.start()
        ensure_served(new, expected)
        assert new.consume("own", 2) == own
        new.stop()
    assert not list(new.log_dir.glob("*-stray"))
    with pytest.raises(pylog.errors.LogDirectoryError, match="has a topic orders"):
        pylog.adopt(old.log_dir, into=new.log_dir, topics=["orders"])
    pylog.adopt(old.log_dir, into=new.log_dir, topics=["orders"], rename={"orders": "again"})
    with new:
        assert new.consume("again", PARTITIONS, "read_committed") == expected
        new.stop()


@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_running_cluster_serves_old_topics_after_the_steps_of_a_plan(
    tmp_path: Path, version: str
) -> None:
    with KafkaBroker(tmp_path / "old", version=version) as old:
        expected = write_old_cluster(old)
        old.kill()
    with KafkaBroker(tmp_path / "new", version=version) as new:
        with new.producer(transactional_id="own") as producer:  # takes the first producer ids
            new.create_topic("own", 1)
            producer.init_transactions()
        plan = partial(
            pylog.jobs.plan_for_running,
            old.log_dir,
            running=new.log_dir,
            into=tmp_path / "ready",
            topics=["orders"],
        )
        first = plan()
        assert (first.is_written, (tmp_path / "ready").exists()) == (False, False)
        [words] = [each.split() for each in first.steps]
        options = dict(pairwise(words))
        assert (options["--topic"], options["--replica-assignment"]) == ("orders", "1,1,1")
        assert "--config retention.ms=-1" in first.steps[0]
        new.create_topic("orders", PARTITIONS, {"retention.ms": "-1"})
        before = {each: tree_hash(each) for each in new.log_dir.glob("orders-*")}
        done = plan()
        assert (done.is_written, done.losses) == (True, [])
        assert {each: tree_hash(each) for each in new.log_dir.glob("orders-*")} == before
        assert new.is_running
        new.stop()
        moves = [each for each in done.steps if each.startswith("mv ")]
        assert len(moves) == PARTITIONS
        for each in moves:
            subprocess.run(["sh", "-c", each], check=True)
        new.start()
        ensure_served(new, expected)
        with KafkaConsumer(
            bootstrap_servers=new.bootstrap_servers, group_id="fresh", enable_auto_commit=False
        ) as consumer:
            consumer.assign([TopicPartition("orders", 1)])
            consumer.seek(TopicPartition("orders", 1), GROUP_OFFSET)
            assert consumer.poll(timeout_ms=60_000)
        new.kill()  # what was made anew at the first start has to be found sound
        new.start()
        with new.producer() as producer:
            producer.send("orders", b"last", partition=0).get(30)
        new.stop()
    assert not list(new.log_dir.glob("*-stray"))
    with pytest.raises(pylog.errors.LogDirectoryError, match="has records"):
        plan(into=tmp_path / "again")


@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize("version", VERSIONS)
def test_groups_go_on_in_a_cluster_that_has_groups_of_its_own(tmp_path: Path, version: str) -> None:
    with KafkaBroker(tmp_path / "old", version=version) as old:
        expected = write_old_cluster(old)
        old.kill()
    properties = {"offsets.topic.num.partitions": "3"}
    with KafkaBroker(tmp_path / "new", version=version, properties=properties) as new:
        new.create_topic("own", 1)
        with consumer_of_own(new) as consumer:
            consumer.commit()
        new.stop()
        pylog.adopt(old.log_dir, into=new.log_dir)
        done = pylog.jobs.restore_groups(old.log_dir, to=new.log_dir)
        assert (done.losses, [each.offset for each in done.offsets]) == ([], [GROUP_OFFSET])
        new.start()
        assert committed(new) == GROUP_OFFSET
        with consumer_of_own(new) as consumer:
            assert consumer.committed(TopicPartition("own", 0)) == 3
        with KafkaConsumer(
            "orders", bootstrap_servers=new.bootstrap_servers, group_id="billing"
        ) as consumer:
            got: list[int] = []
            while not got:
                polled = consumer.poll(timeout_ms=500)
                got = [each.offset for each in polled.get(TopicPartition("orders", 1), [])]
        assert got[0] == min(each.offset for each in expected[1] if each.offset >= GROUP_OFFSET)
        new.stop()


def consumer_of_own(broker: KafkaBroker) -> KafkaConsumer:
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, group_id="own", enable_auto_commit=False
    )
    consumer.assign([TopicPartition("own", 0)])
    consumer.seek(TopicPartition("own", 0), 3)
    return consumer


class StoppedError(Exception):
    pass


@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize("version", VERSIONS)
def test_no_broker_starts_on_half_of_an_adoption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    def stop(*_: object) -> None:
        raise StoppedError

    with KafkaBroker(tmp_path / "old", version=version) as old:
        expected = write_old_cluster(old)
        old.kill()
    with KafkaBroker(tmp_path / "new", version=version) as new:
        new.stop()
        with monkeypatch.context() as patch:
            patch.setattr("pylog.recovery.adoption_steps.Adoption._write", stop)
            with pytest.raises(StoppedError):
                pylog.adopt(old.log_dir, into=new.log_dir)
        assert not pylog.doctor(new.log_dir).verdict.would_start
        with pytest.raises(BrokerFailedError):
            new.start()
        assert not list(new.log_dir.glob("*-stray"))
        with monkeypatch.context() as patch:
            patch.setattr("shutil.rmtree", stop)
            with pytest.raises(StoppedError):
                pylog.jobs.end_adoption([new.log_dir])
        assert len(list(new.log_dir.glob("pylog-adoption-0.*-delete"))) == 1
        assert pylog.doctor(new.log_dir).verdict.would_start
        new.start()
        ensure_served(new, expected)
        new.stop()
    assert not list(new.log_dir.glob("*-stray"))


def ensure_all_follow(cluster: KafkaCluster) -> None:
    """Wait until each replica of the topic is in sync."""

    def are_in_sync() -> bool:
        [topic] = cluster.admin().describe_topics(["orders"])
        return [len(each["isr_nodes"]) for each in topic["partitions"]] == [3] * PARTITIONS

    wait_for(are_in_sync, "followers", tolerates=(KafkaError,))


@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("nodes", [1, 3])
def test_the_disks_of_three_nodes_are_served_by_one_or_by_three(
    tmp_path: Path, version: str, nodes: int
) -> None:
    disks = [tmp_path / f"old-{node}" for node in (1, 2, 3)]
    with KafkaCluster(tmp_path, version=version, disks=disks, properties=REPLICATED) as old:
        topics = {
            "orders": {"num_partitions": PARTITIONS, "replication_factor": 3},
            "single": {"assignments": {number: [number + 1] for number in range(PARTITIONS)}},
        }
        old.create_topics(topics)
        ledger = {topic: produced(old, topic, "before") for topic in topics}
        old.kill()
    new_disks = [tmp_path / f"new-{node}" for node in range(1, nodes + 1)]
    new = KafkaCluster(
        tmp_path / "again",
        version=version,
        disks=new_disks,
        properties=REPLICATED if nodes > 1 else {},
        is_dynamic=True,
    )
    for node in new.nodes:
        node.format()
    summary = pylog.adopt(*disks, into=new_disks)
    assert summary.losses == []
    with new:
        for topic, values in ledger.items():
            assert read(new, topic) == values
            after = produced(new, topic, "after")
            assert read(new, topic) == values | after
        if nodes > 1:
            ensure_all_follow(new)
    assert not [each for disk in new_disks for each in disk.glob("*-stray")]


@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize("damaged", [1, 2, 3])
def test_what_one_disk_has_damaged_another_one_leads_with_and_all_get(
    tmp_path: Path, damaged: int
) -> None:
    disks = [tmp_path / f"old-{node}" for node in (1, 2, 3)]
    with KafkaCluster(tmp_path, version=NEWEST_VERSION, disks=disks, properties=REPLICATED) as old:
        old.create_topics({"orders": {"num_partitions": PARTITIONS, "replication_factor": 3}})
        values = set[bytes]().union(*(produced(old, "orders", label) for label in "abcde"))
        ensure_all_follow(old)
        old.kill()
    log = disks[damaged - 1] / "orders-0" / f"{0:020d}.log"
    flip(log, log.stat().st_size // 2)
    new_disks = [tmp_path / f"new-{node}" for node in (1, 2, 3)]
    new = KafkaCluster(
        tmp_path / "again",
        version=NEWEST_VERSION,
        disks=new_disks,
        properties=REPLICATED,
        is_dynamic=True,
    )
    for node in new.nodes:
        node.format()
    summary = pylog.adopt(*disks, into=new_disks, topics=["orders"])
    assert summary.losses == []
    assert any("fetches all of the log" in each for each in summary.notes)
    with new:
        assert read(new, "orders") == values
        ensure_all_follow(new)
        assert read(new, "orders") == values
        new.kill()
    for disk in new_disks:
        assert pylog.scan(disk, topics=["orders"]).count() == len(values)

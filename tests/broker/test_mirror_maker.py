"""MirrorMaker 2 restores a directory that is served into a real broker."""

from __future__ import annotations

import os
import subprocess
import time
import warnings
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.golden import read_expected, stored_of
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_broker_jars import (
    VERSION_BEFORE,
    fetch_jars,
    find_java,
    kafka_class_path,
)
from tests.support.waiting import wait_for

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer
    from kafka import TopicPartition as Place
    from kafka.structs import OffsetAndMetadata

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog import DecoderName
    from tests.support.batches import Stored
    from tests.support.golden import GoldenRoot

pytestmark = [
    pytest.mark.broker,
    pytest.mark.thorough,
    pytest.mark.usefixtures("kafka_is_here"),
]

JARS = Path(__file__).parents[2] / "build" / "mirror-maker" / VERSION_BEFORE
SECONDS = 180
PROPERTIES = """
clusters = lost, new
lost.bootstrap.servers = {lost}
new.bootstrap.servers = {new}
lost->new.enabled = true
lost->new.topics = .*
replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy
offset-syncs.topic.location = target
sync.group.offsets.enabled = true
replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
offset.storage.replication.factor = 1
status.storage.replication.factor = 1
config.storage.replication.factor = 1
refresh.topics.interval.seconds = 5
emit.checkpoints.interval.seconds = 1
emit.heartbeats.interval.seconds = 1
offset.flush.interval.ms = 1000
"""


@contextmanager
def mirror_maker(lost: str, new: str, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run MirrorMaker 2 from one cluster to another one, until the block ends."""
    packages = ",".join(
        f"org.apache.kafka:{each}:{VERSION_BEFORE}"
        for each in ("connect-mirror", "connect-runtime")
    )
    jars = fetch_jars(packages, JARS)
    properties = directory / "mm2.properties"
    properties.write_text(PROPERTIES.format(lost=lost, new=new))
    main = "org.apache.kafka.connect.mirror.MirrorMaker"
    with (directory / "mm2.log").open("wb") as log:
        process = subprocess.Popen(
            [find_java(), "-Xmx400m", "-cp", os.pathsep.join(map(str, jars)), main, properties],
            stdout=log,
            stderr=log,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def test_a_lost_cluster_is_restored(golden_root: GoldenRoot, tmp_path: Path) -> None:
    case = golden_root.case("4.3.0/plain")
    expected = {}
    for number in range(3):
        path = golden_root.partition(f"4.3.0/plain:orders-{number}").expected_path("uncommitted")
        assert path is not None
        lines = enumerate(read_expected(path))
        expected[number] = [stored_of(line)._replace(offset=offset) for offset, line in lines]
    with (
        KafkaBroker(tmp_path / "broker", version=VERSION_BEFORE) as broker,
        pylog.serve(case, topics=["orders"]) as server,
        mirror_maker(server.address, broker.bootstrap_servers, tmp_path) as process,
    ):
        found: dict[int, list[Stored]] = {}
        for _ in range(SECONDS):
            assert process.poll() is None, (tmp_path / "mm2.log").read_text()
            if "orders" in broker.admin().list_topics():
                found = broker.consume("orders", 3)
                if sum(map(len, found.values())) == sum(map(len, expected.values())):
                    break
            time.sleep(1)
    assert found == expected


RECORDS = 40
FORMATTERS = {
    "mm2-offset-syncs.lost.internal": "OffsetSyncFormatter",
    "lost.checkpoints.internal": "CheckpointFormatter",
    "heartbeats": "HeartbeatFormatter",
}
DECODERS: dict[str, DecoderName] = {
    "mm2-offset-syncs.lost.internal": "mm2-offset-syncs",
    "lost.checkpoints.internal": "mm2-checkpoints",
    "heartbeats": "mm2-heartbeats",
}


def test_groups_go_on_in_the_mirror_where_their_offset_syncs_say(tmp_path: Path) -> None:
    with (
        KafkaBroker(tmp_path / "lost", version=VERSION_BEFORE) as lost,
        KafkaBroker(tmp_path / "new", version=VERSION_BEFORE) as new,
    ):
        lost.create_topic("orders", 1)
        with lost.producer() as producer:
            for number in range(RECORDS):
                producer.send("orders", b"v%d" % number, partition=0).get(30)
        lost.admin().delete_records({Place("orders", 0): 15})  # so that offsets differ
        position = 30
        with KafkaConsumer(
            bootstrap_servers=lost.bootstrap_servers, group_id="billing", enable_auto_commit=False
        ) as consumer:
            consumer.assign([Place("orders", 0)])
            consumer.seek(Place("orders", 0), position)
            consumer.commit()
        values = [b"v%d" % number for number in range(15, RECORDS)]
        with mirror_maker(lost.bootstrap_servers, new.bootstrap_servers, tmp_path) as process:
            for _ in range(SECONDS):
                assert process.poll() is None, (tmp_path / "mm2.log").read_text()
                if "orders" in new.admin().list_topics():
                    found = [each.value for each in new.consume("orders", 1)[0]]
                    if found == values:
                        break
                time.sleep(1)
            assert found == values
            wait_for(lambda: set(FORMATTERS) <= set(new.admin().list_topics()), "the topics")
            for topic in FORMATTERS:
                wait_for(partial(has_records, new, topic, 1), topic)
            # Of 25 partitions; written a moment after what they are about.
            wait_for(partial(has_records, new, "mm2-offsets.lost.internal", 25), "offsets")
        printed = {topic: formatted(new, topic, each) for topic, each in FORMATTERS.items()}
        with KafkaConsumer(
            bootstrap_servers=new.bootstrap_servers, group_id="other", enable_auto_commit=False
        ) as consumer:
            consumer.assign([Place("orders", 0)])
            consumer.commit({Place("orders", 0): OffsetAndMetadata(1, "", -1)})
        lost.kill()
        new.stop()
        ensure_same(new.log_dir, printed)
        done = pylog.jobs.restore_groups(
            lost.log_dir, to=new.log_dir, groups=["billing"], offset_map=new.log_dir, replaces=True
        )
        [restored] = done.offsets
        assert (restored.before, done.losses) == (position, [])
        assert 0 <= restored.offset <= position - 15
        new.start()
        with KafkaConsumer(
            bootstrap_servers=new.bootstrap_servers, group_id="billing", enable_auto_commit=False
        ) as consumer:
            assert consumer.committed(Place("orders", 0)) == restored.offset


def formatted(broker: KafkaBroker, topic: str, formatter: str) -> list[str]:
    """Return the lines that a formatter of MirrorMaker prints of a topic."""
    class_path = os.pathsep.join([*map(str, sorted((JARS / "jars").glob("*.jar"))), tools()])
    command = [
        *(str(find_java()), "-cp", class_path),
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", broker.bootstrap_servers, "--topic", topic, "--from-beginning"),
        *("--max-messages", str(len(broker.consume(topic)[0])), "--timeout-ms", "60000"),
        "--formatter",
        f"org.apache.kafka.connect.mirror.formatters.{formatter}",
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=SECONDS)
    kind = formatter.removesuffix("Formatter")
    return [line for line in done.stdout.splitlines() if line.startswith(f"{kind}{{")]


def has_records(broker: KafkaBroker, topic: str, partitions: int) -> bool:
    return any(broker.consume(topic, partitions).values())


def ensure_same(logs: Path, printed: dict[str, list[str]]) -> None:
    """Compare what Kafka's formatters have printed with what ``cat`` prints, and the tables."""
    for topic, expected in printed.items():
        decoder = pylog.jobs.LineFormat.decoded(DECODERS[topic])
        table = pylog.scan(logs, topics=[topic], columns=decoder.columns).to_table()
        parts = [part for batch in table.to_batches() for part in decoder.lines_of(batch)]
        shown = b"".join(map(bytes, parts)).decode().splitlines()
        assert expected
        assert shown[: len(expected)] == expected  # the last ones may come after the look
        assert len(shown) <= len(expected) + 5
    for name in pylog.TABLE_NAMES[pylog.TABLE_NAMES.index("mm2_checkpoints") :]:
        rows = pylog.read_table(logs, name)
        assert rows.num_rows > 0, name
        assert rows["problem"].null_count == rows.num_rows, name


def tools() -> str:
    return kafka_class_path(VERSION_BEFORE)

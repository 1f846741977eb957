"""What `groups` says of a broker's next start is what it does: offsets that go, partitions refused.

The log of each partition of ``__consumer_offsets`` is written by hand before the start.
"""

from __future__ import annotations

import random
import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import (
    CoordinatorLoadInProgressError,
    GroupIdNotFoundError,
    NoOffsetForPartitionError,
    NotCoordinatorError,
    OffsetOutOfRangeError,
)

import pylog
from pylog.config.server_properties import ServerProperties
from pylog.reading.coordinators import partition_for
from tests.broker.conftest import BROKER_VERSIONS
from tests.support import group_records
from tests.support.batches import batch_v2
from tests.support.group_records import CONSUMER, SHARE, STREAMS
from tests.support.kafka_broker_jars import is_version_3
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.broker.conftest import NewBroker
    from tests.support.kafka_broker import KafkaBroker

pytestmark = pytest.mark.broker

PARTITIONS = 60
AGES = 10  # of them are for offsets of some age, the others for groups of several kinds
RETENTION_MINUTES = 60
OLD_MS, YOUNG_MS = 2 * RETENTION_MINUTES * 60_000, 60_000
SECONDS = 60.0
SEED = 20261128

Records = list[tuple[bytes, bytes | None]]


def stopped_broker(new_broker: NewBroker, version: str) -> KafkaBroker:
    """Return a broker that has made its internal topic, and was stopped."""
    properties = {
        "offsets.topic.num.partitions": str(PARTITIONS),
        "offsets.retention.minutes": str(RETENTION_MINUTES),
        "offsets.retention.check.interval.ms": "2000",
    }
    if not is_version_3(version):
        properties["group.coordinator.rebalance.protocols"] = "classic,consumer,share,streams"
    broker = new_broker(version=version, properties=properties)
    for topic in ("orders", "other"):
        broker.create_topic(topic, partitions=1)
    broker.create_topic("__consumer_offsets", PARTITIONS, {"cleanup.policy": "compact"})
    broker.stop()
    return broker


def write(broker: KafkaBroker, partition: int, records: Records) -> None:
    directory = broker.partition_directory("__consumer_offsets", partition)
    for path in directory.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    batch = batch_v2(group_records.stored(records, timestamp=int(time.time() * 1000)))
    write_partition(broker.log_dir, {0: [batch]}, name=directory.name)


def name_for(partition: int, stem: str) -> str:
    """Return an id for which a partition answers."""
    numbers = range(100_000)
    return next(
        name
        for name in (f"{stem}{each}" for each in numbers)
        if partition_for(name, PARTITIONS) == partition
    )


def expiry_cases(now: int, *, has_modern: bool) -> Iterator[tuple[str, Records]]:
    """Yield groups by what the age of their offsets is counted from."""
    old, young = now - OLD_MS, now - YOUNG_MS
    commit, classic = group_records.commit, group_records.classic
    for word, at in (("old", old), ("young", young)):
        yield f"simple-{word}", [commit("", at=at)]
        yield f"v1-past-{word}", [commit("", at=at, expires=now - 1000)]
        yield f"v1-future-{word}", [commit("", at=at, expires=now + OLD_MS)]
        yield f"v1-none-{word}", [commit("", at=at, expires=-1)]
        for since_word, since in (("old", old), ("young", young), ("none", -1)):
            for kind in ("consumer", "connect", ""):
                record = classic("", since=since, protocol_type=kind)
                yield f"empty-{kind}-{since_word}-{word}", [commit("", at=at), record]
        yield (
            f"members-{word}",
            [
                commit("", at=at),
                commit("", "other", at=at),
                classic("", "orders", since=old, has_member=True),
            ],
        )
        yield (
            f"connect-members-{word}",
            [commit("", at=at), classic("", since=old, has_member=True, protocol_type="connect")],
        )
        if has_modern:
            yield f"consumer-{word}", [group_records.modern(CONSUMER, ""), commit("", at=at)]
            yield (
                f"consumer-member-{word}",
                [
                    group_records.modern(CONSUMER, ""),
                    group_records.consumer_member("", "orders"),
                    commit("", at=at),
                    commit("", "other", at=at),
                ],
            )
            yield (
                f"streams-{word}",
                [
                    group_records.modern(STREAMS, ""),
                    group_records.topology("", "orders"),
                    commit("", at=at),
                    commit("", "other", at=at),
                ],
            )


def named(records: Records, group: str) -> Records:
    """Return records that were made of a group without a name, of one with a name."""
    data = group.encode()
    size = len(data).to_bytes(2)
    return [(key[:2] + size + data + key[4:], value) for key, value in records]


def removal(kind: int, assignment: int) -> Records:
    """Return the tombstones of a group in the order in which a broker writes them."""
    return [group_records.tombstone(each, "") for each in (assignment, kind)]


STEPS: dict[str, Records] = {
    "commit": [group_records.commit("", at=2**60)],
    "classic": [group_records.classic("")],
    "member": [group_records.classic("", "orders", has_member=True)],
    "simple": [group_records.classic("", protocol_type="")],
    "consumer": [group_records.modern(CONSUMER, "")],
    "share": [group_records.modern(SHARE, "")],
    "streams": [group_records.modern(STREAMS, "")],
    "no classic": [group_records.tombstone(group_records.CLASSIC, "")],
    "no consumer": removal(CONSUMER, group_records.CONSUMER_ASSIGNMENT),
    "no share": removal(SHARE, group_records.SHARE_ASSIGNMENT),
    "no streams": removal(STREAMS, group_records.STREAMS_ASSIGNMENT),
}


@pytest.mark.parametrize("version", BROKER_VERSIONS)
def test_a_broker_deletes_the_offsets_and_refuses_the_partitions_that_were_named(
    new_broker: NewBroker, version: str
) -> None:
    broker = stopped_broker(new_broker, version)
    has_modern = not is_version_3(version)
    now = int(time.time() * 1000)
    cases = write_ages(broker, now, has_modern=has_modern)
    sequences = write_kinds(broker) if has_modern else {}
    settings = ServerProperties.read(broker.directory / "server.properties")
    listing = pylog.groups(broker.log_dir, server_properties=settings)
    assert listing.errors == []
    expected = {
        (group.group_id, each.topic): each.will_expire
        for group in listing.groups
        for each in group.offsets
        if group.group_id in cases
    }
    assert {True, False} <= set(expected.values())
    refused = {each.partition for each in listing.refused}
    verdict = pylog.doctor(broker.log_dir, server_properties=settings).verdict
    assert {
        (group, each.topic) for each in verdict.will_expire for group in each.groups
    } & expected.keys() == {place for place, expires in expected.items() if expires}
    assert {
        each.partition for each in verdict.consumers if each.topic == "__consumer_offsets"
    } == refused
    broker.start()
    loaded = loaded_partitions(broker) if has_modern else {}
    failed = {number for number, is_loaded in loaded.items() if not is_loaded}
    assert failed == refused, {each: sequences[each] for each in failed ^ refused}
    assert bool(failed) is has_modern
    gone = {place for place, expires in expected.items() if expires}
    deadline = time.monotonic() + SECONDS
    while (kept := kept_offsets(broker, cases)) & gone:
        assert time.monotonic() < deadline, kept & gone
        time.sleep(0.5)
    assert {place for place, expires in expected.items() if expires is False} - kept == set()


def write_ages(broker: KafkaBroker, now: int, *, has_modern: bool) -> set[str]:
    """Write the groups of `expiry_cases` to the first partitions; return their ids."""
    by_partition: dict[int, Records] = {each: [] for each in range(AGES)}
    names = set()
    for place, (stem, records) in enumerate(expiry_cases(now, has_modern=has_modern)):
        name = name_for(place % AGES, stem)
        names.add(name)
        by_partition[place % AGES] += named(records, name)
    for partition, records in by_partition.items():
        write(broker, partition, records)
    return names


def write_kinds(broker: KafkaBroker) -> dict[int, list[str]]:
    """Write random steps of one group to each other partition; return them."""
    source = random.Random(SEED)
    sequences = {}
    for partition in range(AGES, PARTITIONS):
        steps = source.choices(list(STEPS), k=source.randint(2, 4))
        sequences[partition] = steps
        records = [record for each in steps for record in STEPS[each]]
        write(broker, partition, named(records, name_for(partition, "g")))
    return sequences


def loaded_partitions(broker: KafkaBroker) -> dict[int, bool]:
    """Wait until the coordinators are done, and return which partitions they have loaded."""
    done = re.compile(
        r"(Failed to load|Finished loading of) metadata from __consumer_offsets-(\d+)"
    )
    deadline = time.monotonic() + SECONDS
    while True:
        found = {
            int(number): word.startswith("Finished")
            for word, number in done.findall(broker.server_log)
        }
        if len(found) == PARTITIONS:
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def kept_offsets(broker: KafkaBroker, groups: set[str]) -> set[tuple[str, str]]:
    """Return group and topic of the offsets that the broker has."""
    found: dict[str, Any] = {}
    deadline = time.monotonic() + SECONDS
    for name in sorted(groups):
        while True:
            try:
                found |= broker.admin().list_group_offsets(name)
            except GroupIdNotFoundError:  # a group goes with its last offset
                pass
            except (NotCoordinatorError, CoordinatorLoadInProgressError):
                assert time.monotonic() < deadline
                time.sleep(0.2)
                continue
            break
    return {(name, place.topic) for name, offsets in found.items() for place in offsets}


@pytest.mark.parametrize("version", BROKER_VERSIONS)
def test_a_consumer_goes_on_at_its_position_unless_the_verdict_has_it(
    new_broker: NewBroker, version: str
) -> None:
    broker = stopped_broker(new_broker, version)
    broker.start()
    where = TopicPartition("orders", 0)
    with broker.producer() as producer:
        for _ in range(20):
            producer.send("orders", b"value", partition=0)
    broker.admin().delete_records({where: 8})
    broker.stop()
    now = int(time.time() * 1000)
    positions = {name_for(0, f"at-{offset}-"): offset for offset in (0, 7, 8, 12, 20, 21, 90)}
    commits = [
        group_records.commit(name, "orders", offset=offset, at=now)
        for name, offset in positions.items()
    ]
    write(broker, 0, commits)
    settings = ServerProperties.read(broker.directory / "server.properties")
    verdict = pylog.doctor(broker.log_dir, server_properties=settings).verdict
    said = {group for each in verdict.will_reset for group in each.groups}
    broker.start()
    assert {name for name in positions if starts_anew(broker, name, where)} == said
    assert {positions[name] for name in said} == {0, 7, 21, 90}


def starts_anew(broker: KafkaBroker, group: str, where: TopicPartition) -> bool:
    """Whether a consumer of a group needs its auto.offset.reset, which it has not."""
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers,
        group_id=group,
        auto_offset_reset="none",
        enable_auto_commit=False,
    )
    try:
        consumer.assign([where])
        deadline = time.monotonic() + SECONDS
        # An answer to a fetch tells where the log ends; at its end no record comes.
        while not consumer.poll(timeout_ms=200) and consumer.highwater(where) is None:
            assert time.monotonic() < deadline
    except (OffsetOutOfRangeError, NoOffsetForPartitionError):
        return True
    finally:
        consumer.close()
    return False

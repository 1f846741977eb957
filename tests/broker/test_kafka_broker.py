"""The broker of these tests: what goes in comes out, on disk too, and it can be started again."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.broker.conftest import BROKER_VERSIONS
from tests.support.batches import Stored
from tests.support.kafka_broker import BrokerFailedError
from tests.support.kafka_broker_jars import LAST_VERSION_3, NEWEST_VERSION, VERSION_BEFORE
from tests.support.kafka_broker_tools import dump_log_segments, segment_files
from tests.support.reading import scanned

if TYPE_CHECKING:
    from kafka import KafkaProducer

    from tests.broker.conftest import NewBroker
    from tests.support.kafka_broker import KafkaBroker

pytestmark = pytest.mark.broker

TOPIC = "orders"
RECORDS = 3_000
FIRST_TIMESTAMP = 1_700_000_000_000
SMALL_SEGMENTS = {
    # Version 4 allows no less than a mebibyte by the setting that operators use.
    LAST_VERSION_3: {"segment.bytes": "65536"},
    VERSION_BEFORE: {"internal.segment.bytes": "65536"},
    NEWEST_VERSION: {"internal.segment.bytes": "65536"},
}
DUMPED_BATCH = re.compile(r"^baseOffset: (\d+) lastOffset: (\d+) .* position: (\d+) ", re.MULTILINE)


def sent_record(number: int) -> Stored:
    """Return the record that stands at offset ``number``."""
    value = b"order %d " % number + random.Random(number).randbytes(number % 97)
    headers = (("source", b"test"),) if number % 5 == 0 else ()
    return Stored(number, FIRST_TIMESTAMP + number, b"%d" % (number % 50), value, headers)


def send(producer: KafkaProducer, record: Stored) -> None:
    producer.send(
        TOPIC,
        key=record.key,
        value=record.value,
        headers=list(record.headers),
        partition=0,
        timestamp_ms=record.timestamp,
    )


def fill(broker: KafkaBroker) -> list[Stored]:
    """Write a topic of several segments and return what is in it."""
    broker.create_topic(TOPIC, config={"retention.ms": "-1", **SMALL_SEGMENTS[broker.version]})
    records = list(map(sent_record, range(RECORDS)))
    with broker.producer(compression_type="lz4", batch_size=4096) as producer:
        for record in records:
            send(producer, record)
        producer.flush()
    return records


@pytest.mark.parametrize("version", BROKER_VERSIONS)
def test_what_is_produced_is_consumed_scanned_and_dumped_alike(
    new_broker: NewBroker, version: str
) -> None:
    broker = new_broker(version)
    records = fill(broker)
    assert broker.consume(TOPIC) == {0: records}
    assert scanned(broker.log_dir, topics=TOPIC) == records  # beside the running broker
    broker.stop()
    assert broker.was_stopped_cleanly
    assert scanned(broker.log_dir, topics=TOPIC) == records

    batches = pylog.scan(broker.log_dir, topics=TOPIC, columns=["batch"]).to_table()
    of_rows = batches.column("batch").to_pylist()
    scanned_batches = sorted(
        {(row["baseOffset"], row["lastOffset"], row["position"]) for row in of_rows}
    )
    files = segment_files(broker.partition_directory(TOPIC))
    assert len(files) > 1
    dumped = dump_log_segments(files, version=version)
    assert [tuple(map(int, found)) for found in DUMPED_BATCH.findall(dumped)] == scanned_batches


@pytest.mark.thorough
@pytest.mark.parametrize("version", BROKER_VERSIONS)
def test_a_broker_starts_again_on_what_it_left(new_broker: NewBroker, version: str) -> None:
    # A broker that is back before its session has ended has to wait for that.
    broker = new_broker(version, {"broker.session.timeout.ms": "2000"})
    records = fill(broker)
    broker.stop()
    broker.start()
    assert broker.consume(TOPIC) == {0: records}
    one_more = sent_record(RECORDS)
    with broker.producer() as producer:
        send(producer, one_more)
    broker.kill()
    assert not broker.was_stopped_cleanly
    broker.start()
    assert "Recovering unflushed segment" in broker.server_log
    assert broker.consume(TOPIC) == {0: [*records, one_more]}


def test_a_broker_that_cannot_start_says_why(new_broker: NewBroker) -> None:
    with pytest.raises(BrokerFailedError, match=r"Invalid value none .* log\.cleaner\.threads"):
        new_broker(properties={"log.cleaner.threads": "none"})
    broker = new_broker()
    broker.stop()
    meta = broker.log_dir / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=7"))
    with pytest.raises(BrokerFailedError, match=r"(?s)instead of starting.*node id 7"):
        broker.start()

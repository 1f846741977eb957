"""A log directory that a broker writes, rolls, deletes and compacts while it is read.

Every read gives rows that lay there together, or says that something it was to read is gone. It
never gives a wrong row, takes a file that was replaced for damage, or hangs.
"""

from __future__ import annotations

import random
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.broker.directory_watch import DirectoryWatch, log_start_offset
from tests.broker.ledger import Ledger
from tests.broker.live_reads import LiveReads
from tests.broker.requests import Requests
from tests.broker.writers import TransactionalWriter, Writer
from tests.support.reading import scanned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.broker.conftest import NewBroker
    from tests.broker.directory_watch import Seen
    from tests.conftest import HowMany
    from tests.support.batches import Stored
    from tests.support.kafka_broker import KafkaBroker

pytestmark = [pytest.mark.broker, pytest.mark.slow]

LIVE_SECONDS = 60
LONGEST_WAIT_SECONDS = 180.0
"""How much longer, on a busy machine, until the broker has had enough to do."""
FEWEST_SEGMENTS = 10
FEWEST_DELETIONS = 5
WARM_UP_SECONDS = 3.0
SETTLED_SECONDS = 2.0
SETTLE_LIMIT_SECONDS = 120.0
ISOLATIONS = ("read_uncommitted", "read_committed")
FEWEST_CLEAN_READS = 30

BOUNDED, EXPIRING, COMPACTED, TRANSACTIONS = "bounded", "expiring", "compacted", "transactions"
PARTITIONS = {BOUNDED: 2, EXPIRING: 1, COMPACTED: 1, TRANSACTIONS: 1}

BRISK_BROKER = {
    "log.retention.check.interval.ms": "300",
    "log.cleaner.backoff.ms": "50",
}
SMALL_SEGMENTS = {
    "internal.segment.bytes": "65536",
    "index.interval.bytes": "2048",
    "file.delete.delay.ms": "100",
}
TOPIC_CONFIGS = {
    BOUNDED: {**SMALL_SEGMENTS, "retention.bytes": "300000"},
    EXPIRING: {
        "compression.type": "zstd",
        "segment.bytes": "1048576",
        "segment.ms": "400",
        "retention.ms": "3000",
        "file.delete.delay.ms": "0",
    },
    COMPACTED: {
        **SMALL_SEGMENTS,
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "500",
    },
    TRANSACTIONS: {**SMALL_SEGMENTS, "retention.bytes": "300000"},
}
KEEP_EVERYTHING = {"cleanup.policy": "delete", "retention.bytes": "-1", "retention.ms": "-1"}


def test_a_read_beside_a_writing_broker_is_right_or_tells_of_loss(
    new_broker: NewBroker, capsys: pytest.CaptureFixture[str], how_many: HowMany
) -> None:
    broker = new_broker(properties=BRISK_BROKER)
    for topic, config in TOPIC_CONFIGS.items():
        broker.create_topic(topic, PARTITIONS[topic], config)
    plain = [
        Ledger(topic, partition)
        for topic in (BOUNDED, EXPIRING, COMPACTED)
        for partition in range(PARTITIONS[topic])
    ]
    transactional = [Ledger(TRANSACTIONS, 0, is_transactional=True)]
    ledgers = [*plain, *transactional]
    seed = random.randrange(2**32)

    with DirectoryWatch(broker.log_dir / each.name for each in ledgers) as watch:
        reads = LiveReads(broker.log_dir, frozenset({COMPACTED}), watch)
        requests = Requests(broker.log_dir, ledgers, random.Random(seed))
        with (
            Writer(broker, plain, records_a_round=6, tombstones_in=COMPACTED) as writer,
            TransactionalWriter(
                broker,
                transactional,
                records_a_round=20,
                transactional_id="live",
                compression_type="lz4",
            ) as transactional_writer,
        ):
            time.sleep(WARM_UP_SECONDS)
            deadline = time.monotonic() + how_many(8, LIVE_SECONDS)
            latest = deadline + LONGEST_WAIT_SECONDS
            while time.monotonic() < (deadline if _is_kept_busy(watch.seen) else latest):
                reads.read(requests.next())
                writer.check()
                transactional_writer.check()

    with capsys.disabled():
        sent = {each.name: len(each.sent) for each in ledgers}
        sys.stdout.write(
            f"\nseed {seed}; sent {sent}\n{reads.account()}\n{_summary_of(watch.seen)}\n"
        )
    assert _is_kept_busy(watch.seen), "the broker had little to do: nothing was tested"
    _check_at_rest(broker, ledgers)
    assert sum(reads.clean.values()) >= FEWEST_CLEAN_READS
    assert not reads.failures, reads.failures_in_detail()


def _summary_of(seen: dict[str, Seen]) -> str:
    return "\n".join(
        f"{name}: {len(each.base_offsets)} segments seen, {len(each.gone)} gone again, "
        f"{len(each.swapped)} seen being swapped in"
        for name, each in seen.items()
    )


def _is_kept_busy(seen: dict[str, Seen]) -> bool:
    return all(
        len(each.base_offsets) >= FEWEST_SEGMENTS and len(each.gone) >= FEWEST_DELETIONS
        for each in seen.values()
    )


def _check_at_rest(broker: KafkaBroker, ledgers: Sequence[Ledger]) -> None:
    """Compare with a consumer, and with what was sent, once nothing changes any more."""
    for topic in TOPIC_CONFIGS:
        broker.alter_topic(topic, KEEP_EVERYTHING)
    _wait_until_settled(broker)
    consumed = {
        (topic, isolation): broker.consume(topic, PARTITIONS[topic], isolation)
        for topic in TOPIC_CONFIGS
        for isolation in ISOLATIONS
    }
    broker.stop()
    assert broker.was_stopped_cleanly
    for topic in TOPIC_CONFIGS:
        # Deletion has taken the oldest segments; compaction others, and the first kept its name.
        first = log_start_offset(broker.partition_directory(topic))
        assert (first == 0) == (topic == COMPACTED), topic
    for ledger in ledgers:
        for isolation in ISOLATIONS:
            assign = {ledger.topic: [ledger.partition]}
            rows = scanned(broker.log_dir, assign=assign, isolation=isolation)
            assert rows == consumed[ledger.topic, isolation][ledger.partition], ledger.name
            _check_tail(ledger, rows, is_committed=isolation == "read_committed")


def _check_tail(ledger: Ledger, rows: list[Stored], *, is_committed: bool) -> None:
    """Fail if the last rows are not the last that were sent."""
    expected = ledger.between(rows[0].offset, ledger.next_offset, committed=is_committed)
    of_rows = [(row.offset, row.timestamp, row.key, row.value) for row in rows]
    sent = [each[:4] for each in expected]
    if ledger.topic == COMPACTED:
        # A cleaning may have taken what was replaced, and tombstones, up to the active segment,
        # which may be as short as one record.
        assert of_rows[-1] == sent[-1], ledger.name
        tail = sent[-10:]
        newest = {key: offset for offset, _, key, _ in tail}
        left = [each for each in of_rows if each[0] >= tail[0][0]]
        assert set(left) <= set(tail), ledger.name
        assert {each for each in tail if newest[each[2]] == each[0] and each[3] is not None} <= set(
            left
        ), ledger.name
        return
    assert of_rows[-len(sent) :] == sent, ledger.name


def _wait_until_settled(broker: KafkaBroker) -> None:
    """Return when no file has come or gone for a while."""
    deadline = time.monotonic() + SETTLE_LIMIT_SECONDS
    names: list[str] = []
    same_since = time.monotonic()
    while time.monotonic() - same_since < SETTLED_SECONDS:
        assert time.monotonic() < deadline, "the broker does not come to rest"
        time.sleep(0.1)
        now = sorted(
            str(path) for topic in TOPIC_CONFIGS for path in broker.log_dir.glob(f"{topic}-*/*")
        )
        if now != names:
            names, same_since = now, time.monotonic()

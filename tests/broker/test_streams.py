"""A stream that follows a log while a broker appends to it, rolls and deletes segments."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from kafka import TopicPartition

from tests.broker.directory_watch import DirectoryWatch
from tests.broker.ledger import Ledger
from tests.broker.live_consumer import LiveConsumer
from tests.broker.writers import TransactionalWriter, Writer
from tests.support.spark_session import spark

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tests.broker.conftest import NewBroker
    from tests.broker.directory_watch import Seen
    from tests.broker.live_consumer import Row
    from tests.conftest import HowMany
    from tests.support.kafka_broker import KafkaBroker

__all__ = ["spark"]

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow]

LIVE_SECONDS = 60
LONGEST_WAIT_SECONDS = 180
FEWEST_SEGMENTS = 10
A_RUN_SECONDS = 12
CATCH_UP_SECONDS = 90
PLAIN, TRANSACTIONS = "plain", "transactions"
LATER = "later"
BRISK_BROKER = {"log.retention.check.interval.ms": "300"}
SMALL_SEGMENTS = {
    "internal.segment.bytes": "131072",
    "index.interval.bytes": "2048",
    "file.delete.delay.ms": "100",
}


class CollectedStream:
    """A query that is started again and again from one checkpoint; keeps all rows it gives."""

    def __init__(
        self,
        spark: SparkSession,
        logs: Path,
        checkpoint: Path,
        on_batch: Callable[[dict[tuple[str, int], int]], None],
    ) -> None:
        self._spark = spark
        self._logs = logs
        self._checkpoint = checkpoint
        self._on_batch = on_batch
        self.batches: dict[int, dict[tuple[str, int], list[Row]]] = {}
        self.done_again: list[bool] = []
        """Whether a batch that was done again had the rows of the first time."""

    def start(self, **trigger: Any) -> StreamingQuery:  # noqa: ANN401 - of Spark
        rows = (
            self._spark.readStream.format("pylog")
            .option("subscribePattern", f"^({PLAIN}|{TRANSACTIONS}|{LATER})$")
            .option("startingOffsets", "earliest")
            .option("isolationLevel", "read_committed")
            .load(str(self._logs))
        )
        writer = rows.writeStream.foreachBatch(self._keep)
        writer = writer.option("checkpointLocation", str(self._checkpoint))
        query: StreamingQuery = writer.trigger(**trigger).start()
        return query

    @property
    def rows(self) -> dict[tuple[str, int], list[Row]]:
        """The rows of all batches in order, by partition."""
        rows: dict[tuple[str, int], list[Row]] = {}
        for number in sorted(self.batches):
            for each, of_batch in self.batches[number].items():
                rows.setdefault(each, []).extend(of_batch)
        return rows

    def _keep(self, rows: DataFrame, number: int) -> None:
        table = rows.select("topic", "partition", "offset", "timestamp", "key", "value").toArrow()
        milliseconds = table.column("timestamp").cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
        table = table.set_column(3, "timestamp", milliseconds)
        table = table.sort_by(
            [("topic", "ascending"), ("partition", "ascending"), ("offset", "ascending")]
        )
        found: dict[tuple[str, int], list[Row]] = {}
        for topic, partition, *row in zip(
            *(column.to_pylist() for column in table.columns), strict=True
        ):
            found.setdefault((topic, partition), []).append(tuple(row))
        # A query that is stopped in a batch does it again when it is started.
        if number in self.batches:
            self.done_again.append(found == self.batches[number])
        self.batches[number] = found
        # The last batch may be done again, so its rows have to stay.
        *done, _ = sorted(self.batches)
        self._on_batch(
            {each: rows[-1][0] for one in done for each, rows in self.batches[one].items()}
        )


def test_a_stream_gives_what_kafkas_consumer_gets(
    new_broker: NewBroker,
    spark: SparkSession,
    tmp_path: Path,
    how_many: HowMany,
    capsys: pytest.CaptureFixture[str],
) -> None:
    live_seconds = how_many(8, LIVE_SECONDS)
    broker = new_broker(properties=BRISK_BROKER)
    broker.create_topic(PLAIN, 2, SMALL_SEGMENTS)
    broker.create_topic(TRANSACTIONS, 1, SMALL_SEGMENTS)
    plain = [Ledger(PLAIN, 0), Ledger(PLAIN, 1)]
    transactional = [Ledger(TRANSACTIONS, 0, is_transactional=True)]
    ledgers = [*plain, *transactional]
    consumer = LiveConsumer(broker, [(each.topic, each.partition) for each in ledgers])
    admin = broker.admin()

    def delete_what_both_have(streamed: dict[tuple[str, int], int]) -> None:
        """Let the broker delete segments, never those that a slow query still asks for."""
        both = {
            TopicPartition(*each): min(offset, rows[-1][0])
            for each, offset in streamed.items()
            if (rows := consumer.rows.get(each))
        }
        if both:
            admin.delete_records(both)

    stream = CollectedStream(
        spark, broker.log_dir, tmp_path / "checkpoint", on_batch=delete_what_both_have
    )
    runs = 0
    with DirectoryWatch(broker.log_dir / each.name for each in ledgers) as watch, consumer:
        with (
            Writer(broker, plain, records_a_round=8) as writer,
            TransactionalWriter(
                broker, transactional, records_a_round=20, transactional_id="stream"
            ) as transactional_writer,
        ):
            deadline = time.monotonic() + live_seconds
            while (left := _seconds_left(deadline, watch.seen)) > 0:
                runs += 1
                query = stream.start(processingTime="300 milliseconds")
                # A query ends by itself only with an error.
                assert not query.awaitTermination(max(1, int(min(A_RUN_SECONDS, left))))
                query.stop()
                writer.check()
                transactional_writer.check()
                consumer.check()
        later = _topic_made_meanwhile(broker)
        last = stream.start(availableNow=True)
        assert last.awaitTermination(CATCH_UP_SECONDS)
    rows = {**consumer.rows, (LATER, 0): later}
    with capsys.disabled():
        counted = {f"{topic}-{number}": len(each) for (topic, number), each in rows.items()}
        gone = {name: len(each.gone) for name, each in watch.seen.items()}
        sys.stdout.write(
            f"\n{runs} runs, {len(stream.batches)} batches, {len(stream.done_again)} of them done "
            f"again, rows {counted}; segments deleted {gone}\n"
        )
    assert all(stream.done_again)
    streamed = stream.rows
    assert streamed.keys() == rows.keys()
    for each, expected in rows.items():
        assert streamed[each] == expected, each
    assert _is_kept_busy(watch.seen) or live_seconds < LIVE_SECONDS, "nothing was tested"


def _seconds_left(deadline: float, seen: dict[str, Seen]) -> float:
    """Return how long to go on: on a busy machine, until the broker has had enough to do."""
    left = deadline - time.monotonic()
    return left if left > 0 or _is_kept_busy(seen) else left + LONGEST_WAIT_SECONDS


def _is_kept_busy(seen: dict[str, Seen]) -> bool:
    return all(len(each.base_offsets) >= FEWEST_SEGMENTS and each.gone for each in seen.values())


def _topic_made_meanwhile(broker: KafkaBroker) -> list[Row]:
    """Make a topic that the query has not seen, write to it, return what a consumer gets."""
    broker.create_topic(LATER)
    with broker.producer() as producer:
        for number in range(100):
            producer.send(LATER, key=b"%d" % number, value=b"v", partition=0)
        producer.flush()
    found = broker.consume(LATER)[0]
    return [(each.offset, each.timestamp, each.key, each.value) for each in found]

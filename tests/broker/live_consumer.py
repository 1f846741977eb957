"""A thread with Kafka's consumer, which reads all the time beside whatever else does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.broker.background_thread import BackgroundThread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.kafka_broker import KafkaBroker

_POLL_MS = 200

Row = tuple[int, int, bytes | None, bytes | None]
"""Offset, timestamp in milliseconds, key, value."""


class LiveConsumer(BackgroundThread):
    """Consumes partitions from their beginning, committed records alone.

    It ends once everything that is there when the block is left has been consumed.

    Attributes
    ----------
    rows
        What it got, by topic and partition, in the order it came.
    """

    def __init__(self, broker: KafkaBroker, partitions: Sequence[tuple[str, int]]) -> None:
        super().__init__()
        self.rows: dict[tuple[str, int], list[Row]] = {each: [] for each in partitions}
        self._broker = broker

    def work(self) -> None:
        """Consume."""
        with self._broker.consumer(self.rows, "read_committed") as consumer:
            self._consume(consumer)

    def _consume(self, consumer: Any) -> None:  # noqa: ANN401 - of kafka-python
        assigned = list(consumer.assignment())
        ends: dict[Any, int] | None = None
        while ends is None or any(consumer.position(each) < ends[each] for each in assigned):
            if ends is None and self.has_to_end.is_set():
                ends = consumer.end_offsets(assigned)
            for partition, records in consumer.poll(timeout_ms=_POLL_MS).items():
                self.rows[partition.topic, partition.partition] += [
                    (each.offset, each.timestamp, each.key, each.value) for each in records
                ]

"""A thread with Kafka's consumer, which reads all the time beside whatever else does."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from tests.support.kafka_broker import KafkaBroker

_POLL_MS = 200
_JOIN_SECONDS = 60.0

Row = tuple[int, int, bytes | None, bytes | None]
"""Offset, timestamp in milliseconds, key, value."""


class LiveConsumer:
    """Consumes partitions from their beginning, committed records alone; ends with the context.

    Attributes
    ----------
    rows
        What it got, by topic and partition, in the order it came.
    """

    def __init__(self, broker: KafkaBroker, partitions: Sequence[tuple[str, int]]) -> None:
        self.rows: dict[tuple[str, int], list[Row]] = {each: [] for each in partitions}
        self._broker = broker
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End once everything that lies there now has been consumed."""
        self._ended.set()
        self._thread.join(_JOIN_SECONDS)
        if error is None:
            assert not self._thread.is_alive(), "the consumer does not come to its end"
            self.check()

    def check(self) -> None:
        """Raise what ended the thread before its time."""
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            with self._broker.consumer(self.rows, "read_committed") as consumer:
                self._consume(consumer)
        except BaseException as error:  # noqa: BLE001 - raised again in the test's thread
            self._error = error

    def _consume(self, consumer: Any) -> None:  # noqa: ANN401 - of kafka-python
        assigned = list(consumer.assignment())
        ends: dict[Any, int] | None = None
        while ends is None or any(consumer.position(each) < ends[each] for each in assigned):
            if ends is None and self._ended.is_set():
                ends = consumer.end_offsets(assigned)
            for partition, records in consumer.poll(timeout_ms=_POLL_MS).items():
                self.rows[partition.topic, partition.partition] += [
                    (each.offset, each.timestamp, each.key, each.value) for each in records
                ]

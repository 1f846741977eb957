"""Administration, producers and consumers of a running broker, through kafka-python."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.support.batches import Stored

with warnings.catch_warnings():
    # kafka-python 3.0 reads its schemas by a function that Python 3.11 and 3.12 call old.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import ConfigResource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_POLL_MS = 200
_CREATE_MS = 30_000


class BrokerClients:
    """What clients do with the broker at `bootstrap_servers`."""

    _admin_client: KafkaAdminClient | None = None

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect."""
        raise NotImplementedError

    def admin(self) -> KafkaAdminClient:
        """Return a client for administration, the same one until the broker ends."""
        if self._admin_client is None:
            self._admin_client = KafkaAdminClient(bootstrap_servers=self.bootstrap_servers)
        return self._admin_client

    def close_clients(self) -> None:
        """Close the client for administration."""
        admin, self._admin_client = self._admin_client, None
        if admin is not None:
            admin.close()

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic, which has its leaders when this returns."""
        options = {
            "num_partitions": partitions,
            "replication_factor": 1,
            "configs": dict(config or {}),
        }
        self.admin().create_topics({name: options}, timeout_ms=_CREATE_MS, wait_for_metadata=True)

    def alter_topic(self, name: str, config: Mapping[str, str]) -> None:
        """Set some of a topic's settings; the others stay."""
        resource = ConfigResource("topic", name, configs=dict(config))
        self.admin().alter_configs([resource])

    @contextmanager
    def producer(self, **options: Any) -> Iterator[KafkaProducer]:  # noqa: ANN401 - of KafkaProducer
        """Give a producer with idempotence and acks=all, which are its defaults."""
        producer = KafkaProducer(bootstrap_servers=self.bootstrap_servers, **options)
        try:
            yield producer
        finally:
            producer.close()

    @contextmanager
    def consumer(
        self, partitions: Iterable[tuple[str, int]], isolation: str = "read_uncommitted"
    ) -> Iterator[KafkaConsumer]:
        """Give a consumer of partitions, from their beginnings on."""
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap_servers,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level=isolation,
        )
        try:
            consumer.assign([TopicPartition(*each) for each in partitions])
            consumer.seek_to_beginning()
            yield consumer
        finally:
            consumer.close()

    def consume(
        self, topic: str, partitions: int = 1, isolation: str = "read_uncommitted"
    ) -> dict[int, list[Stored]]:
        """Return what a consumer gets of each partition, from its beginning to its present end.

        The end is the high watermark, or the last stable offset under "read_committed".
        """
        with self.consumer([(topic, each) for each in range(partitions)], isolation) as consumer:
            assigned = sorted(consumer.assignment())
            ends = consumer.end_offsets(assigned)
            found: dict[int, list[Stored]] = {each.partition: [] for each in assigned}
            # Position and not the last record tells: control records and compaction leave gaps.
            while any(consumer.position(each) < ends[each] for each in assigned):
                for partition, records in consumer.poll(timeout_ms=_POLL_MS).items():
                    found[partition.partition].extend(map(Stored.of_client, records))
        return found

"""Administration, producers and consumers of a running broker, through kafka-python."""

from __future__ import annotations

import time
import warnings
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from tests.support.batches import Stored
from tests.support.waiting import wait_for

with warnings.catch_warnings():
    # kafka-python 3.0 reads its schemas by a function that Python 3.11 and 3.12 call old.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import ConfigResource
    from kafka.errors import (
        KafkaError,
        NodeNotReadyError,
        TransactionalIdNotFoundError,
        UnknownBrokerIdError,
    )

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

_POLL_MS = 200
_CREATE_MS = 60_000
_CONSUME_SECONDS = 180.0


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

    @property
    def log_dirs(self) -> list[Path]:
        """Where partitions may lie."""
        raise NotImplementedError

    def close_clients(self) -> None:
        """Close the client for administration."""
        admin, self._admin_client = self._admin_client, None
        if admin is not None:
            admin.close()

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic, which has its leaders, and their files, when this returns."""
        options = {
            "num_partitions": partitions,
            "replication_factor": 1,
            "configs": dict(config or {}),
        }
        self.create_topics({name: options})
        wait_for(
            lambda: all(self._is_led(f"{name}-{number}") for number in range(partitions)),
            f"the files of {name}",
        )

    def create_topics(self, topics: Mapping[str, Any]) -> None:
        """Create topics, which have their leaders when this returns."""

        def are_created() -> bool:
            try:
                self.admin().create_topics(
                    dict(topics), timeout_ms=_CREATE_MS, wait_for_metadata=True
                )
            except (UnknownBrokerIdError, NodeNotReadyError):
                self.close_clients()  # which have met a broker that did not know all others yet
                return False
            return True

        wait_for(are_created, f"topics {list(topics)}")

    def _is_led(self, name: str) -> bool:
        """Whether a partition has what its leader writes in the background when it starts."""
        for each in self.log_dirs:
            checkpoint = each / name / "leader-epoch-checkpoint"
            if (each / name / "partition.metadata").exists() and checkpoint.exists():
                return checkpoint.read_text().split()[1:2] not in ([], ["0"])
        return False

    def alter_topic(self, name: str, config: Mapping[str, str]) -> None:
        """Set some of a topic's settings; the others stay."""
        resource = ConfigResource("topic", name, configs=dict(config))
        self.admin().alter_configs([resource])

    @contextmanager
    def producer(self, **options: Any) -> Iterator[KafkaProducer]:  # noqa: ANN401 - of KafkaProducer
        """Give a producer with idempotence and acks=all, which are its defaults.

        At the end its transactions have their markers.
        """
        producer = KafkaProducer(bootstrap_servers=self.bootstrap_servers, **options)
        try:
            yield producer
            if (transactional_id := options.get("transactional_id")) is not None:
                self.wait_for_markers(transactional_id)
        finally:
            producer.close()

    def wait_for_markers(self, *transactional_ids: str) -> None:
        """Wait until ended transactions have their markers, which come after the answer."""

        def are_written() -> bool:
            states = []
            try:
                for each in transactional_ids:
                    with suppress(TransactionalIdNotFoundError):
                        states += self.admin().describe_transactions([each]).values()
            except KafkaError:
                self.close_clients()  # which keep the coordinator that they knew
                return False
            return not any(each.state.value.startswith("Prepare") for each in states)

        wait_for(are_written, f"markers of {transactional_ids}")

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
            deadline = time.monotonic() + _CONSUME_SECONDS
            # Position and not the last record tells: control records and compaction leave gaps.
            while any(consumer.position(each) < ends[each] for each in assigned):
                assert time.monotonic() < deadline, f"no end of {topic}: {ends}"
                for partition, records in consumer.poll(timeout_ms=_POLL_MS).items():
                    found[partition.partition].extend(map(Stored.of_client, records))
        return found

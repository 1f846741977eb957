"""Nodes of a cluster that are started in any company, and clients of whichever of them serve."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from tests.support import waiting
from tests.support.batch_parser import ParsedBatch
from tests.support.kafka_broker import KafkaBroker, free_ports, random_directory_id
from tests.support.kafka_broker_clients import BrokerClients
from tests.support.kafka_broker_tools import run_tool
from tests.support.librdkafka import commit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from confluent_kafka.cimpl import NewTopic

WAIT_SECONDS = 90.0
wait_for = partial(waiting.wait_for, tolerates=(KafkaException,))
_QUIET = {"log_level": 0}
_PROPERTIES = {
    "broker.session.timeout.ms": "5000",
    "broker.heartbeat.interval.ms": "1000",
    "replica.lag.time.max.ms": "4000",
    "controller.quorum.election.timeout.ms": "1500",
    "controller.quorum.fetch.timeout.ms": "3000",
    "log.initial.task.delay.ms": "500",
    "background.threads": "2",
}


class Shape(NamedTuple):
    """What kind of cluster it is."""

    version: str
    is_dynamic: bool  # kraft.version 1
    brokers: tuple[int, ...]
    controllers: tuple[int, ...]  # the same ids where nodes are both

    @property
    def nodes(self) -> list[int]:
        return sorted({*self.brokers, *self.controllers})

    def roles(self, node: int) -> list[str]:
        all_of = {"broker": self.brokers, "controller": self.controllers}
        return [name for name, ids in all_of.items() if node in ids]


class RecoveryCluster:
    """Some nodes; ends their processes when left.

    Parameters
    ----------
    directory
        Gets one for each node's configuration and output.
    shape
        Which nodes there are; those of a cluster that goes on elsewhere may be fewer.
    disks
        The log directory of each.
    properties
        Server properties of all nodes.
    """

    def __init__(
        self,
        directory: Path,
        shape: Shape,
        disks: Mapping[int, Path],
        properties: Mapping[str, str],
    ) -> None:
        self.shape = shape
        ports = free_ports(2 * len(shape.nodes))
        self.ports = {
            node: (ports[2 * place], ports[2 * place + 1]) for place, node in enumerate(shape.nodes)
        }
        addresses = {node: f"127.0.0.1:{self.ports[node][1]}" for node in shape.controllers}
        self.endpoints = addresses
        names = [f"{node}@{address}" for node, address in addresses.items()]
        quorum = {"controller.quorum.voters": ",".join(names)}
        options: list[str] = []
        if shape.is_dynamic:
            quorum = {
                "controller.quorum.voters": "",
                "controller.quorum.bootstrap.servers": ",".join(addresses.values()),
            }
            ids = ",".join(f"{each}:{random_directory_id()}" for each in names)
            options = [f"--initial-controllers={ids}"]
        self.properties = {**_PROPERTIES, **properties, **quorum}
        self.nodes = {
            node: self.node(directory / f"node-{node}", node, disks[node], options)
            for node in shape.nodes
        }
        for each in self.nodes.values():
            each.cluster_id = next(iter(self.nodes.values())).cluster_id

    def node(
        self, directory: Path, node: int, disk: Path, options: Sequence[str], roles: str = ""
    ) -> KafkaBroker:
        """Return a node of this cluster, which has not been started."""
        named = roles.split(",") if roles else self.shape.roles(node)
        if node not in self.ports:
            first, second = free_ports(2)
            self.ports[node] = first, second
        at_broker, at_controller = self.ports[node]
        listeners = {
            "broker": f"PLAINTEXT://127.0.0.1:{at_broker}",
            "controller": f"CONTROLLER://127.0.0.1:{at_controller}",
        }
        return KafkaBroker(
            directory,
            version=self.shape.version,
            log_dir=disk,
            ports=self.ports[node],
            properties={
                "node.id": str(node),
                **self.properties,
                "process.roles": ",".join(named),
                "listeners": ",".join(listeners[each] for each in named),
            },
            format_options=[] if named == ["broker"] else options,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.nodes.values():
            each.kill()

    def each(self, do: Callable[[KafkaBroker], None], nodes: Iterable[int] | None = None) -> None:
        """Start, stop or kill nodes, all at the same time."""
        chosen = list(self.nodes if nodes is None else nodes)
        with ThreadPoolExecutor(len(chosen) or 1) as pool:
            done = [pool.submit(do, self.nodes[each]) for each in chosen]
        for one in done:
            one.result()

    @property
    def bootstrap_servers(self) -> str:
        running = [each for each in self.shape.brokers if self.nodes[each].is_running]
        return ",".join(self.nodes[each].bootstrap_servers for each in running)

    # Clients.

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap_servers, **_QUIET})

    def create(self, topics: Iterable[NewTopic]) -> None:
        """Create topics, and wait until each partition has a leader."""
        made = {each.topic: each for each in topics}

        def is_made() -> bool:
            """Ask again: a cluster that has just started may answer nothing for a while."""
            admin = self.admin()  # its requests end with it
            missing = set(made) - set(admin.list_topics(timeout=10).topics)
            asked = [made[each] for each in missing]
            for name, future in (
                admin.create_topics(asked, operation_timeout=30) if asked else {}
            ).items():
                with suppress(TimeoutError):
                    future.result(40)
                    missing.discard(name)
            return not missing

        wait_for(is_made, f"topics {sorted(made)}", 3 * WAIT_SECONDS)
        places = [(name, at) for name, each in made.items() for at in range(each.num_partitions)]
        wait_for(lambda: all(self.leader(*each) >= 0 for each in places), f"leaders of {places}")

    def partitions(self, topic: str) -> dict[int, tuple[int, list[int]]]:
        """Return the leader, and who is in sync, of each partition."""
        found = self.admin().list_topics(timeout=10).topics.get(topic)
        return (
            {}
            if found is None
            else {
                number: (each.leader, sorted(each.isrs))
                for number, each in found.partitions.items()
            }
        )

    def leader(self, topic: str, partition: int) -> int:
        """Return who leads, -1 for nobody: lost brokers lead until they time out."""
        leader = self.partitions(topic).get(partition, (-1, []))[0]
        return leader if leader in self.nodes and self.nodes[leader].is_running else -1

    def produce(
        self,
        topic: str,
        partition: int,
        values: Sequence[bytes],
        *,
        transaction: str | None = None,
        commits: bool = True,
        codec: str = "none",
    ) -> dict[int, bytes]:
        """Append records with acks=all; return those that were acknowledged, by offset."""
        options = {
            "bootstrap.servers": self.bootstrap_servers,
            "enable.idempotence": True,
            "message.timeout.ms": 60_000,
            "linger.ms": 2,
            "batch.num.messages": 7,
            "compression.type": codec,
            **({} if transaction is None else {"transactional.id": transaction}),
            **_QUIET,
        }
        producer = Producer(options)
        found: dict[int, bytes] = {}

        def acknowledged(error: KafkaError | None, message: object) -> None:
            if error is None:
                found[message.offset()] = message.value()  # type: ignore[attr-defined]

        if transaction is not None:
            producer.init_transactions(60)
            producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=partition, on_delivery=acknowledged)
        producer.flush(80)
        if transaction is not None:
            (producer.commit_transaction if commits else producer.abort_transaction)(60)
            clients = Clients(self.bootstrap_servers)
            clients.wait_for_markers(transaction)
            clients.close_clients()
        return found

    def consume(self, topic: str, partition: int, isolation: str) -> dict[int, bytes]:
        """Return what a consumer gets from the beginning to the present end."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "group.id": "nobody",
                "enable.auto.commit": False,
                "isolation.level": isolation,
                "enable.partition.eof": True,
                **_QUIET,
            }
        )
        found: dict[int, bytes] = {}
        try:
            consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
            deadline = time.monotonic() + WAIT_SECONDS
            while time.monotonic() < deadline:
                message = consumer.poll(0.5)
                if message is None:
                    continue
                error = message.error()
                if error is None:
                    found[message.offset() or 0] = message.value() or b""
                elif error.code() == KafkaError._PARTITION_EOF:
                    return found
        finally:
            consumer.close()
        msg = f"{topic}-{partition} was not read to its end, but for {len(found)} records"
        raise TimeoutError(msg)

    def group(self, name: str, protocol: str) -> Consumer:
        """Return a member of a group."""
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "group.id": name,
                "group.protocol": protocol,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **_QUIET,
            }
        )

    def commit(self, name: str, protocol: str, topic: str, count: int) -> dict[int, int]:
        """Let a group read so many records of a topic, and commit; return its positions."""
        consumer = self.group(name, protocol)
        try:
            consumer.subscribe([topic])
            found: dict[int, int] = {}
            deadline = time.monotonic() + WAIT_SECONDS
            while count > 0 and time.monotonic() < deadline:
                message = consumer.poll(0.5)
                if message is not None and message.error() is None:
                    found[message.partition() or 0] = (message.offset() or 0) + 1
                    count -= 1
            wanted = [TopicPartition(topic, *each) for each in found.items()]
            if wanted:
                commit(consumer, wanted)
            return found
        finally:
            consumer.close()

    def committed(self, name: str, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """Return where a group is; the broker may still be loading it."""
        consumer = self.group(name, "classic")
        try:
            asked = [TopicPartition(topic, each) for each in partitions]
            deadline = time.monotonic() + WAIT_SECONDS
            while True:
                try:
                    found = consumer.committed(asked, timeout=10)
                    return {each.partition: each.offset for each in found if each.offset >= 0}
                except KafkaException:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.5)
        finally:
            consumer.close()

    def first_of_group(self, name: str, protocol: str, topic: str) -> dict[int, int]:
        """Let a group go on; return the first offset that it gets of each partition."""
        consumer = self.group(name, protocol)
        found: dict[int, int] = {}
        try:
            consumer.subscribe([topic])
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                message = consumer.poll(0.5)
                if message is not None and message.error() is None:
                    found.setdefault(message.partition() or 0, message.offset() or 0)
                elif found and message is None:
                    break
        finally:
            consumer.close()
        return found

    def java_group(self, name: str, protocol: str, topic: str, count: int) -> list[tuple[int, int]]:
        """Let a Java consumer of a group read so many records; return partitions and offsets."""
        printed = run_tool(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *("--bootstrap-server", self.bootstrap_servers, "--topic", topic, "--group", name),
            *("--max-messages", str(count), "--timeout-ms", "30000"),
            *("--command-property", f"group.protocol={protocol}"),
            *("--command-property", "auto.offset.reset=earliest"),
            *("--formatter-property", "print.offset=true"),
            *("--formatter-property", "print.partition=true"),
            *("--formatter-property", "print.value=false"),
        )
        found = []
        for line in printed.splitlines():
            fields = dict(each.partition(":")[::2] for each in line.split("\t"))
            if {"Partition", "Offset"} <= set(fields):
                found.append((int(fields["Partition"]), int(fields["Offset"])))
        return found


def stored(disk: Path, topic: str, partition: int) -> dict[int, bytes] | None:
    """Return the data records in the log of a partition by offset; None if it is not there."""
    directory = disk / f"{topic}-{partition}"
    if not directory.is_dir():
        return None
    found: dict[int, bytes] = {}
    for batch in batches(directory):
        if not batch.is_control:
            found |= {each.offset: each.value or b"" for each in batch.records()}
    return found


def end_offset(disk: Path, topic: str, partition: int) -> int:
    """Return where the log of a partition ends; 0 where there is none."""
    directory = disk / f"{topic}-{partition}"
    last = batches(directory)[-1:] if directory.is_dir() else []
    return last[0].last_offset + 1 if last else 0


def batches(directory: Path) -> list[ParsedBatch]:
    """Return the whole batches of a log: a broker that was killed may have left a part of one."""
    found: list[ParsedBatch] = []
    for path in sorted(directory.glob("*.log")):
        data, position = path.read_bytes(), 0
        while position + 12 <= len(data):
            end = position + 12 + int.from_bytes(data[position + 8 : position + 12])
            if end > len(data) or end <= position + 12:
                break
            found.append(ParsedBatch.of(data[position:end]))
            position = end
    return found


class Clients(BrokerClients):
    """Those of kafka-python, for whichever nodes serve."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._servers = bootstrap_servers

    @property
    def bootstrap_servers(self) -> str:
        return self._servers

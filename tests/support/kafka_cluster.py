"""Kafka brokers on the loopback interface that are the nodes of one cluster, and all vote."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

from tests.support.kafka_broker import KafkaBroker, free_ports, random_directory_id
from tests.support.kafka_broker_clients import BrokerClients

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


class KafkaCluster(BrokerClients):
    """Nodes that start and stop together; ends their processes when left, whatever happened.

    Parameters
    ----------
    directory
        Gets a directory for each node's configuration and output.
    version
        Of Kafka.
    disks
        The log directory of each node, by node id from 1 on; None for a node that does not start.
    properties
        Server properties of all nodes.
    is_dynamic
        Whether the log of the metadata names the voters, and not the configuration (KIP-853).
    """

    def __init__(
        self,
        directory: Path,
        *,
        version: str,
        disks: Sequence[Path | None],
        properties: Mapping[str, str],
        is_dynamic: bool = False,
    ) -> None:
        ports = free_ports(2 * len(disks))
        controllers = [f"{node}@127.0.0.1:{port}" for node, port in enumerate(ports[1::2], start=1)]
        format_options: list[str] = []
        if is_dynamic:
            with_ids = ",".join(f"{each}:{random_directory_id()}" for each in controllers)
            format_options = [f"--initial-controllers={with_ids}"]
            servers = ",".join(each.partition("@")[2] for each in controllers)
            quorum = {
                "controller.quorum.voters": "",
                "controller.quorum.bootstrap.servers": servers,
            }
        else:
            quorum = {"controller.quorum.voters": ",".join(controllers)}
        self.nodes = [
            KafkaBroker(
                directory / f"node-{node}",
                version=version,
                log_dir=disk,
                ports=(ports[2 * node - 2], ports[2 * node - 1]),
                properties={
                    "node.id": str(node),
                    **quorum,
                    **properties,
                },
                format_options=format_options,
            )
            for node, disk in enumerate(disks, start=1)
            if disk is not None
        ]
        for each in self.nodes:
            each.cluster_id = self.nodes[0].cluster_id

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def is_to_be_formatted(self) -> bool:
        """As of a broker, of all nodes."""
        return all(each.is_to_be_formatted for each in self.nodes)

    @is_to_be_formatted.setter
    def is_to_be_formatted(self, value: bool) -> None:
        for each in self.nodes:
            each.is_to_be_formatted = value

    @property
    def is_running(self) -> bool:
        """Whether all nodes run."""
        return all(each.is_running for each in self.nodes)

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect."""
        return ",".join(each.bootstrap_servers for each in self.nodes)

    @property
    def log_dirs(self) -> list[Path]:
        """Those of all nodes."""
        return [each for node in self.nodes for each in node.log_dirs]

    @property
    def server_log(self) -> str:
        """What the nodes have logged since they were started last, one after the other."""
        return "\n".join(each.server_log for each in self.nodes)

    def start(self) -> None:
        """Start all nodes, and wait until they serve clients.

        Raises
        ------
        BrokerFailedError
            One of them did not come up; the others may run.
        """
        self._each(KafkaBroker.start)

    def stop(self) -> None:
        """End all nodes at the same time: the last ones could not stop in order alone."""
        self.close_clients()
        self._each(KafkaBroker.stop)

    def kill(self) -> None:
        """End all nodes at once."""
        self.close_clients()
        for each in self.nodes:
            each.kill()

    def _each(self, do: Callable[[KafkaBroker], None]) -> None:
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            failures = [each.exception() for each in [pool.submit(do, node) for node in self.nodes]]
        for failure in failures:
            if failure is not None:
                raise failure

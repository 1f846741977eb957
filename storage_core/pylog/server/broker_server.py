"""`serve`: a server for log directories, in a thread of its own.

Source of the order in which parts start and end: BrokerServer (Kafka 4.4).
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from pylog.errors import LogStorageError
from pylog.reading.damage import ReadMode
from pylog.reading.log_directory import TopicChoice
from pylog.server.kafka_apis import KafkaApis
from pylog.server.messages import APIS
from pylog.server.metadata_cache import MetadataCache, find_identity
from pylog.server.metrics import Metrics
from pylog.server.refusals import refusals
from pylog.server.replica_manager import ReplicaManager, ServedLogs
from pylog.server.socket_server import SocketLimits, SocketServer

if TYPE_CHECKING:
    import os
    import ssl
    from collections.abc import Iterable
    from types import TracebackType

    from pylog.server.protocol import Api, Handler

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Where clients connect to."""

    host: str = "127.0.0.1"
    port: int = 0
    advertised: tuple[str, int] | None = None
    tls: ssl.SSLContext | None = None
    limits: SocketLimits = field(default_factory=SocketLimits)


class BrokerServer:
    """Serves log directories until it is closed; a context manager.

    Attributes
    ----------
    address
        ``"host:port"``: what clients take for ``bootstrap.servers``.
    metrics
        What it has counted so far.
    """

    def __init__(self, served: ServedLogs, listener: Listener) -> None:
        self.metrics = Metrics()
        self.address = ""
        self._replicas = ReplicaManager(served)
        directories = (
            each.view.directory.log_directory
            for topic in self._replicas.topics.values()
            for each in topic.partitions.values()
        )
        self._metadata = MetadataCache(self._replicas, find_identity(directories))
        self._listener = listener
        self._started = threading.Event()
        self._error: Exception | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="pylog-serve", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._error is not None:
            self._replicas.close()
            raise self._error

    @property
    def partition_count(self) -> int:
        """How many partitions are served."""
        return sum(len(each.partitions) for each in self._replicas.topics.values())

    def _handlers(self) -> dict[Api, Handler]:
        replicas, metadata = self._replicas, self._metadata
        return {
            **refusals(),
            APIS["Fetch"]: replicas.handle_fetch,
            APIS["ListOffsets"]: replicas.handle_list_offsets,
            APIS["OffsetForLeaderEpoch"]: replicas.handle_offset_for_leader_epoch,
            APIS["Metadata"]: metadata.handle_metadata,
            APIS["DescribeTopicPartitions"]: metadata.handle_describe_topic_partitions,
            APIS["DescribeCluster"]: metadata.handle_describe_cluster,
        }

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except (OSError, LogStorageError) as error:
            self._error = error
        finally:
            self._started.set()

    async def _serve(self) -> None:
        apis = KafkaApis(self._handlers(), self._metadata.identity.cluster_id)
        sockets = SocketServer(
            lambda: apis.handle,
            limits=self._listener.limits,
            metrics=self.metrics,
            tls=self._listener.tls,
        )
        host, port = sockets.bind(self._listener.host, self._listener.port)
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        sockets.advertised = self._listener.advertised or (host, port)
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        follower = asyncio.create_task(self._replicas.follow())
        sockets.start()
        self._started.set()
        await self._stop.wait()
        follower.cancel()
        await sockets.close()

    def close(self) -> None:
        """End all connections and the server; a second call does nothing."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._replicas.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def serve(
    *paths: str | os.PathLike[str],
    topics: Iterable[str] | None = None,
    pattern: str | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    mode: str | ReadMode = ReadMode.FAILFAST,
    replica: str | int | os.PathLike[str] | None = None,
    high_watermark: str = "log-end",
    follow: bool = False,
) -> BrokerServer:
    """Serve log directories."""
    served = ServedLogs(
        paths=paths,
        choice=TopicChoice.of(topics=topics, assign=None, pattern=pattern),
        mode=ReadMode.parse(mode),
        replica=replica,
        high_watermark=high_watermark,
        follows=follow,
    )
    return BrokerServer(served, Listener(host=host, port=port))

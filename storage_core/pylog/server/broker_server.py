"""`serve`: a server for log directories, in a thread of its own.

Parts start and end in the order of Kafka's BrokerServer (4.4): partitions, handlers, sockets.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from pylog.files.high_watermarks import HIGH_WATERMARKS
from pylog.reading.damage import ReadMode
from pylog.reading.log_directory import TopicChoice
from pylog.server.config_helper import ConfigHelper
from pylog.server.group_config import INITIAL_REBALANCE_DELAY_MS, GroupCoordinatorConfig
from pylog.server.group_coordinator_service import GroupCoordinatorService, GroupOptions
from pylog.server.kafka_apis import KafkaApis
from pylog.server.messages import APIS
from pylog.server.metadata_cache import MetadataCache, find_identity
from pylog.server.metrics import Metrics, MetricsEndpoint
from pylog.server.offset_lookups import OffsetLookups
from pylog.server.open_files import make_room
from pylog.server.rate_limited_log import RATE_LIMIT
from pylog.server.refusals import refusals
from pylog.server.replica_manager import ReplicaManager, ServedLogs
from pylog.server.sasl import Credentials, SaslSession, sasl_refusals
from pylog.server.socket_server import (
    MAX_CONNECTIONS,
    SocketLimits,
    SocketServer,
    listening_socket,
)

if TYPE_CHECKING:
    import os
    import ssl
    from collections.abc import Iterable, Mapping

    from pylog.columnar.record_masking import RecordMasking
    from pylog.config.server_properties import ServerProperties
    from pylog.reading.damage import ReadModeName
    from pylog.server.protocol import Api, Handler
    from pylog.server.socket_server import Session

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_EXPECTED_LISTENER = "expected host:port, such as snapshot.example.com:9092"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Where clients connect to, and what they have to show."""

    host: str = "127.0.0.1"
    port: int = 0
    advertised: tuple[str, int] | None = None
    tls: ssl.SSLContext | None = None
    credentials: Credentials | None = None
    limits: SocketLimits = field(default_factory=SocketLimits)
    metrics_port: int | None = None


class BrokerServer:
    """A server that `pylog.serve` has started; a context manager that closes it.

    Any thread may close it and look at its attributes.

    Attributes
    ----------
    address
        ``"host:port"``: what clients take for ``bootstrap.servers``.
    metrics_address
        Where ``/metrics`` is served to Prometheus; None unless asked for.
    metrics
        Counts since the start: ``connections`` that are open, ``accepted`` ones, ``requests``,
        ``sent_bytes``.
    cluster_id
        As clients see it: that of the directory, behind ``pylog-serve-``.
    """

    def __init__(
        self,
        served: ServedLogs,
        listener: Listener,
        server_properties: ServerProperties | None,
        group_options: GroupOptions,
    ) -> None:
        self.metrics = Metrics()
        self.address = ""
        self.metrics_address: str | None = None
        self._group_options = group_options
        self._group_options.ensure_outside(served.paths)
        self._served_paths, self._server_properties = served.paths, server_properties
        RATE_LIMIT.reset()
        room = make_room(listener.limits.max_connections)
        limits = replace(listener.limits, max_connections=room.connections)
        self._replicas = ReplicaManager(served, room.segments)
        directories = (
            each.directory.log_directory
            for topic in self._replicas.topics.values()
            for each in topic.partitions.values()
        )
        self._metadata = MetadataCache(self._replicas, find_identity(directories))
        self._configs = ConfigHelper(
            self._replicas, self._metadata, served.paths, server_properties
        )
        self._lookups = OffsetLookups(self._replicas)
        self.cluster_id = self._metadata.identity.cluster_id
        self._listener = replace(listener, limits=limits)
        self._started = threading.Event()
        self._error: Exception | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="pylog-serve", daemon=True)
        self._thread.start()
        self._started.wait()
        self._ensure_started()

    def _ensure_started(self) -> None:
        if self._error is not None:
            self.close()  # raises it

    @property
    def is_running(self) -> bool:
        """Whether clients are answered; False after an error, which `close` raises."""
        return self._thread.is_alive()

    @property
    def topic_count(self) -> int:
        """Number of topics that are served."""
        return len(self._replicas.topics)

    @property
    def partition_count(self) -> int:
        """Number of partitions that are served."""
        return sum(len(each.partitions) for each in self._replicas.topics.values())

    def _handlers(self) -> dict[Api, Handler]:
        replicas, metadata = self._replicas, self._metadata
        return {
            **refusals(),
            **sasl_refusals(),
            APIS["Fetch"]: replicas.handle_fetch,
            APIS["ListOffsets"]: self._lookups.handle_list_offsets,
            APIS["OffsetForLeaderEpoch"]: self._lookups.handle_offset_for_leader_epoch,
            APIS["Metadata"]: metadata.handle_metadata,
            APIS["DescribeTopicPartitions"]: metadata.handle_describe_topic_partitions,
            APIS["DescribeCluster"]: metadata.handle_describe_cluster,
            APIS["DescribeConfigs"]: self._configs.handle_describe_configs,
            APIS["ListConfigResources"]: self._configs.handle_list_config_resources,
            APIS["DescribeLogDirs"]: metadata.handle_describe_log_dirs,
        }

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:  # noqa: BLE001 - `close` raises it
            self._error = error
        finally:
            self._started.set()

    async def _serve(self) -> None:
        groups = GroupCoordinatorService(
            self._served_paths,
            self._metadata,
            self._group_options,
            self._server_properties,
            self.metrics,
        )
        try:
            groups.start()
            await self._serve_clients({**self._handlers(), **groups.handlers()})
        finally:
            await groups.close()

    async def _serve_clients(self, handlers: Mapping[Api, Handler]) -> None:
        listener = self._listener
        apis = KafkaApis(handlers, self.cluster_id)

        def open_session() -> Session:
            if listener.credentials is None:
                return apis.handle
            return SaslSession(apis, listener.credentials).handle

        with (
            listening_socket(listener.host, listener.port) as opened,
            MetricsEndpoint(self.metrics) as endpoint,
        ):
            host, port = opened.getsockname()[:2]
            self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            if listener.metrics_port is not None:
                self.metrics_address = await endpoint.start(listener.host, listener.metrics_port)
            sockets = SocketServer(
                opened,
                open_session,
                limits=listener.limits,
                metrics=self.metrics,
                tls=listener.tls,
                advertised=listener.advertised or (host, port),
            )
            self._loop = asyncio.get_running_loop()
            self._stop = asyncio.Event()
            follower = asyncio.create_task(self._replicas.follow())
            acceptor = sockets.start()
            self._started.set()
            stopped = asyncio.create_task(self._stop.wait())
            await asyncio.wait([acceptor, follower, stopped], return_when=asyncio.FIRST_COMPLETED)
            for task in (acceptor, follower):
                if task.done():
                    await task  # which has failed: neither of them ends by itself
            follower.cancel()
            await sockets.close()

    def close(self) -> None:
        """End all connections and the server; a second call does nothing.

        Raises
        ------
        Exception
            The error that ended the server, if one did.
        """
        if self._loop is not None and self._stop is not None:
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._replicas.close()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def serve(  # noqa: PLR0913 - keyword-only options
    *paths: str | os.PathLike[str],
    topics: Iterable[str] | None = None,
    pattern: str | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    allow_remote: bool = False,
    advertised_listener: str | None = None,
    tls: ssl.SSLContext | None = None,
    users: Mapping[str, str] | None = None,
    mode: ReadModeName | ReadMode = ReadMode.FAILFAST,
    include_stray: bool = False,
    replica: str | int | os.PathLike[str] | None = None,
    high_watermark: str = "log-end",
    follow: bool = False,
    check_each_time: bool = False,
    masking: RecordMasking | None = None,
    server_properties: ServerProperties | None = None,
    offsets: str | os.PathLike[str] | None = None,
    at_ms: int | None = None,
    group_initial_rebalance_delay_ms: int = INITIAL_REBALANCE_DELAY_MS,
    max_connections: int = MAX_CONNECTIONS,
    metrics_port: int | None = None,
) -> BrokerServer:
    """Serve log directories to Kafka clients, read-only, from a thread of this process.

    Nothing in the directories is changed. The server runs until it is closed: use it in a ``with``
    statement.

    Parameters
    ----------
    *paths
        Log directories, topic-partition directories, or several of them, of one cluster. Where
        several hold a partition, the replica with the highest leader epoch is served, of these the
        longest; replicas that have diverged are refused unless ``replica`` chooses.
    topics, pattern
        Which topics: names, or a regular expression found in a topic's name. By default all but
        internal ones.
    host, port
        Where to listen. Port 0 takes a free one: see `BrokerServer.address`.
    allow_remote
        Whether ``host`` may be another address than those of the loopback. There are no ACLs: any
        client that connects may read everything.
    advertised_listener
        ``"host:port"`` that clients are told to connect to; by default where the server listens.
    tls
        A server's context; connections are not encrypted if None. For client certificates set its
        ``verify_mode``.
    users
        Passwords by user: clients must authenticate, with SASL/PLAIN or SCRAM. None for nobody.
    mode
        "FAILFAST": a damaged batch is an error for the client that reads it. "DROPMALFORMED":
        damage is left out, and logged.
    include_stray
        As for `open_directory`.
    replica
        The id of the node, or the log directory, whose replicas are served first.
    high_watermark
        "log-end", or "checkpoint" for the one in ``replication-offset-checkpoint``: records after
        it may be unknown to other replicas.
    follow
        Whether to look again and again for what a broker has appended meanwhile.
    check_each_time
        Whether each batch is checked each time it is sent, not only when its file has changed since
        it was checked (inode, size, times).
    masking
        What `pylog.jobs.read_mask_rules` returns: clients get records as these rules have them, in
        batches that are rebuilt. Not with ``follow``.
    server_properties
        The broker's own configuration, for clients that ask for configurations.
    offsets
        A file outside the paths for what consumer groups commit, which survives a restart. By
        default commits are kept in memory, and forgotten with the server.
    at_ms
        An instant in the past, in ms: groups begin with what they had committed by then in the
        directory's ``__consumer_offsets``. None for now.
    group_initial_rebalance_delay_ms
        How long the first member of a group waits for others before partitions are assigned.
    max_connections
        Connections beyond so many are refused. The process's limit of open files is raised for them
        where the system allows it.
    metrics_port
        A port for Prometheus; 0 takes a free one, None has none.

    Raises
    ------
    LogStorageError
        A path cannot be read or holds no log, or replicas have diverged.
    OSError
        The address cannot be listened on.
    ValueError
        An argument makes no sense, or ``host`` is remote and not allowed.

    Examples
    --------
    >>> from kafka import KafkaConsumer  # kafka-python
    >>> with pylog.serve("kafka/intact", topics=["orders"]) as server:
    ...     options = {"bootstrap_servers": server.address, "auto_offset_reset": "earliest"}
    ...     with KafkaConsumer("orders", group_id=None, **options) as consumer:
    ...         print(next(consumer).topic)
    orders
    """
    parsed_mode = ReadMode.parse(mode)
    if parsed_mode is ReadMode.PERMISSIVE:
        msg = "mode PERMISSIVE has rows of nulls, which clients cannot be sent; use DROPMALFORMED"
        raise ValueError(msg)
    if high_watermark not in HIGH_WATERMARKS:
        msg = f"high_watermark {high_watermark!r} is not one of {', '.join(HIGH_WATERMARKS)}"
        raise ValueError(msg)
    if host not in _LOOPBACK and not allow_remote:
        raise ValueError(
            f"host {host!r} may let other machines read all records: allow it with allow_remote "
            "(pylog serve: --allow-remote)"
        )
    if masking is not None and follow:
        raise ValueError(
            "masking (--mask) is not for a log that grows: serve it without follow (--follow)"
        )
    served = ServedLogs(
        paths=paths,
        choice=TopicChoice.of(topics=topics, assign=None, pattern=pattern),
        mode=parsed_mode,
        include_stray=include_stray,
        replica=replica,
        high_watermark=high_watermark,
        follows=follow,
        checks_each_time=check_each_time,
        mask_rules=() if masking is None else masking.rules,
    )
    listener = Listener(
        host=host,
        port=port,
        advertised=None if advertised_listener is None else parse_listener(advertised_listener),
        tls=tls,
        credentials=None if users is None else Credentials(users),
        limits=SocketLimits(max_connections=max_connections),
        metrics_port=metrics_port,
    )
    config = GroupCoordinatorConfig(
        group_initial_rebalance_delay_ms=group_initial_rebalance_delay_ms
    )
    group_options = GroupOptions(offsets=offsets, at_ms=at_ms, config=config)
    return BrokerServer(served, listener, server_properties, group_options)


def parse_listener(text: str) -> tuple[str, int]:
    """Return host and port of ``host:port``; ``ValueError`` if it is not of that form."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 <= int(port) < 1 << 16:
        raise ValueError(f"{text!r} is not a listener; {_EXPECTED_LISTENER}")
    return host.strip("[]"), int(port)

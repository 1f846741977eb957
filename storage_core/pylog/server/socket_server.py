"""Connections: frames in, responses out, with limits on all that a client can make the server hold.

A frame is a size (int32) and that many bytes. A connection's requests are answered in their order,
one after the other.

================================ ===============================================================
limit                            what happens above it
================================ ===============================================================
``max_connections``              the oldest connection that has sent no request within
                                 ``new_seconds`` is closed, else the one that has said nothing for
                                 the longest time, more than ``stalled_seconds``, else the new one
``max_request_bytes``            the connection is closed before memory is made for the request
``queued_bytes``                 large requests of all connections, held at once: others wait
``waiting_bytes``                large responses of all connections that wait in memory for their
                                 clients: the connection of one more is closed
``idle_seconds``                 a connection that sends nothing, or takes nothing of a file, is
                                 closed
``stalled_seconds``              so is one that sends half a request, or takes nothing of a response
                                 in memory
``_ABANDONED_SECONDS``           so is one whose client has gone, and whose request still waits
================================ ===============================================================

Source: SocketServer, Processor, Acceptor, NetworkReceive (Kafka 4.4).
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import ssl
import struct
from dataclasses import dataclass
from traceback import clear_frames
from typing import TYPE_CHECKING, Any

from pylog.errors import InvalidConfigurationError, LogStorageError
from pylog.internal_topics.message_writer import FileRange, size_of
from pylog.server.channels import (
    RECEIVED_BYTES,
    Channel,
    ConnectionClosedError,
    PlainChannel,
    SilenceLimits,
    TlsChannel,
)
from pylog.server.kafka_apis import Client
from pylog.server.protocol import RequestParseError
from pylog.server.rate_limited_log import server_logger
from pylog.server.request_limits import SMALL_BYTES, Room, Turns

if TYPE_CHECKING:
    import os
    from collections.abc import Awaitable, Callable

    from pylog.server.metrics import Metrics

    Session = Callable[[bytes, Client], Awaitable[list[bytearray | FileRange]]]

_LOGGER = server_logger(__name__)
_SIZE = struct.Struct(">i")
_BACKLOG = 256
_HANDSHAKE_SECONDS = 10
_SHUTDOWN_SECONDS = 2
_ABANDONED_SECONDS = 1.0
_ACCEPTED_IN_A_ROUND = 16
_SENDS_IN_A_ROUND = 8
_UNSENT_BYTES = 1 << 19


MAX_CONNECTIONS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketLimits:
    """See the table above.

    ``queued_bytes`` has room for all that members of groups may send, since they wait for each
    other (`GroupCoordinatorConfig.max_group_bytes`).
    """

    max_connections: int = MAX_CONNECTIONS
    max_request_bytes: int = 1 << 20
    queued_bytes: int = 80 << 20
    waiting_bytes: int = 64 << 20
    idle_seconds: float = 600
    stalled_seconds: float = 30
    new_seconds: float = 2


class _TooManyWaitingError(Exception):
    """Clients that do not read hold as much memory as they may."""


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens; a port of 0 is a free one."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)  # noqa: FBT003 - the standard library's
    except BaseException:
        listener.close()
        raise
    return listener


def _bound_unsent_bytes(connection: socket.socket) -> None:
    """Keep the system from holding megabytes for each client that does not read.

    Hundreds of them would take what it has for all connections, and others' packets were dropped.
    """
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)


def tls_context(
    certificate: str | os.PathLike[str],
    key: str | os.PathLike[str] | None = None,
    client_authorities: str | os.PathLike[str] | None = None,
) -> ssl.SSLContext:
    """Return the context of a server.

    Parameters
    ----------
    certificate
        A PEM file with the server's certificate, and those up to its authority.
    key
        A PEM file with the private key, unless it is in the same file.
    client_authorities
        A PEM file: only clients with a certificate of these authorities may connect.

    Raises
    ------
    InvalidConfigurationError
        A file cannot be read, or is none of that kind.

    Examples
    --------
    >>> context = pylog.jobs.tls_context("server.pem", "server.key", "authority.pem")
    >>> context.verify_mode.name
    'CERT_REQUIRED'
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    path = certificate
    try:
        context.load_cert_chain(certificate, key)
        if client_authorities is not None:
            path = client_authorities
            context.load_verify_locations(client_authorities)
            context.verify_mode = ssl.CERT_REQUIRED
    except OSError as error:  # also of a file that is no PEM file
        reason = f"cannot use it for TLS: {error.strerror or error}"
        raise InvalidConfigurationError(reason, path) from error
    return context


class SocketServer:
    """Accepts connections and serves each in a task of its own; the caller closes ``listener``.

    What ``open_session`` returns answers the requests of one connection. Clients are told to
    connect to ``advertised``, host and port.
    """

    def __init__(
        self,
        listener: socket.socket,
        open_session: Callable[[], Session],
        *,
        limits: SocketLimits,
        metrics: Metrics,
        advertised: tuple[str, int],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._listener = listener
        self._open_session = open_session
        self._limits = limits
        self._metrics = metrics
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()
        # Which have sent no request yet, which wait for one, and since when, in this order.
        self._new: dict[asyncio.Task[Any] | None, float] = {}
        self._silent: dict[asyncio.Task[Any] | None, float] = {}
        self._busy: dict[asyncio.Task[Any] | None, tuple[float, Channel]] = {}
        self._acceptor: asyncio.Task[None] | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self._queued = Room(limits.queued_bytes)
        self._sends = Turns(_SENDS_IN_A_ROUND)
        self._waiting_bytes = 0
        self._ids = itertools.count(1)
        self._advertised = advertised

    def start(self) -> asyncio.Task[None]:
        """Accept connections from now on; return the task that does."""
        self._acceptor = asyncio.create_task(self._accept(self._listener))
        self._sweeper = asyncio.create_task(self._close_abandoned())
        return self._acceptor

    async def close(self) -> None:
        """Accept no more, and end all connections."""
        for each in (self._acceptor, self._sweeper):
            if each is not None:
                each.cancel()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_SHUTDOWN_SECONDS)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        turns = Turns(_ACCEPTED_IN_A_ROUND)
        while True:
            await turns.take()
            try:
                connection, address = await loop.sock_accept(listener)
            except OSError as error:  # too many open files, say: those that are open go on
                _LOGGER.warning("cannot accept a connection: %s", error.strerror)
                await asyncio.sleep(1)
                continue
            if len(self._tasks) >= self._limits.max_connections and not self._close_silent():
                _LOGGER.warning(
                    "refused a connection of %s: there are %d already", address[0], len(self._tasks)
                )
                connection.close()
                continue
            try:
                connection.setblocking(False)  # noqa: FBT003 - the standard library's
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                _bound_unsent_bytes(connection)
            except OSError:  # its client has gone again already
                connection.close()
                continue
            task = asyncio.create_task(self._serve(connection, str(address[0])))
            self._tasks.add(task)
            self._new[task] = loop.time()
            task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._new.pop(task, None)
        self._silent.pop(task, None)

    def _close_silent(self) -> bool:
        """Close a connection that says nothing, if there is one, for another."""
        now = asyncio.get_running_loop().time()
        of_kinds = (
            (self._new, self._limits.new_seconds),
            (self._silent, self._limits.stalled_seconds),
        )
        for connections, least_seconds in of_kinds:
            task, since = next(iter(connections.items()), (None, now))
            if task is not None and now - since >= least_seconds:
                seconds = now - since
                _LOGGER.info("closed a connection that said nothing for %d s, for another", seconds)
                self._forget(task)
                task.cancel()
                return True
        return False

    async def _close_abandoned(self) -> None:
        """End, again and again, what still waits for an answer that nobody will take."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_ABANDONED_SECONDS)
            self._cancel_abandoned(loop.time() - _ABANDONED_SECONDS)

    def _cancel_abandoned(self, latest: float) -> None:
        for task, (since, channel) in list(self._busy.items()):
            if task is not None and since <= latest and channel.is_gone():
                task.cancel()

    async def _serve(self, connection: socket.socket, client_host: str) -> None:
        channel: Channel | None = None
        self._metrics.connections += 1
        self._metrics.accepted += 1
        try:
            try:
                channel = await self._open(connection)
                own = next(self._ids)
                await self._answer_all(channel, Client(client_host, *self._advertised, own))
            except BaseException as error:
                # Frames and the error refer to each other, and would keep requests and answers in
                # memory until garbage is collected.
                clear_frames(error.__traceback__)
                raise
        except (ConnectionClosedError, TimeoutError, OSError):
            return  # clients come and go, and some of them stay silent
        except (RequestParseError, _TooManyWaitingError) as error:
            _LOGGER.warning("closed the connection of %s: %s", client_host, error)
        except LogStorageError as error:
            _LOGGER.error("closed the connection of %s: %s", client_host, error)  # noqa: TRY400
        except asyncio.CancelledError:
            raise
        except Exception:
            _LOGGER.exception("closed the connection of %s", client_host)
        finally:
            self._metrics.connections -= 1
            if channel is None:
                connection.close()
            else:
                channel.close()
            del channel, connection  # from this frame, too

    async def _open(self, connection: socket.socket) -> Channel:
        silence = SilenceLimits(self._limits.idle_seconds, self._limits.stalled_seconds)
        if self._tls is None:
            return PlainChannel(connection, silence, self._sends)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=RECEIVED_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol,
            connection,
            ssl=self._tls,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=_SHUTDOWN_SECONDS,
        )
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        return TlsChannel(reader, writer, silence)

    async def _answer_all(self, channel: Channel, client: Client) -> None:
        session = self._open_session()
        idle = self._limits.idle_seconds
        task, time = asyncio.current_task(), asyncio.get_running_loop().time
        while True:
            self._silent[task] = time()
            (size,) = _SIZE.unpack(await channel.read_exactly(_SIZE.size, idle))
            self._silent.pop(task, None)
            if not 0 <= size <= self._limits.max_request_bytes:
                reason = f"a request has {size} bytes, at most {self._limits.max_request_bytes}"
                raise RequestParseError(f"{reason} are allowed")
            if size <= SMALL_BYTES:
                pieces = await self._answer(channel, size, session, client)
            else:
                async with self._queued.hold(size):
                    pieces = await self._answer(channel, size, session, client)
            await self._send(channel, pieces)
            del pieces  # before the next request is awaited

    async def _send(self, channel: Channel, pieces: list[bytearray | FileRange]) -> None:
        in_memory = sum(len(each) for each in pieces if not isinstance(each, FileRange))
        waiting = self._waiting_bytes if in_memory > SMALL_BYTES else 0
        if waiting and waiting + in_memory > self._limits.waiting_bytes:
            reason = f"clients let {waiting} bytes of responses wait, and {in_memory} are one more"
            raise _TooManyWaitingError(reason)
        self._waiting_bytes += in_memory
        total = size_of(pieces)
        try:
            await channel.send([bytearray(_SIZE.pack(total)), *pieces])
        finally:
            self._waiting_bytes -= in_memory
        self._metrics.sent_bytes += total

    async def _answer(
        self, channel: Channel, size: int, session: Session, client: Client
    ) -> list[bytearray | FileRange]:
        frame = await channel.read_exactly(size, self._limits.stalled_seconds)
        self._metrics.requests += 1
        task = asyncio.current_task()
        self._new.pop(task, None)
        self._busy[task] = asyncio.get_running_loop().time(), channel
        try:
            return await session(frame, client)
        finally:
            del self._busy[task]

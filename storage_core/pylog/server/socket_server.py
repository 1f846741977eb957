"""Connections: frames in, responses out, with limits on all that a client can make the server hold.

A frame is a size (int32) and that many bytes. A connection's requests are answered in their order,
one after the other: what a client has sent meanwhile stays in the system's buffers. Segments go to
the socket by ``sendfile``; under TLS they are read and encrypted piece by piece.

================================ ===============================================================
limit                            what happens above it
================================ ===============================================================
``max_connections``              the connection that has said nothing for the longest time, more
                                 than ``stalled_seconds``, is closed, else the new one at once
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
import os
import socket
import ssl
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pylog.errors import InvalidConfigurationError, LogStorageError
from pylog.internal_topics.message_writer import FileRange, size_of
from pylog.server.kafka_apis import Client
from pylog.server.protocol import RequestParseError
from pylog.server.rate_limited_log import server_logger
from pylog.server.request_limits import SMALL_BYTES, Room

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pylog.server.metrics import Metrics

    Session = Callable[[bytes, Client], Awaitable[list[bytearray | FileRange]]]

_LOGGER = server_logger(__name__)
_SIZE = struct.Struct(">i")
_BACKLOG = 256
_RECEIVED_BYTES = 1 << 16
_COPIED_BYTES = 1 << 18
_LAST_BYTES = 1 << 12
_MSG_MORE = getattr(socket, "MSG_MORE", 0)
_HANDSHAKE_SECONDS = 10
_SHUTDOWN_SECONDS = 2
_ABANDONED_SECONDS = 1.0


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


class _ConnectionClosedError(Exception):
    """The other end has closed the connection, or a limit does."""


class _TooManyWaitingError(Exception):
    """Clients that do not read hold as much memory as they may."""


class _PlainChannel:
    def __init__(self, connection: socket.socket, limits: SocketLimits) -> None:
        self._socket = connection
        self._limits = limits
        self._received = bytearray()
        self._loop = asyncio.get_running_loop()

    async def read_exactly(self, count: int) -> bytes:
        received = self._received
        while len(received) < count:
            data = await self._loop.sock_recv(self._socket, _RECEIVED_BYTES)
            if not data:
                raise _ConnectionClosedError
            received += data
        taken = bytes(received[:count])
        del received[:count]
        return taken

    async def send(self, pieces: list[bytearray | FileRange]) -> None:
        last = len(pieces) - 1
        for number, piece in enumerate(pieces):
            if isinstance(piece, FileRange):
                await self._send_file(piece)
            else:
                await self._send_bytes(memoryview(piece), 0 if number == last else _MSG_MORE)

    async def _send_bytes(self, data: memoryview, flags: int) -> None:
        while data:
            try:
                sent = self._socket.send(data, flags)
            except BlockingIOError:
                await self._writable(self._limits.stalled_seconds)
                continue
            data = data[sent:]

    async def _send_file(self, piece: FileRange) -> None:
        descriptor, position = piece.file.descriptor, piece.position
        end = position + piece.size_bytes
        before = os.fstat(descriptor)
        while position < end:
            rest = end - position
            if rest <= _LAST_BYTES:  # without them a client can do nothing with all the others
                _ensure_only_grown(piece, before, os.fstat(descriptor))
            try:
                sent = os.sendfile(
                    self._socket.fileno(),
                    descriptor,
                    position,
                    max(rest - _LAST_BYTES, min(rest, _LAST_BYTES)),
                )
            except BlockingIOError:
                await self._writable(self._limits.idle_seconds)
                continue
            if sent == 0:
                reason = f"the file ends at byte {position}, where {end - position} more were sent"
                raise LogStorageError(f"{piece.file.path}: {reason}")
            position += sent

    def is_gone(self) -> bool:
        """Whether the other end has closed the connection, and sends no more."""
        try:
            return not self._received and not self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    async def _writable(self, seconds: float) -> None:
        waiter = self._loop.create_future()
        descriptor = self._socket.fileno()
        self._loop.add_writer(descriptor, _set, waiter)
        try:
            async with asyncio.timeout(seconds):
                await waiter
        finally:
            self._loop.remove_writer(descriptor)

    def close(self) -> None:
        self._socket.close()


def _ensure_only_grown(piece: FileRange, before: os.stat_result, now: os.stat_result) -> None:
    is_same = (before.st_mtime_ns, before.st_ctime_ns) == (now.st_mtime_ns, now.st_ctime_ns)
    if not is_same and now.st_size <= before.st_size:
        raise LogStorageError(f"{piece.file.path}: the file has changed while it was sent")


def _set(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class _TlsChannel:
    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limits: SocketLimits
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._limits = limits

    async def read_exactly(self, count: int) -> bytes:
        try:
            return await self._reader.readexactly(count)
        except asyncio.IncompleteReadError as error:
            raise _ConnectionClosedError from error

    async def send(self, pieces: list[bytearray | FileRange]) -> None:
        for piece in pieces:
            if not isinstance(piece, FileRange):
                await self._write(piece, self._limits.stalled_seconds)
                continue
            position, end = piece.position, piece.position + piece.size_bytes
            while position < end:
                data = await asyncio.to_thread(
                    piece.file.read_at, position, min(_COPIED_BYTES, end - position)
                )
                if not data:
                    raise LogStorageError(f"{piece.file.path}: the file ends at byte {position}")
                await self._write(data, self._limits.idle_seconds)
                position += len(data)

    def is_gone(self) -> bool:
        """Whether the other end has closed the connection, and sends no more."""
        return self._reader.at_eof()

    async def _write(self, data: bytes | bytearray, seconds: float) -> None:
        self._writer.write(data)
        async with asyncio.timeout(seconds):
            await self._writer.drain()

    def close(self) -> None:
        self._writer.transport.abort()


_Channel = _PlainChannel | _TlsChannel


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
        self._silent: dict[asyncio.Task[Any] | None, float] = {}  # and since when, in this order
        self._busy: dict[asyncio.Task[Any] | None, tuple[float, _Channel]] = {}
        self._acceptor: asyncio.Task[None] | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self._queued = Room(limits.queued_bytes)
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
        while True:
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
            except OSError:  # its client has gone again already
                connection.close()
                continue
            task = asyncio.create_task(self._serve(connection, str(address[0])))
            self._tasks.add(task)
            self._silent[task] = loop.time()
            task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._silent.pop(task, None)

    def _close_silent(self) -> bool:
        """Close a connection that says nothing, if there is one, for another."""
        task, since = next(iter(self._silent.items()), (None, 0.0))
        seconds = asyncio.get_running_loop().time() - since
        if task is None or seconds < self._limits.stalled_seconds:
            return False
        _LOGGER.info("closed a connection that said nothing for %d s, for a new one", seconds)
        self._forget(task)
        task.cancel()
        return True

    async def _close_abandoned(self) -> None:
        """End, again and again, what still waits for an answer that nobody will take."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_ABANDONED_SECONDS)
            latest = loop.time() - _ABANDONED_SECONDS
            for task, (since, channel) in list(self._busy.items()):
                if task is not None and since <= latest and channel.is_gone():
                    task.cancel()

    async def _serve(self, connection: socket.socket, client_host: str) -> None:
        channel: _Channel | None = None
        self._metrics.connections += 1
        try:
            channel = await self._open(connection)
            client = Client(client_host, *self._advertised, next(self._ids))
            await self._answer_all(channel, client)
        except (_ConnectionClosedError, TimeoutError, OSError):
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

    async def _open(self, connection: socket.socket) -> _Channel:
        if self._tls is None:
            return _PlainChannel(connection, self._limits)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_RECEIVED_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol,
            connection,
            ssl=self._tls,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=_SHUTDOWN_SECONDS,
        )
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        return _TlsChannel(reader, writer, self._limits)

    async def _answer_all(self, channel: _Channel, client: Client) -> None:
        session = self._open_session()
        idle = self._limits.idle_seconds
        task = asyncio.current_task()
        while True:
            self._silent[task] = asyncio.get_running_loop().time()
            async with asyncio.timeout(idle):
                (size,) = _SIZE.unpack(await channel.read_exactly(_SIZE.size))
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

    async def _send(self, channel: _Channel, pieces: list[bytearray | FileRange]) -> None:
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
        self, channel: _Channel, size: int, session: Session, client: Client
    ) -> list[bytearray | FileRange]:
        async with asyncio.timeout(self._limits.stalled_seconds):
            frame = await channel.read_exactly(size)
        self._metrics.requests += 1
        task = asyncio.current_task()
        self._busy[task] = asyncio.get_running_loop().time(), channel
        try:
            return await session(frame, client)
        finally:
            del self._busy[task]

"""The two kinds of connections: plain, and encrypted.

Segments go to a plain one by ``sendfile``; to an encrypted one they are read and encrypted piece by
piece. What a client has sent before it is asked for stays in the system's buffers.

Source: PlaintextTransportLayer, SslTransportLayer (Kafka 4.4).
"""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import LogStorageError
from pylog.internal_topics.message_writer import FileRange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.server.request_limits import Turns

    Pieces = Sequence[bytearray | FileRange]

RECEIVED_BYTES = 1 << 16
_COPIED_BYTES = 1 << 18
_LAST_BYTES = 1 << 12
_JOINED_BYTES = 1 << 16
_MSG_MORE = getattr(socket, "MSG_MORE", 0)


class ConnectionClosedError(Exception):
    """The other end has closed the connection."""


class SilenceLimits(NamedTuple):
    """How long to wait for a client that takes nothing of a file, and of a response in memory."""

    idle_seconds: float
    stalled_seconds: float


class PlainChannel:
    """A connection that is not encrypted.

    Its socket is registered with the event loop once: to do that for each request anew would cost
    as much as to answer it. Once its client has been waited for, a file goes on in its turn.
    """

    def __init__(self, connection: socket.socket, limits: SilenceLimits, turns: Turns) -> None:
        self._socket = connection
        self._descriptor = connection.fileno()
        self._limits = limits
        self._turns = turns
        self._received = bytearray()
        self._loop = asyncio.get_running_loop()
        self._is_registered = False
        self._waiter: asyncio.Future[None] | None = None
        self._wanted = 0
        self._silent_until = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def read_exactly(self, count: int, seconds: float) -> bytes:
        """Return so many bytes; ``TimeoutError`` if they do not come in time."""
        received = self._received
        if len(received) < count:
            await self._receive(count, seconds)
        taken = bytes(received[:count])
        del received[:count]
        return taken

    async def _receive(self, count: int, seconds: float) -> None:
        waiter = self._waiter = self._loop.create_future()
        self._wanted = count
        if not self._is_registered:
            self._loop.add_reader(self._descriptor, self._on_readable)
            self._is_registered = True
        self._silent_until = until = self._loop.time() + seconds
        if self._timer is None or self._timer.when() > until:
            self._look_at(until)
        try:
            await waiter
        finally:
            self._waiter = None

    def _look_at(self, when: float) -> None:
        """Look then whether the client has been silent for too long: one timer for all requests."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._end_silence)

    def _end_silence(self) -> None:
        self._timer = None
        if self._waiter is None:
            return
        if self._loop.time() >= self._silent_until:
            _expire(self._waiter)
        else:
            self._look_at(self._silent_until)

    def _on_readable(self) -> None:
        waiter = self._waiter
        if waiter is None or waiter.done():  # it stays in the system's buffers
            self._stop_reading()
            return
        try:
            data = self._socket.recv(RECEIVED_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            waiter.set_exception(error)
            return
        if not data:
            waiter.set_exception(ConnectionClosedError())
            return
        self._received += data
        if len(self._received) >= self._wanted:
            waiter.set_result(None)

    def _stop_reading(self) -> None:
        if self._is_registered:
            self._loop.remove_reader(self._descriptor)
            self._is_registered = False

    async def send(self, pieces: Pieces) -> None:
        """Send the pieces of a response; an error if the file of one has changed meanwhile."""
        held = bytearray()  # goes out with what follows
        for piece in pieces:
            if isinstance(piece, FileRange):
                await self._send_bytes(held, _MSG_MORE)
                held = bytearray(await self._send_file(piece))
            elif len(held) + len(piece) <= _JOINED_BYTES:
                held += piece
            else:
                await self._send_bytes(held, _MSG_MORE)
                held = piece
        await self._send_bytes(held, 0)

    async def _send_bytes(self, data: bytearray, flags: int) -> None:
        rest = memoryview(data)
        while rest:
            try:
                sent = self._socket.send(rest, flags)
            except BlockingIOError:
                await self._writable(self._limits.stalled_seconds)
                continue
            rest = rest[sent:]

    async def _send_file(self, piece: FileRange) -> bytes:
        """Send the bytes of a file, and return the last ones: without them none is of any use."""
        descriptor, position = piece.file.descriptor, piece.position
        end = position + piece.size_bytes
        last = max(position, end - _LAST_BYTES)
        before = os.fstat(descriptor)
        while position < last:
            try:
                sent = os.sendfile(self._descriptor, descriptor, position, last - position)
            except BlockingIOError:
                await self._writable(self._limits.idle_seconds)
                await self._turns.take()
                continue
            if sent == 0:
                raise _ended(piece, position)
            position += sent
        data = os.pread(descriptor, end - position, position)
        if len(data) < end - position:
            raise _ended(piece, position + len(data))
        _ensure_only_grown(piece, before, os.fstat(descriptor))
        return data

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
        self._loop.add_writer(self._descriptor, _set, waiter)
        timer = self._loop.call_later(seconds, _expire, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._loop.remove_writer(self._descriptor)

    def close(self) -> None:
        """Close the connection."""
        if self._timer is not None:
            self._timer.cancel()
        self._stop_reading()
        self._socket.close()


def _ensure_only_grown(piece: FileRange, before: os.stat_result, now: os.stat_result) -> None:
    is_same = (before.st_mtime_ns, before.st_ctime_ns) == (now.st_mtime_ns, now.st_ctime_ns)
    if not is_same and now.st_size <= before.st_size:
        raise LogStorageError(f"{piece.file.path}: the file has changed while it was sent")


def _ended(piece: FileRange, position: int) -> LogStorageError:
    missing = piece.position + piece.size_bytes - position
    reason = f"the file ends at byte {position}, where {missing} more were sent"
    return LogStorageError(f"{piece.file.path}: {reason}")


def _set(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _expire(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())


class TlsChannel:
    """A connection that is encrypted."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limits: SilenceLimits
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._limits = limits

    async def read_exactly(self, count: int, seconds: float) -> bytes:
        """Return so many bytes; ``TimeoutError`` if they do not come in time."""
        try:
            async with asyncio.timeout(seconds):
                return await self._reader.readexactly(count)
        except asyncio.IncompleteReadError as error:
            raise ConnectionClosedError from error

    async def send(self, pieces: Pieces) -> None:
        """Send the pieces of a response."""
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
        """Close the connection."""
        self._writer.transport.abort()


Channel = PlainChannel | TlsChannel

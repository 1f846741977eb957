"""A client of one connection: a request of any API in any version, and its response."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Any, Self

from pylog.internal_topics.message_reader import Readable, read_message
from pylog.internal_topics.message_writer import write_message
from pylog.internal_topics.versions import LATEST_KAFKA_VERSION
from pylog.server.messages import APIS

if TYPE_CHECKING:
    from types import TracebackType

    from pylog.server.protocol import Api

SECONDS = 60
_SIZE = struct.Struct(">i")
_HEADER = struct.Struct(">hhih")
_API_VERSIONS = 18


class RawClient:
    """Speaks the protocol to ``host:port``; a context manager."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=SECONDS)
        self._correlation_id = 0
        self._waiting: list[tuple[int, Api, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def ask(self, api: Api | str, version: int, request: dict[str, Any]) -> dict[str, Any]:
        """Return the response with all fields of its schema."""
        self.send(api, version, request)
        return self.receive()

    def send(self, api: Api | str, version: int, request: dict[str, Any]) -> None:
        """Send a request whose response is received later."""
        api = APIS[api] if isinstance(api, str) else api
        self._correlation_id += 1
        frame = _HEADER.pack(api.key, version, self._correlation_id, 3) + b"raw"
        if version in api.request.flexible_versions:
            frame += b"\0"
        self.send_frame(frame + write_message(api.request, request, version))
        self._waiting.append((self._correlation_id, api, version))

    def receive(self) -> dict[str, Any]:
        """Return the next response, with all fields of its schema."""
        correlation_id, api, version = self._waiting.pop(0)
        readable = Readable(self.receive_frame())
        assert _SIZE.unpack(readable.array(4)) == (correlation_id,)
        if version in api.response.flexible_versions and api.key != _API_VERSIONS:
            assert readable.array(1) == b"\0"
        response = read_message(
            api.response, readable, version, LATEST_KAFKA_VERSION, fills_defaults=True
        )
        assert readable.remaining == 0
        return response

    def is_silent(self, seconds: float) -> bool:
        """Whether nothing is received for so long."""
        self._socket.settimeout(seconds)
        try:
            return not self._socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self._socket.settimeout(SECONDS)

    def send_frame(self, frame: bytes) -> None:
        """Send any bytes as a frame."""
        self.send_bytes(_SIZE.pack(len(frame)) + frame)

    def send_bytes(self, data: bytes) -> None:
        """Send any bytes, which need be no frame."""
        self._socket.sendall(data)

    def receive_frame(self) -> bytes:
        """Return the next frame; `ConnectionError` if the server has closed the connection."""
        (size,) = _SIZE.unpack(self._receive(_SIZE.size))
        return self._receive(size)

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            received = self._socket.recv(min(size - len(data), 1 << 20))
            if not received:
                msg = "the server has closed the connection"
                raise ConnectionError(msg)
            data += received
        return bytes(data)

"""What the server counts, for its status line and for Prometheus."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

_MOST_HEADER_BYTES = 1 << 13
_SECONDS = 5


@dataclass(slots=True)
class Metrics:
    """Counts since the server has started; only the event loop changes them."""

    connections: int = 0
    accepted: int = 0
    requests: int = 0
    sent_bytes: int = 0
    groups: int = 0

    def prometheus_text(self) -> str:
        """Return the counts in Prometheus' text format."""
        lines = []
        for name, kind, meaning, value in (
            ("connections", "gauge", "Open connections.", self.connections),
            ("accepted_total", "counter", "Connections since the start.", self.accepted),
            ("groups", "gauge", "Consumer groups with members.", self.groups),
            ("requests_total", "counter", "Requests.", self.requests),
            ("sent_bytes_total", "counter", "Bytes of responses.", self.sent_bytes),
        ):
            lines += [
                f"# HELP pylog_serve_{name} {meaning}",
                f"# TYPE pylog_serve_{name} {kind}",
                f"pylog_serve_{name} {value}",
            ]
        return "\n".join(lines) + "\n"


class MetricsEndpoint:
    """``GET /metrics`` over HTTP, one answer a connection."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._server: asyncio.Server | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._server is not None:
            self._server.close()

    async def start(self, host: str, port: int) -> str:
        """Listen; return ``"host:port"``."""
        self._server = await asyncio.start_server(
            self._answer, host, port, limit=_MOST_HEADER_BYTES
        )
        bound = self._server.sockets[0].getsockname()
        return f"{bound[0]}:{bound[1]}"

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(
            asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, OSError
        ):
            async with asyncio.timeout(_SECONDS):
                request = await reader.readuntil(b"\r\n\r\n")
                is_known = request.startswith(b"GET /metrics ")
                body = self._metrics.prometheus_text().encode() if is_known else b""
                status = "200 OK" if is_known else "404 Not Found"
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\n"
                    f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                )
                writer.write(body)
                await writer.drain()
        writer.close()

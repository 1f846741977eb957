"""What the server counts."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pylog
from tests.support.raw_client import RawClient

if TYPE_CHECKING:
    from pathlib import Path


def test_the_counts_are_there_for_prometheus(case: Path) -> None:
    with pylog.serve(case, metrics_port=0) as server:
        assert server.metrics_address is not None
        host, _, port = server.metrics_address.rpartition(":")
        with RawClient(server.address) as client:
            client.ask("ApiVersions", 0, {})
            assert b"pylog_serve_connections 1\n" in _http(host, int(port), "/metrics")
            assert b" 404 " in _http(host, int(port), "/")


def _http(host: str, port: int, path: str) -> bytes:
    with socket.create_connection((host, port), timeout=20) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        data = b""
        while received := client.recv(1 << 16):
            data += received
        return data

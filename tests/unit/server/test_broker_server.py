"""A server from its start to its end: addresses, ports, errors."""

from __future__ import annotations

import gc
import socket
import struct
import time
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.server.channels import PlainChannel
from pylog.server.replica_manager import ReplicaManager
from pylog.server.socket_server import SocketServer
from tests.support.raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pylog.results import BrokerServer


def test_another_address_than_the_loopback_has_to_be_allowed(case: Path) -> None:
    anywhere = "0.0.0.0"  # noqa: S104 - that is what is tried
    with pytest.raises(ValueError, match="allow_remote"):
        pylog.serve(case, host=anywhere)
    with pylog.serve(
        case,
        host=anywhere,
        allow_remote=True,
        advertised_listener="snapshot.example.com:9092",
    ) as server:
        port = server.address.rpartition(":")[2]
        with RawClient(f"127.0.0.1:{port}") as client:
            (broker,) = client.ask("Metadata", 13, {"topics": []})["brokers"]
    assert (broker["host"], broker["port"]) == ("snapshot.example.com", 9092)


def test_a_port_that_is_taken_is_an_error(server: BrokerServer, case: Path) -> None:
    with pytest.raises(OSError, match="in use"):
        pylog.serve(case, port=int(server.address.rpartition(":")[2]))


def test_the_error_that_ended_the_server_is_raised_when_it_is_closed(
    case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = RuntimeError("no more")

    def fail(replicas: ReplicaManager) -> bool:
        raise error

    server = pylog.serve(case, follow=True)
    monkeypatch.setattr(ReplicaManager, "refresh", fail)
    deadline = time.monotonic() + 20
    while server.is_running:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with pytest.raises(RuntimeError, match="no more"):
        server.close()
    server.close()


def test_an_unexpected_error_at_the_start_is_raised(
    case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(sockets: SocketServer) -> None:
        raise RuntimeError("no start")

    monkeypatch.setattr(SocketServer, "start", fail)
    with pytest.raises(RuntimeError, match="no start"):
        pylog.serve(case)


def test_connections_are_closed_when_the_server_is(case: Path) -> None:
    server = pylog.serve(case)
    with RawClient(server.address) as client:
        client.ask("ApiVersions", 0, {})
        server.close()
        server.close()
        with pytest.raises((ConnectionError, OSError)):
            client.ask("ApiVersions", 0, {})


RESET = struct.pack("ii", 1, 0)
SECONDS = 20


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Collect no garbage by itself: a cycle stays."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def _fetch(client: RawClient, wait_ms: int) -> None:
    partition = {"partition": 0, "fetchOffset": 0, "partitionMaxBytes": 1 << 20}
    topics = [{"topic": "payments", "partitions": [partition]}]
    client.send("Fetch", 12, {"maxWaitMs": wait_ms, "minBytes": 1 << 30, "topics": topics})


def read_and_reset(client: RawClient) -> None:
    client.ask("Metadata", 13, {"topics": None})


def wait_for_records(client: RawClient) -> None:
    _fetch(client, 300_000)


def send_half_a_request(client: RawClient) -> None:
    client._socket.sendall(struct.pack(">i", 1 << 20) + b"x" * (1 << 18))


def send_no_request(client: RawClient) -> None:
    client.send_frame(b"\xff" * 40)


def wait_for_members(client: RawClient) -> None:
    joining: dict[str, Any] = {
        "groupId": "group",
        "sessionTimeoutMs": 30_000,
        "rebalanceTimeoutMs": 30_000,
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": b"x" * 10_000}],
    }
    client.send("JoinGroup", 3, joining)


WAYS = [
    read_and_reset,
    wait_for_records,
    send_half_a_request,
    send_no_request,
    wait_for_members,
]


def _held() -> list[object]:
    return [each for each in gc.get_objects() if type(each) is PlainChannel]


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("leave", WAYS, ids=lambda each: each.__name__)
def test_a_client_that_is_gone_leaves_nothing(
    case: Path, monkeypatch: pytest.MonkeyPatch, leave: Callable[[RawClient], None]
) -> None:
    monkeypatch.setattr("pylog.server.socket_server._ABANDONED_SECONDS", 0.05)
    with pylog.serve(case, group_initial_rebalance_delay_ms=60_000) as server:
        for _ in range(3):
            with RawClient(server.address) as client:
                leave(client)
                time.sleep(0.1)
                client._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        deadline = time.monotonic() + SECONDS
        while server.metrics.connections or _held():
            assert time.monotonic() < deadline, _held()
            time.sleep(0.01)

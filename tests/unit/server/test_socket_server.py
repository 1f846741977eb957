"""Connections of a server: broken frames, slow readers, limits, and the order in which it ends."""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.server.kafka_apis import Client, KafkaApis
from pylog.server.messages import APIS
from pylog.server.metrics import Metrics
from pylog.server.protocol import RequestParseError
from pylog.server.socket_server import SocketLimits, SocketServer, listening_socket
from tests.support.raw_client import RawClient
from tests.unit.internal_topics.random_messages import MessageBytes
from tests.unit.server.served_sockets import _still_answers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pylog.internal_topics.message_writer import FileRange
    from pylog.results import BrokerServer
    from tests.conftest import Counted, HowMany

SEED = 3
CONNECTIONS = 1_000
SMALL_FRAMES = 1 << 16


def _resident_bytes() -> int:
    with open("/proc/self/statm") as file:  # noqa: PTH123 - not a file of anybody's
        return int(file.read().split()[1]) * 4096


def _frames(random: Random) -> Iterator[bytes]:
    """Yield frames that clients do not send: random bytes, and requests with wrong ones in them."""
    apis = list(APIS.values())
    while True:
        api = random.choice(apis)
        version = random.choice(api.versions)
        frame = bytearray(struct.pack(">hhih", api.key, version, random.getrandbits(31), 1) + b"c")
        if version in api.request.flexible_versions:
            frame += b"\0"
        frame += MessageBytes(random).message(api.request, version)
        for _ in range(random.choice((0, 1, 1, 3))):
            frame[random.randrange(len(frame))] = random.getrandbits(8)
        yield bytes(frame[: random.choice((len(frame), len(frame), random.randrange(len(frame))))])
        yield random.randbytes(random.choice((0, 1, 3, 8, 40)))


def test_no_frame_harms_the_server(
    server: BrokerServer,
    how_many: HowMany,
    counted: Counted,
    caplog: pytest.LogCaptureFixture,
) -> None:
    random = Random(SEED)
    frames = _frames(random)
    host, _, port = server.address.rpartition(":")
    count = how_many(1_000, 20_000)
    before = _resident_bytes()
    answered = closed = 0
    while answered + closed < count:
        with socket.create_connection((host, int(port)), timeout=20) as client:
            # All at once; the server closes the connection at the first that is no request.
            sent = [next(frames) for _ in range(20)]
            client.sendall(b"".join(struct.pack(">i", len(each)) + each for each in sent))
            client.shutdown(socket.SHUT_WR)
            client.settimeout(0.2)
            received = 0
            try:
                while data := client.recv(1 << 16):
                    received += len(data)
            except (TimeoutError, ConnectionError):
                pass
            answered += 1 if received else 0
            closed += len(sent) - (1 if received else 0)
        # A handler that has failed says so with a traceback.
        assert not [each.getMessage() for each in caplog.records if each.exc_info]
        caplog.clear()
    _still_answers(server)
    assert _resident_bytes() - before < 64 << 20
    counted("fuzzed frames", {"sent": answered + closed})


def test_no_handler_fails_at_a_frame(
    server: BrokerServer, how_many: HowMany, counted: Counted
) -> None:
    frames = _frames(Random(SEED + 1))
    # The handlers of the server, on an event loop of the test's own.
    apis = KafkaApis(server._handlers(), server.cluster_id)
    client = Client("127.0.0.1", "127.0.0.1", 9092, 1)
    outcomes: Counter[str] = Counter()

    async def answer_all() -> None:
        for _ in range(how_many(4_000, 1_000_000)):
            task = asyncio.create_task(apis.handle(next(frames), client))
            # A fetch waits for more as long as it says: not here.
            done, _ = await asyncio.wait([task], timeout=0.02)
            if not done:
                task.cancel()
            outcomes[_outcome(task) if done else "waiting"] += 1

    before = _resident_bytes()
    asyncio.run(answer_all())
    assert _resident_bytes() - before < 64 << 20
    assert outcomes["answered"] > 100
    counted("frames given to handlers", outcomes)


def _outcome(task: asyncio.Task[Any]) -> str:
    try:
        task.result()
    except RequestParseError:
        return "refused"
    return "answered"


def test_a_frame_that_is_too_large_takes_no_memory(server: BrokerServer) -> None:
    before = _resident_bytes()
    host, _, port = server.address.rpartition(":")
    for size in (1 << 30, -1, (1 << 20) + 1):
        with socket.create_connection((host, int(port)), timeout=20) as client:
            client.sendall(struct.pack(">i", size) + b"x" * 100)
            with suppress(ConnectionResetError):  # where the rest of it has not been read
                assert client.recv(1) == b""
    assert _resident_bytes() - before < 16 << 20
    _still_answers(server)


@pytest.mark.slow
def test_connections_that_say_nothing_keep_nobody_out(server: BrokerServer) -> None:
    host, _, port = server.address.rpartition(":")
    before = _resident_bytes()
    idle = [socket.create_connection((host, int(port)), timeout=20) for _ in range(CONNECTIONS)]
    try:
        for each in idle[::2]:
            each.sendall(struct.pack(">i", 500) + b"half of a request")
        _still_answers(server)
        assert server.metrics.connections >= CONNECTIONS
        assert _resident_bytes() - before < 100 << 20
    finally:
        for each in idle:
            each.close()


def test_clients_that_do_not_read_hold_bounded_memory(caplog: pytest.LogCaptureFixture) -> None:
    large = 32 << 20  # more than what the system's buffers take

    async def answer(frame: bytes, client: Client) -> list[bytearray | FileRange]:
        return [bytearray(large if frame == b"large" else 10)]

    def ask(address: tuple[str, int], frame: bytes) -> socket.socket:
        client = socket.create_connection(address, timeout=20)
        client.sendall(struct.pack(">i", len(frame)) + frame)
        return client

    async def run() -> None:
        limits = SocketLimits(waiting_bytes=2 * large, stalled_seconds=0.3)
        with listening_socket("127.0.0.1", 0) as listener:
            address = listener.getsockname()
            server = SocketServer(
                listener,
                lambda: answer,
                limits=limits,
                metrics=Metrics(),
                advertised=("localhost", 1),
            )
            server.start()
            stalled = [await asyncio.to_thread(ask, address, b"large") for _ in range(2)]
            third = await asyncio.to_thread(ask, address, b"large")
            assert await asyncio.to_thread(third.recv, 1) == b""
            fourth = await asyncio.to_thread(ask, address, b"small")
            assert await asyncio.to_thread(fourth.recv, 4) == struct.pack(">i", 10)
            deadline = time.monotonic() + 20
            while server._waiting_bytes:  # those that take nothing are closed
                assert time.monotonic() < deadline
                await asyncio.sleep(0.01)
            await server.close()
            for each in (*stalled, third, fourth):
                each.close()

    asyncio.run(run())
    (told,) = (each.getMessage() for each in caplog.records)
    assert told.endswith(
        f"clients let {2 * large} bytes of responses wait, and {large} are one more"
    )


def test_connections_beyond_the_limit_are_closed(case: Path) -> None:
    with pylog.serve(case, max_connections=2) as server:
        with RawClient(server.address) as one, RawClient(server.address) as other:
            for each in (one, other):
                each.ask("ApiVersions", 0, {})
            third = RawClient(server.address)
            with pytest.raises(ConnectionError):
                third.ask("ApiVersions", 0, {})
            third.close()
        deadline = time.monotonic() + 20
        while server.metrics.connections:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        _still_answers(server)


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("new_seconds", b""),
        ("new_seconds", struct.pack(">i", 500) + b"half of a request"),
        ("stalled_seconds", None),
    ],
)
def test_a_connection_that_says_nothing_makes_room_for_another(
    limit: str, said: bytes | None, case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        pylog.serve(case, max_connections=2) as server,
        RawClient(server.address) as silent,
        RawClient(server.address) as other,
    ):
        if said is None:
            silent.ask("ApiVersions", 0, {})
        else:
            silent.send_bytes(said)
        other.ask("ApiVersions", 0, {})
        with monkeypatch.context() as patched:
            patched.setattr(SocketLimits, limit, 0)
            with RawClient(server.address) as third:
                third.ask("ApiVersions", 0, {})
        with pytest.raises(ConnectionError):
            silent.receive_frame()
        other.ask("ApiVersions", 0, {})


def test_a_request_that_waits_ends_when_its_client_has_gone(
    case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pylog.server.socket_server._ABANDONED_SECONDS", 0.05)
    asked = {
        "maxWaitMs": 300_000,
        "minBytes": 1 << 30,
        "topics": [
            {
                "topic": "payments",
                "partitions": [{"partition": 0, "fetchOffset": 0, "partitionMaxBytes": 1}],
            }
        ],
    }
    with pylog.serve(case) as server, RawClient(server.address) as waiting:
        with RawClient(server.address) as gone:
            for each in (waiting, gone):
                each.send("Fetch", 12, asked)
            while server.metrics.requests < 2:
                time.sleep(0.01)
            assert server.metrics.connections == 2
        deadline = time.monotonic() + 20
        while server.metrics.connections > 1:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert waiting.is_silent(0.3)
        assert server.metrics.connections == 1


def test_a_client_that_is_gone_again_at_once_does_not_end_the_server(
    server: BrokerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    with monkeypatch.context() as patched:
        patched.setattr(socket.socket, "setsockopt", refuse)
        with RawClient(server.address) as client, pytest.raises(ConnectionError):
            client.receive_frame()
    _still_answers(server)


def test_members_with_large_subscriptions_wait_for_each_other_and_not_for_room(case: Path) -> None:
    members, size = 20, 900_000  # as much as one request, and all groups, may have
    request = {
        "groupId": "large",
        "sessionTimeoutMs": 10_000,
        "rebalanceTimeoutMs": 10_000,
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": bytes(size)}],
    }
    with (
        pylog.serve(case, group_initial_rebalance_delay_ms=1_500) as running,
        ExitStack() as opened,
    ):
        clients = [opened.enter_context(RawClient(running.address)) for _ in range(members)]
        with ThreadPoolExecutor(members) as threads:
            list(threads.map(lambda each: each.send(APIS["JoinGroup"], 3, request), clients))
        answers = [each.receive() for each in clients]
    assert {each["generationId"] for each in answers} == {1}
    assert max(len(each["members"]) for each in answers) == members

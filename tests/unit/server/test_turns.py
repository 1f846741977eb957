"""Many clients at once: none is answered so often, or so long, that the others wait for all."""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import os
import socket
import struct
import termios
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.files.byte_source import LocalFile
from pylog.internal_topics.message_writer import FileRange, write_message
from pylog.server.channels import PlainChannel, SilenceLimits
from pylog.server.kafka_apis import Client, KafkaApis
from pylog.server.messages import APIS
from pylog.server.metrics import Metrics
from pylog.server.replica_manager import ReplicaManager
from pylog.server.request_limits import Seats, Turns
from pylog.server.socket_server import SocketLimits, SocketServer, listening_socket
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition
from tests.support.raw_client import RawClient

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.server.protocol import Request, RequestContext, Response

BATCH_BYTES = 1 << 20
PATIENCE_SECONDS = 20.0


def _in_rounds(turns: Turns, names: list[str], gone: str = "") -> list[str]:
    """Return what has begun in each round; those named with a capital letter are known."""

    async def run() -> list[str]:
        begun: list[str] = []

        async def begin(name: str) -> None:
            await turns.take(is_known=name.isupper())
            begun.append(name)

        tasks = {name: asyncio.create_task(begin(name)) for name in names}
        rounds = []
        seen = 0
        while len(begun) < len(names) - len(gone):
            await asyncio.sleep(0)
            for name in gone:
                tasks[name].cancel()
            rounds.append("".join(begun[seen:]))
            seen = len(begun)
        return [each for each in rounds if each]

    return asyncio.run(run())


def test_so_many_have_their_turn_in_each_round_of_the_loop() -> None:
    assert _in_rounds(Turns(3), list("ABCDEFG")) == ["ABC", "DEF", "G"]


def test_who_is_known_comes_first_and_each_fourth_is_new() -> None:
    rounds = _in_rounds(Turns(1), list("abcdABCDEFGH"))
    assert "".join(rounds) == "aABCbDEFcGHd"


def test_a_turn_is_not_lost_with_a_client_that_has_gone() -> None:
    assert _in_rounds(Turns(2), list("ABCDEF"), gone="CD") == ["AB", "EF"]


def test_so_many_have_a_seat_at_once_and_a_client_that_goes_gives_its_back() -> None:
    async def run() -> list[str]:
        seats, order = Seats(2), []
        may_end = asyncio.Event()

        async def sit(name: str) -> None:
            async with seats.hold(is_known=name.isupper()):
                order.append(name)
                await may_end.wait()

        tasks = {name: asyncio.create_task(sit(name)) for name in "abcdeF"}
        await asyncio.sleep(0)
        assert order == ["a", "b"]
        tasks["c"].cancel()
        tasks["a"].cancel()
        await asyncio.sleep(0)
        tasks["F"].cancel()  # it has just been given the seat
        await asyncio.sleep(0)
        may_end.set()
        await asyncio.wait(tasks.values())
        return order

    assert asyncio.run(run()) == ["a", "b", "d", "e"]


def _frame(name: str, version: int, request: dict[str, Any]) -> bytes:
    api = APIS[name]
    head = api.key.to_bytes(2) + version.to_bytes(2) + bytes(4) + b"\xff\xff\0"
    return head + write_message(api.request, request, version)


def test_requests_of_other_kinds_and_of_who_reads_already_do_not_wait_for_a_burst_of_fetches() -> (
    None
):
    fetch = _frame("Fetch", 12, {"topics": []})
    metadata = _frame("Metadata", 12, {"topics": []})

    async def run() -> list[str]:
        answered: list[str] = []

        def answer(_request: Request, context: RequestContext) -> Response:
            return {"responses": []} if context.api.name == "Fetch" else {"topics": []}

        apis = KafkaApis({APIS["Fetch"]: answer, APIS["Metadata"]: answer}, "id")

        async def ask(name: str, frame: bytes, client: Client) -> None:
            await apis.handle(frame, client)
            answered.append(name)

        reader = Client("127.0.0.1", "127.0.0.1", 9092, 1)
        await ask("first", fetch, reader)
        burst = [Client("127.0.0.1", "127.0.0.1", 9092, each) for each in range(2, 602)]
        tasks = [asyncio.create_task(ask("burst", fetch, each)) for each in burst]
        tasks.append(asyncio.create_task(ask("reader", fetch, reader)))
        tasks.append(asyncio.create_task(ask("metadata", metadata, burst[0])))
        await asyncio.wait(tasks)
        return answered

    answered = asyncio.run(run())
    assert len(answered) == 603
    assert answered.index("metadata") < 20
    assert answered.index("reader") < 40


def test_connections_that_come_at_once_are_accepted_some_in_each_round() -> None:
    async def session(_frame: bytes, _client: Client) -> Any:  # noqa: ANN401 - never called
        raise AssertionError

    async def run() -> list[int]:
        with listening_socket("127.0.0.1", 0) as listener:
            clients = [
                socket.create_connection(listener.getsockname(), timeout=PATIENCE_SECONDS)
                for _ in range(200)
            ]
            server = SocketServer(
                listener,
                lambda: session,
                limits=SocketLimits(),
                metrics=Metrics(),
                advertised=("localhost", 1),
            )
            server.start()
            counts = [0]
            while counts[-1] < len(clients):
                await asyncio.sleep(0)
                counts.append(len(server._tasks))
            await asyncio.sleep(0.01)  # the last ones begin
            await server.close()
            for each in clients:
                each.close()
            return counts

    counts = asyncio.run(run())
    assert max(after - before for before, after in itertools.pairwise(counts)) <= 16


def _served_partition(directory: Path, count: int) -> Path:
    batches = [batch_v2(plain_records(each, 1, value_size=BATCH_BYTES)) for each in range(count)]
    write_partition(directory, {0: batches})
    return directory


def _request(max_bytes: int = 1 << 30) -> dict[str, Any]:
    partition = {"partition": 0, "fetchOffset": 0, "partitionMaxBytes": max_bytes}
    topics = [{"topic": "orders", "partitions": [partition]}]
    return {"maxWaitMs": 0, "minBytes": 1, "maxBytes": 1 << 30, "topics": topics}


@pytest.mark.skipif(not hasattr(socket, "TCP_NOTSENT_LOWAT"), reason="the system has no such bound")
def test_the_system_holds_little_for_a_client_that_does_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = 0
    sendfile = os.sendfile

    def counted(*arguments: int) -> int:
        nonlocal sent
        count = sendfile(*arguments)
        sent += count
        return count

    monkeypatch.setattr("pylog.server.channels.os.sendfile", counted)
    with (
        pylog.serve(_served_partition(tmp_path, 16)) as server,
        RawClient(server.address) as client,
    ):
        client.send("Fetch", 12, _request())
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not sent:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.3)
        unread = _readable_bytes(client._socket)
        assert sent - unread < 1 << 20
        data = client.receive()["responses"][0]["partitions"][0]["records"]
    assert len(data) > 16 * BATCH_BYTES


def _readable_bytes(connection: socket.socket) -> int:
    (size,) = struct.unpack("i", fcntl.ioctl(connection.fileno(), termios.FIONREAD, bytes(4)))
    return int(size)


def test_files_go_on_some_in_each_round_once_their_clients_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(4 << 20))
    sends = [0]
    sendfile = os.sendfile

    def counted(*arguments: int) -> int:
        count = sendfile(*arguments)
        sends[-1] += 1
        return count

    async def run(file: LocalFile) -> None:
        pairs = [socket.socketpair() for _ in range(12)]
        turns, limits = Turns(3), SilenceLimits(PATIENCE_SECONDS, PATIENCE_SECONDS)
        tasks = []
        for ours, theirs in pairs:
            ours.setblocking(False)  # noqa: FBT003 - the standard library's
            theirs.setblocking(False)  # noqa: FBT003 - the standard library's
            channel = PlainChannel(ours, limits, turns)
            tasks.append(asyncio.create_task(channel.send([FileRange(file, 0, 4 << 20)])))
        await asyncio.sleep(0.1)  # they fill the system's buffers
        sends[:] = [0]
        while not all(each.done() for each in tasks):
            for _, theirs in pairs:
                with suppress(BlockingIOError):
                    while theirs.recv(1 << 20):
                        pass
            await asyncio.sleep(0)
            sends.append(0)
        for task, pair in zip(tasks, pairs, strict=True):
            task.result()
            for each in pair:
                each.close()

    monkeypatch.setattr("pylog.server.channels.os.sendfile", counted)
    with LocalFile(str(path)) as file:
        asyncio.run(run(file))
    # One more of each that sends on in its turn, until its client is to be waited for again.
    assert max(sends) <= 2 * 3


def test_look_ups_do_not_wait_for_fetches_that_read_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, begun = threading.Event(), threading.Semaphore(0)
    fetch = ReplicaManager._fetch

    def slow(self: ReplicaManager, *arguments: Any, may_look: bool) -> Any:  # noqa: ANN401
        if may_look:
            begun.release()
            may_end.wait(3 * PATIENCE_SECONDS)
        return fetch(self, *arguments, may_look=may_look)

    monkeypatch.setattr(ReplicaManager, "_fetch", slow)
    with pylog.serve(_served_partition(tmp_path, 4), check_each_time=True) as server:
        clients = [RawClient(server.address) for _ in range(10)]
        try:
            for each in clients:
                each.send("Fetch", 12, _request())
            assert begun.acquire(timeout=PATIENCE_SECONDS)
            with RawClient(server.address) as other:
                assert other.ask("Metadata", 12, {"topics": [{"name": "orders"}]})["topics"]
                asked = [{"name": "orders", "partitions": [{"partitionIndex": 0, "timestamp": -1}]}]
                assert other.ask("ListOffsets", 6, {"topics": asked})["topics"]
            may_end.set()
            for each in clients:
                assert each.receive()["responses"][0]["partitions"][0]["records"]
        finally:
            may_end.set()
            for each in clients:
                each.close()


def test_a_fetch_has_four_mebibytes_where_each_is_checked_each_time(tmp_path: Path) -> None:
    with (
        pylog.serve(_served_partition(tmp_path, 8), check_each_time=True) as server,
        RawClient(server.address) as client,
    ):
        (found,) = client.ask("Fetch", 12, _request())["responses"][0]["partitions"]
    assert 3 * BATCH_BYTES < len(found["records"]) <= 4 * BATCH_BYTES

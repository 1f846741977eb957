"""What a client can make large: each array of each request, up to its limit and above."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.internal_topics.message_writer import SLICE_ELEMENTS, EachOf, write_message
from pylog.server.kafka_apis import Client, KafkaApis
from pylog.server.messages import APIS
from pylog.server.protocol import RequestParseError
from pylog.server.request_limits import Room, most_elements
from tests.support.raw_client import RawClient

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.server.protocol import Api, Request, RequestContext, Response

CLIENT = Client("127.0.0.1", "127.0.0.1", 9092, 1)
TAGS_API = "ApiVersions"


def header(api: Api, version: int) -> bytes:
    is_flexible = version in api.request.flexible_versions
    start = api.key.to_bytes(2) + version.to_bytes(2) + bytes(4) + b"\xff\xff"
    return start + (b"\0" if is_flexible else b"")


class Loop:
    """Counts the turns of an event loop while something else runs on it."""

    def __init__(self) -> None:
        self.turns = 0

    async def run(self) -> None:
        while True:
            self.turns += 1
            await asyncio.sleep(0)


def test_a_large_answer_lets_others_have_their_turn_after_each_slice(case: Path) -> None:
    elements = 20 * SLICE_ELEMENTS

    async def run(apis: KafkaApis) -> dict[str, int]:
        turns = {}
        for name, fields in (
            ("DescribeGroups", {"groups": [f"g{each}" for each in range(elements)]}),
            ("DeleteTopics", {"topicNames": [""] * elements, "timeoutMs": 1}),
            ("FindCoordinator", {"keyType": 0, "coordinatorKeys": [""] * elements}),
            ("Metadata", {"topics": [{"name": f"t{each}"} for each in range(elements)]}),
        ):
            api, version = APIS[name], 5
            data = header(api, version) + write_message(api.request, fields, version)
            loop = Loop()
            counting = asyncio.create_task(loop.run())
            await apis.handle(data, CLIENT)
            counting.cancel()
            turns[name] = loop.turns
        return turns

    with pylog.serve(case) as server:
        handlers = {
            **server._handlers(),
            APIS["DescribeGroups"]: lambda request, _: {
                "groups": EachOf(lambda name: {"groupId": name, "members": []}, request["groups"])
            },
            APIS["FindCoordinator"]: lambda request, _: {
                "coordinators": EachOf(lambda key: {"key": key}, request["coordinatorKeys"])
            },
        }
        turns = asyncio.run(run(KafkaApis(handlers, server.cluster_id)))
    assert all(each >= elements // SLICE_ELEMENTS for each in turns.values()), turns


def test_too_many_elements_close_the_connection_and_say_what_to_do(
    case: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pylog.serve(case) as server:
        for name, version, request in (
            ("DeleteTopics", 5, {"topicNames": [""] * ((1 << 15) + 1), "timeoutMs": 1}),
            ("JoinGroup", 5, {"protocols": [{"name": "", "metadata": b""}] * 101}),
            ("SyncGroup", 3, {"assignments": [{"memberId": "", "assignment": b""}] * 1_001}),
        ):
            with RawClient(server.address) as client:
                client.send(name, version, request)
                with pytest.raises(ConnectionError):
                    client.receive_frame()
            limit = most_elements(APIS[name])
            assert caplog.messages[-1].endswith(
                f"{name} request has more than {limit} elements in its arrays: "
                "send several smaller ones"
            )
        with RawClient(server.address) as client:
            names = [""] * (1 << 15)
            asked = {"topicNames": names, "timeoutMs": 1}
            assert len(client.ask("DeleteTopics", 5, asked)["responses"]) == len(names)


def test_an_answer_that_would_take_too_much_memory_is_not_made(
    case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = 0

    def topic(_number: int) -> Response:
        nonlocal made
        made += 1
        return {"name": "x" * 1_000, "partitions": []}

    def answer(_request: Request, _context: RequestContext) -> Response:
        return {"topics": EachOf(topic, range(1 << 30))}

    monkeypatch.setattr("pylog.server.kafka_apis.MOST_ANSWER_BYTES", 10_000_000)
    api = APIS["Metadata"]
    frame = header(api, 12) + write_message(api.request, {"topics": None}, 12)

    async def run() -> None:
        with pytest.raises(RequestParseError, match="ask for less at once"):
            await KafkaApis({api: answer}, "id").handle(frame, CLIENT)

    asyncio.run(run())
    assert 10_000 - SLICE_ELEMENTS <= made <= 10_000 + SLICE_ELEMENTS


def test_room_goes_to_whoever_has_waited_longest() -> None:
    async def run() -> list[str]:
        room, order = Room(10), []

        async def take(name: str, size: int) -> None:
            async with room.hold(size) as held:
                order.append(name)
                held.shrink(size // 2)
                await asyncio.sleep(0)

        async with room.hold(8):
            tasks = [asyncio.create_task(take("large", 9)), asyncio.create_task(take("small", 1))]
            gone = asyncio.create_task(take("gone", 5))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert order == []  # though there would be room for the small one
            gone.cancel()
        await asyncio.wait([*tasks, gone])
        async with room.hold(10):
            return order

    assert asyncio.run(run()) == ["large", "small"]

"""Groups and members without end: the memory that they take is counted, and bounded."""

from __future__ import annotations

import asyncio
import gc
import random
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from pylog.server.classic_group import ClassicGroup
from pylog.server.group_config import GroupCoordinatorConfig
from pylog.server.group_memory import GROUP_BYTES, PENDING_BYTES, GroupMemory, size_of_names
from pylog.server.protocol import Errors
from tests.unit.server.coordinated_groups import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Flood = Callable[[Server, int], Coroutine[Any, Any, Any]]

MOST_BYTES = 1 << 20
MANY_TOPICS = {f"topic-{number}": 3 for number in range(30)}
CLASSIC: dict[str, Any] = {
    "sessionTimeoutMs": 1_800_000,
    "rebalanceTimeoutMs": 1,
    "protocolType": "consumer",
}
JOINING: dict[str, Any] = {"memberEpoch": 0, "rebalanceTimeoutMs": 5_000, "topicPartitions": []}


async def ask_for_ids(server: Server, number: int) -> Any:  # noqa: ANN401 - an error code
    protocols = [{"name": "range", "metadata": b""}]
    answer = await server.ask("JoinGroup", groupId="one", protocols=protocols, **CLASSIC)
    return answer["errorCode"]


async def ask_for_ids_in_new_groups(server: Server, number: int) -> Any:  # noqa: ANN401
    protocols = [{"name": "range", "metadata": b""}]
    answer = await server.ask("JoinGroup", groupId=f"{number}", protocols=protocols, **CLASSIC)
    return answer["errorCode"]


async def join_new_groups(server: Server, number: int) -> Any:  # noqa: ANN401
    protocols = [{"name": "range", "metadata": b"x" * 10}]
    fields: dict[str, Any] = {"groupId": f"{number}", "protocols": protocols, **CLASSIC}
    waiting = asyncio.ensure_future(server.ask("JoinGroup", 3, **fields))
    await asyncio.sleep(0)
    return waiting.result()["errorCode"] if waiting.done() else 0


async def subscribe_to_everything(server: Server, number: int) -> Any:  # noqa: ANN401
    wanted = {"subscribedTopicNames": None, "subscribedTopicRegex": ".*", **JOINING}
    answer = await server.ask("ConsumerGroupHeartbeat", groupId=f"{number}", memberId="m", **wanted)
    return answer.get("errorCode", 0)


async def have_expressions(server: Server, number: int) -> Any:  # noqa: ANN401
    wanted: dict[str, Any] = {
        "subscribedTopicNames": None,
        "subscribedTopicRegex": f"x{number}|.*",
        **JOINING,
    }
    member: dict[str, Any] = {"groupId": f"{number % 3}", "memberId": f"{number}"}
    answer = await server.ask("ConsumerGroupHeartbeat", **member, **wanted)
    return answer.get("errorCode", 0)


async def name_topics(server: Server, number: int) -> Any:  # noqa: ANN401
    names = [f"topic-{each}" for each in range(number % 2, 30)]
    answer = await server.ask(
        "ConsumerGroupHeartbeat",
        groupId=f"{'é' * 500}{number}",
        memberId="m",
        subscribedTopicNames=names,
        **JOINING,
    )
    return answer.get("errorCode", 0)


FLOODS: list[Flood] = [
    ask_for_ids,
    ask_for_ids_in_new_groups,
    join_new_groups,
    subscribe_to_everything,
    have_expressions,
    name_topics,
]


@pytest.mark.parametrize("flood", FLOODS, ids=lambda each: each.__name__)
def test_members_are_refused_before_they_take_more_memory_than_they_may(flood: Flood) -> None:
    async def story() -> tuple[int, int]:
        config = GroupCoordinatorConfig(max_group_bytes=MOST_BYTES, group_max_size=100_000)
        server = Server(config=config, topics=MANY_TOPICS)
        server.coordinator.load(None)
        await flood(server, -1)  # what is made once, such as modules
        tracemalloc.start()
        number = 0
        while await flood(server, number) not in (
            Errors.GROUP_MAX_SIZE_REACHED,
            Errors.COORDINATOR_NOT_AVAILABLE,
        ):
            number += 1
            assert number < MOST_BYTES // PENDING_BYTES
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        await server.coordinator.close()
        return taken, number

    taken, number = asyncio.run(story())
    assert number > 10
    assert 0.2 * MOST_BYTES < taken < 1.05 * MOST_BYTES


def test_what_members_took_is_free_again_when_they_are_gone() -> None:
    async def story() -> int:
        server = Server(topics=MANY_TOPICS)
        coordinator = server.coordinator
        coordinator.load(None)
        chance = random.Random(50)
        for number in range(300):
            await chance.choice(FLOODS)(server, number)
            if number % 50 == 0:
                server.timer.advance(chance.choice((100, 50_000)))
                await asyncio.sleep(0)
        assert coordinator._kept.total > 1 << 19
        for _ in range(4):
            server.timer.advance(1_800_000)
            await asyncio.sleep(0)
        coordinator._drop_unused()
        assert coordinator._groups == {}
        return coordinator._kept.total

    assert asyncio.run(story()) == 0


def test_groups_that_nobody_uses_make_room_for_members() -> None:
    async def story() -> None:
        room = 100 * GROUP_BYTES
        server = Server(config=GroupCoordinatorConfig(max_group_bytes=room), topics=MANY_TOPICS)
        server.coordinator.load(None)
        for number in range(100):
            answer = await ask_for_ids_in_new_groups(server, number)
            assert answer is Errors.MEMBER_ID_REQUIRED
            server.timer.advance(1_800_000)  # and it does not come back
        assert await server.commit("kept", 0, 1) is Errors.UNKNOWN_TOPIC_OR_PARTITION
        assert len(server.coordinator._groups) < 100

    asyncio.run(story())


def test_a_group_that_is_closed_takes_nothing() -> None:
    kept = GroupMemory(1_000_000)
    server = Server()
    group = ClassicGroup("one", GroupCoordinatorConfig(), server.timer, kept=kept)
    group.close()
    assert kept.total == 0
    assert kept.has_room(1_000_000)
    assert not kept.has_room(1_000_001)
    assert size_of_names(None, "a" * 1_000) > 1_000

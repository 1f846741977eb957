"""Groups that are made large: the event loop does no work that grows with them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from pylog.server import consumer_group
from pylog.server.classic_group import ClassicGroup
from pylog.server.group_config import GroupCoordinatorConfig
from pylog.server.protocol import Errors
from pylog.server.request_limits import MOST_ELEMENTS
from tests.unit.server.group_fakes import ManualTimer, context, id_of, request
from tests.unit.server.test_group_coordinator import Response, Server

if TYPE_CHECKING:
    from pylog.server.group_coordinator import GroupCoordinator


async def beat(server: Server, member: str, epoch: int, **fields: Any) -> Response:  # noqa: ANN401
    return await server.ask(
        "ConsumerGroupHeartbeat",
        groupId="group",
        memberId=member,
        memberEpoch=epoch,
        **fields,
    )


def test_a_large_group_is_assigned_in_a_thread_and_told_with_the_next_heartbeat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consumer_group, "_ASSIGNED_AT_ONCE", 3)

    async def run() -> list[Response]:
        server = Server()
        joining = {
            "rebalanceTimeoutMs": 5_000,
            "subscribedTopicNames": ["orders", "invoices-eu"],
            "topicPartitions": [],
        }
        answers = [await beat(server, "one", 0, **joining)]
        while server.coordinator._assigning:
            await asyncio.sleep(0.001)
        answers.append(await beat(server, "one", answers[0]["memberEpoch"]))
        await server.coordinator.close()
        return answers

    first, second = asyncio.run(run())
    assert first["assignment"] == {"topicPartitions": []}
    assert second["memberEpoch"] == first["memberEpoch"] + 1
    assert {
        each["topicId"]: each["partitions"] for each in second["assignment"]["topicPartitions"]
    } == {
        id_of("orders"): [0, 1],
        id_of("invoices-eu"): [0, 1],
    }


def test_a_close_ends_the_assignment_that_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_group, "_ASSIGNED_AT_ONCE", 0)

    async def run() -> GroupCoordinator:
        server = Server()
        names = ["orders"]
        await beat(
            server,
            "one",
            0,
            rebalanceTimeoutMs=5_000,
            subscribedTopicNames=names,
            topicPartitions=[],
        )
        assert server.coordinator._assigning
        await server.coordinator.close()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return server.coordinator

    assert asyncio.run(run())._assigning == {}


def subscription(topics: int) -> bytes:
    """Return what a consumer subscribes to: topics with names of no letters."""
    return b"\0\0" + topics.to_bytes(4) + b"\0\0" * topics + b"\xff\xff\xff\xff"


@pytest.mark.parametrize(("topics", "is_known"), [(10, True), (MOST_ELEMENTS + 1, False)])
def test_subscriptions_are_read_up_to_a_limit_and_may_be_anything_above(
    topics: int, *, is_known: bool
) -> None:
    timer = ManualTimer()
    group = ClassicGroup("group", GroupCoordinatorConfig(), timer)
    answers: list[Response] = []
    joining = request(
        "JoinGroup",
        groupId="group",
        sessionTimeoutMs=10_000,
        rebalanceTimeoutMs=10_000,
        memberId="",
        protocolType="consumer",
        protocols=[{"name": "range", "metadata": subscription(topics)}],
    )
    group.join(joining, context("JoinGroup", 3), answers.append)
    timer.advance(1_000)
    assert answers[0]["errorCode"] is Errors.NONE
    assert group.subscribed_topics() == (frozenset({""}) if is_known else None)


def test_groups_that_are_named_again_are_deleted_once_and_with_one_commit() -> None:
    async def run() -> list[Response]:
        server = Server()
        for each in ("one", "two"):
            await server.commit(each, 0, 5)
        commits: list[int] = []
        commit = server.coordinator._offsets.commit

        async def counted(offsets: Any) -> None:  # noqa: ANN401
            commits.append(len(offsets))
            await commit(offsets)

        server.coordinator._offsets.commit = counted  # type: ignore[method-assign]
        names = ["one", "two", "none", "one"]
        answer = await server.ask("DeleteGroups", groupsNames=names)
        assert commits == [2]
        assert await server.groups() == {}
        results: list[Response] = answer["results"]
        return results

    assert asyncio.run(run()) == [
        {"groupId": "one", "errorCode": Errors.NONE},
        {"groupId": "two", "errorCode": Errors.NONE},
        {"groupId": "none", "errorCode": Errors.GROUP_ID_NOT_FOUND},
    ]

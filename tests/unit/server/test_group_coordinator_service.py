"""From the start of a coordinator to its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import InvalidConfigurationError
from pylog.server.protocol import Errors
from tests.unit.server.coordinated_groups import CASE, Server, run

if TYPE_CHECKING:
    from tests.support.golden import GoldenRoot


def test_whoever_joins_while_the_server_ends_is_answered() -> None:
    async def story() -> None:
        server = Server()
        server.coordinator.load(None)
        waiting = asyncio.ensure_future(
            server.ask(
                "JoinGroup",
                0,
                groupId="group",
                sessionTimeoutMs=10_000,
                protocolType="consumer",
                protocols=[{"name": "range", "metadata": b""}],
            )
        )
        await asyncio.sleep(0)
        await server.coordinator.close()
        assert (await waiting)["errorCode"] == Errors.COORDINATOR_NOT_AVAILABLE
        assert server.timer.keys == []

    run(story)


def test_the_file_of_offsets_is_refused_in_a_served_directory(golden_root: GoldenRoot) -> None:
    case = golden_root.case(CASE)
    with pytest.raises(InvalidConfigurationError, match="nothing is ever changed"):
        pylog.serve(case, offsets=case / "orders-0" / "offsets")


def test_groups_begin_where_they_were_at_an_instant(golden_root: GoldenRoot) -> None:
    case, at_ms = golden_root.case(CASE), 1_795_220_381_770
    expected = {
        group.group_id: {(each.topic, each.partition): each.offset for each in group.offsets}
        for group in pylog.groups(case, at_ms=at_ms).groups
    }
    assert expected != {
        group.group_id: {(each.topic, each.partition): each.offset for each in group.offsets}
        for group in pylog.groups(case).groups
    }

    async def story() -> None:
        server = Server()
        server.coordinator.load(pylog.groups(case, at_ms=at_ms))
        assert {group: await server.committed(group) for group in expected} == expected

    run(story)

"""A group coordinator over a directory, as tests ask it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pylog.scheduling.clock import StoppedClock
from pylog.server.group_coordinator import GroupCoordinator
from pylog.server.offset_metadata_manager import OffsetMetadataManager, OffsetsFile
from pylog.server.protocol import Errors
from tests.unit.server.group_fakes import ManualTimer, Topics, context, expanded, request

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from pylog.server.group_config import GroupCoordinatorConfig


CASE = "4.3.0/internal-logdir"
NOW_MS = 1_800_000_000_000
TOPICS = {"orders": 2, "invoices-eu": 2}
Response = dict[str, Any]


class Server:
    """A coordinator, and requests to it."""

    def __init__(
        self,
        file: OffsetsFile | None = None,
        config: GroupCoordinatorConfig | None = None,
        topics: dict[str, int] | None = None,
    ) -> None:
        self.timer = ManualTimer()
        self.topics = Topics(dict(topics or TOPICS))
        self.coordinator = GroupCoordinator(
            self.topics,
            self.timer,
            OffsetMetadataManager(file),
            lambda _: {"nodeId": 1, "host": "localhost", "port": 9092},
            config,
            StoppedClock(NOW_MS),
        )
        self._handlers = {api.name: handler for api, handler in self.coordinator.handlers().items()}

    async def ask(self, name: str, version: int | None = None, **fields: Any) -> Response:  # noqa: ANN401 - of any type
        """Return the answer to a request."""
        answer = self._handlers[name](request(name, **fields), context(name, version))
        given: Response = expanded(await answer if asyncio.iscoroutine(answer) else answer)
        return given

    async def commit(self, group: str, partition: int, offset: int, metadata: str = "") -> Errors:
        """Commit by hand; return the error."""
        committed = {
            "partitionIndex": partition,
            "committedOffset": offset,
            "committedLeaderEpoch": -1,
            "committedMetadata": metadata,
        }
        topic = {"name": "orders", "topicId": None, "partitions": [committed]}
        answer = await self.ask("OffsetCommit", 9, groupId=group, topics=[topic])
        return Errors(answer["topics"][0]["partitions"][0]["errorCode"])

    async def committed(self, group: str) -> dict[tuple[str, int], int]:
        """Return what a group has committed."""
        asked = {"groupId": group, "memberId": None, "memberEpoch": -1, "topics": None}
        answer = await self.ask("OffsetFetch", 9, groups=[asked])
        return {
            (topic["name"], each["partitionIndex"]): each["committedOffset"]
            for topic in answer["groups"][0]["topics"]
            for each in topic["partitions"]
        }

    async def groups(self) -> dict[str, str]:
        """Return all groups with their states."""
        answer = await self.ask("ListGroups")
        return {each["groupId"]: each["groupState"] for each in answer["groups"]}


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine of a test."""
    asyncio.run(story())

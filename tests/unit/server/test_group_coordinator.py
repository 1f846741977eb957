"""The coordinator: what it begins with, what it keeps, what it refuses, what it does on failures.

Answers to all requests are held against a broker's in `tests.broker.test_served_groups`.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import InvalidConfigurationError
from pylog.scheduling.clock import StoppedClock
from pylog.server.group_config import GroupCoordinatorConfig
from pylog.server.group_coordinator import GroupCoordinator
from pylog.server.offset_metadata_manager import CommitKey, OffsetMetadataManager, OffsetsFile
from pylog.server.protocol import Errors
from tests.support.crash_replay import Kind
from tests.support.recording_io import Fault, FaultyIO
from tests.unit.server.group_fakes import ManualTimer, Topics, context, expanded, id_of, request

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from tests.support.golden import GoldenRoot

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


def test_groups_of_a_directory_are_there_without_members(golden_root: GoldenRoot) -> None:
    listing = pylog.groups(golden_root.case(CASE), at_ms=1_795_220_320_290)
    assert any(group.members for group in listing.groups)

    async def story() -> None:
        server = Server()
        server.coordinator.load(listing)
        assert await server.groups() == dict.fromkeys(
            (group.group_id for group in listing.groups), "Empty"
        )
        for group in listing.groups:
            assert await server.committed(group.group_id) == {
                (each.topic, each.partition): each.offset for each in group.offsets
            }

    run(story)


def test_what_is_committed_to_the_file_counts_more_than_the_directory(
    golden_root: GoldenRoot, tmp_path: Path
) -> None:
    listing = pylog.groups(golden_root.case(CASE))

    async def first() -> None:
        with OffsetsFile(tmp_path / "offsets") as file:
            server = Server(file)
            server.coordinator.load(listing)
            assert await server.committed("grp-late") == {("orders", 1): 9}
            assert await server.commit("grp-late", 1, 30) is Errors.NONE
            assert await server.commit("new", 0, 5) is Errors.NONE
            await server.ask("DeleteGroups", groupsNames=["grp-member"])
            await server.coordinator.close()

    async def second() -> None:
        with OffsetsFile(tmp_path / "offsets") as file:
            server = Server(file)
            server.coordinator.load(listing)
            assert await server.committed("grp-late") == {("orders", 1): 30}
            assert await server.committed("new") == {("orders", 0): 5}
            assert await server.committed("grp-member") == {}

    run(first)
    run(second)


def test_a_full_disk_is_an_error_of_the_commit_and_no_commit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        io = FaultyIO()
        with OffsetsFile(tmp_path / "offsets", io) as file:
            server = Server(file)
            server.coordinator.load(None)
            assert await server.commit("group", 0, 1) is Errors.NONE
            full = Fault(kinds=frozenset({Kind.WRITE}), forever=True, error_number=errno.ENOSPC)
            io.faults = [full]
            with caplog.at_level(logging.ERROR):
                error = await server.commit("group", 0, 2)
            assert error is Errors.COORDINATOR_NOT_AVAILABLE
            assert await server.committed("group") == {("orders", 0): 1}
            io.faults = []
            assert await server.commit("group", 0, 3) is Errors.NONE
            assert await server.committed("group") == {("orders", 0): 3}

    run(story)
    (record,) = caplog.records
    assert "No space left on device" in record.getMessage()
    with OffsetsFile(tmp_path / "offsets") as file:
        assert file.offsets[CommitKey("group", "orders", 0)].offset == 3


def test_commits_at_the_same_time_are_all_stored(tmp_path: Path) -> None:
    async def story() -> None:
        with OffsetsFile(tmp_path / "offsets") as file:
            server = Server(file)
            server.coordinator.load(None)
            errors = await asyncio.gather(
                *(server.commit(f"group-{number}", number % 2, number) for number in range(200))
            )
            assert set(errors) == {Errors.NONE}
            await server.coordinator.close()

    run(story)
    with OffsetsFile(tmp_path / "offsets") as file:
        offsets = {key.group_id: each.offset for key, each in file.offsets.items()}
    assert offsets == {f"group-{number}": number for number in range(200)}


def test_there_are_so_many_groups_and_no_more_but_unused_ones_make_room() -> None:
    async def story() -> None:
        server = Server(config=GroupCoordinatorConfig(max_groups=3))
        server.coordinator.load(None)
        joining: dict[str, Any] = {
            "sessionTimeoutMs": 10_000,
            "rebalanceTimeoutMs": 10_000,
            "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": b""}],
        }
        for number in range(2):
            assert await server.commit(f"kept-{number}", 0, 1) is Errors.NONE
        for number in range(5):
            answer = await server.ask("JoinGroup", groupId=f"tried-{number}", **joining)
            server.timer.advance(10_000)  # and it does not come back
            assert answer["errorCode"] == Errors.MEMBER_ID_REQUIRED
        assert await server.commit("third", 0, 1) is Errors.NONE
        assert await server.commit("fourth", 0, 1) is Errors.COORDINATOR_NOT_AVAILABLE
        answer = await server.ask("JoinGroup", groupId="fifth", **joining)
        assert answer["errorCode"] == Errors.COORDINATOR_NOT_AVAILABLE
        assert set(await server.groups()) == {"kept-0", "kept-1", "third"}

    run(story)


def test_subscriptions_and_assignments_of_all_groups_are_bounded() -> None:
    async def story() -> None:
        server = Server(config=GroupCoordinatorConfig(max_group_bytes=20_000))
        server.coordinator.load(None)

        async def join(group: str, size: int) -> int:
            answer = asyncio.ensure_future(
                server.ask(
                    "JoinGroup",
                    3,
                    groupId=group,
                    sessionTimeoutMs=10_000,
                    rebalanceTimeoutMs=10_000,
                    protocolType="consumer",
                    protocols=[{"name": "range", "metadata": b"x" * size}],
                )
            )
            await asyncio.sleep(0)
            server.timer.advance(1_000)
            return int((await answer)["errorCode"])

        assert await join("one", 8_000) == Errors.NONE
        assert await join("two", 8_000) == Errors.GROUP_MAX_SIZE_REACHED
        assert await join("two", 100) == Errors.NONE

    run(story)


def test_regular_expressions_are_bounded() -> None:
    async def run() -> list[Errors]:
        server = Server(config=GroupCoordinatorConfig(max_group_bytes=12_000))
        return [
            Errors(
                (
                    await server.ask(
                        "ConsumerGroupHeartbeat",
                        groupId="group",
                        memberId=f"m{number}",
                        memberEpoch=0,
                        rebalanceTimeoutMs=5_000,
                        subscribedTopicNames=None,
                        subscribedTopicRegex="o" * 900,
                        topicPartitions=[],
                    )
                ).get("errorCode", 0)
            )
            for number in range(4)
        ]

    answers = asyncio.run(run())
    assert answers[0] is Errors.NONE
    assert answers[-1] is Errors.GROUP_MAX_SIZE_REACHED


def test_members_that_have_only_asked_for_an_id_are_bounded() -> None:
    async def run() -> list[Errors]:
        server = Server(config=GroupCoordinatorConfig(max_group_bytes=30_000))
        asked: dict[str, Any] = {
            "sessionTimeoutMs": 10_000,
            "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": b""}],
        }
        answers = [
            await server.ask("JoinGroup", groupId=f"group-{number}", memberId="", **asked)
            for number in range(30)
        ]
        return [Errors(each["errorCode"]) for each in answers]

    answers = asyncio.run(run())
    assert answers[0] is Errors.MEMBER_ID_REQUIRED
    assert answers[-1] is Errors.GROUP_MAX_SIZE_REACHED


@pytest.mark.parametrize("has_offsets", [False, True])
def test_members_join_again_after_the_server_was_started_anew(*, has_offsets: bool) -> None:
    async def run() -> list[Errors]:
        server = Server()
        if has_offsets:
            await server.commit("group", 0, 5)
        beat: dict[str, Any] = {
            "groupId": "group",
            "memberId": "m",
            "memberEpoch": 7,
            "topicPartitions": [],
        }
        joining = {
            **beat,
            "memberEpoch": 0,
            "rebalanceTimeoutMs": 5_000,
            "subscribedTopicNames": ["orders"],
        }
        answers = [
            await server.ask("ConsumerGroupHeartbeat", **each)
            for each in ({**beat, "memberEpoch": -1}, beat, joining)
        ]
        return [Errors(each.get("errorCode", 0)) for each in answers]

    # The Java client and librdkafka give up for good where a group is not there.
    assert asyncio.run(run()) == [Errors.GROUP_ID_NOT_FOUND, Errors.UNKNOWN_MEMBER_ID, Errors.NONE]


def test_commits_of_members_are_refused_so_that_they_join_again_after_a_restart() -> None:
    """At GROUP_ID_NOT_FOUND the Java client gives up: its handler of commits does not know it."""

    async def story() -> None:
        server = Server()
        server.coordinator.load(None)
        committed = {
            "partitionIndex": 0,
            "committedOffset": 5,
            "committedLeaderEpoch": -1,
            "committedMetadata": "",
        }
        topic = {"name": "orders", "topicId": id_of("orders"), "partitions": [committed]}
        for version, expected in (
            (8, Errors.ILLEGAL_GENERATION),
            (9, Errors.UNKNOWN_MEMBER_ID),
            (10, Errors.UNKNOWN_MEMBER_ID),
        ):
            answer = await server.ask(
                "OffsetCommit",
                version,
                groupId="group",
                memberId="m",
                generationIdOrMemberEpoch=0,
                topics=[topic],
            )
            assert answer["topics"][0]["partitions"][0]["errorCode"] is expected
        assert await server.groups() == {}

    run(story)


def test_heartbeats_that_bring_nothing_new_are_answered_where_there_is_no_room() -> None:
    async def story() -> None:
        server = Server(config=GroupCoordinatorConfig(max_group_bytes=6_700))
        server.coordinator.load(None)

        async def beat(epoch: int, regex: str | None, **fields: Any) -> Response:  # noqa: ANN401 - of any type
            return await server.ask(
                "ConsumerGroupHeartbeat",
                groupId="group",
                memberId="m",
                memberEpoch=epoch,
                rebalanceTimeoutMs=5_000,
                subscribedTopicNames=None,
                subscribedTopicRegex=regex,
                topicPartitions=[],
                **fields,
            )

        epoch = (await beat(0, "o" * 1_000))["memberEpoch"]
        assert "errorCode" not in await beat(epoch, None)
        for answer in (await beat(epoch, "p"), await beat(epoch, None, rackId="r")):
            assert answer["errorCode"] is Errors.GROUP_MAX_SIZE_REACHED

    run(story)


def test_offsets_of_a_partition_that_is_named_again_and_again_are_answered_once() -> None:
    async def story() -> None:
        server = Server()
        server.coordinator.load(None)
        assert await server.commit("group", 0, 7, "x" * 4_096) is Errors.NONE
        for version, place in ((9, {"name": "orders"}), (10, {"topicId": id_of("orders")})):
            topic = {"name": "", "topicId": None, **place}
            asked = [{**topic, "partitionIndexes": each} for each in ([0, 0], [1, 0], [0])]
            group = {"groupId": "group", "memberId": None, "memberEpoch": -1, "topics": asked}
            answer = await server.ask("OffsetFetch", version, groups=[group])
            offsets = [
                (each["partitionIndex"], each["committedOffset"])
                for topic in answer["groups"][0]["topics"]
                for each in topic["partitions"]
            ]
            assert offsets == [(0, 7), (1, -1)]

    run(story)


def test_committed_offsets_are_bounded_and_old_ones_can_still_be_replaced() -> None:
    async def story() -> None:
        server = Server(config=GroupCoordinatorConfig(max_offsets_bytes=5_000))
        server.coordinator.load(None)
        assert await server.commit("one", 0, 1, "x" * 4_000) is Errors.NONE
        assert await server.commit("two", 0, 1, "x" * 4_000) is Errors.COORDINATOR_NOT_AVAILABLE
        assert await server.commit("one", 0, 2, "x" * 4_000) is Errors.NONE
        assert await server.commit("one", 0, 3) is Errors.NONE
        assert await server.commit("two", 0, 1, "x" * 4_000) is Errors.NONE

    run(story)


def test_a_group_that_is_asked_for_again_and_again_is_answered_once() -> None:
    async def story() -> None:
        server = Server()
        server.coordinator.load(None)
        assert await server.commit("group", 0, 1) is Errors.NONE
        names = ["group"] * 3
        asked = [
            {"groupId": each, "memberId": None, "memberEpoch": -1, "topics": None} for each in names
        ]
        for answer in (
            await server.ask("OffsetFetch", 9, groups=asked),
            await server.ask("DescribeGroups", groups=names),
        ):
            errors = [each.get("errorCode", 0) for each in answer["groups"]]
            assert errors == [Errors.NONE, Errors.INVALID_REQUEST, Errors.INVALID_REQUEST]

    run(story)


@pytest.mark.parametrize("name", ["JoinGroup", "ConsumerGroupHeartbeat"])
def test_many_short_names_are_bounded_too(name: str) -> None:
    async def story() -> None:
        server = Server(config=GroupCoordinatorConfig(max_group_bytes=100_000))
        server.coordinator.load(None)
        many = 2_000
        answer = await server.ask(
            name,
            groupId="group",
            memberId="" if name == "JoinGroup" else "member",
            sessionTimeoutMs=10_000,
            rebalanceTimeoutMs=10_000,
            protocolType="consumer",
            protocols=[{"name": "", "metadata": b""}] * many,
            subscribedTopicNames=[""] * many,
            topicPartitions=[],
        )
        assert answer["errorCode"] == Errors.GROUP_MAX_SIZE_REACHED
        assert await server.groups() == {}

    run(story)


def test_offsets_of_a_deleted_topic_are_not_those_of_the_one_that_has_its_name_now(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        with OffsetsFile(tmp_path / "offsets") as file:
            server = Server(file)
            server.coordinator.load(None)
            assert await server.commit("group", 0, 7) is Errors.NONE
            key = CommitKey("group", "orders", 0)
            earlier = file.offsets[key]._replace(topic_id=id_of("gone"))
            file.store({key: earlier})
            server.coordinator.load(None)
            assert await server.committed("group") == {}

    run(story)


def test_offsets_of_the_directory_are_not_those_of_a_topic_that_is_made_anew(
    golden_root: GoldenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = pylog.groups(golden_root.case(CASE))

    async def story() -> None:
        server = Server()
        server.coordinator.load(listing)
        assert await server.committed("grp-late") == {("orders", 1): 9}
        monkeypatch.setattr(server.topics, "topic_id", lambda name: id_of(f"another {name}"))
        assert await server.committed("grp-late") == {}

    run(story)


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

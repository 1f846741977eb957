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
from pylog.server import consumer_group
from pylog.server.classic_group import ClassicGroup
from pylog.server.group_config import GroupCoordinatorConfig
from pylog.server.offset_metadata_manager import CommitKey, OffsetsFile
from pylog.server.protocol import Errors
from pylog.server.request_limits import MOST_ELEMENTS
from tests.support.crash_replay import Kind
from tests.support.recording_io import Fault, FaultyIO
from tests.unit.server.coordinated_groups import CASE, Response, Server, run
from tests.unit.server.group_fakes import ManualTimer, context, id_of, request

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.server.group_coordinator import GroupCoordinator
    from tests.support.golden import GoldenRoot


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

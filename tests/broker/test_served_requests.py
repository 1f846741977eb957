"""The same requests to a broker and to `pylog.serve` on a copy of its directory: the same answers.

What differs on purpose is in `_comparable`: who answers (cluster, address), and what only a broker
that writes has (throttling, sessions of fetches).
"""

from __future__ import annotations

import itertools
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.server.messages import APIS
from tests.broker.served_cluster import TOPICS, copy_beside, fill
from tests.support.raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.broker.conftest import NewBroker
    from tests.conftest import HowMany

pytestmark = pytest.mark.broker

NO_TOPIC = "no-such-topic"
ISOLATIONS = (0, 1)
Request = dict[str, Any]


def test_the_answers_are_those_of_the_broker(
    new_broker: NewBroker, tmp_path: Path, how_many: HowMany
) -> None:
    broker = new_broker(properties={"transaction.state.log.num.partitions": "1"})
    fill(broker)
    copy_beside(broker, tmp_path / "copy")
    with (
        pylog.serve(tmp_path / "copy") as server,
        RawClient(broker.bootstrap_servers) as theirs,
        RawClient(server.address) as ours,
    ):
        topic_ids = _topic_ids(theirs)
        assert _topic_ids(ours) == topic_ids
        asked = 0
        for api, version, request in itertools.islice(
            _requests(topic_ids), 0, None, how_many(4, 1)
        ):
            their_answer = _comparable(theirs.ask(api, version, request))
            our_answer = _comparable(ours.ask(api, version, request))
            assert our_answer == their_answer, (api, version, request)
            asked += 1
        assert asked > 500


def test_a_producer_without_acks_learns_of_an_error_by_a_closed_connection(
    new_broker: NewBroker, tmp_path: Path
) -> None:
    broker = new_broker()
    broker.create_topic("plain", partitions=1)
    copy_beside(broker, tmp_path / "copy")
    data = [{"name": NO_TOPIC, "partitionData": [{"index": 0, "records": b""}]}]
    with pylog.serve(tmp_path / "copy") as server:
        for address in (broker.bootstrap_servers, server.address):
            with RawClient(address) as client:
                client.send("Produce", 9, {"acks": 0, "timeoutMs": 1_000, "topicData": data})
                with pytest.raises(ConnectionError):
                    client.receive_frame()


@pytest.mark.thorough
def test_a_log_without_its_leader_epochs_has_one_as_with_the_broker(
    new_broker: NewBroker, tmp_path: Path
) -> None:
    broker = new_broker()
    broker.create_topic("orders")
    for _ in range(3):  # each start begins an epoch
        with broker.producer() as producer:
            producer.send("orders", value=b"an order")
        broker.stop()
        broker.start()
    broker.stop()
    directory = broker.partition_directory("orders")
    (view,) = pylog.open_directory(directory)
    assert view.end.last is not None
    of_batches = view.end.last.header.partition_leader_epoch
    (directory / "leader-epoch-checkpoint").unlink()
    shutil.copytree(broker.log_dir, tmp_path / "copy")
    broker.start()
    with (
        pylog.serve(tmp_path / "copy") as server,
        RawClient(broker.bootstrap_servers) as theirs,
        RawClient(server.address) as ours,
    ):
        asked: Request = {"topics": [{"name": "orders"}]}
        told = [
            each.ask("Metadata", 12, asked)["topics"][0]["partitions"][0]["leaderEpoch"]
            for each in (theirs, ours)
        ]
        assert told[0] >= told[1] == of_batches > 0
        for epoch in range(of_batches + 1):
            partition = {"partition": 0, "currentLeaderEpoch": -1, "leaderEpoch": epoch}
            asked = {"replicaId": -1, "topics": [{"topic": "orders", "partitions": [partition]}]}
            their_answer, our_answer = (
                _comparable(each.ask("OffsetForLeaderEpoch", 4, asked)) for each in (theirs, ours)
            )
            assert our_answer == their_answer
            assert (our_answer["topics"][0]["partitions"][0]["endOffset"]) == 3


def _topic_ids(client: RawClient) -> dict[str, Any]:
    asked = [{"name": name} for name in TOPICS]
    topics = client.ask("Metadata", 13, {"topics": asked})["topics"]
    return {each["name"]: each["topicId"] for each in topics}


def _requests(topic_ids: dict[str, Any]) -> Iterator[tuple[str, int, Request]]:
    yield from _metadata(topic_ids)
    yield from _list_offsets()
    yield from _epochs()
    yield from _fetches(topic_ids)


def _metadata(topic_ids: dict[str, Any]) -> Iterator[tuple[str, int, Request]]:
    names = [{"name": name} for name in (*TOPICS, NO_TOPIC, "illegal name")]
    for version in APIS["Metadata"].versions:
        no_creation = {"allowAutoTopicCreation": False}
        if version >= 4:  # before, brokers make a topic that is asked for
            yield "Metadata", version, {"topics": names, **no_creation}
            yield "Metadata", version, {"topics": names * 2, **no_creation}
        if version >= 1:
            yield "Metadata", version, {"topics": [], **no_creation}
        if version >= 12:
            by_id = [{"name": None, "topicId": each} for each in topic_ids.values()]
            yield "Metadata", version, {"topics": by_id, **no_creation}
            yield "Metadata", version, {"topics": by_id * 2, **no_creation}
    asked = [{"name": name} for name in (*TOPICS, NO_TOPIC)]
    for limit in (1, 2, 2000):
        request = {"topics": asked, "responsePartitionLimit": limit}
        yield "DescribeTopicPartitions", 0, request
        cursor = {"topicName": "plain", "partitionIndex": 1}
        yield "DescribeTopicPartitions", 0, {**request, "cursor": cursor}
    for version in APIS["DescribeCluster"].versions:
        for endpoint_type in (1, 2, 3) if version else (1,):
            yield "DescribeCluster", version, {"endpointType": endpoint_type}


def _list_offsets() -> Iterator[tuple[str, int, Request]]:
    least_versions = {-3: 7, -4: 8, -5: 9, -6: 11}
    for version in APIS["ListOffsets"].versions:
        for timestamp in (-1, -2, -3, -4, -5, -6, 0, 1, 2_000, 40_001, 40_002, 10**15):
            if version < least_versions.get(timestamp, 0):
                continue
            for isolation in ISOLATIONS if version >= 2 else (0,):
                for epoch in (-1, 0, 5) if version >= 4 else (-1,):
                    partitions = [
                        {
                            "partitionIndex": each,
                            "timestamp": timestamp,
                            "currentLeaderEpoch": epoch,
                        }
                        for each in (0, 1)
                    ]
                    yield (
                        "ListOffsets",
                        version,
                        {
                            "replicaId": -1,
                            "isolationLevel": isolation,
                            "timeoutMs": 10_000,
                            "topics": [
                                {"name": name, "partitions": partitions}
                                for name in (*TOPICS, NO_TOPIC)
                            ],
                        },
                    )


def _epochs() -> Iterator[tuple[str, int, Request]]:
    for version in APIS["OffsetForLeaderEpoch"].versions:
        for current in (-1, 0, 4):
            for epoch in (-1, 0, 1, 7):
                partition = {"partition": 0, "currentLeaderEpoch": current, "leaderEpoch": epoch}
                topics = [
                    {"topic": name, "partitions": [partition]} for name in (*TOPICS, NO_TOPIC)
                ]
                yield "OffsetForLeaderEpoch", version, {"replicaId": -1, "topics": topics}


def _fetches(topic_ids: dict[str, Any]) -> Iterator[tuple[str, int, Request]]:
    bounds = (
        (1, 1),
        (0, 1 << 20),
        (100, 1 << 20),
        (40_000, 1 << 20),
        (1 << 20, 100_000),
        (50 << 20, 50 << 20),
    )
    for version in APIS["Fetch"].versions:
        for offset in (0, 1, 7, 30, 47, 71, 89, 90, 91, 10_000, -1):
            for of_partition, of_all in bounds:
                for isolation in ISOLATIONS:
                    yield _fetch(version, topic_ids, offset, (of_partition, of_all), isolation)
        for epoch in (0, 3):
            yield _fetch(version, topic_ids, 3, bounds[2], 1, currentLeaderEpoch=epoch)
            yield _fetch(version, topic_ids, 3, bounds[2], 0, lastFetchedEpoch=epoch)
        # The same partitions again, from other offsets.
        asked = [_fetch(version, topic_ids, each, bounds[2], 1)[2] for each in (3, 1, 30)]
        topics = [topic for each in asked for topic in each["topics"]]
        yield "Fetch", version, {**asked[0], "topics": topics}


def _fetch(
    version: int,
    topic_ids: dict[str, Any],
    offset: int,
    bounds: tuple[int, int],
    isolation: int,
    **of_partition: int,
) -> tuple[str, int, Request]:
    partitions = [
        {"partition": each, "fetchOffset": offset, "partitionMaxBytes": bounds[0], **of_partition}
        for each in (0, 1)
    ]
    return (
        "Fetch",
        version,
        {
            "maxWaitMs": 0,
            "minBytes": 1,
            "maxBytes": bounds[1],
            "isolationLevel": isolation,
            "topics": [
                {"topic": name, "topicId": topic_id, "partitions": partitions}
                for name, topic_id in topic_ids.items()
            ],
        },
    )


_OF_THE_ANSWERER = frozenset(
    {
        "clusterId",
        "errorMessage",
        "host",
        "nodeEndpoints",
        "port",
        "throttleTimeMs",
        "topicAuthorizedOperations",  # nobody may write
    }
)


def _by_partition(responses: list[Any]) -> Iterator[Any]:
    """Yield each partition of a Fetch response alone: a broker lists those with errors apart."""
    for topic in responses:
        for partition in topic["partitions"]:
            yield {**topic, "partitions": [partition]}


def _comparable(answer: Any) -> Any:  # noqa: ANN401 - a value of a response
    if isinstance(answer, dict):
        if "responses" in answer:
            answer = {**answer, "responses": list(_by_partition(answer["responses"]))}
        return {
            name: _comparable(value)
            for name, value in answer.items()
            if name not in _OF_THE_ANSWERER
        }
    if isinstance(answer, list):
        # Topics come as they lie in a hash table.
        return sorted(map(_comparable, answer), key=repr)
    return answer

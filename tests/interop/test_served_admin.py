"""librdkafka's AdminClient with `pylog.serve`: what it finds, and that its changes are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

import pylog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from concurrent.futures import Future
    from pathlib import Path

    from tests.support.golden import GoldenRoot

    Call = Callable[[AdminClient], Mapping[Any, Future[Any]]]

CASE = "4.3.0/internal-logdir"
GROUP = "grp-late"
TYPES: Any = confluent_kafka.admin  # its types are not exported to type checkers
SET = TYPES.AlterConfigOpType.SET
SECONDS = 60


@pytest.fixture
def case(golden_root: GoldenRoot) -> Path:
    return golden_root.case(CASE)


@pytest.fixture
def admin(case: Path) -> Iterator[AdminClient]:
    with pylog.serve(case) as server:
        yield AdminClient({"bootstrap.servers": server.address})


def _only(futures: Mapping[Any, Future[Any]]) -> Any:  # noqa: ANN401 - of any type
    """Return the one result, or raise its error; it must be there in time."""
    (future,) = futures.values()
    return future.result(SECONDS)


def _committed(admin: AdminClient) -> dict[tuple[str, int], int]:
    found = _only(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP)]))
    return {(each.topic, each.partition): each.offset for each in found.topic_partitions}


def test_it_finds_topics_and_offsets(admin: AdminClient, case: Path) -> None:
    topics = admin.list_topics(timeout=SECONDS).topics
    counts = {name: len(topic.partitions) for name, topic in topics.items()}
    assert counts == {"orders": 2, "invoices-eu": 2}
    described = _only(admin.describe_topics(TopicCollection(["orders"])))
    assert [(each.id, each.leader.id) for each in described.partitions] == [(0, 1), (1, 1)]
    for partition in (0, 1):
        asked = {TopicPartition("orders", partition): TYPES.OffsetSpec.latest()}
        end = pylog.open_directory(case)["orders", partition].log_end_offset
        assert _only(admin.list_offsets(asked)).offset == end


def test_it_resets_and_deletes_what_a_group_has_committed(admin: AdminClient) -> None:
    groups = admin.list_consumer_groups().result(SECONDS).valid
    assert {each.group_id for each in groups} == {GROUP, "grp-member"}
    assert _only(admin.describe_consumer_groups([GROUP])).members == []
    assert _committed(admin) == {("orders", 1): 9}
    reset = ConsumerGroupTopicPartitions(GROUP, [TopicPartition("orders", 1, 3)])
    _only(admin.alter_consumer_group_offsets([reset]))
    assert _committed(admin) == {("orders", 1): 3}
    _only(admin.delete_consumer_groups([GROUP]))
    assert _committed(admin) == {}


REFUSED: dict[str, Call] = {
    "create_topics": lambda admin: admin.create_topics([TYPES.NewTopic("new", 1, 1)]),
    "delete_topics": lambda admin: admin.delete_topics(["orders"]),
    "create_partitions": lambda admin: admin.create_partitions([TYPES.NewPartitions("orders", 5)]),
    "delete_records": lambda admin: admin.delete_records([TopicPartition("orders", 0, 1)]),
    "incremental_alter_configs": lambda admin: admin.incremental_alter_configs(
        [
            TYPES.ConfigResource(
                "topic",
                "orders",
                incremental_configs=[
                    TYPES.ConfigEntry("retention.ms", "1", incremental_operation=SET)
                ],
            )
        ]
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_changes_a_cluster_is_refused_with_an_error_that_is_not_tried_again(
    admin: AdminClient, name: str
) -> None:
    with pytest.raises(confluent_kafka.KafkaException, match="_AUTHORIZATION_FAILED"):
        _only(REFUSED[name](admin))


def test_a_topic_that_is_not_there_is_an_error(admin: AdminClient) -> None:
    with pytest.raises(confluent_kafka.KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
        _only(admin.describe_topics(TopicCollection(["none"])))

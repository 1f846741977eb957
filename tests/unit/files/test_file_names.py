"""Names of directories of partitions, and of those that are deleted."""

from __future__ import annotations

import uuid

import pytest

from pylog.files.file_names import (
    colliding_topic,
    ensure_valid_topic_partition,
    find_partition_directory_name,
    log_delete_directory_name,
)
from pylog.model import TopicPartition


@pytest.mark.parametrize(
    ("name", "topic", "partition"),
    [
        ("test_topic-0", "test_topic", 0),
        ("foo.bar.data-3", "foo.bar.data", 3),
        ("with-dashes-in-it-12", "with-dashes-in-it", 12),
        ("highest-2147483647", "highest", 2_147_483_647),
        # Integer.parseInt takes these, too.
        ("zeros-00", "zeros", 0),
        ("zeros-007", "zeros", 7),
        ("dashes--3", "dashes-", 3),
        ("plus-+3", "plus", 3),
        ("foo-bar-0.4ee74a38df664a2f8e8dd61cb6f3aa9a-delete", "foo-bar", 0),
        ("foo-bar-0.4ee74a38df664a2f8e8dd61cb6f3aa9a-future", "foo-bar", 0),
        ("foo-bar-0.4ee74a38df664a2f8e8dd61cb6f3aa9a-stray", "foo-bar", 0),
    ],
)
def test_a_directory_name_gives_topic_and_partition(name: str, topic: str, partition: int) -> None:
    parts = find_partition_directory_name(name)
    assert parts is not None
    assert parts.topic_partition == TopicPartition(topic, partition)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "topic1",  # no separator
        "-1",  # no topic
        "topic-",  # no partition
        "topic-1a",  # not a number
        "topic-+",
        "topic-++1",
        "topic- 1",
        "topic-1_0",
        "topic-2147483648",  # beyond 32 bits
        "non_kafka_dir",
        "non_kafka_dir-delete",  # a suffix without an id
        "topic-0-delete",
        "topic-0-future",
        "-delete",
    ],
)
def test_another_name_is_not_a_partitions_directory(name: str) -> None:
    assert find_partition_directory_name(name) is None


@pytest.mark.parametrize(
    ("topic", "length"), [("a" * 249, 255), ("foo", 3 + 1 + 1 + 1 + 32 + 7), ("b" * 220, 255)]
)
def test_a_deleted_logs_directory_has_a_name_that_a_file_system_takes(
    topic: str, length: int
) -> None:
    identity = uuid.UUID("4ee74a38-df66-4a2f-8e8d-d61cb6f3aa9a")
    name = log_delete_directory_name(TopicPartition(topic, 3), identity)
    assert len(name) <= length
    assert name.endswith("-3.4ee74a38df664a2f8e8dd61cb6f3aa9a-delete")
    kept = name.removesuffix("-3.4ee74a38df664a2f8e8dd61cb6f3aa9a-delete")
    assert topic.startswith(kept)
    parts = find_partition_directory_name(name)
    assert parts is not None
    assert parts.topic_partition == TopicPartition(kept, 3)


@pytest.mark.parametrize(
    ("topic", "partition", "reason"),
    [
        ("t", 0, None),
        ("t", 2**31 - 1, None),
        ("t", -1, "partition is -1, expected 0 to 2147483647"),
        ("t", 2**31, "expected 0 to 2147483647"),
        ("t" * 249, 12345, None),  # 255 bytes, which a file system takes
        ("t" * 249, 123456, "would have a name of 256 characters"),
        ("", 0, "empty"),
        ("a/b", 0, "a/b"),
    ],
)
def test_kafka_allows_some_topics_and_partitions(
    topic: str, partition: int, reason: str | None
) -> None:
    if reason is None:
        ensure_valid_topic_partition(TopicPartition(topic, partition))
        return
    with pytest.raises(ValueError, match=reason):
        ensure_valid_topic_partition(TopicPartition(topic, partition))


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [("a.b", ["a_b"], "a_b"), ("a.b", ["a-b", "ab"], None), ("a_b", ["x.y", "a.b"], "a.b")],
)
def test_names_collide_where_metrics_have_one_name(
    name: str, known: list[str], expected: str | None
) -> None:
    assert colliding_topic(name, known) == expected

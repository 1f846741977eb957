from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import LogDirectoryError, UnknownTopicOrPartitionError
from pylog.reading.log_directory import choose_partitions
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def log_directory(tmp_path: Path) -> Path:
    for name in ("orders-0", "orders-1", "web-0", "__consumer_offsets-3"):
        write_partition(tmp_path, {0: [batch_v2(plain_records(0, 1))]}, name=name)
    return tmp_path


def chosen(*paths: Path, **choice: Any) -> dict[str, list[int]]:  # noqa: ANN401
    return choose_partitions(pylog.open_directory(*paths), **choice)


def test_topics_are_chosen_by_name(log_directory: Path) -> None:
    assert chosen(log_directory, topics=["orders", "web"]) == {"orders": [0, 1], "web": [0]}
    assert chosen(log_directory, topics=["web"]) == {"web": [0]}


def test_an_internal_topic_is_read_when_it_is_named(log_directory: Path) -> None:
    internal = {"__consumer_offsets": [3]}
    assert chosen(log_directory, topics=["__consumer_offsets"]) == internal
    assert chosen(log_directory / "__consumer_offsets-3") == internal


def test_a_path_to_an_internal_partition_names_that_one_alone(log_directory: Path) -> None:
    both = chosen(log_directory / "__consumer_offsets-3", log_directory / "orders-1")
    assert both == {"__consumer_offsets": [3], "orders": [1]}


def test_a_partition_is_taken_of_every_topic_that_has_it(log_directory: Path) -> None:
    assert chosen(log_directory, partitions=[1]) == {"orders": [1]}
    assert chosen(log_directory, partitions=[0]) == {"orders": [0], "web": [0]}
    assert chosen(log_directory, topics=["orders"], partitions=[1, 0]) == {"orders": [0, 1]}


def test_a_topic_that_was_named_must_have_the_partition(log_directory: Path) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match=r"no partition 1 of topic 'web' here"):
        chosen(log_directory, topics=["orders", "web"], partitions=[1])


def test_a_partition_that_no_topic_has_is_an_error(log_directory: Path) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match=r"no topic has a partition 8 here"):
        chosen(log_directory, partitions=[8])


def test_topics_are_chosen_by_a_pattern(log_directory: Path) -> None:
    assert chosen(log_directory, pattern="^or") == {"orders": [0, 1]}
    assert chosen(log_directory, pattern="e", partitions=[0]) == {"orders": [0], "web": [0]}


def test_a_pattern_that_no_topic_matches_is_an_error(log_directory: Path) -> None:
    with pytest.raises(
        UnknownTopicOrPartitionError,
        match=r"no topic here matches the pattern 'consumer'; topics found: __consumer_offsets",
    ):
        chosen(log_directory, pattern="consumer")


def test_only_internal_topics_need_a_name(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 1))]}, name="__transaction_state-0")
    with pytest.raises(LogDirectoryError, match=r"only internal topics here.*__transaction_state"):
        chosen(tmp_path)


def test_a_directory_that_is_being_deleted_is_not_read(tmp_path: Path) -> None:
    name = "orders-0." + "a" * 32 + "-delete"
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 1))]}, name=name)
    with pytest.raises(LogDirectoryError, match=r"no live partition here.*-delete"):
        chosen(tmp_path)

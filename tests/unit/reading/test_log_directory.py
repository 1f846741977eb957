from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pylog
from pylog.errors import UnknownTopicOrPartitionError
from pylog.reading.log_directory import (
    compile_topic_pattern,
    ensure_known_topics,
    no_topic_matches,
    topic_list,
)
from pylog.reading.segment_listing import list_segments
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pylog.reading.segment_listing import SegmentListing

NAMES = (
    *("orders-0", "orders-1", "orders-7", "payments-0"),
    *("__consumer_offsets-0", "__transaction_state-3", "__share_group_state-1"),
    *("__cluster_metadata-0", "__remote_log_metadata-0", "__private-0"),
)


@pytest.fixture
def directory(tmp_path: Path) -> pylog.results.LogDirectory:
    for name in NAMES:
        write_partition(tmp_path, {0: [batch_v2(plain_records(0, 1))]}, name=name)
    return pylog.open_directory(tmp_path)


def names(
    directory: pylog.results.LogDirectory,
    *,
    topics: Iterable[str] | None = None,
    assign: Mapping[str, Iterable[int]] | None = None,
    pattern: str | None = None,
) -> list[str]:
    views = directory.select(topics=topics, assign=assign, pattern=pattern)
    return [str(view.topic_partition) for view in views]


def test_all_but_internal_topics_are_read_by_default(directory: pylog.results.LogDirectory) -> None:
    user = ["__private-0", "orders-0", "orders-1", "orders-7", "payments-0"]
    assert names(directory) == user
    assert len(directory) == len(NAMES)
    assert set(directory.topics) == {name.rpartition("-")[0] for name in NAMES}


def test_internal_topics_are_read_when_named(directory: pylog.results.LogDirectory) -> None:
    assert names(directory, topics=["__consumer_offsets"]) == ["__consumer_offsets-0"]
    assert names(directory, assign={"__cluster_metadata": [0]}) == ["__cluster_metadata-0"]


def test_a_subscription_has_every_partition_once_in_order(
    directory: pylog.results.LogDirectory,
) -> None:
    wanted = ["payments", "orders", "payments"]
    assert names(directory, topics=wanted) == ["orders-0", "orders-1", "orders-7", "payments-0"]


def test_an_assignment_has_just_its_partitions(directory: pylog.results.LogDirectory) -> None:
    assert names(directory, assign={"payments": [0], "orders": [7, 0, 7]}) == [
        "orders-0",
        "orders-7",
        "payments-0",
    ]


def test_a_pattern_is_found_anywhere_in_a_name_and_never_in_an_internal_one(
    directory: pylog.results.LogDirectory,
) -> None:
    assert names(directory, pattern="ord|pay") == ["orders-0", "orders-1", "orders-7", "payments-0"]
    # What the brokers call internal, as Topic.isInternal of Kafka 3.9 to 4.4 has it.
    assert names(directory, pattern="^__") == ["__private-0", "__remote_log_metadata-0"]
    assert names(directory, pattern="no such") == []


def test_a_pattern_that_is_none_is_refused(directory: pylog.results.LogDirectory) -> None:
    with pytest.raises(ValueError, match=r"topic pattern '\(' is not a regular expression"):
        names(directory, pattern="(")


def test_only_one_way_of_choosing_may_be_used(directory: pylog.results.LogDirectory) -> None:
    with pytest.raises(ValueError, match="give only one of topics"):
        names(directory, topics=["orders"], pattern="x")
    with pytest.raises(ValueError, match="give only one of topics"):
        names(directory, topics=["orders"], assign={})


def unknown(directory: pylog.results.LogDirectory, **chosen: object) -> str:
    with pytest.raises(UnknownTopicOrPartitionError) as caught:
        names(directory, **chosen)  # type: ignore[arg-type]
    return str(caught.value)


def test_an_unknown_topic_is_reported_with_the_nearest_name(
    directory: pylog.results.LogDirectory,
) -> None:
    text = unknown(directory, topics=["order"])
    assert text.startswith("no topic 'order' here; did you mean 'orders'? Topics found: ")
    assert "payments" in text


def test_an_unknown_topic_unlike_all_others_is_reported_with_those_there_are(
    directory: pylog.results.LogDirectory,
) -> None:
    assert unknown(directory, topics=["xyz"]).startswith("no topic 'xyz' here. Topics found: __")


def test_an_unknown_partition_is_reported_with_those_there_are(
    directory: pylog.results.LogDirectory,
) -> None:
    assert unknown(directory, assign={"orders": [2]}) == (
        "no partition 2 of topic 'orders' here; found 0, 1, 7"
    )


def test_an_unknown_topic_of_an_assignment_is_reported(
    directory: pylog.results.LogDirectory,
) -> None:
    text = unknown(directory, assign={"orderz": [2]})
    assert text.startswith("no topic 'orderz' here")


def test_a_view_is_had_by_topic_and_partition(directory: pylog.results.LogDirectory) -> None:
    assert directory["orders", 7].partition == 7
    with pytest.raises(UnknownTopicOrPartitionError):
        directory["orders", 3]


def test_a_partition_is_in_a_directory_that_gives_its_view(
    directory: pylog.results.LogDirectory,
) -> None:
    assert ("orders", 7) in directory
    assert pylog.TopicPartition("orders", 7) in directory
    assert directory["orders", 7] in directory
    others = [("orders", 3), ("order", 7), ("orders", "7"), ("orders",), "orders-7", 7, None]
    assert [each for each in others if each in directory] == []
    assert pylog.open_directory(directory["orders", 7].directory.path)["orders", 7] not in directory


def test_a_topic_is_in_a_directory_that_has_a_partition_of_it(
    directory: pylog.results.LogDirectory,
) -> None:
    assert "orders" in directory
    assert "__consumer_offsets" in directory
    assert "order" not in directory


@pytest.mark.parametrize(
    ("item", "instead"),
    [
        (
            "orders",
            (
                "directory['orders'] names no partition; use directory['orders', 0] for one, and "
                "directory.topics['orders'] for the list of all"
            ),
        ),
        (
            ("orders", "0"),
            "partition '0' is of type str, expected an integer, as in directory['orders', 0]",
        ),
        (0, "0 is not a topic and a partition, as in directory['orders', 0]"),
        (("orders",), "('orders',) is not a topic and a partition, as in directory['orders', 0]"),
    ],
)
def test_what_names_no_partition_is_answered_with_what_to_write(
    directory: pylog.results.LogDirectory, item: object, instead: str
) -> None:
    with pytest.raises(TypeError) as caught:
        directory[item]  # type: ignore[index]
    assert str(caught.value) == instead


@pytest.mark.parametrize("reads", [pylog.scan, pylog.open_directory])
def test_what_is_no_path_is_answered_with_what_to_give(
    directory: pylog.results.LogDirectory, reads: Callable[[Any], object]
) -> None:
    with pytest.raises(TypeError, match=r"give the directory, and assign={'orders': \[7\]}"):
        reads(directory["orders", 7])
    with pytest.raises(TypeError, match="None is of type NoneType, expected a path"):
        reads(None)
    with pytest.raises(TypeError, match="give the directory, and assign="):
        pylog.scan(directory.topics["orders"])  # type: ignore[arg-type]


def test_a_partition_may_be_a_number_of_numpy(directory: pylog.results.LogDirectory) -> None:
    assert directory["orders", np.int32(7)] is directory["orders", 7]  # type: ignore[index]


def test_a_directory_shows_its_path_and_partitions(tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1", "payments-0", "gone-0.0123456789abcdef-delete"):
        write_partition(tmp_path, {0: [batch_v2(plain_records(0, 1))]}, name=name)
    gone = f"{tmp_path}/gone-0.0123456789abcdef-delete"
    assert repr(pylog.open_directory(tmp_path)) == (
        f"LogDirectory('{tmp_path}', topics={{'orders': [0, 1], 'payments': [0]}}, "
        f"others=['{gone}'])"
    )
    partitions = [tmp_path / "orders-1", tmp_path / "payments-0"]
    assert repr(pylog.open_directory(*partitions)) == (
        f"LogDirectory('{tmp_path}/orders-1', '{tmp_path}/payments-0', "
        "topics={'orders': [1], 'payments': [0]})"
    )


def test_a_directory_of_many_topics_shows_some(tmp_path: Path) -> None:
    for number in range(20):
        write_partition(tmp_path, {0: [batch_v2(plain_records(0, 1))]}, name=f"topic{number:02}-0")
    text = repr(pylog.open_directory(tmp_path))
    assert "'topic00': [0], " in text
    assert text.endswith("'topic07': [0], ...})")


def test_scan_takes_the_same_choices_and_a_single_name(
    directory: pylog.results.LogDirectory,
) -> None:
    assert pylog.scan(directory, topics="orders").count() == 3
    assert pylog.scan(directory, pattern="^pay").count() == 1
    assert pylog.scan(directory, assign={"orders": [0, 1]}).count() == 2
    assert pylog.scan(directory).count() == 5


def test_only_the_partitions_asked_for_are_listed(
    directory: pylog.results.LogDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []

    def noted(path: str) -> SegmentListing:
        listed.append(path.rpartition("/")[2])
        return list_segments(path)

    monkeypatch.setattr("pylog.reading.log_view.list_segments", noted)
    assert ("orders", 1) in directory
    assert len(directory) == len(NAMES)
    assert listed == []
    [one] = directory.select(assign={"orders": [1]})
    assert listed == ["orders-1"]
    assert directory["orders", 1] is one
    assert one in directory
    directory.select(topics=["payments"])
    assert listed == ["orders-1", "payments-0"]
    assert [str(view.topic_partition) for view in directory] == sorted(NAMES)
    assert sorted(listed) == sorted(NAMES)  # each once


def test_a_topic_that_is_not_known_is_refused_with_the_nearest() -> None:
    ensure_known_topics(["a"], {"a", "b"})
    with pytest.raises(UnknownTopicOrPartitionError) as caught:
        ensure_known_topics(["web", "ordres"], ["web", "orders"])
    assert str(caught.value) == (
        "no topic 'ordres' here; did you mean 'orders'? Topics found: orders, web"
    )
    with pytest.raises(UnknownTopicOrPartitionError) as caught:
        ensure_known_topics(["x"], [])
    assert str(caught.value) == "no topic 'x' here. Topics found: none"


def test_a_pattern_is_found_anywhere() -> None:
    assert compile_topic_pattern("rd").search("orders")
    with pytest.raises(ValueError, match="is not a regular expression: missing"):
        compile_topic_pattern("(")


def test_a_pattern_without_a_match_is_named_with_the_topics_there_are() -> None:
    assert str(no_topic_matches("^x", {"b", "a"})) == (
        "no topic here matches the pattern '^x'; topics found: a, b"
    )


def test_of_many_topics_some_are_listed() -> None:
    assert topic_list(f"t{number:02}" for number in range(23)).endswith("t19 and 3 more")

from __future__ import annotations

import pytest

from pylog.errors import UnknownTopicOrPartitionError
from pylog.reading.log_directory import (
    compile_topic_pattern,
    ensure_known_topics,
    no_topic_matches,
    topic_list,
)


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

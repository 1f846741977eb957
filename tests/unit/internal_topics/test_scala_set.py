"""The order of partitions that Scala 2.13.18 gave for each case.

That is of a ``mutable.HashSet[TopicPartition]`` of kafka-clients 4.3.1, to which the immutable set
of each topic was added, as Kafka's ``TransactionLog`` does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.internal_topics.scala_set import scala_set_order

if TYPE_CHECKING:
    from collections.abc import Sequence

BACKWARDS = "t-2 t-1 t-0"


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        ([], ""),
        ([("t", [])], ""),
        ([("t", range(3))], BACKWARDS),
        ([("t", [2, 0, 2, 1])], BACKWARDS),
        ([("t", [0]), ("t", [1, 2])], BACKWARDS),
        ([("orders", range(5))], "orders-0 orders-1 orders-2 orders-3 orders-4"),
        ([("b", range(2)), ("a", range(2)), ("c", range(2))], "a-1 a-0 b-1 b-0 c-1 c-0"),
        (
            [(name, range(4)) for name in "bac"],  # one by one, the table grows at twelve
            "a-2 b-3 a-1 b-2 c-3 a-0 b-1 c-2 b-0 c-1 c-0 a-3",
        ),
        (
            [(name, range(4)) for name in "bacd"],
            "a-2 b-3 a-1 b-2 c-3 a-0 b-1 c-2 d-3 b-0 c-1 d-2 c-0 d-1 d-0 a-3",
        ),
        (
            [(name, range(5)) for name in "bac"],  # sets of five make room at once
            "a-2 b-3 c-4 a-1 b-2 c-3 a-0 b-1 c-2 b-0 c-1 c-0 a-4 a-3 b-4",
        ),
        ([("\U0001f600", range(3)), ("ä", range(3))], "ä-2 ä-1 ä-0 😀-1 😀-2 😀-0"),
        (
            [("a-long-name-of-a-topic", [0, 7, 100_000, 2**31 - 1])],
            " ".join(f"a-long-name-of-a-topic-{each}" for each in (7, 2**31 - 1, 100_000, 0)),
        ),
    ],
)
def test_partitions_are_in_the_order_of_the_chains(
    topics: list[tuple[str, list[int]]], expected: str
) -> None:
    assert [f"{topic}-{number}" for topic, number in scala_set_order(topics)] == expected.split()


@pytest.mark.parametrize(
    ("topic", "count", "expected"),
    [
        ("orders", 12, [*range(7, 12), *range(7)]),
        ("orders", 13, [*range(7, 13), *range(7)]),
        ("orders", 20, [*range(7, 20), *range(7)]),
        ("t", 10, [*range(5, -1, -1), *range(9, 5, -1)]),
        ("t", 11, [*range(5, -1, -1), *range(10, 5, -1)]),
        ("t", 12, range(11, -1, -1)),  # in a table of 32 chains
        ("t", 13, range(12, -1, -1)),
    ],
)
@pytest.mark.parametrize("size", [100, 4])
def test_the_table_grows_for_a_set_that_is_added_whole_and_for_one_by_one(
    topic: str, count: int, expected: Sequence[int], size: int
) -> None:
    sets = [(topic, range(at, min(at + size, count))) for at in range(0, count, size)]
    assert scala_set_order(sets) == [(topic, each) for each in expected]

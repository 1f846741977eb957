from __future__ import annotations

import pytest

from pylog.model import NO_SEQUENCE
from pylog.producers.sequence_number import (
    decrement_sequence,
    increment_sequence,
    is_next_sequence,
    last_sequence_of,
)
from tests.unit.producers.producers import data

LARGEST = 2_147_483_647


@pytest.mark.parametrize(
    ("sequence", "increment", "expected"),
    [(0, 0, 0), (7, 3, 10), (LARGEST, 1, 0), (LARGEST - 5, 10, 4), (LARGEST, LARGEST, LARGEST - 1)],
)
def test_sequences_wrap_to_zero_upwards(sequence: int, increment: int, expected: int) -> None:
    assert increment_sequence(sequence, increment) == expected


@pytest.mark.parametrize(
    ("sequence", "decrement", "expected"),
    [(0, 0, 0), (10, 3, 7), (0, 1, LARGEST), (4, 10, LARGEST - 5)],
)
def test_sequences_wrap_to_the_largest_downwards(
    sequence: int, decrement: int, expected: int
) -> None:
    assert decrement_sequence(sequence, decrement) == expected


@pytest.mark.parametrize(
    ("last", "following", "expected"),
    [
        (NO_SEQUENCE, 0, True),
        (NO_SEQUENCE, 1, False),
        (4, 5, True),
        (4, 4, False),
        (4, 6, False),
        (LARGEST, 0, True),
        (LARGEST, 1, False),
        (4, 0, False),
    ],
)
def test_next_sequence_is_one_more_or_zero_at_the_end(
    last: int, following: int, *, expected: bool
) -> None:
    assert is_next_sequence(last, following) is expected


@pytest.mark.parametrize(
    ("base_sequence", "count", "expected"),
    [(5, 1, 5), (5, 4, 8), (LARGEST - 1, 3, 0), (NO_SEQUENCE, 3, NO_SEQUENCE)],
)
def test_last_sequence_of_a_batch_wraps_and_stays_missing(
    base_sequence: int, count: int, expected: int
) -> None:
    assert last_sequence_of(data(0, base_sequence, count=count)) == expected

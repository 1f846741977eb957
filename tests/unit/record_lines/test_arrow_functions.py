"""Each function gives what `pyarrow.compute`, or an array's method, gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pylog.record_lines import arrow_functions as ours

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = pa.array(["a.b", None, "", "cc"], pa.large_string())
NUMBERS = pa.array([1, None, 0, 1 << 40], pa.int64())
MASK = pa.array([True, False, True, True])
LISTS = pa.array([["a", "b"], [], ["c"]], pa.list_(pa.large_string()))
COMMA = pa.scalar(",", pa.large_string())
OTHER = pa.scalar("-", pa.large_string())


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (lambda: ours.cast(NUMBERS, pa.large_string()), lambda: NUMBERS.cast(pa.large_string())),
        (lambda: ours.cast(TEXT, TEXT.type), lambda: TEXT),
        (lambda: ours.binary_join(LISTS, COMMA), lambda: pc.binary_join(LISTS, COMMA)),
        (
            lambda: ours.binary_join_element_wise(TEXT, OTHER, COMMA),
            lambda: pc.binary_join_element_wise(TEXT, OTHER, COMMA),
        ),
        (
            lambda: ours.binary_join_element_wise(TEXT, OTHER, COMMA, null_replacement="no"),
            lambda: pc.binary_join_element_wise(
                TEXT, OTHER, COMMA, null_handling="replace", null_replacement="no"
            ),
        ),
        (
            lambda: ours.binary_join_element_wise(TEXT, OTHER, COMMA, null_replacement=""),
            lambda: pc.binary_join_element_wise(TEXT, OTHER, COMMA, null_handling="replace"),
        ),
        (lambda: ours.equal(NUMBERS, NUMBERS[0]), lambda: pc.equal(NUMBERS, NUMBERS[0])),
        (lambda: ours.filter_rows(TEXT, MASK), lambda: TEXT.filter(MASK)),
        (lambda: ours.if_else(MASK, OTHER, TEXT), lambda: pc.if_else(MASK, OTHER, TEXT)),
        (
            lambda: ours.match_substring_regex(TEXT, "[.]|^$"),
            lambda: pc.match_substring_regex(TEXT, "[.]|^$"),
        ),
        (
            lambda: ours.replace_substring(TEXT, ".", r"\."),
            lambda: pc.replace_substring(TEXT, ".", r"\."),
        ),
        (
            lambda: ours.replace_with_mask(TEXT, MASK, TEXT[1:]),
            lambda: pc.replace_with_mask(TEXT, MASK, TEXT[1:]),
        ),
        (lambda: ours.take(TEXT, NUMBERS[:3]), lambda: TEXT.take(NUMBERS[:3])),
    ],
)
def test_it_is_arrows_function(
    found: Callable[[], pa.Array], expected: Callable[[], pa.Array]
) -> None:
    assert found().equals(expected())
    assert found().type == expected().type


def test_a_cast_that_would_lose_something_is_an_error() -> None:
    with pytest.raises(pa.ArrowInvalid):
        ours.cast(NUMBERS, pa.int32())


def test_rows_that_are_not_there_are_an_error() -> None:
    with pytest.raises(pa.ArrowIndexError):
        ours.take(TEXT, NUMBERS)

"""Rows put together by their partition."""

import numpy as np
import pytest

from pylog.writing.partitioner import rows_by_partition


def _by_partition(assigned: list[int]) -> list[tuple[int, list[int] | None]]:
    grouped = rows_by_partition(np.array(assigned, dtype=np.int64))
    return [(number, None if rows is None else rows.tolist()) for number, rows in grouped]


def test_rows_of_a_partition_keep_their_order() -> None:
    assert _by_partition([3, 0, 3, 1, 0, 3]) == [(0, [1, 4]), (1, [3]), (3, [0, 2, 5])]


@pytest.mark.parametrize("large", [2**15, 2**16, 2**31 - 1])
def test_partitions_whose_numbers_do_not_fit_into_16_bits_stay_apart(large: int) -> None:
    assert _by_partition([large, 0, large, 32_767]) == [(0, [1]), (32_767, [3]), (large, [0, 2])]


def test_all_rows_of_one_partition_are_not_listed() -> None:
    assert _by_partition([7, 7, 7]) == [(7, None)]
    assert _by_partition([]) == []

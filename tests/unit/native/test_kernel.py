"""Kernels as they are called."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.native.compilers import needs_compiler
from tests.unit.native.kernel_runs import doubled
from tests.unit.native.sample_kernels import clear, is_positive

pytestmark = [needs_compiler, pytest.mark.usefixtures("way_to_run")]


def test_a_kernel_takes_arrays_tables_numbers_and_flags_and_returns_several_numbers() -> None:
    assert doubled() == (((1 << 40) - 4, 7), [2, -10, 1 << 41])
    assert doubled(row=0) == (((1 << 40) - 4, 3), [2, -10, 1 << 41])
    assert doubled(is_row_wanted=False) == (((1 << 40) - 4, 0), [2, -10, 1 << 41])
    read_only = np.array([7])
    read_only.flags.writeable = False
    assert doubled(values=read_only, doubled=np.zeros(1, np.int64)) == ((7, 7), [14])
    assert doubled(values=np.zeros(0, np.int64))[0] == (0, 7)  # type: ignore[index]


def test_a_kernel_returns_a_flag_or_nothing() -> None:
    assert [is_positive(value) for value in (-(1 << 63), 0, (1 << 63) - 1)] == [False, False, True]
    assert is_positive(np.int32(4)) is True
    values = np.full(5, 9, np.uint8)
    assert clear(values[1:4]) is None
    assert values.tolist() == [9, 0, 0, 0, 9]

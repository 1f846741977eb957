from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from pylog.columnar.arrow_buffers import fixed_width_array, int64_values, string_array


@pytest.mark.parametrize(
    "values",
    [
        np.array([3, -1, 2**62, -1], dtype=np.int64),
        np.array([3, -1], dtype=np.int32),
        np.arange(20, dtype=np.int64)[::3],
        np.array([True, False, True] * 5),
        np.array([], dtype=np.int32),
    ],
)
def test_a_fixed_width_array_is_what_arrow_makes_of_the_values(values: npt.NDArray[Any]) -> None:
    made = fixed_width_array(values)
    made.validate(full=True)
    assert made.equals(pa.array(values))


def test_values_that_mean_nothing_are_null() -> None:
    made = fixed_width_array(np.array([-1, 0, -1, 7] * 5, dtype=np.int64), null=-1)
    made.validate(full=True)
    assert made.to_pylist() == [None, 0, None, 7] * 5
    assert made.null_count == 10


@pytest.mark.parametrize("texts", [[], [""], ["none", "größe", ""]])
def test_a_string_array_is_what_arrow_makes_of_the_texts(texts: list[str]) -> None:
    made = string_array(texts)
    made.validate(full=True)
    assert made.equals(pa.array(texts, pa.string()))


def test_the_values_of_a_slice_are_its_own() -> None:
    stamps = pa.array([5, None, -7, 9], pa.timestamp("ms", tz="UTC"))
    assert int64_values(stamps.slice(2)).tolist() == [-7, 9]
    assert int64_values(pa.array([1, 2, 3]).slice(1, 1)).tolist() == [2]

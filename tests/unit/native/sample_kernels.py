"""Small kernels for the tests of how kernels are compiled, kept and called."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pylog.kernels.helpers import add_words
from pylog.native.kernel import helper, kernel

if TYPE_CHECKING:
    import numpy.typing as npt


@helper
def _double(value: int) -> int:
    return 2 * value


@kernel(writes=("doubled",), tables=("table",))
def double_all(
    values: npt.NDArray[np.int64],
    table: npt.NDArray[np.int32],
    row: int,
    is_row_wanted: bool,  # noqa: FBT001 - kernels take no keywords
    doubled: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """Double ``values``; return their sum, and that of a row of ``table`` if it is wanted."""
    total = np.int64(0)
    for i in range(values.size):
        doubled[i] = _double(values[i])
        total = add_words(total, values[i])
    row_total = np.int64(0)
    if is_row_wanted:
        for column in range(table.shape[1]):
            row_total += table[row, column]
    return total, row_total


@kernel()
def is_positive(value: int) -> bool:
    """Return whether ``value`` is positive."""
    return value > 0


@kernel(writes=("values",))
def clear(values: npt.NDArray[np.uint8]) -> None:
    """Set all ``values`` to zero."""
    for i in range(values.size):
        values[i] = 0


@kernel()
def raises(value: int) -> int:
    """Raise an exception, which machine code by itself cannot."""
    if value > 10:
        raise ValueError
    return value


@kernel()
def allocates(count: int) -> int:
    """Make an array, whose memory Numba's run time would have to manage."""
    total = np.int64(0)
    for value in np.arange(count):
        total += value
    return total


@kernel()
def calls_a_library(value: int) -> int:
    """Call a function that is not among those that an image may import."""
    return int(math.sin(value) * 1000)

"""Kernel: which stretches of a buffer hold some bytes.

Two bytes of what is looked for, rare ones if the caller chooses well, are compared at their places,
a block of positions at a time: that is a loop without branches, which the compiler makes wide
instructions of. Only in a block with a place where both are found, places are looked at one by one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pylog.kernels import helper, kernel

STATUS_OK = 0
STATUS_BAD_STRETCH = 1

BLOCK_BYTES = 512


@helper
def _is_at(buf: npt.NDArray[np.uint8], at: int, needle: npt.NDArray[np.uint8]) -> bool:
    for i in range(needle.size):  # noqa: SIM110 - a loop is what Numba compiles
        if buf[at + i] != needle[i]:
            return False
    return True


@helper
def _holds(
    buf: npt.NDArray[np.uint8],
    start: int,
    end: int,
    needle: npt.NDArray[np.uint8],
    first: int,
    second: int,
) -> bool:
    """Whether ``buf[start:end]`` holds the needle; all of it lies in the buffer."""
    last = end - needle.size  # where the needle may begin at the latest
    at = start
    while at <= last:
        count = min(BLOCK_BYTES, last - at + 1)
        ones = buf[at + first : at + first + count]
        others = buf[at + second : at + second + count]
        one = needle[first]
        other = needle[second]
        is_met = np.uint8(0)
        for i in range(count):
            is_met |= np.uint8(ones[i] == one) & np.uint8(others[i] == other)
        if is_met != 0:
            for i in range(count):
                if ones[i] == one and others[i] == other and _is_at(buf, at + i, needle):
                    return True
        at += count
    return False


@kernel(writes=("found",))
def find_bytes(
    buf: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    needle: npt.NDArray[np.uint8],
    first: int,
    second: int,
    found: npt.NDArray[np.uint8],
) -> tuple[int, int]:
    """Set ``found`` to 1 for each stretch ``buf[start:end]`` that holds ``needle``, else to 0."""
    if first < 0 or second < 0 or first >= needle.size or second >= needle.size:
        return STATUS_BAD_STRETCH, 0
    for i in range(found.size):
        start = starts[i]
        end = ends[i]
        if start < 0 or end < start or end > buf.size:
            return STATUS_BAD_STRETCH, i
        found[i] = 1 if _holds(buf, start, end, needle, first, second) else 0
    return STATUS_OK, found.size

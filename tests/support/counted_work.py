"""How much Python a call runs: a measure of work that no other program on the machine changes."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType

_SHARE = 1.02
"""What a step may do more than in proportion: a list that is gone through for each of 10,000
partitions would at least double the work for them, and shows at some hundreds."""


def instructions_of(do: Callable[[], object]) -> int:
    """Return how many instructions of Python a call runs, in this and in new threads."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401 - itself
        nonlocal count
        count += event == "opcode"
        frame.f_trace_opcodes = True
        return trace

    before, of_threads = sys.gettrace(), threading.gettrace()
    threading.settrace(trace)
    sys.settrace(trace)
    try:
        do()
    finally:
        sys.settrace(before)
        threading.settrace(of_threads)
    return count


def ensure_work_grows_in_proportion(works: Mapping[int, Callable[[], object]]) -> None:
    """Ensure that of three sizes, each twice the one before, the last steps cost the same a piece.

    Each call is made once before it is counted: what is loaded and kept is no part of the work.
    """
    small, middle, large = sorted(works)
    counts = {}
    for size, do in works.items():
        do()
        counts[size] = instructions_of(do)
    of_first = (counts[middle] - counts[small]) / (middle - small)
    of_last = (counts[large] - counts[middle]) / (large - middle)
    assert of_last < _SHARE * of_first, counts

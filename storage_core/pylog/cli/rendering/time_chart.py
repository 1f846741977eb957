"""Bytes over time as a line of characters, with the times of its ends."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from pylog.cli.rendering.bars import columns_chart
from pylog.cli.rendering.byte_size import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog import TimeSteps

_EPOCH = dt.datetime.fromtimestamp(0, dt.UTC)
_HOUR_MS = 3_600_000


def time_chart(steps: TimeSteps, *, blocks: bool = True) -> Iterator[str]:
    """Yield three lines: a character for each step of time, and what they stand for."""
    yield columns_chart(steps.size_bytes, blocks=blocks)
    highest = format_bytes(max(steps.size_bytes))
    what = f"each character is {_length(steps.step_ms)}, the highest one {highest}"
    yield f"{_minute(steps.start_ms)} to {_minute(steps.end_ms)}"
    yield what


def _minute(milliseconds: int) -> str:
    try:
        return f"{_EPOCH + dt.timedelta(milliseconds=milliseconds):%Y-%m-%d %H:%M}"
    except OverflowError:  # Kafka stores any 64-bit number
        return f"{milliseconds} ms"


def _length(step_ms: int) -> str:
    hours = step_ms // _HOUR_MS
    if hours == 1:
        return "an hour"
    return f"{hours} hours" if hours < 48 else f"{hours / 24:g} days"

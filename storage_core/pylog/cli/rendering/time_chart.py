"""Bytes over time as a line of characters, with the times of its ends."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from pylog.cli.rendering.bars import columns_chart
from pylog.cli.rendering.byte_size import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_EPOCH = dt.datetime.fromtimestamp(0, dt.UTC)
_HOUR_MS = 3_600_000
_STEPS_MS = tuple(
    _HOUR_MS * hours for hours in (1, 2, 3, 6, 12, 24, 48, 7 * 24, 14 * 24, 28 * 24, 364 * 24)
)


def time_chart(
    rows: Sequence[Mapping[str, Any]], width: int, *, blocks: bool = True
) -> Iterator[str]:
    """Yield two lines: a character for each step of time, and the times below.

    Parameters
    ----------
    rows
        Of table "times", each with a start; ascending.
    width
        Characters that there are.
    blocks
        Whether the output takes block characters.
    """
    first, last = rows[0]["start"], rows[-1]["start"]
    step = _step(first, last, rows[0]["intervalMs"], width)
    begin = first // step
    values = [0] * (last // step - begin + 1)
    for each in rows:
        values[each["start"] // step - begin] += each["bytes"]
    chart = columns_chart(values, blocks=blocks)
    yield f"{chart}"
    start, end = shown_hour(begin * step), shown_hour((last // step + 1) * step)
    what = f"a character is {_length(step)}, the highest {format_bytes(max(values))}"
    yield f"{start} to {end}; {what}"


def _step(first: int, last: int, interval_ms: int, width: int) -> int:
    """Return the length of a character: one of a calendar, if any of those is long enough."""
    for step in _STEPS_MS:
        if step % interval_ms == 0 and last // step - first // step < width:
            return step
    return interval_ms * (1 + (last - first) // interval_ms // max(1, width - 1))


def shown_hour(milliseconds: int) -> str:
    """Return an instant to the minute; in milliseconds where no calendar has it."""
    try:
        return f"{_EPOCH + dt.timedelta(milliseconds=milliseconds):%Y-%m-%d %H:%M}"
    except OverflowError:  # Kafka stores any 64-bit number
        return f"{milliseconds} ms"


def _length(step_ms: int) -> str:
    hours = step_ms // _HOUR_MS
    if hours == 1:
        return "an hour"
    if hours < 48:
        return f"{hours} hours"
    return f"{hours / 24:g} days"

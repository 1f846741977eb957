"""Bars and small charts of characters."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = " ▁▂▃▄▅▆▇█"


def can_show_blocks(encoding: str | None) -> bool:
    """Return whether an output of this encoding takes block characters."""
    try:
        (_EIGHTHS + _LEVELS).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def bar(share: float, width: int, *, blocks: bool = True) -> str:
    """Return a bar over a share, 0 to 1, of ``width`` characters; something for what is not 0."""
    share = min(1.0, max(0.0, share))
    if not blocks:
        return "#" * max(round(share * width), int(share > 0))
    eighths = max(round(share * width * 8), int(share > 0))
    full, rest = divmod(eighths, 8)
    return _EIGHTHS[8] * full + (_EIGHTHS[rest] if rest else "")


def columns_chart(values: Sequence[float], *, blocks: bool = True) -> str:
    """Return a character for each value, as high as it is of the highest."""
    highest = max(values, default=0)
    levels = _LEVELS if blocks else " .:-=+*#@"
    if highest <= 0:
        return levels[0] * len(values)
    steps = len(levels) - 1
    return "".join(levels[max(round(value / highest * steps), int(value > 0))] for value in values)

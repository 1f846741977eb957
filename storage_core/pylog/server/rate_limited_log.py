"""Log lines that clients cause: a few of each kind a minute, then a count.

A client that is refused tries again, many times a second. Whoever reads the log needs the first
lines, and to know that there were more.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_PERIOD_SECONDS = 60.0
_MOST_LINES = 10


@dataclass(slots=True)
class _Kind:
    begun: float
    lines: int = 0
    left_out: int = 0


class RateLimit(logging.Filter):
    """Lets `_MOST_LINES` of each kind pass in a period: kinds are the texts without arguments."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._kinds: dict[tuple[int, object], _Kind] = {}

    def reset(self) -> None:
        """Begin anew."""
        self._kinds.clear()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is to be written; the last one of a period says that it is."""
        now = self._clock()
        kind = self._kinds.setdefault((record.levelno, record.msg), _Kind(now))
        if now - kind.begun >= _PERIOD_SECONDS:
            if kind.left_out:
                record.msg = f"{record.msg} ({kind.left_out} more like this were left out before)"
            kind.begun, kind.lines, kind.left_out = now, 0, 0
        kind.lines += 1
        if kind.lines == _MOST_LINES:
            record.msg = f"{record.msg} (more like this are counted, and not written for a minute)"
        kind.left_out += kind.lines > _MOST_LINES
        return kind.lines <= _MOST_LINES


RATE_LIMIT = RateLimit()
"""Of all lines of a server; a server that is started begins anew."""


def server_logger(name: str) -> logging.Logger:
    """Return a module's logger, whose lines are limited."""
    logger = logging.getLogger(name)
    logger.addFilter(RATE_LIMIT)
    return logger

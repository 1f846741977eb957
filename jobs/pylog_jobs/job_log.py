"""Log lines on standard error: time, level, job, text; one line each, for a scheduler to keep.

``2026-11-22T03:15:02Z INFO export: run 7 is published``
"""

from __future__ import annotations

import logging
import re
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_OURS = ("pylog_jobs", "pylog", "pyspark_pylog")
# Control characters, separators of lines and what reorders text, as in names of files and topics.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


@contextmanager
def logging_of(job: str) -> Iterator[None]:
    """Have what the job, the library and the data source log written to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine(job))
    levels = {}
    for name in _OURS:
        logger = logging.getLogger(name)
        levels[logger] = logger.level
        logger.setLevel(logging.INFO)
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)
            logger.removeHandler(handler)


class _OneLine(logging.Formatter):
    """Formats a record as one line, in UTC, whatever its text holds."""

    converter = staticmethod(time.gmtime)

    def __init__(self, job: str) -> None:
        super().__init__(
            f"%(asctime)s %(levelname)s {job}: %(message)s", datefmt="%Y-%m-%dT%H:%M:%SZ"
        )

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a traceback, of ``--debug`` alone, follows it."""
        record.message = _UNPRINTABLE.sub(lambda match: ascii(match[0])[1:-1], record.getMessage())
        record.asctime = self.formatTime(record, self.datefmt)
        line = self.formatMessage(record)
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return line

"""Tells a user at a terminal why the first run takes longer."""

from __future__ import annotations

import logging
import sys

_ONCE = "compiling kernels (once)…"
_EVERY_TIME = (
    "compiling kernels (at every run: there is no directory to keep them in that only you can "
    "write to; set NUMBA_CACHE_DIR to one)…"
)


def announce_compilation() -> None:
    """Say so on stderr, if that is a terminal, when a kernel is about to be compiled; once."""
    if sys.stderr is None or not sys.stderr.isatty():
        return
    log = logging.getLogger("pylog.compilation")
    log.addHandler(_Notice(logging.INFO))
    log.setLevel(logging.INFO)


class _Notice(logging.Handler):
    """Takes what the library says of each kernel that it compiles; writes one line at the first."""

    has_spoken = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self.has_spoken:
            self.has_spoken = True
            is_kept = getattr(record, "kept_in", None) is not None
            sys.stderr.write(f"pylog: {_ONCE if is_kept else _EVERY_TIME}\n")
            sys.stderr.flush()

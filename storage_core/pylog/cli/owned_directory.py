"""A log directory that a command changes: opened as its owner, closed in order."""

from __future__ import annotations

import json
import logging
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pylog
from pylog.cli.printable import printable
from pylog.writing.writable_directory import writable_log_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pylog.log.log_context import LogContext
    from pylog.log.log_manager import LogManager

_FAILURES = "pylog.files.log_dir_failure_channel"


@contextmanager
def owned_directory(
    path: str, *, must_exist: bool = True, context: LogContext | None = None
) -> Iterator[LogManager]:
    """Hold the directory open; where the block fails, that is the error, not what follows from it.

    Parameters
    ----------
    path
        As the user gave it.
    must_exist
        Otherwise it is made.
    context
        The real disk and time if None.

    Raises
    ------
    LogLockedError
        Somebody else holds it.
    LogStorageError
        It cannot be opened or closed.
    """
    local = writable_log_directory(path, must_exist=must_exist)
    # A failing disk ends the command with that error; it need not be logged as well.
    failures = logging.getLogger(_FAILURES)
    was_disabled, failures.disabled = failures.disabled, True
    try:
        with pylog.LogManager([local], context=context) as manager:
            yield manager
    finally:
        failures.disabled = was_disabled


def write_summary(document: dict[str, Any], lines: Iterable[str], *, as_json: bool) -> None:
    """Print what was done, as JSON or as text."""
    if as_json:
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        sys.stdout.writelines(f"{printable(line)}\n" for line in lines)
    sys.stdout.flush()

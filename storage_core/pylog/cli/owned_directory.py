"""A log directory that a command changes: opened as its owner, closed in order."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pylog
from pylog.cli.printable import printable
from pylog.log.log_dir_failure_channel import LogDirFailureChannel
from pylog.writing.writable_directory import writable_log_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pylog.files.durable_io import DurableIO
    from pylog.log.log_manager import LogManager


@contextmanager
def owned_directory(
    path: str, *, must_exist: bool = True, io: DurableIO | None = None
) -> Iterator[LogManager]:
    """Hold the directory open; where the block fails, that is the error, not what follows from it.

    Parameters
    ----------
    path
        As the user gave it.
    must_exist
        Otherwise it is made.
    io
        The real disk if None.

    Raises
    ------
    LogLockedError
        Somebody else holds it.
    LogStorageError
        It cannot be opened or closed.
    """
    local = writable_log_directory(path, must_exist=must_exist)
    # A failing disk ends the command with that error; it need not be logged as well.
    context = pylog.LogContext(failures=LogDirFailureChannel(is_logged=False))
    if io is not None:
        context.io = io
    with pylog.LogManager([local], context=context) as manager:
        yield manager


def write_summary(document: dict[str, Any], lines: Iterable[str], *, as_json: bool) -> None:
    """Print what was done, as JSON or as text."""
    if as_json:
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        sys.stdout.writelines(f"{printable(line)}\n" for line in lines)
    sys.stdout.flush()

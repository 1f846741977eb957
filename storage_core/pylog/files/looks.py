"""Looks again at files that somebody else changes meanwhile: a broker, a commit, a compaction.

Readers take no lock. Where what they have seen cannot belong together (a file is gone that was
listed, a commit ended between two looks) they look again. Each look that fails needs a change of
its own, so that a hundred in a row are no bad luck: something changes all the time, or a fault
looks like a change. Then a reader ends with an error instead of looking for ever.
"""

from __future__ import annotations

import os
import time
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from pylog.files import disk
from pylog.files.directory_lock import is_in_use
from pylog.files.file_names import LOG_FILE_SUFFIX
from pylog.locations import is_remote

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")

MOST_LOOKS = 100
LIVE_PAUSES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Seconds between looks at a file that a broker seems to be writing just now."""
DIRECTORY_PAUSES = (0.2, 0.2, 0.3, 0.5, 0.8)
"""Seconds between looks at which partitions are in a log directory that a broker works on."""
MOST_PATIENCE_SECONDS = 30.0
_ONE_PAUSE = DIRECTORY_PAUSES[:1]
_MOST_AGE_SECONDS = 60.0


class Looks:
    """Counts the looks of one reader; see the top of this module."""

    def __init__(self) -> None:
        self._left = MOST_LOOKS

    def again(self, error: Exception) -> None:
        """Let the caller look again, or raise ``error`` if it has looked often enough."""
        self._left -= 1
        if not self._left:
            raise error


class Patience:
    """How long one examination waits in all, so that a thousand lasting faults do not add up."""

    def __init__(self, seconds: float = MOST_PATIENCE_SECONDS) -> None:
        self._left = seconds
        self._lock = Lock()

    def allows(self, seconds: float) -> bool:
        """Whether it may wait that long, from which it is taken then."""
        with self._lock:
            self._left -= seconds
            return self._left >= 0


def live_pauses(path: str) -> Iterator[float]:
    """Yield `LIVE_PAUSES` if a side file may be half written: it or its ``.log`` changed just now.

    What is written through a memory map changes a file's time late, so that of the ``.log`` counts.
    """
    log = os.path.splitext(path)[0] + LOG_FILE_SUFFIX  # noqa: PTH122 - kept as text
    if (
        is_remote(path)
        or _age_seconds(path) < _MOST_AGE_SECONDS
        or _age_seconds(log) < _MOST_AGE_SECONDS
    ):
        yield from LIVE_PAUSES


def lasting(
    found: dict[KeyT, ValueT],
    look: Callable[[], Container[KeyT] | None],
    directories: Iterable[str],
) -> dict[KeyT, ValueT]:
    """Return what is found in log directories at each of several looks, as at the first one.

    A broker makes and deletes partitions: their directories, the files in them and what the
    cluster's metadata says of them do not change at one moment. A topic may be in the making at one
    look, and on its way out at the next one. A look that cannot tell returns None.
    """
    pauses = DIRECTORY_PAUSES if found and any(map(is_in_use, directories)) else _ONE_PAUSE
    for pause in pauses:
        if not found:
            break
        time.sleep(pause)
        now = look()
        if now is not None:
            found = {each: what for each, what in found.items() if each in now}
    return found


def _age_seconds(path: str) -> float:
    try:
        return time.time() - disk.stat(path).st_mtime
    except OSError:
        return _MOST_AGE_SECONDS

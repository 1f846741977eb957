"""Waiting for what another process does in the background: reading its state once is a race."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 90.0
"""Machines of continuous integration are at times three times slower."""


def wait_for(
    is_so: Callable[[], bool],
    what: str,
    seconds: float = SECONDS,
    *,
    tolerates: tuple[type[Exception], ...] = (),
) -> None:
    """Wait until something is so; exceptions of some types say that it is not so yet.

    Raises
    ------
    TimeoutError
        It is not.
    """
    deadline = time.monotonic() + seconds
    while True:
        with suppress(*tolerates):
            if is_so():
                return
        if time.monotonic() > deadline:
            msg = f"{what}: not within {seconds:.0f} s"
            raise TimeoutError(msg)
        time.sleep(0.2)


def eventually(check: Callable[[], None], seconds: float = SECONDS) -> None:
    """Check again until nothing is wrong, or fail by what was wrong last."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.5)

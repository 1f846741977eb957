"""A process that is gone from a chosen system call on, without a process that ends.

Whatever changes a disk goes through `pylog.files.system_calls.SystemCalls`: from the chosen call on
each of them raises, also those of cleaning up, so that the disk is as a SIGKILL leaves it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylog.files.system_calls import SystemCalls
from tests.kills.kill_point import CHANGING_CALLS

if TYPE_CHECKING:
    import pytest


class Stopped(BaseException):
    """The process is gone."""


class StoppedAt:
    """Lets no system call of this process through from the n-th on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._left: int | None = None
        for name in CHANGING_CALLS:
            monkeypatch.setattr(SystemCalls, name, self._counted(getattr(SystemCalls, name)))

    def arm(self, call: int | None) -> None:
        """Stop at this call, from now on; None for never."""
        self._left = call

    def _counted(self, original: Any) -> Any:  # noqa: ANN401 - any method
        def call(io: SystemCalls, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
            if self._left is not None:
                self._left -= 1
                if self._left <= 0:
                    raise Stopped
            return original(io, *arguments, **options)

        return call

"""A thread that is at work while a ``with`` block runs, and whose errors reach the test."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

_JOIN_SECONDS = 60.0


class BackgroundThread(ABC):
    """Starts when the block begins, and has ended when it is left.

    An error of the thread is raised by `check`, and at the end of the block unless the block has
    failed by itself.

    Attributes
    ----------
    has_to_end
        Set when the block is left: `work` then returns soon.
    """

    def __init__(self) -> None:
        self.has_to_end = threading.Event()
        self._error: BaseException | None = None
        # A daemon: a client that hangs must not keep the test process alive.
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.has_to_end.set()
        self._thread.join(_JOIN_SECONDS)
        if error is None:
            assert not self._thread.is_alive(), f"{self._thread.name} does not come to its end"
            self.check()

    def check(self) -> None:
        """Raise what ended the thread before its time."""
        if self._error is not None:
            raise self._error

    @abstractmethod
    def work(self) -> None:
        """Do what the thread is for until `has_to_end` is set."""

    def _run(self) -> None:
        try:
            self.work()
        except BaseException as error:  # noqa: BLE001 - raised again in the test's thread
            self._error = error

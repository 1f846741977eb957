"""Ctrl-C that comes between two steps, never inside of one."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType, TracebackType


class Interruption:
    """A context in which SIGINT is kept until `allowed` is entered, or raised at once within.

    Outside of the main thread, which alone gets signals, it changes nothing.
    """

    def __init__(self) -> None:
        self._is_requested = False
        self._is_allowed = False
        self._is_installed = False
        self._before: signal.Handlers | signal._HANDLER = signal.SIG_DFL

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.getsignal(signal.SIGINT)
            signal.signal(signal.SIGINT, self._on_signal)
            self._is_installed = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_installed:
            signal.signal(signal.SIGINT, self._before)

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Raise `KeyboardInterrupt` if there was a Ctrl-C, or comes one within the block."""
        # In this order: a signal between the two lines raises by itself.
        self._is_allowed = True
        try:
            if self._is_requested:
                raise KeyboardInterrupt
            yield
        finally:
            self._is_allowed = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._is_requested = True
        if self._is_allowed:
            raise KeyboardInterrupt

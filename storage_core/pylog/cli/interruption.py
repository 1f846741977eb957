"""Ctrl-C that comes between two steps, never inside of one; or that stops what is not Python."""

from __future__ import annotations

import signal
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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


@contextmanager
def stopped_by(stop: Callable[[], None]) -> Iterator[None]:
    """Have Ctrl-C call ``stop``, and make KeyboardInterrupt of what then fails in the block.

    For code that is not Python's, which looks for signals late or never, and reports them as errors
    of its own. Where Ctrl-C is not Python's to answer, as outside of the main thread, nothing is
    changed.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    is_requested = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal is_requested
        is_requested = True
        raise KeyboardInterrupt

    def wait() -> None:
        while number := reading.recv(1):
            if number[0] == signal.SIGINT:
                stop()

    reading, writing = socket.socketpair()
    writing.setblocking(False)  # noqa: FBT003 - has no name
    waiting = threading.Thread(target=wait, name="pylog-interrupt", daemon=True)
    waiting.start()
    signal.signal(signal.SIGINT, on_signal)
    before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    try:
        yield
    except Exception as error:
        if is_requested:
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.set_wakeup_fd(before)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        writing.close()
        waiting.join()
        reading.close()

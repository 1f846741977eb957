"""A progress bar on stderr: bytes read of those planned, once the work has taken a second."""

from __future__ import annotations

import signal
import socket
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from pylog.text.words import duration_text, format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    import rich.progress


DELAY_SECONDS = 1.0
LINE_SECONDS = 30.0


def is_seen() -> bool:
    """Whether there is somebody to see a bar: of commands that print when their work is done."""
    return sys.stderr is not None and sys.stderr.isatty()


def is_wanted() -> bool:
    """Whether it is seen, and no output tears it: of commands that print all the time."""
    return is_seen() and not sys.stdout.isatty()


def is_asked() -> bool:
    """Whether there is somebody to answer a question: nobody in a script, or behind a pipe."""
    return is_seen() and sys.stdin is not None and sys.stdin.isatty()


class ProgressBar:
    """A context in which `show` may be called as often as one likes.

    Nothing is shown, and rich is not imported, within the first `DELAY_SECONDS`; leaving the
    context removes the bar. Without a total, as of a pipe, it moves back and forth. Any number of
    threads may call `show`.
    """

    def __init__(self, description: str, total_bytes: int | None) -> None:
        self._description = description
        self._total_bytes = total_bytes
        self._start = time.monotonic()
        # Asked before rich puts something else in the place of stdout, which before rich 15 denies
        # to be a terminal.
        self._shares_terminal = sys.stdout.isatty()
        self._bar: rich.progress.Progress | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self._stop()

    def show(self, done_bytes: int, total_bytes: int | None = None) -> None:
        """Show that ``done_bytes`` have been read, of ``total_bytes`` if that is known by now."""
        total_bytes = self._total_bytes if total_bytes is None else total_bytes
        with self._lock:
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], completed=done_bytes, total=total_bytes)
            elif time.monotonic() - self._start >= DELAY_SECONDS:
                self._bar = self._begin(done_bytes, total_bytes)

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Remove the bar while something is printed; it comes back later."""
        if not self._shares_terminal:
            yield
            return
        with self._lock:
            self._stop()
            yield
            self._start = time.monotonic()

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _begin(self, done_bytes: int, total_bytes: int | None) -> rich.progress.Progress:
        # Not at the head of the file: most runs are over before they need it.
        from rich import progress  # noqa: PLC0415
        from rich.console import Console  # noqa: PLC0415
        from rich.table import Column  # noqa: PLC0415

        bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.TaskProgressColumn(),
            progress.DownloadColumn(binary_units=True, table_column=Column(no_wrap=True)),
            progress.TransferSpeedColumn(table_column=Column(no_wrap=True)),
            progress.TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        bar.add_task(self._description, total=total_bytes, completed=done_bytes)
        bar.start()
        return bar


class ProgressLines:
    """Lines on stderr that say how long it will take, for a pipe or a file: of long runs only.

    Used as `ProgressBar` is. The first line comes after `LINE_SECONDS`, and then one after as long.
    """

    def __init__(self, description: str) -> None:
        self._description = description
        self._start = self._last = time.monotonic()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def show(self, done_bytes: int, total_bytes: int) -> None:
        """Print how far it is, and how long the rest will take, if it is time for a line."""
        with self._lock:
            now = time.monotonic()
            if now - self._last < LINE_SECONDS or not 0 < done_bytes <= total_bytes:
                return
            self._last = now
            left_ms = round(1000 * (now - self._start) * (total_bytes - done_bytes) / done_bytes)
            sys.stderr.write(
                f"pylog: {self._description}: {done_bytes * 100 // total_bytes} % of "
                f"{format_bytes(total_bytes)}, about {duration_text(left_ms)} left\n"
            )
            sys.stderr.flush()


def bar_or_lines(description: str) -> ProgressBar | ProgressLines:
    """Return what shows progress on stderr: a bar in a terminal, lines elsewhere."""
    return ProgressBar(description, None) if is_seen() else ProgressLines(description)


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

    def __exit__(self, *_error: object) -> None:
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

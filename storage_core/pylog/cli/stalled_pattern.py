"""An end for regular expressions that backtrack: Python's may take longer than anybody waits.

A pattern such as ``(a+)+$`` takes twice as long for each further ``a`` of a value. Whoever wrote
the value may have known that. Only the main thread can be stopped in a match, and only by a signal.
"""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, NoReturn, Self

if TYPE_CHECKING:
    from types import FrameType, TracebackType

    from pylog.cli.rendering.progress import ProgressBar

MOST_SECONDS = 60.0
"""Of processor time, for the records of one window of a file: some megabytes, decompressed more."""


class StalledPattern:
    """A context that raises `TimeoutError` where a search gets no further; see `note_progress`.

    Outside of the main thread it changes nothing.
    """

    def __init__(self, bar: ProgressBar | None, *, is_watched: bool) -> None:
        self._bar = bar
        is_main = threading.current_thread() is threading.main_thread()
        self._is_watched = is_watched and is_main
        self._before: signal.Handlers | signal._HANDLER = signal.SIG_DFL

    def __enter__(self) -> Self:
        if self._is_watched:
            self._before = signal.getsignal(signal.SIGVTALRM)
            signal.signal(signal.SIGVTALRM, _give_up)
            self.note_progress()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_watched:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, self._before)

    def show(self, done_bytes: int, total_bytes: int) -> None:
        """Note that a window has been looked through, and show how far the search has come."""
        self.note_progress()
        if self._bar is not None:
            self._bar.show(done_bytes, total_bytes)

    def note_progress(self) -> None:
        """Say that a window has been looked through, or a match found: the time begins anew."""
        if self._is_watched:
            signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)


def _give_up(number: int, frame: FrameType | None) -> NoReturn:
    msg = (
        f"--value-regex has been at the same records for {MOST_SECONDS:.0f} s of processor time, "
        "so the pattern backtracks: have no repetition inside of another one ((a+)+), or search "
        "for plain text by --value-contains"
    )
    raise TimeoutError(msg)

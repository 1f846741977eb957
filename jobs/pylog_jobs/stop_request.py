"""SIGTERM and Ctrl-C: the job's work is asked to end, and given time to clean up after itself.

Spark's own handling of Ctrl-C breaks off the call that is waiting for the JVM. A write that ends so
is never told that it was cancelled, and leaves what it staged. Hence the work runs in a thread of
its own, whose calls are not broken off, and the main thread waits for signals.
"""

from __future__ import annotations

import logging
import signal
import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_T = TypeVar("_T")

GRACE_SECONDS = 60.0
_POLL_SECONDS = 0.2
_SIGNALS = (signal.SIGTERM, signal.SIGINT)

_LOGGER = logging.getLogger(__name__)


class StoppedError(Exception):
    """A signal ended the job."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number)
        self.signal = number

    def __str__(self) -> str:
        return f"stopped by {self.signal.name}"


class StopRequest:
    """Whether a signal asked the job to end. The main thread sets it, the work looks at it."""

    def __init__(self) -> None:
        self.cancel: Callable[[], None] | None = None
        self.received: signal.Signals | None = None
        self._event = threading.Event()

    def request(self, number: signal.Signals) -> None:
        """Ask the job to end."""
        self.received = number
        self._event.set()

    def wait(self, seconds: float) -> bool:
        """Return whether the job is asked to end, at the latest after so many seconds."""
        return self._event.wait(seconds)

    def ensure_not_requested(self) -> None:
        """Return if the job may go on with its next step."""
        if self.received is not None:
            raise StoppedError(self.received)


class StoppableWork(Generic[_T]):
    """Runs work in a thread, and has signals ask it to end. From the main thread alone."""

    def __init__(self, work: Callable[[StopRequest], _T]) -> None:
        self._work = work
        self._request = StopRequest()
        self._answer: _T
        self._error: BaseException | None = None

    def run(self) -> _T:
        """Run the work; return its result."""
        before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        thread = threading.Thread(target=self._keep_result, name="job", daemon=True)
        thread.start()
        try:
            while thread.is_alive() and self._request.received is None:
                thread.join(_POLL_SECONDS)
            number = self._request.received
            if number is not None:
                self._wait_for_end(thread, number, before)
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)
        if self._error is not None:
            raise self._error
        return self._answer

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._request.request(signal.Signals(number))

    def _keep_result(self) -> None:
        try:
            self._answer = self._work(self._request)
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            self._error = error

    def _cancel(self) -> None:
        cancel = self._request.cancel
        if cancel is None:
            return
        try:
            cancel()
        except Exception as error:  # noqa: BLE001 - of a Spark that the work has just stopped
            _LOGGER.debug("nothing to cancel any more: %s", error)

    def _wait_for_end(
        self,
        thread: threading.Thread,
        number: signal.Signals,
        before: dict[signal.Signals, signal.Handlers | signal._HANDLER],
    ) -> None:
        """Wait until the work has ended; what it raises because of that is the signal's doing."""
        _LOGGER.warning("%s: cancelling, which may take a moment", number.name)
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)  # a second one is not to be argued with
        waited = 0.0
        while thread.is_alive() and waited < GRACE_SECONDS:
            self._cancel()
            thread.join(_POLL_SECONDS)
            waited += _POLL_SECONDS
        if thread.is_alive() or self._error is not None:
            raise StoppedError(number) from self._error

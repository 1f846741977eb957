"""A program in a terminal of its own; what would make a test wait for ever is an error."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_OF_OTHER_TERMINALS = ("COLUMNS", "LINES", "NO_COLOR")
_SECONDS = 60
_SECONDS_BETWEEN_PRESSES = 0.5


class Terminal:
    """Python in a terminal, with keys to press.

    Parameters
    ----------
    *arguments
        Python's.
    columns
        How wide the terminal is.
    controls
        Whether it is the process's controlling terminal, whose Ctrl-C is a signal.
    shows_errors
        Whether stdin and stderr are the terminal, too.
    environment
        Variables in addition to those of the tests.
    """

    def __init__(
        self,
        *arguments: object,
        columns: int = 80,
        controls: bool = False,
        shows_errors: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        inherited = {
            name: each for name, each in os.environ.items() if name not in _OF_OTHER_TERMINALS
        }
        self._controller, terminal = pty.openpty()
        termios.tcsetwinsize(terminal, (24, columns))
        self.process = subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            stdin=terminal if shows_errors else None,
            stdout=terminal,
            stderr=terminal if shows_errors else subprocess.DEVNULL,
            env={**inherited, "TERM": "xterm-256color", **(environment or {})},
            start_new_session=True,
            preexec_fn=_take_control if controls else None,  # noqa: PLW1509 - of one thread
        )
        os.close(terminal)
        self.output = b""

    def read_until(self, text: bytes) -> None:
        """Return once the program has printed ``text``."""
        at = len(self.output)
        self._read(lambda: text in self.output[at:])

    def press(self, keys: bytes) -> None:
        """Press keys once."""
        os.write(self._controller, keys)

    def answer(self, question: bytes, keys: bytes) -> None:
        """Press keys until the program has ended; those that come too early for it are lost."""
        self.read_until(question)
        deadline = time.monotonic() + _SECONDS
        while self._is_open():
            self._ensure_in_time(deadline)
            self.press(keys)
            until = time.monotonic() + _SECONDS_BETWEEN_PRESSES
            while self._is_open() and time.monotonic() < until:
                self._read_once(_SECONDS_BETWEEN_PRESSES)

    def close(self) -> None:
        """Take the terminal away."""
        os.close(self._controller)
        self._controller = -1

    def status(self) -> int:
        """Return the program's status once it has ended."""
        self._read(lambda: False)
        if self._is_open():
            self.close()
        return self.process.wait(_SECONDS)

    def _is_open(self) -> bool:
        return self._controller >= 0

    def _read(self, is_enough: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _SECONDS
        while self._is_open() and not is_enough():
            self._ensure_in_time(deadline)
            self._read_once(1)

    def _ensure_in_time(self, deadline: float) -> None:
        if time.monotonic() > deadline:
            self.process.kill()
            msg = f"the program waits for something; it has printed {self.output!r}"
            raise TimeoutError(msg)

    def _read_once(self, seconds: float) -> None:
        """Take what is printed within some seconds, or close the terminal at its end."""
        if not select.select([self._controller], [], [], seconds)[0]:
            return
        try:
            self.output += os.read(self._controller, 1 << 16)
        except OSError:  # the other side is closed
            self.close()


def _take_control() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def in_terminal(columns: int, *arguments: object, **environment: str) -> str:
    """Return what pylog prints to a terminal of that width."""
    command = ("-m", "pylog", *arguments)
    terminal = Terminal(*command, columns=columns, shows_errors=False, environment=environment)
    terminal.status()
    return terminal.output.decode().replace("\r\n", "\n")


def answered(answer: bytes, *arguments: object) -> tuple[int, str]:
    """Run pylog with a terminal for everything; return its status and what it prints."""
    terminal = Terminal("-m", "pylog", *arguments, columns=200, controls=True)
    if answer:
        terminal.answer(b"Remove them?", answer)
    return terminal.status(), terminal.output.decode()

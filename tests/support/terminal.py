"""The program in a terminal of its own."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios

_OF_OTHER_TERMINALS = ("COLUMNS", "LINES", "NO_COLOR")


def in_terminal(columns: int, *arguments: object, **environment: str) -> str:
    """Return what the program prints to a terminal of that width."""
    inherited = {name: each for name, each in os.environ.items() if name not in _OF_OTHER_TERMINALS}
    controller, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (50, columns))
    process = subprocess.Popen(
        [sys.executable, "-m", "pylog", *map(str, arguments)],
        stdout=terminal,
        stderr=subprocess.DEVNULL,
        env={**inherited, "TERM": "xterm-256color", **environment},
    )
    os.close(terminal)
    output = b""
    try:
        while chunk := os.read(controller, 1 << 16):
            output += chunk
    except OSError:
        pass  # the other side is closed
    os.close(controller)
    process.wait(60)
    return output.decode().replace("\r\n", "\n")

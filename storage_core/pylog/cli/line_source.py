"""Lines of a file or of standard input, as many at a time as are there.

A pipe that pauses gives what it has; so what is typed is taken line by line, and what comes fast
some megabytes at a time.
"""

from __future__ import annotations

import os
import select
import stat
import sys
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from pylog.cli.interruption import Interruption

READ_BYTES = 1 << 20
BYTES_AT_ONCE = 4 << 20
STANDARD_INPUT = "-"


class LineSource:
    """Reads a file, or standard input for ``-``; a context manager."""

    def __init__(self, path: str, interruption: Interruption) -> None:
        self._interruption = interruption
        self._is_own = path != STANDARD_INPUT
        if self._is_own:
            self._descriptor = os.open(path, os.O_RDONLY)
        elif sys.stdin is None:
            msg = "standard input is closed"
            raise ValueError(msg)
        else:
            self._descriptor = sys.stdin.fileno()
        status = os.fstat(self._descriptor)
        # length of the file; None if it has none, like a pipe
        self.total_bytes = status.st_size if stat.S_ISREG(status.st_mode) else None
        self.read_bytes = 0  # how many have been read

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_own:
            os.close(self._descriptor)

    def __iter__(self) -> Iterator[list[bytes]]:
        """Yield all lines without their ends, some at a time; a last one without an end counts."""
        rest: list[bytes] = []
        while True:
            read, has_line, is_end = self._read_what_is_there()
            rest += read
            if not has_line and not is_end:
                continue
            lines = b"".join(rest).split(b"\n")
            last = lines.pop()
            rest = [last] if last else []
            if is_end and last:
                lines.append(last)
            if lines:
                yield lines
            if is_end:
                return

    def _read_what_is_there(self) -> tuple[list[bytes], bool, bool]:
        """Return what was read, whether a line ends in it, and whether the input does."""
        parts: list[bytes] = []
        size = 0
        has_line = False
        while True:
            with self._interruption.allowed():
                part = os.read(self._descriptor, READ_BYTES)
            if not part:
                return parts, has_line, True
            parts.append(part)
            size += len(part)
            self.read_bytes += len(part)
            has_line = has_line or b"\n" in part
            if size >= BYTES_AT_ONCE or not self._has_more():
                return parts, has_line, False

    def _has_more(self) -> bool:
        """Tell whether a read would return at once, also at the end."""
        waiting = select.poll()  # not select(), to which descriptors above 1,023 are unknown
        waiting.register(self._descriptor, select.POLLIN)
        return bool(waiting.poll(0))

"""Lines of text for a terminal: what is in them cannot move its cursor or change its colours."""

from __future__ import annotations

import pylog


def printable_lines(content: memoryview) -> memoryview:
    """Return lines in UTF-8 in which all but the ends of lines is printable."""
    text = bytes(content).decode("utf-8", "replace")
    return memoryview("\n".join(map(pylog.printable, text.split("\n"))).encode())

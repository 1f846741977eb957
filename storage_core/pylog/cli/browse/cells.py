"""Text on the screen. Whatever comes from disk is made printable here, and never is markup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

import pylog
from pylog.cli.record_view import EMPTY, NO_TIME, NULL, merged_spans, shown
from pylog.text.instants import calendar_text
from pylog.text.words import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

FOUND = "bold red"
KEY = "green"
PLACE = "cyan"
STYLES = {"error": "bold red", "warning": "yellow", "info": "dim"}  # of findings
WIDTH_FOR_DATES = 120
MOST_KEY_WIDTH = 24
_MOST_OSC52_BYTES = 74_994
"""Of what is copied: xterm takes no more at once."""


def printable_text(text: str, style: str = "") -> Text:
    """Return text of any origin in one line."""
    return Text(pylog.jobs.printable(text), style, no_wrap=True, end="")


_BEFORE_FOUND = 10  # characters before what was found
_MOST_BEFORE_FOUND = 20


def content_text(
    content: str | None,
    style: str = "",
    found: Iterable[tuple[int, int]] = (),
    *,
    begins_near: bool = False,
) -> Text:
    """Return the beginning of a key or value, what was ``found`` in it standing out.

    With ``begins_near``, it begins shortly before what was found.
    """
    if not content:
        return Text(NULL if content is None else EMPTY, "dim", no_wrap=True, end="")
    text, at = Text(no_wrap=True, end=""), 0
    spans = list(merged_spans(found))
    if begins_near and spans and spans[0][0] > _MOST_BEFORE_FOUND:
        at = spans[0][0] - _BEFORE_FOUND
        text.append("…", "dim")
    for start, end in spans:
        text.append(shown(content[at:start]), style).append(shown(content[start:end]), FOUND)
        at = end
    return text.append(shown(content[at:]), style)


def time_text(timestamp: int, *, has_date: bool = True) -> str:
    """Return a record's time in UTC."""
    if timestamp == -1:
        return NO_TIME
    text = calendar_text(timestamp, 1000)
    return text if has_date else text.rstrip("Z").split("T")[1]


def fitted_at_most(text: Text, width: int) -> Text:
    """Return the text, with an ellipsis for what does not fit into ``width`` columns."""
    text.truncate(width, overflow="ellipsis")
    return text


def fitted(text: Text, width: int, *, is_right: bool = False) -> Text:
    """Return exactly ``width`` columns of the text, with an ellipsis for what does not fit."""
    if text.cell_len > width:
        text.truncate(max(width, 0), overflow="ellipsis")
    blanks = " " * (width - text.cell_len)
    return Text.assemble(blanks, text, end="") if is_right else text.append(blanks)


def fitted_name(name: str, width: int, style: str = "") -> Text:
    """Return a topic or partition in at most ``width`` columns: its end tells it from others."""
    text = printable_text(name, style)
    if text.cell_len <= width:
        return text
    tail = max((width - 1) // 2, 0)
    end = _last_cells(text.plain, tail)
    text.truncate(max(width - 1 - tail, 0))
    return text.append(f"…{end}")


def _last_cells(text: str, width: int) -> str:
    at = len(text)
    while at and cell_len(text[at - 1 :]) <= width:
        at -= 1
    return text[at:]


def progress_text(done_bytes: int, total_bytes: int) -> str:
    """Return how far work has come."""
    share = f" ({done_bytes * 100 // total_bytes} %)" if total_bytes else ""
    return f"{format_bytes(done_bytes)} of {format_bytes(total_bytes)} read{share}"


def fits_clipboard(text: str) -> bool:
    """Whether terminals take the text in one escape sequence."""
    return len(text.encode()) <= _MOST_OSC52_BYTES

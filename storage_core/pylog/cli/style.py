"""How output looks in a terminal: its width, its colours, and how wide text is there.

Elsewhere than in a terminal nothing is fitted. Colours follow ``--color``, then the environment
variables ``NO_COLOR`` and ``FORCE_COLOR``; without them they are in terminals alone, unless
``TERM`` is ``dumb``.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from typing import TextIO


# Of the terminal's own sixteen colours, those that can be read on a light and on a dark ground.
BOLD = "\x1b[1m"
DIM = "\x1b[2m"
RED = "\x1b[31m"
GREEN = "\x1b[32m"
YELLOW = "\x1b[33m"
CYAN = "\x1b[36m"
BOLD_RED = "\x1b[1;31m"
BOLD_GREEN = "\x1b[1;32m"
BOLD_YELLOW = "\x1b[1;33m"
_PLAIN = "\x1b[0m"
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


class OutputTraits(NamedTuple):
    """Width and colours of an output."""

    # columns of the terminal; None for a file or a pipe, where nothing is fitted or wrapped
    width: int | None = None
    has_styles: bool = False  # whether escape sequences are wanted

    @classmethod
    def of(cls, output: TextIO) -> OutputTraits:
        """Return the traits of ``output``."""
        has_styles = _wants_styles(is_terminal=output.isatty())
        if not output.isatty():
            return cls(None, has_styles)
        import shutil  # noqa: PLC0415 - only where there is a terminal

        return cls(shutil.get_terminal_size().columns, has_styles)

    @property
    def is_terminal(self) -> bool:
        """Whether the output is a terminal."""
        return self.width is not None

    def styled(self, text: str, style: str) -> str:
        """Return ``text`` in a style, one of this module or "", where styles are wanted."""
        return f"{style}{text}{_PLAIN}" if style and text and self.has_styles else text


def _wants_styles(*, is_terminal: bool) -> bool:
    context = click.get_current_context(silent=True)
    if context is not None and context.color is not None:
        return context.color
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "") not in {"", "0"}:
        return True
    return is_terminal and os.environ.get("TERM") != "dumb"


def width_of(text: str) -> int:
    """Return how many columns ``text`` takes: styles none, a character of Chinese two."""
    if "\x1b" in text:
        text = _STYLE.sub("", text)
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - most text does without

    return cell_len(text)


def padded(text: str, width: int, *, is_right: bool = False) -> str:
    """Return ``text`` with blanks up to ``width`` columns, on its left if it ``is_right``."""
    blanks = " " * (width - width_of(text))
    return f"{blanks}{text}" if is_right else f"{text}{blanks}"


def shortened(text: str, width: int) -> str:
    """Return what fits into ``width`` columns, with an ellipsis for what does not."""
    if width_of(text) <= width:
        return text
    kept, room = "", width - 1
    for character in text:
        room -= width_of(character)
        if room < 0:
            break
        kept += character
    return f"{kept}…"

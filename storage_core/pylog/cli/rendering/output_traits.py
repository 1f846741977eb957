"""What an output is: how wide, and whether it takes colours."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import TextIO

# Of the terminal's own sixteen colours, those that can be read on a light and on a dark ground.
BOLD = "\x1b[1m"
RED = "\x1b[31m"
GREEN = "\x1b[32m"
BOLD_RED = "\x1b[1;31m"
BOLD_MAGENTA = "\x1b[1;35m"
_PLAIN = "\x1b[0m"


class OutputTraits(NamedTuple):
    """Width and colours of an output."""

    # columns of the terminal; None for a file or a pipe, where nothing is fitted or wrapped
    width: int | None = None
    # whether escape sequences are wanted: not in a file, not where the environment variable
    # ``NO_COLOR`` is set, and not where ``TERM`` is ``dumb``
    has_styles: bool = False

    @classmethod
    def of(cls, output: TextIO) -> OutputTraits:
        """Return the traits of ``output``."""
        if not output.isatty():
            return cls()
        import shutil  # noqa: PLC0415 - only where there is a terminal

        has_styles = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        return cls(shutil.get_terminal_size().columns, has_styles)

    def styled(self, text: str, style: str) -> str:
        """Return ``text`` in a style, one of this module or "", where styles are wanted."""
        return f"{style}{text}{_PLAIN}" if style and self.has_styles else text

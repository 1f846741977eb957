"""The picture of a terminal in which a command of pylog has run."""

from __future__ import annotations

import io
import os
import re
from contextlib import chdir, redirect_stdout
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple
from unittest.mock import patch
from xml.sax.saxutils import escape

from pylog.cli.main import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COLUMNS = 100
_CHARACTER, _LINE, _MARGIN = 7.25, 17, 14
_WORDS = re.compile(r"\S+(?: \S+)*")  # a viewer may make one space of several
_STYLES = re.compile(r"\x1b\[([\d;]*)m")


class Theme(NamedTuple):
    """Colours: of the ground, its edge and the text, and of what the program colours."""

    ground: str
    edge: str
    text: str
    by_code: dict[str, str]


THEMES = {
    "light": Theme(
        "#ffffff", "#d0d7de", "#1f2328", {"31": "#cf222e", "32": "#1a7f37", "35": "#8250df"}
    ),
    "dark": Theme(
        "#0d1117", "#30363d", "#e6edf3", {"31": "#ff7b72", "32": "#3fb950", "35": "#d2a8ff"}
    ),
}


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def session_in_terminal(*arguments: str) -> str:
    """Return a command on the directories of ``pylog demo kafka``, and what a terminal gets."""
    output = _Terminal()
    environment = {"COLUMNS": str(COLUMNS), "TERM": "xterm", "NO_COLOR": ""}
    with TemporaryDirectory() as folder, chdir(folder), patch.dict(os.environ, environment):
        with redirect_stdout(io.StringIO()):
            run(["demo", "kafka"])
        with redirect_stdout(output):
            run(arguments)
    return f"$ pylog {' '.join(arguments)}\n{output.getvalue()}"


def terminal_drawing(session: str, theme: Theme) -> str:
    """Return the drawing of text with escape sequences for styles."""
    lines = session.splitlines()
    wide = int(COLUMNS * _CHARACTER) + 2 * _MARGIN
    high = len(lines) * _LINE + 2 * _MARGIN
    title = escape(lines[0])
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" role="img">\n'
        f"<title>{title}</title>\n"
        f'<rect x=".5" y=".5" width="{wide - 1}" height="{high - 1}" rx="8" '
        f'fill="{theme.ground}" stroke="{theme.edge}"/>\n'
        f'<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" '
        f'font-size="12" fill="{theme.text}">\n'
    )
    return head + "".join(_drawn_lines(lines, theme)) + "</g>\n</svg>\n"


def _drawn_lines(lines: Sequence[str], theme: Theme) -> Iterator[str]:
    """Yield each run of text in one style at its column, as wide as it is in a terminal."""
    for number, line in enumerate(lines, 1):
        column = 0
        attributes = ""
        for index, piece in enumerate(_STYLES.split(line)):
            if index % 2:
                attributes = "".join(_attributes(piece.split(";"), theme))
                continue
            for words in _WORDS.finditer(piece):
                x, y = _MARGIN + (column + words.start()) * _CHARACTER, _MARGIN + number * _LINE - 4
                yield (
                    f'<text x="{x:.2f}" y="{y}" textLength="{len(words[0]) * _CHARACTER:.2f}"'
                    f"{attributes}>{escape(words[0])}</text>\n"
                )
            column += len(piece)


def _attributes(codes: Sequence[str], theme: Theme) -> Iterator[str]:
    for code in codes:
        if code == "1":
            yield ' font-weight="bold"'
        elif code in theme.by_code:
            yield f' fill="{theme.by_code[code]}"'

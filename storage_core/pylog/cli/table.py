"""Tables, bars and small charts of characters.

Where a table is wider than the terminal, it first does without the columns that are needed
least. If that is not enough, long cells go on in the next line, within their column. No cell
is shortened, and numbers stay in one piece.
"""

from __future__ import annotations

import errno
import os
import sys
import textwrap
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import pylog
from pylog.text.words import format_bytes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence


_GAP = "  "
_LEAST_FOLDED = 10
"""Cells are cut within a word only where their column keeps this width."""


def aligned_columns(
    columns: Mapping[str, Sequence[str]],
    left: Collection[str] = (),
    width: int | None = None,
    least_needed: Sequence[str] = (),
    left_out_last: Sequence[str] = (),
) -> Iterator[str]:
    """Yield the lines of a table, headings first."""
    return chain.from_iterable(aligned_rows(columns, left, width, least_needed, left_out_last))


def aligned_rows(
    columns: Mapping[str, Sequence[str]],
    left: Collection[str] = (),
    width: int | None = None,
    least_needed: Sequence[str] = (),
    left_out_last: Sequence[str] = (),
) -> Iterator[list[str]]:
    """Yield the lines of each row, those of the headings first.

    ``left_out_last`` are columns that go where folded cells are still too wide.
    """
    widths = {heading: max(map(len, (heading, *cells))) for heading, cells in columns.items()}
    if width is not None:
        for heading in least_needed:
            if _total(widths) > width:
                widths.pop(heading, None)
        _narrow(widths, columns, left, width)
        for heading in left_out_last:
            if _total(widths) > width:
                widths.pop(heading, None)
    pads = [str.ljust if heading in left else str.rjust for heading in widths]
    for row in zip(*((heading, *columns[heading]) for heading in widths), strict=True):
        parts = [_cell_lines(cell, room) for cell, room in zip(row, widths.values(), strict=True)]
        yield [
            _GAP.join(
                pad(part, room) for pad, part, room in zip(pads, line, widths.values(), strict=True)
            ).rstrip()
            for line in zip_longest(*parts, fillvalue="")
        ]


def _total(widths: Mapping[str, int]) -> int:
    return sum(widths.values()) + len(_GAP) * (len(widths) - 1)


def _narrow(
    widths: dict[str, int],
    columns: Mapping[str, Sequence[str]],
    left: Collection[str],
    width: int,
) -> None:
    """Make the widest of the ``left`` columns narrower until all fit, or none can be narrower."""
    words = {
        heading: max(map(len, chain.from_iterable(map(str.split, (heading, *columns[heading])))))
        for heading in widths
        if heading in left
    }
    cut = {
        heading: min(longest, max(_LEAST_FOLDED, *map(len, heading.split())))
        for heading, longest in words.items()
    }
    for least in (words, cut):
        while _total(widths) > width:
            wide = [heading for heading in least if widths[heading] > least[heading]]
            if not wide:
                break
            widths[max(wide, key=widths.__getitem__)] -= 1


def _cell_lines(cell: str, width: int) -> list[str]:
    if len(cell) <= width:
        return [cell]
    return textwrap.wrap(cell, width, break_on_hyphens=False)


_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = " ▁▂▃▄▅▆▇█"


def can_show_blocks(encoding: str | None) -> bool:
    """Return whether an output of this encoding takes block characters."""
    try:
        (_EIGHTHS + _LEVELS).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def bar(share: float, width: int, *, blocks: bool = True) -> str:
    """Return a bar over a share, 0 to 1, of ``width`` characters; something for what is not 0."""
    share = min(1.0, max(0.0, share))
    if not blocks:
        return "#" * max(round(share * width), int(share > 0))
    eighths = max(round(share * width * 8), int(share > 0))
    full, rest = divmod(eighths, 8)
    return _EIGHTHS[8] * full + (_EIGHTHS[rest] if rest else "")


def columns_chart(values: Sequence[float], *, blocks: bool = True) -> str:
    """Return a character for each value, as high as it is of the highest."""
    highest = max(values, default=0)
    levels = _LEVELS if blocks else " .:-=+*#@"
    if highest <= 0:
        return levels[0] * len(values)
    steps = len(levels) - 1
    return "".join(levels[max(round(value / highest * steps), int(value > 0))] for value in values)


def ensure_can_be_written(path: str) -> None:
    """Raise the error now that writing the page would raise once everything has been read."""
    target = Path(path)
    code = None
    if target.is_dir():
        code = errno.EISDIR
    elif not target.parent.is_dir():
        code = errno.ENOENT
    elif not os.access(target if target.exists() else target.parent, os.W_OK):
        code = errno.EACCES
    if code is not None:
        raise OSError(code, os.strerror(code), path)


def write_page(page: str, path: str) -> None:
    """Write a page in HTML, and say so on stderr."""
    data = page.encode()
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        error.filename = path  # a full disk names none
        raise
    sys.stderr.write(
        f"pylog: written to {pylog.jobs.printable(path)} ({format_bytes(len(data))})\n"
    )

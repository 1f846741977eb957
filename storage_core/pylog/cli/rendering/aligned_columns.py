"""A table as plain text: columns aligned, two blanks apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence


def aligned_columns(
    columns: Mapping[str, Sequence[str]], left: Collection[str] = ()
) -> Iterator[str]:
    """Yield the lines of a table, headings first.

    Parameters
    ----------
    columns
        The cells by heading; as many in each.
    left
        Headings of columns whose cells begin below it; all others end there.
    """
    padded = []
    for heading, cells in columns.items():
        width = max(map(len, (heading, *cells)))
        pad = str.ljust if heading in left else str.rjust
        padded.append([pad(cell, width) for cell in (heading, *cells)])
    for row in zip(*padded, strict=True):
        yield "  ".join(row).rstrip()

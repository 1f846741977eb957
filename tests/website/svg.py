"""Shapes of the drawings: text, boxes, and the ground that they stand on."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterator

_WIDE = 760


def box(x: float, y: float, wide: float, high: float, colour: str, *lines: str) -> Iterator[str]:
    """Yield a box with text in its middle."""
    yield (
        f'<rect x="{x:.1f}" y="{y}" width="{wide - 2:.1f}" height="{high}" rx="3" fill="{colour}"/>'
    )
    first = y + high / 2 + 5 - 8 * (len(lines) - 1)
    for number, line in enumerate(lines):
        yield text_at(x + wide / 2, first + 16 * number, line, middle=True, mono=True)


def text_at(
    x: float,
    y: float,
    text: str,
    *,
    bold: bool = False,
    small: bool = False,
    mono: bool = False,
    middle: bool = False,
    end: bool = False,
) -> str:
    """Return text at a place: its baseline, and its beginning, middle or end."""
    anchor = "middle" if middle else "end" if end else "start"
    family = "monospace" if mono else "sans-serif"
    size, weight = 12 if small or mono else 14, "bold" if bold else "normal"
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-family="{family}" font-size="{size}" '
        f'font-weight="{weight}" text-anchor="{anchor}" fill="#1f2328">{escape(text)}</text>'
    )


def drawing(high: int, parts: list[str], title: str) -> str:
    """Return a drawing on a ground of its own, so that a page may be light or dark."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {high}" role="img">\n'
        f"<title>{escape(title)}</title>\n"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#333"/></marker></defs>\n'
        f'<rect width="{_WIDE}" height="{high}" rx="8" fill="#fff"/>\n'
    )
    return head + "\n".join(parts) + "\n</svg>\n"

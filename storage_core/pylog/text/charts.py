"""Pages in HTML: text that is safe to show, numbers as people read them, tables and charts.

Whatever comes from disk goes through `text`. Charts are SVG that stretches to the width there is;
their labels are ordinary text beside them, which keeps its size and can be selected.
"""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from pylog.text.words import format_bytes, minute_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


_SPACE = "\u00a0"
_MOST_CHARACTERS = 200
_CHART_HEIGHT = 120
NONE = "\u2013"
"""What stands in the place of a value that there is not."""

_GAP = 0.15  # between columns, as a share of a column


def text(value: object, most_characters: int = _MOST_CHARACTERS) -> str:
    """Return any value as text of the page: escaped, without what moves or reorders a line."""
    shown = str(value)
    if len(shown) > most_characters:
        shown = f"{shown[: most_characters - 1]}…"
    safe = "".join(
        each if each.isprintable() else f"\\u{ord(each):04x}"  # also lone surrogates
        for each in shown
    )
    return escape(safe)


def number(value: float) -> str:
    """Return ``1,234,567``, and small numbers with one digit after the point."""
    if isinstance(value, int) or value >= 100:
        return f"{round(value):,}"
    return f"{value:.1f}"


def size(size_bytes: float) -> str:
    """Return ``512 B``, ``1.5 KiB``, ``120 MiB``."""
    return format_bytes(size_bytes, _SPACE)


def percent(share: float) -> str:
    """Return ``12.3 %``, and two digits of what is below a tenth of a per cent."""
    value = 100 * share
    if 0 < value < 0.1:
        return f"{value:.2g}{_SPACE}%"
    return f"{value:.1f}{_SPACE}%" if value < 99.95 else f"{value:.0f}{_SPACE}%"


def moment(milliseconds: int | None) -> str:
    """Return a timestamp in UTC, to the minute."""
    return NONE if milliseconds is None else minute_text(milliseconds)


def duration(milliseconds: int) -> str:
    """Return ``3 hours``, ``7 days``, ``1.5 s``."""
    hours = milliseconds / 3_600_000
    if hours >= 48:
        return f"{hours / 24:,.4g} days"
    if hours >= 1:
        return "1 hour" if hours == 1 else f"{hours:.3g} hours"
    seconds = milliseconds / 1000
    return f"{seconds / 60:.3g} min" if seconds >= 60 else f"{seconds:.3g} s"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Return a table; cells and headings are HTML, the first ``left`` columns are text."""
    kinds = ["t" if place < left else "n" for place in range(len(headings))]
    head = "".join(
        f'<th class="{kind}" scope="col">{each}</th>'
        for kind, each in zip(kinds, headings, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f'<td class="{kind}">{each}</td>' for kind, each in zip(kinds, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def card(title: str, content: str, *, note: str = "", wide: bool = False) -> str:
    """Return a part with a title; all three are HTML."""
    about = f'<p class="note">{note}</p>' if note else ""
    kind = "card wide" if wide else "card"
    return f'<section class="{kind}"><h3>{title}</h3>{about}{content}</section>'


class Bar(NamedTuple):
    """A row of a bar chart."""

    # HTML: what stands before the bar and after it
    label: str
    value: float  # what the bar is as long as
    note: str
    tip: str  # text: what a pointer over the bar shows
    # Between what the truth lies; None where it is certain
    low: float | None = None
    high: float | None = None
    kind: str = "a"  # A class of the style sheet


def bar_chart(bars: Sequence[Bar]) -> str:
    """Return horizontal bars, one a row; the largest value has the longest."""
    highest = max((max(each.value, each.high or 0) for each in bars), default=0) or 1
    rows = []
    for each in bars:
        length = 100 * each.value / highest
        length = max(length, 0.4) if each.value else 0
        drawn = f'<rect class="{each.kind}" width="{length:.2f}" height="10" rx="0"/>'
        if each.low is not None and each.high is not None and each.high > each.low:
            start, end = 100 * each.low / highest, 100 * min(each.high, highest) / highest
            drawn += (
                f'<rect class="bound" x="{start:.2f}" y="4.2" width="{max(end - start, 0.4):.2f}" '
                'height="1.6"/>'
            )
        rows.append(
            f'<div class="row"><span class="label">{each.label}</span>'
            f'<svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img">'
            f"<title>{text(each.tip)}</title>"
            f'<rect class="track" width="100" height="10"/>{drawn}</svg>'
            f'<span class="value">{each.note}</span></div>'
        )
    return f'<div class="bars">{"".join(rows)}</div>'


class ChartColumn(NamedTuple):
    """A column of a column chart: its height, how much of that is another colour, and its tip."""

    value: float
    lighter: float
    tip: str


def column_chart(columns: Sequence[ChartColumn], highest: str, labels: Sequence[str]) -> str:
    """Return upright columns."""
    top = max((each.value for each in columns), default=0) or 1
    gap = _GAP if len(columns) <= 80 else 0.0
    drawn = []
    for place, each in enumerate(columns):
        height = _CHART_HEIGHT * each.value / top
        height = max(height, 1.2) if each.value else 0
        light = height * each.lighter / each.value if each.value else 0
        x, width = place + gap / 2, 1 - gap
        parts = f'<rect class="hit" x="{place}" width="1" height="{_CHART_HEIGHT}"/>'
        if height > light:
            parts += _column("a", x, width, _CHART_HEIGHT - height, height - light)
        if light:
            parts += _column("b", x, width, _CHART_HEIGHT - light, light)
        drawn.append(f"<g><title>{text(each.tip)}</title>{parts}</g>")
    lines = "".join(
        f'<line class="grid" x1="0" x2="{len(columns)}" y1="{y}" y2="{y}"/>'
        for y in (0.5, _CHART_HEIGHT / 2, _CHART_HEIGHT - 0.5)
    )
    below = "".join(f"<span>{each}</span>" for each in labels)
    axis = "axis starts" if len(labels) == len(columns) else "axis"
    return (
        f'<div class="columns"><span class="top">{highest}</span>'
        f'<svg viewBox="0 0 {max(1, len(columns))} {_CHART_HEIGHT}" preserveAspectRatio="none" '
        f'role="img">{lines}{"".join(drawn)}</svg><div class="{axis}">{below}</div></div>'
    )


def _column(kind: str, x: float, width: float, y: float, height: float) -> str:
    return (
        f'<rect class="{kind}" x="{x:.3f}" y="{y:.2f}" width="{width:.3f}" height="{height:.2f}"/>'
    )


class Strip(NamedTuple):
    """A part of a line of strips: where it begins and ends, 0 to 1, its colour and its tip."""

    start: float
    end: float
    kind: str  # a class of the style sheet
    tip: str


def strip_chart(lines: Sequence[tuple[str, Sequence[Strip], str]]) -> str:
    """Return lines of strips below each other: a label, what is drawn, and a note; HTML."""
    rows = []
    for label, strips, note in lines:
        drawn = "".join(
            f'<rect class="{each.kind}" x="{100 * each.start:.2f}" height="10" '
            f'width="{max(100 * (each.end - each.start), 0.15):.2f}">'
            f"<title>{text(each.tip)}</title></rect>"
            for each in strips
        )
        rows.append(
            f'<div class="row"><span class="label">{label}</span>'
            '<svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img">'
            f'<rect class="track" width="100" height="10"/>{drawn}</svg>'
            f'<span class="value">{note}</span></div>'
        )
    return f'<div class="bars">{"".join(rows)}</div>'


class Share(NamedTuple):
    """A part of a whole: its name, its value, a tip, and two classes of the style sheet."""

    name: str
    value: float
    tip: str
    kind: str
    colour: str


def share_chart(parts: Sequence[Share], shown: Callable[[float], str] = size) -> str:
    """Return one bar that is shared by parts, and a legend with what `shown` makes of values."""
    total = sum(each.value for each in parts) or 1
    drawn, legend, x = "", "", 0.0
    for each in parts:
        width = 100 * each.value / total
        drawn += (
            f'<rect class="{each.kind}" x="{x:.3f}" width="{width:.3f}" height="10">'
            f"<title>{text(each.tip)}</title></rect>"
        )
        legend += (
            f'<li><i style="background:var(--{each.colour})"></i>{text(each.name)}'
            f"<small>{shown(each.value)}, {percent(each.value / total)}</small></li>"
        )
        x += width
    return (
        '<svg class="share" viewBox="0 0 100 10" preserveAspectRatio="none" role="img">'
        f'{drawn}</svg><ul class="legend">{legend}</ul>'
    )


def page(title: str, body: str, command: str) -> str:
    """Return a whole page: no script, no network, no file beside it; title and body are HTML."""
    style = files("pylog.text").joinpath("page.css").read_text("utf-8")
    foot = f"Made by <code>{command}</code>. This page needs no network and loads nothing."
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title} · {command}</title><style>\n{style}</style></head>"
        f"<body><main>{body}<footer>{foot}</footer></main></body></html>\n"
    )


def tiles(values: Iterable[tuple[str, str]]) -> str:
    """Return figures that stand out, each with what it counts; both are HTML."""
    shown = "".join(f'<div class="tile"><b>{a}</b><span>{b}</span></div>' for a, b in values)
    return f'<div class="tiles">{shown}</div>'

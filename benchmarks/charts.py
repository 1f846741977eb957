"""Bar charts as SVG, one for light and one for dark pages."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

_WIDE = 760
_LABELS, _RIGHT = 250, 90
_BAR, _GAP = 16, 14
_TOP = 62


class Theme(NamedTuple):
    """Colours of a chart: ground, edge, text, and the bars of each series in turn."""

    ground: str
    edge: str
    text: str
    bars: tuple[str, ...]


THEMES = {
    "light": Theme("#ffffff", "#d0d7de", "#1f2328", ("#0969da", "#9a6700", "#8250df", "#6e7781")),
    "dark": Theme("#0d1117", "#30363d", "#e6edf3", ("#58a6ff", "#d29922", "#bc8cff", "#8b949e")),
}


class Bar(NamedTuple):
    """A bar: whose figure, and how much."""

    series: str
    value: float


class Group(NamedTuple):
    """Bars below each other that share a label."""

    label: str
    bars: Sequence[Bar]


class Chart(NamedTuple):
    """A chart of horizontal bars from 0; ``unit`` follows the title."""

    name: str
    title: str
    unit: str
    groups: Sequence[Group]


def draw(chart: Chart, theme: Theme) -> str:
    """Return the chart as SVG."""
    series = list(dict.fromkeys(bar.series for group in chart.groups for bar in group.bars))
    bars = sum(len(group.bars) for group in chart.groups)
    high = _TOP + bars * _BAR + len(chart.groups) * _GAP + 8
    title = escape(f"{chart.title}, {chart.unit}")
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {high}" role="img">\n'
        f"<title>{title}</title>\n"
        f'<rect x=".5" y=".5" width="{_WIDE - 1}" height="{high - 1}" rx="8" '
        f'fill="{theme.ground}" stroke="{theme.edge}"/>\n'
        f'<g font-family="system-ui, sans-serif" font-size="12" fill="{theme.text}">\n'
        f'<text x="16" y="24" font-size="14" font-weight="bold">{title}</text>\n'
    )
    parts = [*_legend(series, theme), *_bars(chart, series, theme)]
    return head + "".join(parts) + "</g>\n</svg>\n"


def _legend(series: Sequence[str], theme: Theme) -> Iterator[str]:
    x = 16
    for number, name in enumerate(series):
        yield f'<rect x="{x}" y="36" width="12" height="12" fill="{theme.bars[number]}"/>\n'
        yield f'<text x="{x + 18}" y="46">{escape(name)}</text>\n'
        x += 40 + 7 * len(name)


def _bars(chart: Chart, series: Sequence[str], theme: Theme) -> Iterator[str]:
    most = max(bar.value for group in chart.groups for bar in group.bars)
    scale = (_WIDE - _LABELS - _RIGHT) / most
    y = _TOP
    for group in chart.groups:
        middle = y + len(group.bars) * _BAR / 2 + 4
        label = escape(group.label)
        yield f'<text x="{_LABELS - 10}" y="{middle:.0f}" text-anchor="end">{label}</text>\n'
        for bar in group.bars:
            wide = max(bar.value * scale, 1)
            colour = theme.bars[series.index(bar.series)]
            yield (
                f'<rect x="{_LABELS}" y="{y}" width="{wide:.1f}" height="{_BAR - 3}" '
                f'fill="{colour}"/>\n'
            )
            shown = f"{bar.value:.3g}" if bar.value < 100 else f"{bar.value:.0f}"
            yield f'<text x="{_LABELS + wide + 6:.1f}" y="{y + _BAR - 5}">{shown}</text>\n'
            y += _BAR
        y += _GAP

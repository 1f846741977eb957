"""Draws an import graph as SVG: a band a layer, a box a room, arrows downwards.

Of several orders of the boxes in their layers the one with the fewest crossings of arrows is taken.
An arrow that passes layers keeps a lane free between their boxes. The same graph gives the same
bytes, so that a picture can be compared with what would be drawn now.
"""

from __future__ import annotations

import math
import random
import textwrap
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tests.structure.layers import Edge, ImportGraph

_STARTS = 24
_SWEEPS = 12  # down and up again; the order has settled by then
_SUMMARY_COLUMNS = 34
_LINE_HEIGHT = 15
_TITLE_HEIGHT = 32
_PADDING = 14
_LANE_WIDTH = 14
_GAP = 26  # between boxes
_BAND_GAP = 46  # between layers, where arrows bend
_MARGIN = 24
_TITLE_EM, _SUMMARY_EM = 9.0, 6.7  # widths of a character, on the safe side
_PORT_GAP = 13
_PULL = (1, 2, 8)  # along a part of an arrow, by how many of its two ends are lanes
_LANE_WEIGHT = 4  # that of a box is 1

_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}" \
viewBox="0 0 {width} {height}">"""
_TIP = """\
<marker id="tip" orient="auto" markerWidth="7" markerHeight="7" viewBox="0 0 8 8" refX="7" \
refY="4"><path d="M0 0 L8 4 L0 8 Z" fill="#5f7387"/></marker>"""
_STYLE = """
  text { font-family: "Helvetica Neue", Helvetica, Arial, sans-serif; text-anchor: middle; }
  .title { font-size: 15px; font-weight: bold; fill: #14304f; }
  .summary { font-size: 12px; fill: #4a5a6a; }
  .band { fill: #f3f6f9; }
  .package { fill: #ffffff; stroke: #2f6da8; stroke-width: 1.5; }
  .module { fill: #ffffff; stroke: #9aa9b8; stroke-width: 1.2; }
  .arrow { fill: none; stroke: #5f7387; stroke-width: 1.4; }
"""


@dataclass(eq=False)
class _Cell:
    """A box, or the lane of an arrow that passes a layer. Positions are in pixels."""

    name: str
    width: float
    height: float = 0.0
    lines: Sequence[str] = ()
    x: float = 0.0  # of its middle
    top: float = 0.0
    above: list[_Cell] = field(default_factory=list)
    below: list[_Cell] = field(default_factory=list)

    @property
    def is_lane(self) -> bool:
        return not self.name


class _Point(NamedTuple):
    x: float
    y: float


Route = list[_Cell]
"""What an arrow leads through: the importer, lanes, the imported room."""


def draw(graph: ImportGraph) -> str:
    """Return the picture of a graph, without the arrows that others stand for."""
    rows, routes = _cells(graph)
    _order(rows)
    _place(rows)
    width = max(cell.x + cell.width / 2 for row in rows for cell in row) + _MARGIN
    height = max(cell.top + cell.height for row in rows for cell in row) + _MARGIN
    parts = [
        _HEAD.format(width=f"{width:.0f}", height=f"{height:.0f}"),
        "<title>What the packages import of each other</title>",
        f"<style>{_STYLE}</style>",
        _TIP,
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        *(_band(row, width) for row in rows),
        *_arrows(routes),
        *(part for row in rows for cell in row if not cell.is_lane for part in _box(cell, graph)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _cells(graph: ImportGraph) -> tuple[list[list[_Cell]], list[Route]]:
    """Return the cells of each layer, joined along the arrows, and each arrow's route."""
    rows: list[list[_Cell]] = []
    boxes: dict[str, _Cell] = {}
    for layer in graph.layers:
        rows.append([])
        for name in layer:
            boxes[name] = _box_cell(name, graph)
            rows[-1].append(boxes[name])
    routes = []
    for importer, imported in sorted(graph.without_shortcuts(), key=lambda edge: _key(edge, graph)):
        route = [boxes[importer]]
        for depth in range(graph.depths[importer] + 1, graph.depths[imported]):
            lane = _Cell("", _LANE_WIDTH)
            rows[depth].append(lane)
            route.append(lane)
        route.append(boxes[imported])
        for upper, lower in pairwise(route):
            upper.below.append(lower)
            lower.above.append(upper)
        routes.append(route)
    return rows, routes


def _key(edge: Edge, graph: ImportGraph) -> tuple[int, int, Edge]:
    importer, imported = edge
    return graph.depths[importer], graph.depths[imported], edge


def _box_cell(name: str, graph: ImportGraph) -> _Cell:
    summary = graph.rooms[name].summary
    for end in (":", ";"):  # the first part says what it is; the page has the whole sentence
        summary = summary.split(f"{end} ")[0]
    lines = textwrap.wrap(summary, _SUMMARY_COLUMNS)
    widths = [len(_title(name, graph)) * _TITLE_EM, *(len(line) * _SUMMARY_EM for line in lines)]
    height = _TITLE_HEIGHT + _LINE_HEIGHT * len(lines)
    return _Cell(name, max(widths) + 2 * _PADDING, height, lines)


def _title(name: str, graph: ImportGraph) -> str:
    last = name.rpartition(".")[2]
    return last if graph.rooms[name].is_package else f"{last}.py"


def _order(rows: list[list[_Cell]]) -> None:
    """Sort the cells of each layer so that few arrows cross; several beginnings are tried."""
    best = [list(row) for row in rows]
    fewest = _crossings(rows)
    for start in range(_STARTS):
        shuffle = random.Random(start).shuffle
        for row in rows:
            shuffle(row)
        for sweep in range(_SWEEPS):
            goes_down = sweep % 2 == 0
            for row in rows[1:] if goes_down else rows[-2::-1]:
                _sort_by_neighbours(row, rows, goes_down=goes_down)
        _swap_neighbours(rows)
        crossings = _crossings(rows)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    rows[:] = best


def _sort_by_neighbours(row: list[_Cell], rows: list[list[_Cell]], *, goes_down: bool) -> None:
    places = _places(rows)

    def middle(cell: _Cell) -> float:
        neighbours = cell.above if goes_down else cell.below
        if not neighbours:
            return places[id(cell)]
        return math.fsum(places[id(each)] for each in neighbours) / len(neighbours)

    row.sort(key=middle)


def _places(rows: Iterable[Sequence[_Cell]]) -> dict[int, float]:
    """Return where each cell is in its layer: 0 at the left end, 1 at the right end."""
    return {id(cell): (at + 0.5) / len(row) for row in rows for at, cell in enumerate(row)}


def _swap_neighbours(rows: list[list[_Cell]]) -> None:
    """Swap cells side by side as long as that leaves fewer crossings."""
    is_better = True
    while is_better:
        is_better = False
        for depth, row in enumerate(rows):
            around = rows[max(0, depth - 1) : depth + 2]
            for at in range(len(row) - 1):
                before = _crossings(around)
                row[at], row[at + 1] = row[at + 1], row[at]
                if _crossings(around) < before:
                    is_better = True
                else:
                    row[at], row[at + 1] = row[at + 1], row[at]


def _crossings(rows: Sequence[Sequence[_Cell]]) -> int:
    total = 0
    for upper, lower in pairwise(rows):
        places = {id(cell): at for at, cell in enumerate(lower)}
        ends = [sorted(places[id(each)] for each in cell.below) for cell in upper]
        passed: list[int] = []
        for some in ends:
            total += sum(each > end for end in some for each in passed)
            passed += some
    return total


def _place(rows: list[list[_Cell]]) -> None:
    """Give all cells their places: near their neighbours, without touching."""
    top = float(_MARGIN)
    for row in rows:
        height = max(cell.height for cell in row)
        for cell in row:
            cell.top = top + (height - cell.height) / 2
            if cell.is_lane:
                cell.top, cell.height = top, height
        _settle(row, [0.0] * len(row))
        top += height + _BAND_GAP
    for sweep in range(4 * _SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            _settle(row, [_wanted(cell) for cell in row])
    left = min(cell.x - cell.width / 2 for row in rows for cell in row) - _MARGIN
    for row in rows:
        for cell in row:
            cell.x -= left


def _wanted(cell: _Cell) -> float:
    """Return the middle of a cell's neighbours; two lanes pull each other most, to be straight."""
    neighbours = [*cell.above, *cell.below]
    if not neighbours:
        return cell.x
    pulls = [_PULL[cell.is_lane + each.is_lane] for each in neighbours]
    places = [each.x * pull for each, pull in zip(neighbours, pulls, strict=True)]
    return math.fsum(places) / sum(pulls)  # fsum: the same digits on every Python


def _settle(row: Sequence[_Cell], wanted: Sequence[float]) -> None:
    """Place a layer's cells as near to where they are wanted as their widths allow.

    Cells that would touch are moved together, to the middle of where they are wanted: the least
    sum of squares, as in isotonic regression.
    """
    starts = [0.0]
    for left, right in pairwise(row):
        starts.append(starts[-1] + (left.width + right.width) / 2 + _GAP)
    groups: list[_Group] = []
    for cell, want, start in zip(row, wanted, starts, strict=False):  # an empty row has a start
        weight = _LANE_WEIGHT if cell.is_lane else 1
        groups.append(_Group(weight * (want - start), weight, [(cell, start)]))
        while len(groups) > 1 and groups[-2].place > groups[-1].place:
            last = groups.pop()
            groups[-1] = groups[-1].joined(last)
    for group in groups:
        for cell, start in group.cells:
            cell.x = group.place + start


class _Group(NamedTuple):
    """Cells that touch: the weighted sum of where they want the group's zero, and the weights."""

    total: float
    weight: float
    cells: list[tuple[_Cell, float]]

    @property
    def place(self) -> float:
        return self.total / self.weight

    def joined(self, right: _Group) -> _Group:
        return _Group(
            self.total + right.total, self.weight + right.weight, self.cells + right.cells
        )


def _band(row: Sequence[_Cell], width: float) -> str:
    height = max(cell.height for cell in row)
    top = min(cell.top for cell in row)
    return (
        f'<rect class="band" x="8" y="{top - 9:.1f}" width="{width - 16:.1f}" '
        f'height="{height + 18:.1f}" rx="8"/>'
    )


def _arrows(routes: Sequence[Route]) -> Iterator[str]:
    """Draw the arrows; those that leave or reach one box do so side by side."""
    for route in routes:
        start = _port(route, routes, at=0)
        end = _port(route, routes, at=-1)
        points = [start]
        for lane in route[1:-1]:
            points += [_Point(lane.x, lane.top), _Point(lane.x, lane.top + lane.height)]
        points.append(end)
        path = [f"M{start.x:.1f} {start.y:.1f}"]
        for index, (here, there) in enumerate(pairwise(points)):
            if index % 2:
                path.append(f"L{there.x:.1f} {there.y:.1f}")
                continue
            bend = (there.y - here.y) / 2
            path.append(
                f"C{here.x:.1f} {here.y + bend:.1f} {there.x:.1f} {there.y - bend:.1f} "
                f"{there.x:.1f} {there.y:.1f}"
            )
        yield f'<path class="arrow" marker-end="url(#tip)" d="{" ".join(path)}"/>'


def _port(route: Route, routes: Sequence[Route], *, at: int) -> _Point:
    """Return where an arrow touches its first (0) or last (-1) box."""
    box, step = route[at], 1 if at == 0 else -2
    sides = sorted((each for each in routes if each[at] is box), key=lambda each: each[step].x)
    place = next(place for place, each in enumerate(sides) if each is route)
    gap = min(_PORT_GAP, (box.width - 2 * _PADDING) / max(1, len(sides) - 1))
    x = box.x + (place - (len(sides) - 1) / 2) * gap
    return _Point(x, box.top + box.height if at == 0 else box.top)


def _box(cell: _Cell, graph: ImportGraph) -> Iterator[str]:
    kind = "package" if graph.rooms[cell.name].is_package else "module"
    left, y = cell.x - cell.width / 2, cell.top + 21
    yield (
        f'<rect class="{kind}" x="{left:.1f}" y="{cell.top:.1f}" width="{cell.width:.1f}" '
        f'height="{cell.height:.1f}" rx="6"/>'
    )
    yield _text("title", cell.x, y, _title(cell.name, graph))
    for line in cell.lines:
        y += _LINE_HEIGHT
        yield _text("summary", cell.x, y, line)


def _text(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'

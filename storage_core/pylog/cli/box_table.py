"""A table in a box, as DuckDB's shell draws one, for a terminal.

What does not fit is left out, and said to be: rows and columns in the middle, the ends of cells.
"""

from __future__ import annotations

import itertools
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from pylog.cli.style import BOLD, DIM, OutputTraits, padded, shortened, width_of
from pylog.lazy_modules import LazyModule
from pylog.text.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    Row = tuple[object, ...]
    Cells = Sequence[str | None]
else:
    pa = LazyModule("pyarrow")


_ROWS_AT_AN_END = 20
_DOTS = 3  # rows that stand for those in the middle
_LEAST_WIDTH = 10  # cells are cut down to this before columns are left out
_BESIDE = 3  # columns of the terminal between two columns of the table
_NULL = "NULL"


class BoxColumn(NamedTuple):
    """A column's heading."""

    name: str
    kind: str
    is_right: bool  # whether its cells end below each other, as numbers do


_GAP = BoxColumn("…", "", is_right=False)


class _Rows(NamedTuple):
    first: list[Cells]
    last: list[Cells]
    total: int  # also those between

    @property
    def shown(self) -> int:
        return len(self.first) + len(self.last)


def box_lines(
    columns: Sequence[BoxColumn], rows: Iterable[Cells], traits: OutputTraits
) -> Iterator[str]:
    """Yield the lines of a table, and how many rows and columns it has; None is a null."""
    room = traits.width or 0
    # No more of a cell than a terminal has room for, so that memory stays small.
    cut = ([None if cell is None else shortened(cell, room) for cell in cells] for cells in rows)
    kept = _ends(cut, _ROWS_AT_AN_END)
    widths = _natural_widths(columns, [*kept.first, *kept.last])
    places = _columns_that_fit(widths, room)
    if len(places) < len(columns):
        columns = [*columns, _GAP]
        widths.append(1)
        places.insert((len(places) + 1) // 2, len(columns) - 1)
        kept = _Rows(_with_gap(kept.first), _with_gap(kept.last), kept.total)
    table = _Table(
        [columns[at] for at in places], _narrowed([widths[at] for at in places], room), traits
    )
    yield table.rule("┌┬┐")
    yield table.heading([each.name for each in table.columns], BOLD)
    yield table.heading([each.kind for each in table.columns], DIM)
    yield table.rule("├┼┤")
    yield from (table.row([cells[at] for at in places]) for cells in kept.first)
    if kept.shown < kept.total:
        yield from [table.dots()] * _DOTS
    yield from (table.row([cells[at] for at in places]) for cells in kept.last)
    yield table.rule("└┴┘")
    is_gap = _GAP in columns
    all_columns = len(columns) - is_gap
    yield "  ".join(
        [
            _number(kept.total, kept.shown, "row"),
            _number(all_columns, len(places) - is_gap, "column"),
        ]
    )


def _number(count: int, shown: int, thing: str) -> str:
    return counted(count, thing) + (f" ({shown} shown)" if shown < count else "")


def _ends(rows: Iterable[Cells], most: int) -> _Rows:
    coming = iter(rows)
    first = list(itertools.islice(coming, most))
    last: deque[Cells] = deque(maxlen=most)
    count = len(first)
    for cells in coming:
        last.append(cells)
        count += 1
    return _Rows(first, list(last), count)


def _with_gap(rows: Iterable[Cells]) -> list[Cells]:
    return [[*cells, _GAP.name] for cells in rows]


def _natural_widths(columns: Sequence[BoxColumn], rows: Sequence[Cells]) -> list[int]:
    return [
        max(
            width_of(column.name),
            width_of(column.kind),
            *(width_of(_NULL if cells[at] is None else cells[at] or "") for cells in rows),
            1,
        )
        for at, column in enumerate(columns)
    ]


def _total(widths: Iterable[int]) -> int:
    return sum(width + _BESIDE for width in widths) + 1


def _columns_that_fit(widths: Sequence[int], room: int) -> list[int]:
    """Return which columns are shown: of too many, those in the middle are not."""
    places = list(range(len(widths)))
    gap = 0
    while len(places) > 1 and _total(min(widths[at], _LEAST_WIDTH) for at in places) + gap > room:
        del places[len(places) // 2]
        gap = 1 + _BESIDE
    return places


def _narrowed(widths: list[int], room: int) -> list[int]:
    """Return widths with which the table fits: the widest columns give way, if they can."""
    while _total(widths) > room and max(widths) > _LEAST_WIDTH:
        widths[widths.index(max(widths))] -= 1
    return widths


class _Table:
    def __init__(
        self, columns: Sequence[BoxColumn], widths: Sequence[int], traits: OutputTraits
    ) -> None:
        self.columns = columns
        self._widths = widths
        self._styled = traits.styled

    def rule(self, corners: str) -> str:
        lines = corners[1].join("─" * (width + 2) for width in self._widths)
        return f"{corners[0]}{lines}{corners[2]}"

    def heading(self, texts: Iterable[str], style: str) -> str:
        cells = []
        for text, width in zip(texts, self._widths, strict=True):
            cell = shortened(text, width)
            before = (width - width_of(cell)) // 2
            cells.append(padded(" " * before + self._styled(cell, style), width))
        return self._line(cells)

    def row(self, cells: Cells) -> str:
        texts = (self._styled(_NULL, DIM) if cell is None else cell for cell in cells)
        return self._line(
            padded(shortened(text, width), width, is_right=column.is_right)
            for text, width, column in zip(texts, self._widths, self.columns, strict=True)
        )

    def dots(self) -> str:
        return self.row(["·"] * len(self.columns))

    def _line(self, cells: Iterable[str]) -> str:
        return f"│ {' │ '.join(cells)} │"

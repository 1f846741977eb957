"""A table of figures, as the data file keeps it, and what its cells hold."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from benchmarks.measuring import Figure
from benchmarks.ratio import Ratio

Cell = str | float | Sequence[float] | None
"""Text, a number, or several of one figure: the best and the median of the rounds, or every run."""


class Timed(Protocol):
    """What was repeated, and took its time."""

    @property
    def best_seconds(self) -> float:
        """Of the fastest repetition."""

    @property
    def median_seconds(self) -> float:
        """Of the middle one."""


@dataclass(slots=True)
class Table:
    """Figures of one part of a run.

    Attributes
    ----------
    title
        Names the table in the data file and on the page.
    columns
        Their heads.
    rows
        A cell for each column.
    note
        What a reader has to know about how it was measured; may be empty.
    """

    title: str
    columns: list[str]
    rows: list[list[Cell]] = field(default_factory=list)
    note: str = ""


def table(
    title: str, columns: Iterable[str], rows: Iterable[Iterable[Cell]], note: str = ""
) -> Table:
    """Return a table of rows that are made one by one."""
    return Table(title, list(columns), [list(row) for row in rows], note)


def speeds(title: str, what: str, figures: Iterable[Figure]) -> list[Table]:
    """Return how fast whole logs are read, as a table, or nothing without figures.

    `what` is the head of the column that tells the figures apart.
    """
    rows = [(f.reader, round(f.log_bytes / 1e6), megabytes(f), millions(f)) for f in figures]
    columns = (what, "MB of log", "MB/s of log", "M records/s")
    return [table(title, columns, rows)] if rows else []


def seconds(figure: Timed, digits: int = 2) -> list[float]:
    """Return the seconds of the best and the median repetition."""
    return [round(figure.best_seconds, digits), round(figure.median_seconds, digits)]


def millions(figure: Figure) -> list[float]:
    """Return million records a second, of the best and the median repetition."""
    times = (figure.best_seconds, figure.median_seconds)
    return [round(figure.records / each / 1e6, 2) for each in times]


def megabytes(figure: Figure) -> list[float]:
    """Return MB of log a second, of the best and the median repetition."""
    times = (figure.best_seconds, figure.median_seconds)
    return [round(figure.log_bytes / each / 1e6) for each in times]


def ratio_cell(ratio: Ratio | None) -> list[float] | None:
    """Return the ratio of the best repetitions and the median of the rounds' ratios."""
    return None if ratio is None else [round(ratio.best, 2), round(ratio.median, 2)]

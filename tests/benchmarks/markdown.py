"""Parts of a page in Markdown: sections, tables, and what stands in their cells."""

from collections.abc import Iterable, Iterator
from typing import Protocol

from tests.benchmarks.measuring import Figure
from tests.benchmarks.ratio import Ratio


class Timed(Protocol):
    """What was repeated, and took its time."""

    @property
    def best_seconds(self) -> float:
        """Of the fastest repetition."""

    @property
    def median_seconds(self) -> float:
        """Of the middle one."""


def table(head: Iterable[str], rows: Iterable[Iterable[str]], left: int = 1) -> Iterator[str]:
    """Yield a Markdown table; the first `left` columns are text."""
    names = list(head)
    yield "| " + " | ".join(names) + " |"
    yield "|" + "|".join("---" if i < left else "--:" for i in range(len(names))) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def section(title: str) -> Iterator[str]:
    """Yield the heading of a section."""
    yield from ("", f"## {title}", "")


def speed_section(title: str, what: str, figures: Iterable[Figure]) -> Iterator[str]:
    """Yield a section of how fast whole logs are gone through; nothing without figures.

    `what` is the head of the column that tells the figures apart.
    """
    rows = [(f.reader, f"{f.log_bytes / 1e6:.0f}", megabytes(f), millions(f)) for f in figures]
    if rows:
        yield from section(title)
        yield from table((what, "MB of log", "MB/s of log", "M records/s"), rows)


def seconds(figure: Timed, digits: int = 2) -> str:
    """Return a cell of seconds, of the best and the median repetition."""
    return f"{figure.best_seconds:.{digits}f} / {figure.median_seconds:.{digits}f}"


def millions(figure: Figure) -> str:
    """Return a cell of million records a second, of the best and the median repetition."""
    best, median = figure.best_seconds, figure.median_seconds
    return f"{figure.records / best / 1e6:.2f} / {figure.records / median / 1e6:.2f}"


def megabytes(figure: Figure) -> str:
    """Return a cell of MB of log a second, of the best and the median repetition."""
    best, median = figure.best_seconds, figure.median_seconds
    return f"{figure.log_bytes / best / 1e6:.0f} / {figure.log_bytes / median / 1e6:.0f}"


def ratio_text(ratio: Ratio | None) -> str:
    """Return a ratio's cell, empty where there is none."""
    return "" if ratio is None else str(ratio)

"""Parts of a page in Markdown: sections, tables, and what stands in their cells."""

from collections.abc import Iterable, Iterator

from tests.benchmarks.measuring import Figure
from tests.benchmarks.ratio import Ratio


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

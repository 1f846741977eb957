"""Random batches, and what statistics say of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pylog

NOW_MS = 1_700_000_000_000


def rows(found: pylog.results.LogStatistics, name: str, *columns: str) -> list[Any]:
    document = found.document()[name]
    return [tuple(row[column] for column in columns) for row in document]

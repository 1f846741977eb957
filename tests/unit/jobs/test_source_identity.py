"""A table that was made again under its name."""

from __future__ import annotations

import pytest

from pylog_jobs.bookmark import INTEGER, Bookmark
from pylog_jobs.job import UsageError
from pylog_jobs.source_identity import ensure_same_tables

LAST = Bookmark("id", INTEGER, 9, tables={"shop.orders": "17", "shop.lines": "18"})


@pytest.mark.parametrize(
    ("last", "found"),
    [
        (None, {"shop.orders": "5"}),
        (Bookmark("id", INTEGER, 9), {"shop.orders": "5"}),  # written before there were any
        (LAST, {"shop.orders": "17", "shop.lines": "18"}),
        (LAST, {"shop.orders": "17", "shop.customers": "5"}),
        (LAST, {}),
    ],
)
def test_tables_that_are_the_same_or_not_known_are_read_on(
    last: Bookmark | None, found: dict[str, str]
) -> None:
    ensure_same_tables(last, found)


def test_a_table_with_another_identity_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        ensure_same_tables(LAST, {"shop.orders": "17", "shop.lines": "19"})
    text = str(caught.value)
    assert "table shop.lines has been made again since the last run (it was 18 and is 19)" in text
    assert "--full reads everything again and replaces what the topic has" in text

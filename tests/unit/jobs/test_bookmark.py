"""Bookmarks as the ledger keeps them, and the ranges that follow from them."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog_jobs.bookmark import (
    INTEGER,
    TIMESTAMP,
    Bookmark,
    BookmarkError,
    Checkpoint,
    RememberedRows,
)

INTEGERS = st.integers(-(2**63), 2**63 - 1)


@given(st.dictionaries(st.binary(min_size=16, max_size=16), INTEGERS), INTEGERS)
def test_it_is_read_as_it_was_written(rows: dict[bytes, int], end: int) -> None:
    positions = np.fromiter(rows.values(), np.int64, len(rows))
    bookmark = Bookmark(
        *("at", TIMESTAMP, end, end, ("*", "id")),
        RememberedRows(positions, b"".join(rows)),
        {0: 3, 12: 7},
        tables={"shop.orders": "5"},
        unsettled_from=-7,
        checkpoints=(Checkpoint(2**40, -1), Checkpoint(2**40 + 1, 5)),
        rows_before=3,
        nothing_read=True,
    )
    assert json.loads(bookmark.to_text())["version"] == 2  # what knows version 1 alone refuses it
    again = Bookmark.from_text(bookmark.to_text())
    pairs = [
        (again.rows.digests[16 * place : 16 * place + 16], int(position))
        for place, position in enumerate(again.rows.positions)
    ]
    assert dict(pairs) == rows
    assert (again.column, again.kind, again.end, again.remembered_from) == (
        "at",
        TIMESTAMP,
        end,
        end,
    )
    assert (again.identity, again.replaces) == (("*", "id"), {0: 3, 12: 7})
    assert (again.tables, again.unsettled_from, again.rows_before) == ({"shop.orders": "5"}, -7, 3)
    assert again.nothing_read
    assert again.checkpoints == ((2**40, -1), (2**40 + 1, 5))


def with_value(name: str, value: Any) -> str:  # noqa: ANN401 - any JSON
    positions = np.array([5, 7], np.int64)
    rows = RememberedRows(positions, b"x" * 32)
    content = json.loads(Bookmark("id", INTEGER, 9, 5, ("id",), rows).to_text())
    return json.dumps(content | {name: value})


BOMB = base64.b64encode(zlib.compress(bytes(1 << 24))).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "[" * 100_000,
        with_value("version", 3),
        with_value("kind", "text"),
        with_value("end", 2**63),
        with_value("end", None),
        with_value("remembered_from", "5"),
        with_value("digests", base64.b64encode(b"x" * 31).decode()),
        with_value("digests", base64.b64encode(b"x" * 48).decode()),
        with_value("digests", "not base64"),
        with_value("positions", BOMB),
        with_value("positions", "AAAA"),
        with_value("positions", ""),
        with_value("identity", 3),
        with_value("replaces", {"a": 3}),
        with_value("replaces", [3]),
        with_value("more", 1),
        with_value("unsettled_from", 2**63),
        with_value("checkpoints", [[1]]),
        with_value("tables", ["orders"]),
    ],
)
def test_what_is_no_bookmark_is_an_error(text: str) -> None:
    with pytest.raises(BookmarkError, match="the bookmark in the ledger is malformed: "):
        Bookmark.from_text(text)


def test_more_rows_than_a_bookmark_remembers_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Bookmark.from_text(with_value("end", 9)).rows.digests == b"x" * 32
    monkeypatch.setattr("pylog_jobs.bookmark.MOST_REMEMBERED", 1)
    with pytest.raises(BookmarkError, match="32 bytes of digests"):
        Bookmark.from_text(with_value("end", 9))


def test_a_bookmark_of_the_first_version_is_read() -> None:
    # As it was written, with two rows within the lag.
    text = (
        '{"version": 1, "column": "id", "kind": "integer", "end": 9, "remembered_from": 5, '
        '"identity": ["id"], "positions": "eJxjZYAAJigNAABwAAg=", "digests": '
        '"eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHg=", "types": ["integer"]}'
    )
    found = Bookmark.from_text(text)
    assert (found.end, found.remembered_from, found.rows.positions.tolist()) == (9, 5, [5, 7])
    assert (found.tables, found.unsettled_from, found.rows_before) == ({}, None, None)


def test_too_many_rows_near_the_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pylog_jobs.bookmark.MOST_REMEMBERED", 2)
    part = RememberedRows(np.array([1, 2], np.int64), b"a" * 32)
    assert len(RememberedRows.of([part])) == 2
    with pytest.raises(ValueError, match=r"4 rows are within the lag or wait .* shorter lag"):
        RememberedRows.of([part, part])

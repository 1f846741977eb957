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

from pylog_jobs import record_write
from pylog_jobs.bookmark import (
    A_DATE,
    INTEGER,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Bookmark,
    BookmarkError,
    ReadRange,
    plan_range,
)
from pylog_jobs.incremental import parse_position, position_text

INTEGERS = st.integers(-(2**63), 2**63 - 1)


@given(st.dictionaries(st.binary(min_size=16, max_size=16), INTEGERS), INTEGERS)
def test_it_is_read_as_it_was_written(rows: dict[bytes, int], end: int) -> None:
    positions = np.fromiter(rows.values(), np.int64, len(rows))
    bookmark = Bookmark(
        "at", TIMESTAMP, end, end, ("*", "id"), positions, b"".join(rows), {0: 3, 12: 7}
    )
    again = Bookmark.from_text(bookmark.to_text())
    pairs = [
        (again.digests[16 * place : 16 * place + 16], int(position))
        for place, position in enumerate(again.positions)
    ]
    assert dict(pairs) == rows
    assert (again.column, again.kind, again.end, again.remembered_from) == (
        "at",
        TIMESTAMP,
        end,
        end,
    )
    assert (again.identity, again.replaces) == (("*", "id"), {0: 3, 12: 7})


def with_value(name: str, value: Any) -> str:  # noqa: ANN401 - any JSON
    positions = np.array([5, 7], np.int64)
    content = json.loads(Bookmark("id", INTEGER, 9, 5, ("id",), positions, b"x" * 32).to_text())
    return json.dumps(content | {name: value})


BOMB = base64.b64encode(zlib.compress(bytes(1 << 24))).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "[" * 100_000,
        with_value("version", 2),
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
    ],
)
def test_what_is_no_bookmark_is_an_error(text: str) -> None:
    with pytest.raises(BookmarkError, match="the bookmark in the ledger is malformed: "):
        Bookmark.from_text(text)


def test_more_rows_than_a_bookmark_remembers_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Bookmark.from_text(with_value("end", 9)).digests == b"x" * 32
    monkeypatch.setattr("pylog_jobs.bookmark.MOST_REMEMBERED", 1)
    with pytest.raises(BookmarkError, match="32 bytes of digests"):
        Bookmark.from_text(with_value("end", 9))
    assert record_write.MOST_REMEMBERED * 40 < 4 << 20  # what a ledger takes of one job


@pytest.mark.parametrize(
    ("last", "lag", "upper", "newest", "expected"),
    [
        (None, 0, None, None, None),
        (None, 0, None, 9, ReadRange(None, 10, None, is_new=True)),
        (None, 3, None, 9, ReadRange(None, 10, 7, is_new=True)),
        (None, 0, 5, 9, ReadRange(None, 5, None, is_new=True)),
        # end 10, all rows from 7 on remembered
        ((10, 7), 0, None, 9, None),
        ((10, 7), 3, None, 9, ReadRange(7, 10, 7, is_new=False)),
        ((10, 7), 3, None, 20, ReadRange(7, 21, 18, is_new=True)),
        ((10, 7), 9, None, 20, ReadRange(7, 21, 12, is_new=True)),  # no more is remembered
        ((10, 7), 9, None, 11, ReadRange(7, 12, 7, is_new=True)),
        ((10, 7), 1, None, 20, ReadRange(9, 21, 20, is_new=True)),
        ((10, 7), 3, 4, 20, ReadRange(7, 10, 7, is_new=False)),  # a clock that was set back
        ((10, None), 3, None, 20, ReadRange(10, 21, 18, is_new=True)),  # the lag is new
    ],
)
def test_a_range_starts_where_late_rows_may_have_come_since(
    last: tuple[int, int | None] | None,
    lag: int,
    upper: int | None,
    newest: int | None,
    expected: ReadRange | None,
) -> None:
    bookmark = None if last is None else Bookmark("id", INTEGER, last[0], last[1])
    assert plan_range(bookmark, initial=None, lag=lag, upper=upper, newest=newest) == expected


@pytest.mark.parametrize(
    ("kind", "text", "position", "shown"),
    [
        (INTEGER, "-17", -17, "-17"),
        (A_DATE, "2026-11-22", 20_779, "2026-11-22"),
        (TIMESTAMP, "2026-11-22", 1_795_305_600_000_000, "2026-11-22T00:00:00Z"),
        (TIMESTAMP, "1970-01-01T01:00:00.000001+01:00", 1, "1970-01-01T00:00:00.000001Z"),
        (TIMESTAMP_NTZ, "1969-12-31T23:59:59", -1_000_000, "1969-12-31 23:59:59"),
    ],
)
def test_a_position_is_written_as_people_write_it(
    kind: str, text: str, position: int, shown: str
) -> None:
    assert parse_position(kind, text) == position
    assert position_text(kind, position) == shown


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (INTEGER, "1.5", "a whole number"),
        (TIMESTAMP, "2026-11-22T03:00", "a zone with the time"),
        (TIMESTAMP, "soon", "an ISO date or time"),
        (TIMESTAMP_NTZ, "2026-11-22T03:00Z", "no zone, as the column has none"),
    ],
)
def test_what_is_no_position_is_named(kind: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_position(kind, text)

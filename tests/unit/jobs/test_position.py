"""Positions as people write them."""

from __future__ import annotations

import pytest

from pylog_jobs.bookmark import A_DATE, INTEGER, TIMESTAMP, TIMESTAMP_NTZ
from pylog_jobs.position import parse_position, plain_column, position_text


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [("updated_at", "Updated_At"), (" `ID` ", "id"), ("id + 1", None), ("at", None)],
)
def test_a_column_is_told_from_an_expression(text: str, expected: str | None) -> None:
    assert plain_column(text, ["id", "Updated_At"]) == expected

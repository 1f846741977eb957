from __future__ import annotations

import time

import click
import pytest

from pylog.cli.options import TIME

NOW_MS = 1_800_000_000_500


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW_MS / 1000)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("0", 0),
        ("1730999991709", 1_730_999_991_709),
        ("2024-03-01", 1_709_251_200_000),
        ("2024-03-01T12:30", 1_709_296_200_000),
        ("2024-03-01 12:30:00.5Z", 1_709_296_200_500),
        ("2024-03-01T12:30:00+01:00", 1_709_292_600_000),
        ("2024-03-01T12:30:00.0001Z", 1_709_296_200_001),
        ("-30s", NOW_MS - 30_000),
        ("-15m", NOW_MS - 900_000),
        ("-2h", NOW_MS - 7_200_000),
        ("-7d", NOW_MS - 604_800_000),
        ("-4w", NOW_MS - 2_419_200_000),
    ],
)
def test_a_time_is_a_date_a_while_ago_or_milliseconds(text: str, milliseconds: int) -> None:
    assert TIME.convert(text, None, None) == milliseconds


@pytest.mark.parametrize(
    "text", ["", "now", "-2", "-1", "2h", "-2y", "-h", "1.5", "2024-13-01", "\u0661"]
)
def test_anything_else_is_refused_with_what_may_be_given(text: str) -> None:
    with pytest.raises(
        click.BadParameter, match=r"is not a time: give an ISO date or time \(2026-"
    ):
        TIME.convert(text, None, None)

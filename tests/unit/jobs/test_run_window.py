"""Windows and parameters as they are given on the command line."""

from __future__ import annotations

import argparse
import datetime as dt

import pytest

from pylog_jobs.job import UsageError
from pylog_jobs.run_window import RunWindow, add_window_arguments, windows_of


def windows(*arguments: str) -> list[RunWindow]:
    parser = argparse.ArgumentParser()
    add_window_arguments(parser)
    return windows_of(parser.parse_args(arguments))


def test_a_date_is_a_day_in_utc_and_an_instant_has_any_zone() -> None:
    [day] = windows("--date", "2026-11-22")
    assert day.values() == {
        "date": "2026-11-22",
        "start": "2026-11-22T00:00:00Z",
        "end": "2026-11-23T00:00:00Z",
    }
    [hour] = windows(
        *("--start", "2026-11-22T01:00+02:00", "--end", "2026-11-22T00:00:00.5Z"),
        *("--param", "region=eu", "--param", "query=a=b"),
    )
    assert hour.values() == {
        "date": "2026-11-21",
        "hour": "23",
        "start": "2026-11-21T23:00:00Z",
        "end": "2026-11-22T00:00:00.500000Z",
        "region": "eu",
        "query": "a=b",
    }


def test_a_backfill_has_windows_without_a_gap() -> None:
    found = windows("--backfill", "2026-11-21T22:00Z..2026-11-22", "--every", "1h")
    assert [str(each) for each in found] == [
        "2026-11-21T22:00:00Z to 2026-11-21T23:00:00Z",
        "2026-11-21T23:00:00Z to 2026-11-22T00:00:00Z",
    ]
    assert [each.values().get("hour") for each in found] == ["22", "23"]
    days = windows("--backfill", "2024-02-28..2024-03-02")
    assert [each.start.date() for each in days] == [
        dt.date(2024, 2, 28),
        dt.date(2024, 2, 29),
        dt.date(2024, 3, 1),
    ]
    assert all(each.is_day for each in days)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--start", "2026-11-22T01:00Z"), "give either --date, or --start and --end"),
        (("--start", "2026-11-22T01:00", "--end", "2026-11-23"), "'2026-11-22T01:00' has no zone"),
        (("--start", "2026-11-23", "--end", "2026-11-22"), "expected before --end"),
        (("--start", "soon", "--end", "2026-11-22"), "'soon' is not an instant such as"),
        (("--backfill", "2026-11-22"), "expected A..B"),
        (("--backfill", "2026-11-22..2026-11-22"), "is not one or more windows of 1d"),
        (("--backfill", "2026-11-22..2026-11-23", "--every", "5h"), "is not one or more windows"),
        (("--backfill", "2026-11-22..2026-11-23", "--every", "0s"), "is not one or more windows"),
        (
            ("--backfill", "2026-11-22..2026-11-23", "--every", "x"),
            "--every: 'x' is not a duration",
        ),
        (("--backfill", "1026-11-22..2026-11-23", "--every", "1h"), "expected at most 100000"),
        (("--backfill", "2026-11-22..2026-11-23", "--date", "2026-11-22"), "without --date"),
        (("--every", "1h"), "--every belongs to --backfill"),
        (("--param", "x"), "expected NAME=VALUE"),
        (("--param", "from=1"), "--param from: it is a name of its own"),
        (("--param", "x=1", "--param", "x=2"), "--param x: it is given twice"),
    ],
)
def test_what_makes_no_sense_is_named(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        windows(*arguments)
    assert message in str(caught.value)

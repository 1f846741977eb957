"""Windows and parameters as they are given on the command line."""

from __future__ import annotations

import argparse
import datetime as dt

import pytest

from pylog_jobs.job import UsageError
from pylog_jobs.run_window import RunWindow, add_window_arguments, windows_of

NOW = dt.datetime(2026, 11, 24, 3, 15, tzinfo=dt.UTC)


def windows(*arguments: str, now: dt.datetime = NOW) -> list[RunWindow]:
    parser = argparse.ArgumentParser()
    add_window_arguments(parser)
    return windows_of(parser.parse_args(arguments), now)


@pytest.mark.parametrize(
    ("now", "day"),
    [
        ("2026-11-24T00:00:00+00:00", "2026-11-23"),
        ("2026-11-24T23:59:59.999999+00:00", "2026-11-23"),
        ("2026-03-01T12:00:00+00:00", "2026-02-28"),
    ],
)
def test_without_a_date_a_run_is_for_the_last_whole_day(now: str, day: str) -> None:
    [window] = windows(now=dt.datetime.fromisoformat(now))
    assert (window.values()["date"], window.is_day, window.is_open) == (day, True, False)


@pytest.mark.parametrize(
    ("end", "is_open"),
    [("2026-11-24T03:14:59Z", False), ("2026-11-24T03:15Z", False), ("2026-11-24T03:16Z", True)],
)
def test_a_window_is_open_until_its_end_is_past(end: str, *, is_open: bool) -> None:
    [window] = windows("--start", "2026-11-24T02:00Z", "--end", end)
    assert window.is_open is is_open


def test_the_last_windows_are_whole_ones_up_to_now() -> None:
    days = windows("--backfill", "last:3d")
    assert [each.values()["date"] for each in days] == ["2026-11-21", "2026-11-22", "2026-11-23"]
    assert all(each.is_day for each in days)
    hours = windows("--backfill", "last:2h", "--every", "30m")
    assert [str(each)[11:16] for each in hours] == ["01:00", "01:30", "02:00", "02:30"]
    assert not any(each.is_open for each in [*days, *hours])


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
        (("--backfill", "last:soon"), "--backfill: 'soon' is not a duration"),
        (("--backfill", "last:7d", "--every", "5h"), "is for windows that divide a day"),
        (("--backfill", "last:7d", "--every", "2d"), "is for windows that divide a day"),
        (("--backfill", "last:7d", "--every", "0s"), "is for windows that divide a day"),
        (("--backfill", "last:90m", "--every", "1h"), "is not one or more windows of 1h"),
        (("--param", "x=\udcff"), "--param x: '\\udcff' is not UTF-8"),
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

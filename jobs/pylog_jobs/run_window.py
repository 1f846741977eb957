"""What one run of a scheduled job is for: a window of time, and parameters.

A window is half-open, from ``{start}`` to ``{end}``, both in UTC; ``{date}`` and ``{hour}`` are
those of its start. Windows of a backfill follow each other without a gap.

A window is open until its end is past: rows may still come, so a run that commits it would lose
them. Without ``--date`` a run is for the last whole day.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pylog
from pylog_jobs.job import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

DATE, HOUR, START, END = WINDOW_NAMES = ("date", "hour", "start", "end")
FROM, TO = BOOKMARK_NAMES = ("from", "to")
"""What an incremental ingest reads; it is known when the bookmark has been read."""
MOST_WINDOWS = 100_000
LAST = "last:"
"""Before a duration in ``--backfill``: the whole windows of that time, up to now."""
_ONE_DAY = dt.timedelta(days=1)
_PARAMETER = re.compile(r"[A-Za-z_]\w*")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class RunWindow:
    """A window and the parameters of ``--param``; a day, if only a date was given."""

    start: dt.datetime
    end: dt.datetime
    is_day: bool = False  # nobody said an hour
    is_open: bool = False  # it is not over
    parameters: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_day(cls, date: dt.date, parameters: Mapping[str, str] | None = None) -> RunWindow:
        """Return the window of a day in UTC."""
        start = dt.datetime.combine(date, dt.time(), dt.UTC)
        return cls(start, start + _ONE_DAY, is_day=True, parameters=parameters or {})

    def seen_at(self, now: dt.datetime) -> RunWindow:
        """Return the window, which is open if its end is still to come."""
        return replace(self, is_open=self.end > now)

    def values(self) -> dict[str, str]:
        """Return the value of each placeholder."""
        hour = {} if self.is_day else {HOUR: f"{self.start:%H}"}
        window = {DATE: f"{self.start:%Y-%m-%d}", **hour}
        return {**window, START: instant_text(self.start), END: instant_text(self.end)} | {
            **self.parameters
        }

    def __str__(self) -> str:
        return f"{instant_text(self.start)} to {instant_text(self.end)}"


def instant_text(instant: dt.datetime) -> str:
    """Return an instant in UTC: ``2026-11-22T03:00:00Z``."""
    text = instant.astimezone(dt.UTC).isoformat(
        timespec="microseconds" if instant.microsecond else "seconds"
    )
    return text.removesuffix("+00:00") + "Z"


def add_window_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say which windows there are, and with which parameters."""
    parser.add_argument(
        "--date",
        metavar="YYYY-MM-DD",
        type=dt.date.fromisoformat,
        help="what {date} in the configuration stands for (default: the last whole day, UTC)",
    )
    parser.add_argument(
        "--start",
        metavar="INSTANT",
        help="in place of --date: where the window begins, such as 2026-11-22T03:00Z",
    )
    parser.add_argument("--end", metavar="INSTANT", help="where the window ends (exclusive)")
    parser.add_argument(
        "--param",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="what {NAME} in the configuration stands for; may be repeated",
    )
    parser.add_argument(
        "--backfill",
        metavar="A..B",
        help="run the windows from A to B (exclusive) that are missing, the oldest first; last:7d "
        "are those of the last 7 days, from the first one that the log directory has",
    )
    parser.add_argument(
        "--every", metavar="DURATION", help="how long a window of --backfill is (default: 1d)"
    )
    parser.add_argument(
        "--allow-open-window",
        action="store_true",
        help="commit a window that is not over; rows that come later are never read",
    )


def windows_of(arguments: argparse.Namespace, now: dt.datetime) -> list[RunWindow]:
    """Return the windows that the arguments ask for: one, or those of a backfill."""
    return [each.seen_at(now) for each in _windows_of(arguments, now)]


def _windows_of(arguments: argparse.Namespace, now: dt.datetime) -> list[RunWindow]:
    parameters = _parameters(arguments.param)
    if arguments.backfill is not None:
        if arguments.date or arguments.start or arguments.end:
            raise UsageError("give --backfill without --date, --start and --end")
        return _backfill(arguments.backfill, arguments.every or "1d", parameters, now)
    if arguments.every is not None:
        raise UsageError("--every belongs to --backfill")
    if arguments.start is None and arguments.end is None:
        date = arguments.date or (now - _ONE_DAY).date()
        return [RunWindow.of_day(date, parameters)]
    if arguments.date is not None or arguments.start is None or arguments.end is None:
        raise UsageError("give either --date, or --start and --end")
    start, end = _instant("--start", arguments.start), _instant("--end", arguments.end)
    if start >= end:
        msg = f"--start is {instant_text(start)}, expected before --end, {instant_text(end)}"
        raise UsageError(msg)
    return [RunWindow(start, end, parameters=parameters)]


def _backfill(
    text: str, every: str, parameters: Mapping[str, str], now: dt.datetime
) -> list[RunWindow]:
    length = _duration("--every", every)
    if text.startswith(LAST):
        start, end = _last(text, length, now)
    else:
        first, dots, last = text.partition("..")
        if not dots:
            raise UsageError(
                f"--backfill is {text!r}, expected A..B, such as 2026-11-01..2026-11-08, or "
                f"{LAST}7d"
            )
        start, end = _instant("--backfill", first), _instant("--backfill", last)
    if not length or start >= end or (end - start) % length:
        raise UsageError(
            f"--backfill {text}: {instant_text(start)} to {instant_text(end)} is not one or more "
            f"windows of {every}"
        )
    count = (end - start) // length
    if count > MOST_WINDOWS:
        msg = f"--backfill {text} has {count} windows of {every}, expected at most {MOST_WINDOWS}"
        raise UsageError(msg)
    is_day = length % _ONE_DAY == dt.timedelta()
    is_midnight = start == start.replace(hour=0, minute=0, second=0, microsecond=0)
    return [
        RunWindow(
            start + number * length,
            start + (number + 1) * length,
            is_day and is_midnight,
            parameters=parameters,
        )
        for number in range(count)
    ]


def _last(text: str, length: dt.timedelta, now: dt.datetime) -> tuple[dt.datetime, dt.datetime]:
    """Return from where to where the last whole windows of a length are."""
    if not length or _ONE_DAY % length:
        msg = f"--backfill {text} is for windows that divide a day, such as --every 1h"
        raise UsageError(msg)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    end = midnight + (now - midnight) // length * length
    return end - _duration("--backfill", text.removeprefix(LAST)), end


def _duration(option: str, text: str) -> dt.timedelta:
    try:
        return dt.timedelta(milliseconds=pylog.jobs.parse_duration(text))
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error


def _instant(option: str, text: str) -> dt.datetime:
    """Return an instant, or the midnight in UTC that a date begins with."""
    stripped = text.strip()
    try:
        return dt.datetime.combine(dt.date.fromisoformat(stripped), dt.time(), dt.UTC)
    except ValueError:
        pass  # with a time
    try:
        instant = dt.datetime.fromisoformat(stripped)
    except ValueError:
        msg = f"{option}: {text!r} is not an instant such as 2026-11-22T03:00Z, or a date"
        raise UsageError(msg) from None
    if instant.tzinfo is None:
        msg = f"{option}: {text!r} has no zone; write {stripped}Z for UTC, or +01:00 and the like"
        raise UsageError(msg)
    return instant.astimezone(dt.UTC)


def _parameters(given: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or _PARAMETER.fullmatch(name) is None:
            raise UsageError(f"--param {each!r}: expected NAME=VALUE")
        if _SURROGATE.search(value):
            raise UsageError(f"--param {name}: {value!r} is not UTF-8")
        if name in (*WINDOW_NAMES, *BOOKMARK_NAMES) or name in found:
            msg = f"--param {name}: it is " + (
                "given twice" if name in found else "a name of its own"
            )
            raise UsageError(msg)
        found[name] = value
    return found

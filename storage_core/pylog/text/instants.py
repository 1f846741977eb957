"""Instants as people write them: ``2026-11-27``, ``-2h``, milliseconds."""

from __future__ import annotations

import datetime as dt
import re

from pylog.model import Timestamp

_AGO = re.compile(r"-([0-9]+)([smhdw])", re.ASCII)
_DURATION = re.compile(r"([0-9]+)([smhdw])", re.ASCII)
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
FIRST_MS = -62_135_596_800_000
"""The beginning of year 1, the first time that a ``datetime`` can be."""
LAST_MS = 253_402_300_799_999
"""The end of the year 9999, the last time that an ISO date can name."""


def parse_time(text: str, now_ms: int) -> int:
    """Return the milliseconds since 1970-01-01 UTC that a text stands for.

    Parameters
    ----------
    text
        ``1730999991709`` is such a number, ``2026-11-01`` and ``2026-11-01T12:30:00+01:00`` are in
        ISO 8601 (UTC where no zone is given), and ``-2h`` is that long before now. Within a
        millisecond, those of the next one are meant.
    now_ms
        What time it is.

    Raises
    ------
    ValueError
        It is none of these, or before 1970. The text says what may be given.

    Examples
    --------
    >>> pylog.jobs.parse_time("-2h", now_ms=1_730_999_991_709)
    1730992791709
    """
    stripped = text.strip()
    if stripped.isascii() and stripped.isdecimal():
        return int(stripped)
    if ago := _AGO.fullmatch(stripped):
        return now_ms - int(ago[1]) * _UNIT_MS[ago[2]]
    try:
        instant = dt.datetime.fromisoformat(stripped)
    except ValueError:
        msg = (
            f"{text!r} is not a time: give an ISO date or time (2026-11-01, 2026-11-01T12:30Z), "
            "how long before now (-30s, -15m, -2h, -7d, -4w), or milliseconds since 1970-01-01 UTC"
        )
        raise ValueError(msg) from None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=dt.UTC)
    return Timestamp.of(instant).milliseconds


def parse_cleanup_time(text: str, now_ms: int) -> int:
    """Return the milliseconds of a time that ages are counted to: one that a calendar has.

    A clock's micro- or nanoseconds, taken for milliseconds, would make all records old enough to
    be removed.

    Raises
    ------
    ValueError
        As of `parse_time`, or it would be after the year 9999.

    Examples
    --------
    >>> pylog.jobs.parse_cleanup_time("2026-11-01", now_ms=0)
    1793491200000
    """
    milliseconds = parse_time(text, now_ms)
    if milliseconds > LAST_MS:
        msg = (
            f"{text!r} would be after the year 9999: a number is of milliseconds since "
            "1970-01-01 UTC, not of micro- or nanoseconds"
        )
        raise ValueError(msg)
    return milliseconds


def parse_duration(text: str) -> int:
    """Return the milliseconds of a length of time, such as ``15m`` or ``2h``.

    Raises
    ------
    ValueError
        It is not a whole number and one of the units s, m, h, d and w.

    Examples
    --------
    >>> pylog.jobs.parse_duration("15m")
    900000
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        msg = f"{text!r} is not a duration: give 30s, 15m, 2h, 7d or 4w"
        raise ValueError(msg)
    return int(match[1]) * _UNIT_MS[match[2]]


_FIRST_LIKELY_MS = 946_684_800_000
"""2000-01-01: no log has older records whose timestamps are milliseconds."""
_LIKELY_AHEAD_MS = 366 * 86_400_000


def likely_unit(timestamp_ms: int, now_ms: int) -> str | None:
    """Return the other unit that a timestamp probably has; None if it is milliseconds, or unknown.

    A unit is likely where the number is a time from 2000 to a year from now in it alone.
    """

    def is_likely(milliseconds: int) -> bool:
        return _FIRST_LIKELY_MS <= milliseconds <= now_ms + _LIKELY_AHEAD_MS

    if is_likely(timestamp_ms):
        return None
    in_units = {
        "seconds": timestamp_ms * 1_000,
        "microseconds": timestamp_ms // 1_000,
        "nanoseconds": timestamp_ms // 1_000_000,
    }
    return next((unit for unit, each in in_units.items() if is_likely(each)), None)


_CYCLE_YEARS = 400
_CYCLE_SECONDS = 146_097 * 86_400
"""After 400 years the calendar repeats itself, days of the week included."""


def calendar_text(count: int, per_second: int) -> str:
    """Return a time in UTC as ISO 8601 has it, also one before year 1 or after 9999.

    Parameters
    ----------
    count
        Since 1970-01-01T00:00:00Z.
    per_second
        How many units of ``count`` are a second, a power of ten.

    Examples
    --------
    >>> pylog.jobs.calendar_text(1_731_000_000_000, 1000)
    '2024-11-07T17:20:00.000Z'
    """
    seconds, rest = divmod(count, per_second)
    cycles, seconds = divmod(seconds, _CYCLE_SECONDS)
    within = dt.datetime.fromtimestamp(seconds, dt.UTC)
    year = within.year + cycles * _CYCLE_YEARS
    sign = "" if 0 <= year <= dt.MAXYEAR else "+" if year > 0 else "-"
    digits = len(str(per_second)) - 1
    fraction = f".{rest:0{digits}}" if digits else ""
    return f"{sign}{abs(year):04}{within:-%m-%dT%H:%M:%S}{fraction}Z"

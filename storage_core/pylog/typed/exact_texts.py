"""Decimals, dates and times from text, without loss: None for what a type does not hold."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal

_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?", re.ASCII)
_ZONE = re.compile(r"[Zz]|([+-])(\d\d)(?::?(\d\d))?", re.ASCII)
_UNIX_DAY = date(1970, 1, 1).toordinal()


def unscaled(text: str, scale: int, precision: int) -> int | None:
    """Return a number times ``10**scale`` if it is whole and has no more digits than that."""
    try:
        number = Decimal(text)
    except ArithmeticError:  # an exponent of more digits than anything has
        return None
    if not number:
        return 0
    if number.adjusted() + scale >= precision:
        return None
    sign, digits, exponent = number.as_tuple()
    written = "".join(map(str, digits)).rstrip("0")
    places = int(exponent) + len(digits) - len(written) + scale
    if places < 0:
        return None
    value: int = int(written) * 10**places
    return -value if sign else value


def days_of(text: str) -> int | None:
    """Return the days from 1970 to a date such as 2026-11-30."""
    match = _DATE.fullmatch(text)
    return None if match is None else _days(match)


def time_of_day(text: str, places: int) -> int | None:
    """Return a time such as 09:15:00.5 in units of ``10**-places`` s."""
    match = _TIME.fullmatch(text)
    return None if match is None else _clock(match, places)


def instant_of(text: str, places: int, *, is_zoned: bool) -> int | None:
    """Return the time from 1970 to one such as 2026-11-30T09:15:00Z, in units of ``10**-places`` s.

    One that is zoned has to name its zone, another one may not.
    """
    day = _DATE.match(text)
    clock = _TIME.match(text, 11) if day and text[10:11] in {"T", "t", " "} else None
    if day is None or clock is None:
        return None
    days, since, away = _days(day), _clock(clock, places), 0
    rest = text[clock.end() :]
    if is_zoned:
        zone = _ZONE.fullmatch(rest)
        if zone is None:
            return None
        if zone[1]:
            hours, minutes = int(zone[2]), int(zone[3] or 0)
            if hours > 23 or minutes > 59:
                return None
            away = (hours * 3600 + minutes * 60) * (-1 if zone[1] == "-" else 1)
    elif rest:
        return None
    if days is None or since is None:
        return None
    value = (days * 86400 - away) * 10**places + since
    return value if -(1 << 63) < value < 1 << 63 else None


def _days(match: re.Match[str]) -> int | None:
    try:
        return date(*map(int, match.groups())).toordinal() - _UNIX_DAY
    except ValueError:
        return None


def _clock(match: re.Match[str], places: int) -> int | None:
    """Return a time of day in units of ``10**-places`` s."""
    hour, minute, second = (int(each or 0) for each in match.groups()[:3])
    fraction = (match[4] or "").rstrip("0")
    if hour > 23 or minute > 59 or second > 59 or len(fraction) > places:
        return None
    seconds = hour * 3600 + minute * 60 + second
    return int(f"{seconds}{fraction.ljust(places, '0')}")

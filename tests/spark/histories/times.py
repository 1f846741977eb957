"""Times of histories: minutes and hours at which clocks and conversions go wrong."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

ZONES_OF_CLOCKS = ("America/New_York", "Europe/Berlin")
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_STARTS = (
    "2026-11-01T04:36:00",  # New York: 01:00 to 02:00 is there twice
    "2026-11-01T00:50:00",
    "2026-10-25T00:40:00",  # Berlin: 02:00 to 03:00 is there twice
    "2026-10-25T01:59:59.999999",
    "2026-03-08T01:36:00",  # New York: 02:00 to 03:00 is not there
    "2026-03-29T01:59:00",  # Berlin: the same
    "2026-11-22T10:35:59",
    "2026-02-28T23:36:00",
)


def at_clock(rng: random.Random) -> int:
    """Return a time of the past at which a history begins, in microseconds since 1970."""
    found = dt.datetime.fromisoformat(rng.choice(_STARTS)).replace(tzinfo=dt.UTC)
    return (found - EPOCH) // dt.timedelta(microseconds=1)


def moment(mark: int) -> dt.datetime:
    """Return microseconds since 1970 as a time."""
    return EPOCH + dt.timedelta(microseconds=mark)


def shown_time(mark: int) -> str:
    """Return microseconds since 1970 as text without a zone."""
    return moment(mark).replace(tzinfo=None).isoformat(" ")


def shown_day(day: int) -> str:
    """Return days since 1970 as text."""
    return moment(day * 86_400_000_000).date().isoformat()


def at_local_clock(instant: int, zone: str) -> int:
    """Return what a clock of a zone shows at an instant, as if it were a time of UTC."""
    local = moment(instant).astimezone(zoneinfo.ZoneInfo(zone)).replace(tzinfo=dt.UTC)
    return (local - EPOCH) // dt.timedelta(microseconds=1)

"""The time of day, for everything in a job that depends on it; tests put another clock here."""

from __future__ import annotations

import datetime as dt


def now() -> dt.datetime:
    """Return the time, in UTC."""
    return dt.datetime.now(dt.UTC)

"""What the predicates of a query say about places, timestamps and keys, as a `RecordFilter`.

A conjunction of comparisons, each of a column with a literal. What is not understood is left out:
the filter lets more pass, never less, and whoever asks (Spark, Polars, DuckDB) has every predicate
evaluated again.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from pylog.reading.record_filter import RecordFilter

_Bounds = tuple[int | None, int | None]
"""The lowest and the highest value that passes, both inclusive; None for no bound."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_IMPOSSIBLE: _Bounds = (1, 0)


MIRRORED = {"=": "=", ">": "<", ">=": "<=", "<": ">", "<=": ">="}
"""What ``5 < offset`` says of the offset."""


class Comparison(NamedTuple):
    """``column operator value``; operators are ``= > >= < <= in``, of which the last has a list.

    The column is a name, or the names on the way to a field within it. One that is null passes no
    comparison. A value of ``timestamp`` is a datetime with a time
    zone; `utc_time` makes one.
    """

    column: str | tuple[str, ...]
    operator: str
    value: object


def utc_time(microseconds: int) -> dt.datetime | None:
    """Return the time so long after 1970-01-01 UTC; None if it is in no year that Python knows."""
    try:
        return _EPOCH + microseconds * _MICROSECOND
    except OverflowError:
        return None


def to_record_filter(
    comparisons: Iterable[Comparison], *, typed: Collection[str] = ()
) -> RecordFilter:
    """Return the filter that lets pass what all comparisons together do, and perhaps more.

    Those of columns in ``typed`` are left out: filters compare keys as they lie in the log.

    Examples
    --------
    >>> where = pylog.jobs.to_record_filter([pylog.jobs.Comparison("offset", ">", 50)])
    >>> where.min_offset
    51
    """
    where = RecordFilter()
    for each in comparisons:
        is_whole = isinstance(each.column, str) and each.column not in typed
        filter_of = _COLUMNS.get(str(each.column)) if is_whole else None
        allowed = None if filter_of is None else filter_of(each)
        if allowed is not None:
            where &= allowed
    return where


def _members(
    kind: type, make: Callable[[frozenset[Any]], RecordFilter]
) -> Callable[[Comparison], RecordFilter | None]:
    """Return what makes a filter of a comparison with one value or a list of values."""

    def filter_of(comparison: Comparison) -> RecordFilter | None:
        values = comparison.value if comparison.operator == "in" else [comparison.value]
        if comparison.operator not in ("=", "in") or not isinstance(values, Iterable):
            return None
        # NULL in a list matches nothing; a value of another type is not one that we understand.
        known = [value for value in values if value is not None]
        return make(frozenset(known)) if all(type(value) is kind for value in known) else None

    return filter_of


def _range(
    bounds_of: Callable[[str, object], _Bounds | None], make: Callable[[_Bounds], RecordFilter]
) -> Callable[[Comparison], RecordFilter | None]:
    """Return what makes a filter of a comparison by size; a list reaches from end to end."""

    def filter_of(comparison: Comparison) -> RecordFilter | None:
        operator, value = comparison.operator, comparison.value
        if operator != "in" or not isinstance(value, Iterable):
            bounds = bounds_of(operator, value)
            return None if bounds is None else make(bounds)
        known = [bounds_of("=", each) for each in value if each is not None]
        possible = [each for each in known if each is not None and each != _IMPOSSIBLE]
        if None in known:
            return None  # a value of another type
        lows = [low for low, _ in possible if low is not None]
        highs = [high for _, high in possible if high is not None]
        return make((min(lows), max(highs)) if lows else _IMPOSSIBLE)

    return filter_of


def _integer_bounds(operator: str, value: object) -> _Bounds | None:
    if type(value) is not int:
        return None
    return {
        "=": (value, value),
        ">": (value + 1, None),
        ">=": (value, None),
        "<": (None, value - 1),
        "<=": (None, value),
    }.get(operator)


def _timestamp_bounds(operator: str, value: object) -> _Bounds | None:
    """Return bounds in milliseconds of a comparison with an instant, or with milliseconds."""
    if type(value) is int:
        return _integer_bounds(operator, value)
    if not isinstance(value, dt.datetime) or value.tzinfo is None:
        return None
    micros = (value - _EPOCH) // _MICROSECOND
    down, up = micros // 1000, -(-micros // 1000)
    return {
        "=": (down, down) if down == up else _IMPOSSIBLE,
        ">": (down + 1, None),
        ">=": (up, None),
        "<": (None, up - 1),
        "<=": (None, down),
    }.get(operator)


_COLUMNS: dict[str, Callable[[Comparison], RecordFilter | None]] = {
    "topic": _members(str, lambda topics: RecordFilter(topics=topics)),
    "partition": _members(int, lambda partitions: RecordFilter(partitions=partitions)),
    "key": _members(bytes, lambda keys: RecordFilter(keys=keys)),
    "offset": _range(
        _integer_bounds, lambda bounds: RecordFilter(min_offset=bounds[0], max_offset=bounds[1])
    ),
    "timestamp": _range(
        _timestamp_bounds,
        lambda bounds: RecordFilter(min_timestamp=bounds[0], max_timestamp=bounds[1]),
    ),
}

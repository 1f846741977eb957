"""What filters say about places, timestamps and keys, as fields of a `pylog.RecordFilter`.

A conjunction of comparisons, each of a column with a literal. What is not understood is left out:
the fields let more pass, never less, and Spark evaluates every filter again.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark_pylog.filter_option import FilterFields

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_IMPOSSIBLE = (1, 0)


class Comparison(NamedTuple):
    """``column operator value``; operators are ``= > >= < <= in``, of which the last has a list."""

    column: str
    operator: str
    value: object


def to_filter_fields(comparisons: Iterable[Comparison]) -> FilterFields:
    """Return the fields that all comparisons together make."""
    fields: FilterFields = {}
    for each in comparisons:
        add = _COLUMNS.get(each.column)
        if add is not None:
            add(fields, each)
    return fields


def intersection(one: FilterFields, other: FilterFields) -> FilterFields:
    """Return the fields that let pass what both let pass."""
    both = dict(one)
    for name, value in other.items():
        if name not in both:
            both[name] = value
        elif isinstance(value, frozenset):
            both[name] &= value
        else:
            both[name] = (max if name.startswith("min") else min)(both[name], value)
    return both


def _add_set(name: str, kind: type) -> Callable[[FilterFields, Comparison], None]:
    def add(fields: FilterFields, comparison: Comparison) -> None:
        values = comparison.value if comparison.operator == "in" else [comparison.value]
        if comparison.operator not in ("=", "in") or not isinstance(values, Iterable):
            return
        # NULL in a list matches nothing; a value of another type is none that we understand.
        known = [value for value in values if value is not None]
        if not all(type(value) is kind for value in known):
            return
        chosen = frozenset(known)
        fields[name] = fields[name] & chosen if name in fields else chosen

    return add


def _add_range(
    low: str, high: str, bounds: Callable[[str, object], tuple[int | None, int | None] | None]
) -> Callable[[FilterFields, Comparison], None]:
    def add(fields: FilterFields, comparison: Comparison) -> None:
        operator, value = comparison.operator, comparison.value
        if operator == "in" and isinstance(value, Iterable):
            known = [bounds("=", each) for each in value if each is not None]
            if not all(known):
                return
            lows = [each[0] for each in known if each and each != _IMPOSSIBLE]
            highs = [each[1] for each in known if each and each != _IMPOSSIBLE]
            found = (min(lows), max(highs)) if lows else _IMPOSSIBLE  # type: ignore[type-var]
        else:
            one = bounds(operator, value)
            if one is None:
                return
            found = one
        if found[0] is not None:
            fields[low] = max(found[0], fields.get(low, found[0]))
        if found[1] is not None:
            fields[high] = min(found[1], fields.get(high, found[1]))

    return add


def _integer_bounds(operator: str, value: object) -> tuple[int | None, int | None] | None:
    if type(value) is not int:
        return None
    return {
        "=": (value, value),
        ">": (value + 1, None),
        ">=": (value, None),
        "<": (None, value - 1),
        "<=": (None, value),
    }.get(operator)


def _timestamp_bounds(operator: str, value: object) -> tuple[int | None, int | None] | None:
    """Return bounds in milliseconds; Spark compares microseconds."""
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


_COLUMNS: dict[str, Callable[[FilterFields, Comparison], None]] = {
    "topic": _add_set("topics", str),
    "partition": _add_set("partitions", int),
    "key": _add_set("keys", bytes),
    "offset": _add_range("min_offset", "max_offset", _integer_bounds),
    "timestamp": _add_range("min_timestamp", "max_timestamp", _timestamp_bounds),
}

"""What the predicates of a query say about decoded fields, as a condition; see `field_condition`.

A conjunction of comparisons, each of a field with a literal. Comparisons that are not understood,
or that engines make in another way, are left out: the condition lets pass more rows, never fewer,
and the engine evaluates all predicates again. Floats are left out, because some engines have NaN
above all numbers, and times finer than a microsecond, because some cut them before they compare.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from pylog.typed.field_condition import parse_condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pylog.pushdown.comparison import Comparison

_MOST_MEMBERS = 100
"""Of a list: each is a level of an expression."""


def to_field_condition(
    comparisons: Iterable[Comparison], types: Mapping[str, pa.DataType]
) -> str | None:
    """Return the condition that lets pass what all comparisons together do, and perhaps more.

    Parameters
    ----------
    comparisons
        Those of fields have the names on the way to it as their column, of which the first is
        ``key`` or ``value``.
    types
        Of the columns that are decoded.

    Returns
    -------
    str or None
        For ``where`` of `pylog.scan`; None if nothing is said of fields.

    Examples
    --------
    >>> import pyarrow as pa
    >>> user = pa.struct([("user", pa.struct([("id", pa.int64())]))])
    >>> asked = [pylog.jobs.Comparison(("value", "user", "id"), "in", [7, 8])]
    >>> pylog.jobs.to_field_condition(asked, {"value": user})
    'value."user"."id" IN (7, 8)'
    """
    found = [text for each in comparisons if (text := _condition(each, types)) is not None]
    return " AND ".join(found) or None


def _condition(comparison: Comparison, types: Mapping[str, pa.DataType]) -> str | None:
    column, operator, value = comparison
    path = (column,) if isinstance(column, str) else column
    kind = _type_at(path, types)
    if kind is None:
        return None
    field = ".".join([path[0], *('"{}"'.format(each.replace('"', '""')) for each in path[1:])])
    if operator == "in":
        listed = value if isinstance(value, list | tuple) else ()
        members = [each for each in listed if each is not None]
        constants = [_constant(each, kind) for each in members]
        if not constants or len(constants) > _MOST_MEMBERS or None in constants:
            return None
        text = f"{field} IN ({', '.join(map(str, constants))})"
    else:
        constant = _constant(value, kind)
        if constant is None:
            return None
        text = f"{field} {operator} {constant}"
    try:
        parse_condition(text, types)
    except ValueError:  # what the type does not hold
        return None
    return text


def _type_at(path: tuple[str, ...], types: Mapping[str, pa.DataType]) -> pa.DataType | None:
    kind = types.get(path[0])
    for each in path[1:]:
        if kind is None or not pa.types.is_struct(kind) or kind.get_field_index(each) < 0:
            return None
        kind = kind.field(each).type
    return kind


def _constant(value: object, kind: pa.DataType) -> str | None:
    """Return a literal as a condition has it, if it is of the type itself; else None."""
    if isinstance(value, bool):
        return str(value).upper() if pa.types.is_boolean(kind) else None
    if isinstance(value, int | Decimal):
        is_number = pa.types.is_integer(kind) or pa.types.is_decimal(kind)
        return f"{Decimal(value):f}" if is_number else None
    if isinstance(value, str):
        return _quoted(value) if pa.types.is_string(kind) else None
    if isinstance(value, dt.datetime):
        is_timestamp = pa.types.is_timestamp(kind) and kind.unit != "ns"
        has_zone = value.tzinfo is not None
        if not is_timestamp or has_zone != (kind.tz is not None):
            return None
        return _quoted(value.astimezone(dt.UTC).isoformat() if has_zone else value.isoformat())
    if isinstance(value, dt.date) and pa.types.is_date(kind):
        return _quoted(value.isoformat())
    return None


def _quoted(text: str) -> str:
    return "'{}'".format(text.replace("'", "''"))

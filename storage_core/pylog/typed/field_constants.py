"""Constants of a condition, compared with a field as its type has values: exactly, or not at all.

Of numbers, dates and times the field's own unit counts. A number between two values of the type,
or beyond all of them, is compared as such: no integer is 7.5, and some are less.
"""

from __future__ import annotations

import math
import operator as operators
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from pylog.typed.exact_texts import days_of, instant_of, time_of_day

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow.compute as pc

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operators.eq,
    "!=": operators.ne,
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
}
_PLACES = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_FURTHEST = 200
"""A power of ten beyond all values of any type, and its inverse below all distances of two."""


class Constant(NamedTuple):
    """A constant: a ``kind``, number, text or boolean, and how it is written."""

    kind: str
    text: str

    def __str__(self) -> str:
        shown = f"'{self.text}'" if self.kind == "text" else self.text
        return f"{shown} is a {self.kind}" if self.kind != "text" else f"{shown} is text"


def compared(
    field: pc.Expression, kind: pa.DataType, operator: str, constant: Constant
) -> pc.Expression:
    """Return the comparison of a field of a type with a constant.

    Raises
    ------
    ValueError
        The constant is not of the type; the message continues the field's name.
    """
    for is_kind, compare in _KINDS:
        if is_kind(kind):
            operator, scalar = compare(kind, operator, constant)
            expression: pc.Expression = _OPERATORS[operator](field, scalar)
            return expression
    shown = "struct" if pa.types.is_struct(kind) else kind
    raise ValueError(f"is a {shown}: only IS NULL and IS NOT NULL are for it")


_Compared = tuple[str, pa.Scalar]


def _with_number(kind: pa.DataType, operator: str, constant: Constant) -> _Compared:
    """Compare with a number, by integers in the type's unit."""
    if constant.kind != "number":
        raise ValueError(f"is a number ({kind}), and {constant}")
    is_decimal = pa.types.is_decimal(kind)
    scale = kind.scale if is_decimal else 0
    if is_decimal:
        highest = 10**kind.precision - 1
        lowest = -highest
    else:
        is_signed = pa.types.is_signed_integer(kind)
        lowest = -(1 << (kind.bit_width - 1)) if is_signed else 0
        highest = (1 << (kind.bit_width - is_signed)) - 1
    operator, units = _in_range(operator, _exact(constant.text) * 10**scale, lowest, highest)
    if is_decimal:
        return operator, pa.scalar(Decimal(f"{units}e{-scale}"), kind)
    return operator, pa.scalar(units, kind)


def _exact(text: str) -> Fraction:
    try:
        number = Decimal(text)
    except ArithmeticError:  # an exponent of more digits than anything has
        raise ValueError(f"is compared with {text}, which is no number") from None
    if number and abs(number.adjusted()) > _FURTHEST:
        exponent = _FURTHEST if number.adjusted() > 0 else -_FURTHEST
        number = Decimal(f"{'-' if number < 0 else ''}1e{exponent}")
    return Fraction(number)


def _in_range(operator: str, number: Fraction, lowest: int, highest: int) -> tuple[str, int]:
    """Return a comparison with an integer in a range that is the same for all in the range."""
    below = math.floor(number)
    if number == below and lowest <= below <= highest:
        return operator, below
    never, always = ("<", lowest), (">=", lowest)
    if operator in ("=", "!="):
        return never if operator == "=" else always
    if operator in ("<", "<="):
        if below > highest:
            return always
        return never if below < lowest else ("<=", below)
    if below > highest:
        return never
    return always if below < lowest else (">", below)


def _with_float(kind: pa.DataType, operator: str, constant: Constant) -> _Compared:
    """Compare with the nearest value of the type, as it is printed."""
    if constant.kind != "number":
        raise ValueError(f"is a number ({kind}), and {constant}")
    scalar = pa.scalar(float(constant.text), pa.float64()).cast(kind)
    if math.isinf(scalar.as_py()):
        raise ValueError(f"is a {kind}, and {constant.text} is larger than any")
    return operator, scalar


def _with_text(kind: pa.DataType, operator: str, constant: Constant) -> _Compared:
    if constant.kind != "text":
        raise ValueError(f"is text, and {constant}: write '{constant.text}'")
    return operator, pa.scalar(constant.text, kind)


def _with_boolean(kind: pa.DataType, operator: str, constant: Constant) -> _Compared:
    if constant.kind != "boolean":
        raise ValueError(f"is a boolean, and {constant}: write TRUE or FALSE")
    if operator not in ("=", "!="):
        raise ValueError("is a boolean: compare it by = or !=")
    return operator, pa.scalar(constant.text == "TRUE", kind)


def _with_date(kind: pa.DataType, operator: str, constant: Constant) -> _Compared:
    days = days_of(constant.text) if constant.kind == "text" else None
    if days is None:
        raise ValueError(f"is a date, and {constant}: write one such as '2026-11-30'")
    return operator, pa.scalar(days, kind)


def _with_time(kind: pa.DataType, operator: str, constant: Constant) -> _Compared:
    places = _PLACES[kind.unit]
    ticks = time_of_day(constant.text, places) if constant.kind == "text" else None
    if ticks is None:
        msg = f"is a time in {kind.unit}, and {constant}: write one such as '09:15:00'"
        raise ValueError(msg)
    return operator, pa.scalar(ticks, kind)


def _with_timestamp(kind: pa.DataType, operator: str, constant: Constant) -> _Compared:
    """Compare with an instant in ISO 8601, UTC where it names no zone."""
    is_zoned = kind.tz is not None
    places = _PLACES[kind.unit]
    ticks = None
    if constant.kind == "text":
        text = constant.text
        if days_of(text) is not None:
            text += "T00:00"
        ticks = instant_of(text, places, is_zoned=is_zoned)
        if ticks is None and is_zoned:
            ticks = instant_of(text, places, is_zoned=False)
    if ticks is None:
        zone = "Z" if is_zoned else ""
        example = f"'2026-11-30T09:15:00{zone}'"
        what = f"is a timestamp {'' if is_zoned else 'without a zone '}in {kind.unit}"
        raise ValueError(f"{what}, and {constant}: write one such as {example}")
    return operator, pa.scalar(ticks, kind)


_KINDS: tuple[
    tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, str, Constant], _Compared]], ...
] = (
    (pa.types.is_boolean, _with_boolean),
    (pa.types.is_integer, _with_number),
    (pa.types.is_decimal, _with_number),
    (pa.types.is_floating, _with_float),
    (pa.types.is_string, _with_text),
    (pa.types.is_date32, _with_date),
    (pa.types.is_time, _with_time),
    (pa.types.is_timestamp, _with_timestamp),
)

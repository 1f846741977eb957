"""What JSON texts are in columns, by Python's ``json`` and the rules that the documentation has."""

from __future__ import annotations

import json
import math
import re
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from tests.support.framed_values import RefusedError

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_STAMP = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d)(?::(\d\d)(?:\.(\d+))?)?([Zz]|[+-]\d\d(?::?\d\d)?)?",
    re.ASCII,
)
_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_EPOCH = date(1970, 1, 1)
_MISSING = object()


class Number(str):
    """A number as it is written."""

    __slots__ = ()


def _no_constant(_: str) -> None:
    raise ValueError


def read_strictly(content: bytes) -> Any:  # noqa: ANN401
    try:
        text = content.decode("utf-8-sig")
        text.encode()
        return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=_no_constant)
    except RecursionError:
        raise RecursionError from None
    except ValueError:
        raise RefusedError from None


def shaped(value: Any, of: pa.Field) -> Any:  # noqa: ANN401
    """Return what a value of JSON is in a column, by the rules that the documentation has."""
    kind = of.type
    if value is None:
        _ensure(of.nullable)
        return None
    if is_text(of):
        return value
    if pa.types.is_struct(kind):
        _ensure(type(value) is dict)
        return {each.name: shaped(value.get(each.name), each) for each in kind}
    if pa.types.is_map(kind):
        _ensure(type(value) is dict)
        return {_text(name): shaped(each, kind.item_field) for name, each in value.items()}
    if pa.types.is_list(kind):
        _ensure(type(value) is list)
        return [shaped(each, kind.value_field) for each in value]
    return _leaf(value, kind)


def _leaf(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401
    if pa.types.is_boolean(kind):
        _ensure(type(value) is bool)
        return value
    if pa.types.is_string(kind):
        return _text(value)
    if pa.types.is_date(kind):
        return _days(_text(value))
    if pa.types.is_timestamp(kind):
        return _instant(_text(value), kind)
    return _number(value, kind)


def _ensure(is_right: bool) -> None:  # noqa: FBT001
    if not is_right:
        raise RefusedError


def _text(value: Any) -> str:  # noqa: ANN401
    _ensure(type(value) is str)
    try:
        value.encode()
    except UnicodeEncodeError:  # half a pair
        raise RefusedError from None
    return str(value)


def _number(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401
    is_number = type(value) is Number
    if pa.types.is_floating(kind):
        if not is_number:
            _ensure(value in _FLOATS if type(value) is str else False)
            return _FLOATS[value]
        made = float(value) if kind == pa.float64() else float(np.float32(float(value)))
        _ensure(not math.isinf(made))
        return made
    if pa.types.is_decimal(kind):
        _ensure(is_number or (type(value) is str and bool(_NUMBER.fullmatch(value))))
    else:
        _ensure(is_number)
    if abs(Decimal(value).adjusted()) > 10_000 and Decimal(value):
        raise RefusedError
    exact = Fraction(Decimal(value))
    if pa.types.is_decimal(kind):
        units = exact * 10**kind.scale
        _ensure(units.denominator == 1 and abs(units) < 10**kind.precision)
        return Decimal((units < 0, tuple(map(int, str(abs(int(units))))), -kind.scale))
    _ensure(exact.denominator == 1)
    bits = kind.bit_width
    least, most = (
        (0, 2**bits)
        if pa.types.is_unsigned_integer(kind)
        else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    )
    _ensure(least <= exact < most)
    return int(exact)


def _days(text: str) -> int:
    _ensure(bool(re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII)))
    try:
        return (date.fromisoformat(text) - _EPOCH).days
    except ValueError:
        raise RefusedError from None


def _instant(text: str, kind: pa.DataType) -> int:
    match = _STAMP.fullmatch(text)
    _ensure(match is not None)
    assert match is not None
    day, clock, second, fraction, zone = match.groups()
    _ensure((zone is not None) == (kind.tz is not None))
    hour, minute = map(int, clock.split(":"))
    _ensure(hour < 24 and minute < 60 and int(second or 0) < 60)
    places = {"s": 0, "ms": 3, "us": 6, "ns": 9}[kind.unit]
    units = Fraction(Decimal(f"0.{fraction or 0}")) * 10**places
    _ensure(units.denominator == 1)
    away = 0
    if zone not in (None, "Z", "z"):
        digits = zone[1:].replace(":", "").ljust(4, "0")
        _ensure(int(digits[:2]) < 24 and int(digits[2:]) < 60)
        away = (int(digits[:2]) * 3600 + int(digits[2:]) * 60) * (-1 if zone[0] == "-" else 1)
    seconds = _days(day) * 86_400 + hour * 3600 + minute * 60 + int(second or 0) - away
    value = seconds * 10**places + int(units)
    _ensure(-(2**63) < value < 2**63)
    return int(value)


def is_text(of: pa.Field) -> bool:
    """Whether a field holds any JSON as text."""
    return (of.metadata or {}).get(b"pylog:json") == b"text"


def texts_read(ours: Any, of: pa.Field) -> Any:  # noqa: ANN401
    """Return a value of ours with the texts read that are JSON."""
    kind = of.type
    if ours is None:
        return None
    if is_text(of):
        return read_strictly(ours.encode())
    if pa.types.is_struct(kind):
        return {each.name: texts_read(ours[each.name], each) for each in kind}
    if pa.types.is_map(kind):
        return {name: texts_read(each, kind.item_field) for name, each in ours.items()}
    if pa.types.is_list(kind):
        return [texts_read(each, kind.value_field) for each in ours]
    return ours

"""Random types, values of them, and their JSON texts in the spellings that JSON allows."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import random

_INTEGERS = {
    pa.int8(): (-128, 127),
    pa.int16(): (-32768, 32767),
    pa.int32(): (-(2**31), 2**31 - 1),
    pa.int64(): (-(2**63), 2**63 - 1),
    pa.uint8(): (0, 255),
    pa.uint64(): (0, 2**64 - 1),
}
_LEAVES = (
    *_INTEGERS,
    *(pa.string(), pa.string(), pa.float64(), pa.float64(), pa.float32(), pa.bool_()),
    *(pa.decimal128(9, 2), pa.decimal128(30, 10), pa.timestamp("us", "UTC"), pa.timestamp("ms")),
    *(pa.timestamp("ns", "UTC"), pa.date32(), pa.int64()),
)
_CHARACTERS = 'ab"\\/\n\t\r\x00\x1f\x7fzäß€漢😀\u2028 {}[],:'
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SPACES = ("", "", "", " ", " ", "\n", "\t ", " \r\n  ")


def random_type(rnd: random.Random, depth: int = 3) -> pa.DataType:
    """Return a type of JSON's values."""
    kind = rnd.randrange(8) if depth else 9
    if kind < 2:
        return random_struct(rnd, depth - 1)
    if kind == 2:
        return pa.list_(random_type(rnd, depth - 1))
    if kind == 3:
        return pa.map_(pa.string(), random_type(rnd, depth - 1))
    return rnd.choice(_LEAVES)


def random_struct(rnd: random.Random, depth: int = 3) -> pa.StructType:
    """Return a type of objects."""
    names = [f"{random_string(rnd, 6)}{number}" for number in range(rnd.randrange(7))]
    return pa.struct([(name, random_type(rnd, depth)) for name in names])


def random_string(rnd: random.Random, most: int = 40) -> str:
    if rnd.random() < 0.5:
        return "".join(rnd.choices("abcdefghij_-. ", k=rnd.randrange(most)))
    return "".join(rnd.choices(_CHARACTERS, k=rnd.randrange(most)))


def random_value(rnd: random.Random, kind: pa.DataType) -> Any:  # noqa: ANN401
    """Return a value as `pa.Array.to_pylist` has it, so that no type loses anything of it."""
    if rnd.random() < 0.1:
        return None
    if pa.types.is_struct(kind):
        return {each.name: random_value(rnd, each.type) for each in kind}
    if pa.types.is_list(kind):
        return [random_value(rnd, kind.value_type) for _ in range(rnd.choice((0, 1, 2, 5)))]
    if pa.types.is_map(kind):
        names = dict.fromkeys(random_string(rnd, 9) for _ in range(rnd.choice((0, 1, 2, 6))))
        return [(name, random_value(rnd, kind.item_type)) for name in names]
    return _leaf(rnd, kind)


def _leaf(rnd: random.Random, kind: pa.DataType) -> Any:  # noqa: ANN401
    if kind in _INTEGERS:
        least, most = _INTEGERS[kind]
        near = rnd.choice((least, most, 0, rnd.randint(least, most), rnd.randint(0, 100)))
        return max(least, min(most, near + rnd.randint(-2, 2)))
    if pa.types.is_floating(kind):
        return _float(rnd, kind)
    if pa.types.is_boolean(kind):
        return rnd.random() < 0.5
    if pa.types.is_decimal(kind):
        digits = rnd.randrange(1, kind.precision + 1)
        value = rnd.randrange(10**digits) * rnd.choice((1, -1))
        return Decimal((int(value < 0), tuple(map(int, str(abs(value)))), -kind.scale))
    if pa.types.is_timestamp(kind):
        return _time(rnd, kind)
    if pa.types.is_date(kind):
        return date.fromordinal(rnd.randrange(1, date.max.toordinal() + 1))
    return random_string(rnd)


def _float(rnd: random.Random, kind: pa.DataType) -> float:
    if pa.types.is_float32(kind):
        return float(pa.scalar(rnd.uniform(-1e30, 1e30), pa.float32()).as_py())
    plain = (rnd.random(), rnd.random() * 1e6, float(rnd.randrange(10**6)), -0.0, 5e-324)
    power = rnd.uniform(-1, 1) * 10.0 ** rnd.randrange(-300, 300)
    return rnd.choice((*plain, round(rnd.random() * 100, 2), power))


def _time(rnd: random.Random, kind: pa.DataType) -> Any:  # noqa: ANN401
    years = 200 if kind.unit == "ns" else 1900
    seconds = rnd.randrange(-years * 31_000_000, 200 * 31_000_000)
    digits = {"ms": 1000, "us": 1, "ns": 1}[kind.unit]
    value = _EPOCH + timedelta(
        seconds=seconds, microseconds=rnd.randrange(10**6) // digits * digits
    )
    return value if kind.tz else value.replace(tzinfo=None)


def write_text(rnd: random.Random, value: object, kind: pa.DataType) -> str:
    """Return one of a value's texts: names in any order, those of nulls often left out."""
    space = rnd.choice(_SPACES)
    if value is None:
        return f"{space}null"
    if pa.types.is_struct(kind):
        return space + _object(rnd, _fields(rnd, value, kind))
    if pa.types.is_map(kind):
        items = [(name, write_text(rnd, each, kind.item_type)) for name, each in value]  # type: ignore[attr-defined]
        return space + _object(rnd, items)
    if pa.types.is_list(kind):
        texts = [write_text(rnd, each, kind.value_type) for each in value]  # type: ignore[attr-defined]
        return f"{space}[{','.join(texts)}{rnd.choice(_SPACES)}]"
    return space + _leaf_text(rnd, value, kind) + rnd.choice(_SPACES)


def _fields(rnd: random.Random, value: Any, kind: pa.StructType) -> list[tuple[str, str]]:  # noqa: ANN401
    items = [
        (each.name, write_text(rnd, value[each.name], each.type))
        for each in kind
        if value[each.name] is not None or rnd.random() < 0.5
    ]
    if rnd.random() < 0.2:
        known = {each.name for each in kind}
        name = random_string(rnd, 5)
        if name not in known:
            other = random_type(rnd, 2)
            items.append((name, write_text(rnd, random_value(rnd, other), other)))
    if rnd.random() < 0.3:
        rnd.shuffle(items)
    return items


def _object(rnd: random.Random, items: list[tuple[str, str]]) -> str:
    texts = [f"{_quoted(rnd, name)}{rnd.choice(_SPACES)}:{text}" for name, text in items]
    return f"{{{','.join(rnd.choice(_SPACES) + text for text in texts)}{rnd.choice(_SPACES)}}}"


def _quoted(rnd: random.Random, text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=rnd.random() < 0.3)
    return quoted.replace("/", "\\/") if rnd.random() < 0.1 else quoted


def _leaf_text(rnd: random.Random, value: Any, kind: pa.DataType) -> str:  # noqa: ANN401
    if pa.types.is_decimal(kind):
        text = f"{value:f}"
        return f'"{text}"' if rnd.random() < 0.1 else text
    if pa.types.is_timestamp(kind):
        return f'"{_time_text(rnd, value)}"'
    if pa.types.is_date(kind):
        return f'"{value.isoformat()}"'
    if pa.types.is_floating(kind):
        return _float_text(rnd, value)
    return _quoted(rnd, value) if isinstance(value, str) else json.dumps(value)


def _float_text(rnd: random.Random, value: float) -> str:
    texts = (repr(value), f"{value:.17e}", f"{value:.25e}", repr(value).replace("e", "E"))
    return texts[0] if rnd.random() < 0.8 or math.isnan(value) else rnd.choice(texts)


def _time_text(rnd: random.Random, value: datetime) -> str:
    text = value.isoformat(sep=rnd.choice("TTT "))
    if value.tzinfo is None:
        return text
    if rnd.random() < 0.7:
        return text.replace("+00:00", "Z")
    away = timedelta(minutes=rnd.randrange(-720, 720))
    if not 1900 < value.year < 2200:
        return text
    return (value + away).isoformat().replace("+00:00", "") + _zone(away)


def _zone(away: timedelta) -> str:
    minutes = int(away.total_seconds()) // 60
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"

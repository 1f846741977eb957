"""Random predicates over records: for Polars, for DuckDB, and their truth in Python."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from tests.support.three_valued_logic import conjunction, disjunction, negation

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from tests.support.three_valued_logic import Truth

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Row(NamedTuple):
    """A record as predicates see it; ``timestamp`` in microseconds."""

    topic: str
    partition: int
    offset: int | None
    timestamp: int | None
    key: bytes | None


class Predicate(NamedTuple):
    polars: pl.Expr
    sql: str
    holds: Callable[[Row], Truth]


class _Literal(NamedTuple):
    polars: Any
    sql: str
    value: object


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda one, other: one == other,
    "<>": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}


def random_predicate(source: random.Random, rows: Sequence[Row], depth: int = 2) -> Predicate:
    """Return a comparison with something near what ``rows`` have, or AND, OR, NOT of some."""
    kind = source.choice(("leaf", "and", "and", "and", "or", "not")) if depth else "leaf"
    if kind == "leaf":
        return _leaf(source, rows)
    one = random_predicate(source, rows, depth - 1)
    if kind == "not":
        return Predicate(~one.polars, f"NOT ({one.sql})", lambda row: negation(one.holds(row)))
    other = random_predicate(source, rows, depth - 1)
    if kind == "and":
        return Predicate(
            one.polars & other.polars,
            f"({one.sql}) AND ({other.sql})",
            lambda row: conjunction(one.holds(row), other.holds(row)),
        )
    return Predicate(
        one.polars | other.polars,
        f"({one.sql}) OR ({other.sql})",
        lambda row: disjunction(one.holds(row), other.holds(row)),
    )


def _leaf(source: random.Random, rows: Sequence[Row]) -> Predicate:
    column = source.choice(
        ("topic", "partition", "offset", "offset", "timestamp", "timestamp", "key")
    )
    get: Callable[[Row], Any] = lambda row: getattr(row, column)  # noqa: E731
    way = source.random()
    if way < 0.1:
        is_null = source.random() < 0.5
        of_polars = pl.col("key").is_null() if is_null else pl.col("key").is_not_null()
        word = "IS NULL" if is_null else "IS NOT NULL"
        return Predicate(of_polars, f"key {word}", lambda row: (row.key is None) is is_null)
    literals = [
        _literal(source, column, source.choice(rows)) for _ in range(source.choice((1, 2, 14)))
    ]
    if way < 0.3:
        return _membership(column, get, literals)
    if way < 0.45:
        low, high = literals[0], _literal(source, column, source.choice(rows))
        return Predicate(
            pl.col(column).is_between(pl.lit(low.polars), pl.lit(high.polars)),
            f'"{column}" BETWEEN {low.sql} AND {high.sql}',
            lambda row: None if get(row) is None else low.value <= get(row) <= high.value,
        )
    sign = source.choice([*_COMPARE])
    literal = literals[0]
    expression: pl.Expr = _COMPARE[sign](pl.col(column), literal.polars)  # type: ignore[assignment]
    sql = f'"{column}" {sign} {literal.sql}'
    if source.random() < 0.2:  # the constant first
        mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(sign, sign)
        expression = _COMPARE[mirrored](pl.lit(literal.polars), pl.col(column))  # type: ignore[assignment]
        sql = f'{literal.sql} {mirrored} "{column}"'
    return Predicate(
        expression,
        sql,
        lambda row: None if get(row) is None else _COMPARE[sign](get(row), literal.value),
    )


def _membership(column: str, get: Callable[[Row], Any], literals: Sequence[_Literal]) -> Predicate:
    values = [each.value for each in literals]
    return Predicate(
        pl.col(column).is_in([each.polars for each in literals]),
        f'"{column}" IN ({", ".join(each.sql for each in literals)})',
        lambda row: None if get(row) is None else get(row) in values,
    )


def _literal(source: random.Random, column: str, row: Row) -> _Literal:
    if column == "topic":
        name = source.choice((row.topic, "orders", "no such", 'a "b" and \\c'))
        quoted = name.replace("'", "''")
        return _Literal(name, f"'{quoted}'", name)
    if column == "key":
        key = source.choice((row.key or b"", b"", b"nobody", b"\xff\x00"))
        escaped = "".join(f"\\x{octet:02X}" for octet in key)
        return _Literal(key, f"'{escaped}'::BLOB", key)
    if column == "timestamp":
        micros = (row.timestamp or 0) + source.choice(
            (0, 0, 0, 1, -1, 999, -999, 500, 3_000, -3_000)
        )
        zone = dt.timezone(dt.timedelta(hours=source.choice((0, 0, 2, -5))))
        time = (EPOCH + dt.timedelta(microseconds=micros)).astimezone(zone)
        return _Literal(time.astimezone(dt.UTC), f"TIMESTAMPTZ '{time.isoformat()}'", micros)
    number = (getattr(row, column) or 0) + source.choice((0, 0, 0, 1, -1, 3, -3))
    return _Literal(number, str(number), number)

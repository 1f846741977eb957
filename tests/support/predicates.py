"""Random predicates over records: for Spark as SQL and `Column`, and their truth in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.support.three_valued_logic import conjunction, disjunction, negation

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from tests.support.three_valued_logic import Truth


class Row(NamedTuple):
    """A record as predicates see it; ``timestamp`` in milliseconds."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None


class Predicate(NamedTuple):
    """A condition; ``column`` is Python that makes a `Column`, where F has Spark's functions."""

    sql: str
    column: str
    holds: Callable[[Row], Truth]


class Literal(NamedTuple):
    sql: str
    column: str
    value: object


TOPICS = (("orders", 0), ("orders", 1), ("eu-orders", 0), ("eu-orders", 3))
COUNT = 30
# Not in order, twice the same, none (-1) and the first of all.
TIMES = [1000 * ((7 * at) % COUNT) - 1 + at % 2 for at in range(COUNT)]
KEYS = [None, b"", *(b"k%d" % number for number in range(5)), b"\xff\x00"]
ROWS = [
    Row(topic, partition, offset, TIMES[(offset + partition) % COUNT], KEYS[offset % len(KEYS)])
    for topic, partition in TOPICS
    for offset in range(COUNT)
]


def truth(predicate: Predicate, row: Row) -> Truth:
    return predicate.holds(row)


def random_predicate(source: random.Random, depth: int = 2) -> Predicate:
    """Return a comparison, or AND, OR, NOT of some."""
    kind = source.choice(("leaf", "and", "and", "or", "not")) if depth else "leaf"
    if kind == "leaf":
        return source.choice(_LEAVES)(source)
    one = random_predicate(source, depth - 1)
    if kind == "not":
        return Predicate(
            f"NOT ({one.sql})", f"~({one.column})", lambda row: negation(one.holds(row))
        )
    other = random_predicate(source, depth - 1)
    join, sign = (conjunction, "&") if kind == "and" else (disjunction, "|")
    return Predicate(
        f"({one.sql}) {kind.upper()} ({other.sql})",
        f"({one.column}) {sign} ({other.column})",
        lambda row: join(one.holds(row), other.holds(row)),
    )


_COMPARE: dict[str, Callable[[object, object], bool]] = {
    "=": lambda one, other: one == other,
    "<>": lambda one, other: one != other,
    "<": lambda one, other: one < other,  # type: ignore[operator]
    "<=": lambda one, other: one <= other,  # type: ignore[operator]
    ">": lambda one, other: one > other,  # type: ignore[operator]
    ">=": lambda one, other: one >= other,  # type: ignore[operator]
}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OF_PYTHON = {"=": "==", "<>": "!="}


def _comparison(
    source: random.Random, column: str, get: Callable[[Row], object], literal: Literal
) -> Predicate:
    sql, python, value = literal
    name = f"F.col({column!r})"
    operator = source.choice([*_COMPARE, "<=>"])

    def holds(row: Row) -> Truth:
        found = get(row)
        if operator == "<=>":
            return found == value
        return None if found is None or value is None else _COMPARE[operator](found, value)

    if operator == "<=>":
        return Predicate(f"{column} <=> {sql}", f"{name}.eqNullSafe({python})", holds)
    if source.random() < 0.2:
        seen = _MIRRORED[operator]
        return Predicate(
            f"{sql} {seen} {column}", f"{python} {_OF_PYTHON.get(seen, seen)} {name}", holds
        )
    return Predicate(
        f"{column} {operator} {sql}", f"{name} {_OF_PYTHON.get(operator, operator)} {python}", holds
    )


def _membership(
    source: random.Random,
    column: str,
    get: Callable[[Row], object],
    literals: list[Literal],
) -> Predicate:
    values = [each.value for each in literals]
    is_negated = source.random() < 0.2

    def holds(row: Row) -> Truth:
        found = get(row)
        if found is None:
            return None
        inside: Truth = True if found in values else (None if None in values else False)
        return negation(inside) if is_negated else inside

    word = "NOT IN" if is_negated else "IN"
    return Predicate(
        f"{column} {word} ({', '.join(each.sql for each in literals)})",
        f"{'~' * is_negated}F.col({column!r}).isin({', '.join(each.column for each in literals)})",
        holds,
    )


_NULL = Literal("NULL", "F.lit(None)", None)


def _some(source: random.Random, literal: Callable[[random.Random], Literal]) -> list[Literal]:
    found = [literal(source) for _ in range(source.choice((1, 2, 5, 14)))]
    return [*found, _NULL] if source.random() < 0.2 else found


def _offset_literal(source: random.Random) -> Literal:
    number = source.randint(-2, COUNT + 1)
    sql = source.choice((f"{number}", f"{number}L", f"'{number}'", f"({number})"))
    return Literal(sql, f"F.lit('{number}')" if "'" in sql else f"F.lit({number})", number)


def _offset(source: random.Random) -> Predicate:
    return _of(source, "offset", lambda row: row.offset, _offset_literal)


def _partition(source: random.Random) -> Predicate:
    def literal(source: random.Random) -> Literal:
        number = source.randint(-1, 4)
        sql = source.choice((f"{number}", f"{number}L", f"CAST({number} AS SMALLINT)"))
        return Literal(sql, f"F.lit({number})", number)

    return _of(source, "partition", lambda row: row.partition, literal)


def _topic(source: random.Random) -> Predicate:
    def literal(source: random.Random) -> Literal:
        name = source.choice(("orders", "eu-orders", "Orders", ""))
        return Literal(f"'{name}'", f"F.lit({name!r})", name)

    return _of(source, "topic", lambda row: row.topic, literal)


def _key(source: random.Random) -> Predicate:
    def literal(source: random.Random) -> Literal:
        key = source.choice((b"", b"k1", b"k2", b"k9", b"\xff\x00"))
        return Literal(f"X'{key.hex()}'", f"F.lit({key!r})", key)

    column = source.choice(("key", "key", "KEY"))
    return _of(source, column, lambda row: row.key, literal)


def _timestamp(source: random.Random) -> Predicate:
    def literal(source: random.Random) -> Literal:
        micros = 1000 * source.choice(TIMES) + source.choice((0, 0, 0, 1, -1, 999, 500, -1000))
        return Literal(
            f"timestamp_micros({micros})", f"F.timestamp_micros(F.lit({micros}))", micros
        )

    return _of(source, "timestamp", lambda row: 1000 * row.timestamp, literal)


def _date(source: random.Random) -> Predicate:
    # All rows lie on New York's 31 December 1969.
    operator = source.choice([*_COMPARE])
    day = source.choice((30, 31))
    sign = _OF_PYTHON.get(operator, operator)
    return Predicate(
        f"to_date(timestamp) {operator} DATE'1969-12-{day}'",
        f"F.to_date(F.col('timestamp')) {sign} F.lit('1969-12-{day}').cast('date')",
        lambda _: _COMPARE[operator](31, day),
    )


def _key_is_null(source: random.Random) -> Predicate:
    if source.random() < 0.5:
        return Predicate("key IS NULL", "F.col('key').isNull()", lambda row: row.key is None)
    return Predicate("key IS NOT NULL", "F.col('key').isNotNull()", lambda row: row.key is not None)


def _of(
    source: random.Random,
    column: str,
    get: Callable[[Row], object],
    literal: Callable[[random.Random], Literal],
) -> Predicate:
    way = source.random()
    if way < 0.3:
        return _membership(source, column, get, _some(source, literal))
    low, high = literal(source), literal(source)
    if way < 0.45:

        def between(row: Row) -> Truth:
            found = get(row)
            return None if found is None else low.value <= found <= high.value  # type: ignore[operator]

        return Predicate(
            f"{column} BETWEEN {low.sql} AND {high.sql}",
            f"F.col({column!r}).between({low.column}, {high.column})",
            between,
        )
    return _comparison(source, column, get, _NULL if way < 0.5 else low)


_LEAVES = (_offset, _offset, _partition, _topic, _key, _timestamp, _timestamp, _date, _key_is_null)

"""Random predicates over records: SQL for Spark, and their three-valued truth in Python."""

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
    sql: str
    holds: Callable[[Row], Truth]


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
        return Predicate(f"NOT ({one.sql})", lambda row: negation(one.holds(row)))
    other = random_predicate(source, depth - 1)
    join = conjunction if kind == "and" else disjunction
    return Predicate(
        f"({one.sql}) {kind.upper()} ({other.sql})",
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


def _comparison(
    source: random.Random, column: str, get: Callable[[Row], object], sql: str, value: object
) -> Predicate:
    operator = source.choice([*_COMPARE, "<=>"])

    def holds(row: Row) -> Truth:
        found = get(row)
        if operator == "<=>":
            return found == value
        return None if found is None or value is None else _COMPARE[operator](found, value)

    if operator != "<=>" and source.random() < 0.2:
        return Predicate(f"{sql} {_MIRRORED[operator]} {column}", holds)
    return Predicate(f"{column} {operator} {sql}", holds)


def _membership(
    source: random.Random,
    column: str,
    get: Callable[[Row], object],
    literals: list[tuple[str, object]],
) -> Predicate:
    values = [value for _, value in literals]
    is_negated = source.random() < 0.2

    def holds(row: Row) -> Truth:
        found = get(row)
        if found is None:
            return None
        inside: Truth = True if found in values else (None if None in values else False)
        return negation(inside) if is_negated else inside

    word = "NOT IN" if is_negated else "IN"
    return Predicate(f"{column} {word} ({', '.join(sql for sql, _ in literals)})", holds)


def _some(
    source: random.Random, literal: Callable[[random.Random], tuple[str, object]]
) -> list[tuple[str, object]]:
    found = [literal(source) for _ in range(source.choice((1, 2, 5, 14)))]
    return [*found, ("NULL", None)] if source.random() < 0.2 else found


def _offset_literal(source: random.Random) -> tuple[str, object]:
    number = source.randint(-2, COUNT + 1)
    return source.choice((f"{number}", f"{number}L", f"'{number}'", f"({number})")), number


def _offset(source: random.Random) -> Predicate:
    return _of(source, "offset", lambda row: row.offset, _offset_literal)


def _partition(source: random.Random) -> Predicate:
    def literal(source: random.Random) -> tuple[str, object]:
        number = source.randint(-1, 4)
        return source.choice((f"{number}", f"{number}L", f"CAST({number} AS SMALLINT)")), number

    return _of(source, "partition", lambda row: row.partition, literal)


def _topic(source: random.Random) -> Predicate:
    def literal(source: random.Random) -> tuple[str, object]:
        name = source.choice(("orders", "eu-orders", "Orders", ""))
        return f"'{name}'", name

    return _of(source, "topic", lambda row: row.topic, literal)


def _key(source: random.Random) -> Predicate:
    def literal(source: random.Random) -> tuple[str, object]:
        key = source.choice((b"", b"k1", b"k2", b"k9", b"\xff\x00"))
        return f"X'{key.hex()}'", key

    column = source.choice(("key", "key", "KEY"))
    return _of(source, column, lambda row: row.key, literal)


def _timestamp(source: random.Random) -> Predicate:
    def literal(source: random.Random) -> tuple[str, object]:
        micros = 1000 * source.choice(TIMES) + source.choice((0, 0, 0, 1, -1, 999, 500, -1000))
        return f"timestamp_micros({micros})", micros

    return _of(source, "timestamp", lambda row: 1000 * row.timestamp, literal)


def _date(source: random.Random) -> Predicate:
    # All rows lie on New York's 31 December 1969.
    operator = source.choice([*_COMPARE])
    day = source.choice((30, 31))
    return Predicate(
        f"to_date(timestamp) {operator} DATE'1969-12-{day}'", lambda _: _COMPARE[operator](31, day)
    )


def _key_is_null(source: random.Random) -> Predicate:
    if source.random() < 0.5:
        return Predicate("key IS NULL", lambda row: row.key is None)
    return Predicate("key IS NOT NULL", lambda row: row.key is not None)


def _of(
    source: random.Random,
    column: str,
    get: Callable[[Row], object],
    literal: Callable[[random.Random], tuple[str, object]],
) -> Predicate:
    way = source.random()
    if way < 0.3:
        return _membership(source, column, get, _some(source, literal))
    (low_sql, low), (high_sql, high) = literal(source), literal(source)
    if way < 0.45:

        def between(row: Row) -> Truth:
            found = get(row)
            return None if found is None else low <= found <= high  # type: ignore[operator]

        return Predicate(f"{column} BETWEEN {low_sql} AND {high_sql}", between)
    if way < 0.5:
        low_sql, low = "NULL", None
    return _comparison(source, column, get, low_sql, low)


_LEAVES = (_offset, _offset, _partition, _topic, _key, _timestamp, _timestamp, _date, _key_is_null)

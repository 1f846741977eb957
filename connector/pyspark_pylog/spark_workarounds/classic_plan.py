"""Comparisons and columns in a DataFrame's plan, as Spark's optimizer has simplified it.

Only what stands directly above the read is looked at. A client of Spark Connect has another plan,
see `connect_plan`.
"""

from __future__ import annotations

import datetime as dt
import enum
import re
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Any

from pylog.jobs import Comparison

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

OPERATORS = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
MIRRORED = {"=": "=", ">": "<", ">=": "<=", "<": ">", "<=": ">="}
_RELATIONS = ("DataSourceV2ScanRelation", "DataSourceV2Relation")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_CLOCKS = frozenset({"CurrentTimestamp", "Now", "CurrentDate"})
# What keeps the order of instants, and which of its children is one.
_ORDER_KEPT = {
    "Cast": 0,
    "DatetimeSub": 0,
    "TimeAdd": 0,
    "TimestampAddInterval": 0,
    "TimestampAdd": 1,
    "TruncTimestamp": 1,
    "DateAdd": 0,
    "DateSub": 0,
}
_LOGIC = frozenset(
    {"And", "Or", "Not", "GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual"}
)
_INSTANTS = frozenset({"TimestampType$", "DateType$", "TimestampType", "DateType"})
# As strings in place of timestamps: 'now', 'today' …
_WORDS = re.compile(r"\b(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
LOCAL_STEP = dt.timedelta(hours=3)


class ClockUse(enum.Enum):
    """What the literals of a plan have to do with the time at which it was made."""

    NOT_ASKED = enum.auto()
    GROWING = enum.auto()
    """Those compared with timestamps may be later in a later plan; earlier by `LOCAL_STEP` at
    most, since days are added in local time, which steps where summer time begins."""
    UNKNOWN = enum.auto()


def find_comparisons(filtered: DataFrame) -> list[Comparison]:
    """Return the comparisons that every row of the relation has to pass, now and later."""
    filters = [node for node in _nodes_above_relation(filtered) if _kind(node) == "Filter"]
    asked = chain.from_iterable(_conjuncts(node.condition()) for node in reversed(filters))
    repeatable = takewhile(lambda each: each.deterministic(), asked)
    comparisons = [*filter(None, map(_to_comparison, repeatable))]
    clock = find_clock(filtered) if comparisons else ClockUse.NOT_ASKED
    if clock is ClockUse.UNKNOWN:
        return []
    return (
        [*filter(None, map(_of_later, comparisons))] if clock is ClockUse.GROWING else comparisons
    )


def _of_later(comparison: Comparison) -> Comparison | None:
    """Return what a comparison says also if its timestamp is computed again later."""
    if isinstance(comparison.column, tuple):  # of a field, whose times are in any order
        values = comparison.value if isinstance(comparison.value, list) else [comparison.value]
        is_of_times = any(isinstance(each, dt.datetime) for each in values)
        return None if is_of_times else comparison
    if comparison.column != "timestamp":
        return comparison
    if comparison.operator not in (">", ">=") or not isinstance(comparison.value, dt.datetime):
        return None
    try:
        return comparison._replace(value=comparison.value - LOCAL_STEP)
    except OverflowError:
        return None


def find_columns(frame: DataFrame, known: Sequence[str]) -> list[str] | None:
    """Return which of the ``known`` columns ``frame`` names, in their order; None for all.

    Those too that the optimizer finds to be without effect: Spark must be able to resolve them.
    """
    node = frame._jdf.queryExecution().analyzed()
    named = set()
    while node.children().size() == 1:
        references = node.references().toSeq()
        # A column is called here what the user called it: OFFSET.
        named |= {references.apply(at).name().lower() for at in range(references.size())}
        node = node.children().apply(0)
    if _kind(node) not in _RELATIONS:
        return None
    return [name for name in known if name.lower() in named]


def _nodes_above_relation(frame: DataFrame) -> Iterator[Any]:
    """Yield the nodes of a plan that is one chain of projections and filters, top first."""
    node = frame._jdf.queryExecution().optimizedPlan()
    above = []
    while _kind(node) in ("Filter", "Project"):
        above.append(node)
        node = node.child()
    if _kind(node) in _RELATIONS:
        yield from above


def _kind(node: Any) -> str:  # noqa: ANN401 - of the JVM
    return str(node.getClass().getSimpleName())


def _conjuncts(expression: Any) -> Iterator[Any]:  # noqa: ANN401 - of the JVM
    if _kind(expression) == "And":
        yield from _conjuncts(expression.left())
        yield from _conjuncts(expression.right())
    else:
        yield expression


def _to_comparison(expression: Any) -> Comparison | None:  # noqa: ANN401 - of the JVM
    kind = _kind(expression)
    if kind in ("In", "InSet"):
        return _to_membership(expression, kind)
    operator = OPERATORS.get(kind)
    if operator is None:
        return None
    left, right = expression.left(), expression.right()
    if _is_literal(left):
        left, right, operator = right, left, MIRRORED[operator]
    column = _column(left)
    if column is None or not _is_literal(right):
        return None
    value = _value(right)
    return None if value is None else Comparison(column, operator, value)


def _column(expression: Any) -> str | tuple[str, ...] | None:  # noqa: ANN401 - of the JVM
    """Return the column that an expression is, or the way to a field within it."""
    path = []
    while _kind(expression) == "GetStructField":
        path.append(str(expression.extractFieldName()))
        expression = expression.child()
    if _kind(expression) != "AttributeReference":
        return None
    name = str(expression.name().lower())
    return (name, *reversed(path)) if path else name


def _to_membership(expression: Any, kind: str) -> Comparison | None:  # noqa: ANN401 - of the JVM
    child = expression.child() if kind == "InSet" else expression.value()
    column = _column(child)
    if column is None:
        return None
    if kind == "InSet":  # what Spark makes of more than ten literals
        items = expression.hset().toSeq()
        literals = [items.apply(at) for at in range(items.size())]
        values = [_value_of(child.dataType(), each) for each in literals if each is not None]
    else:
        items = expression.list()
        literals = [items.apply(at) for at in range(items.size())]
        if not all(map(_is_literal, literals)):
            return None
        values = [_value(each) for each in literals if each.value() is not None]
    if None in values:  # of a type that is not known here
        return None
    return Comparison(column, "in", values)


def _is_literal(expression: Any) -> bool:  # noqa: ANN401 - of the JVM
    return _kind(expression) == "Literal"


def _value(literal: Any) -> object:  # noqa: ANN401 - of the JVM
    return _value_of(literal.dataType(), literal.value())


def _value_of(data_type: Any, value: Any) -> object:  # noqa: ANN401 - of the JVM
    """Return a value as Spark's data sources would get it; None if it is not known."""
    if value is None:
        return None
    match str(data_type.typeName()):
        case "long" | "integer":
            return int(value)
        case "string":
            return str(value.toString())
        case "binary":
            return bytes(value)
        case "timestamp":
            return instant(int(value))
    return None


def instant(microseconds: int) -> dt.datetime | None:
    """Return the instant so long after 1970; None if Python has no such year."""
    try:
        return _EPOCH + dt.timedelta(microseconds=microseconds)
    except OverflowError:
        return None


def find_clock(filtered: DataFrame) -> ClockUse:
    """Return how the conditions of ``filtered``, a DataFrame of filters alone, ask the clock."""
    plan = filtered._jdf.queryExecution().analyzed()
    jvm: Any = filtered.sparkSession._jvm
    pattern = jvm.org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE()
    asked = False
    for condition in _conditions(plan):
        if condition.containsPattern(pattern):
            asked = True
            if not _only_grows(condition, pattern):
                return ClockUse.UNKNOWN
        asked = asked or _WORDS.search(str(condition.toString())) is not None
    return ClockUse.GROWING if asked else ClockUse.NOT_ASKED


def _conditions(plan: Any) -> Iterator[Any]:  # noqa: ANN401 - of the JVM
    while _kind(plan) == "Filter":
        yield plan.condition()
        plan = plan.child()


def _only_grows(expression: Any, pattern: Any) -> bool:  # noqa: ANN401 - of the JVM
    """Whether all that asks the clock in an expression keeps the order of what it is made of."""
    if not expression.containsPattern(pattern):
        return True
    kind = _kind(expression)
    if kind in _CLOCKS:
        return True
    children = expression.children()
    asking = [children.apply(at) for at in range(children.size())]
    if kind in _ORDER_KEPT:
        if _kind(expression.dataType()) not in _INSTANTS:
            return False
        # date_add('2024-01-01', datediff('2024-01-01', now())) runs backwards.
        instant = asking.pop(_ORDER_KEPT[kind])
        if any(each.containsPattern(pattern) for each in asking):
            return False
        asking = [instant]
    elif kind not in _LOGIC:
        return False
    return all(_only_grows(each, pattern) for each in asking)

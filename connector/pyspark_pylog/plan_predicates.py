"""Comparisons and columns in a DataFrame's plan, as Spark's optimizer has simplified it.

Only what stands directly above the read is looked at. A client of Spark Connect has another plan,
see `pyspark_pylog.connect_plan`.
"""

from __future__ import annotations

import datetime as dt
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Any

from pylog import Comparison
from pyspark_pylog.plan_clock import LOCAL_STEP, Clock, find_clock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

_OPERATORS = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
_MIRRORED = {"=": "=", ">": "<", ">=": "<=", "<": ">", "<=": ">="}
_RELATIONS = ("DataSourceV2ScanRelation", "DataSourceV2Relation")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def find_comparisons(filtered: DataFrame) -> list[Comparison]:
    """Return the comparisons that every row of the relation has to pass, now and later.

    Those after a condition that is not deterministic are left out: what
    ``monotonically_increasing_id() < 5`` says depends on the rows that it is asked about.

    Parameters
    ----------
    filtered
        A relation below nothing but filters.
    """
    filters = [node for node in _nodes_above_relation(filtered) if _kind(node) == "Filter"]
    asked = chain.from_iterable(_conjuncts(node.condition()) for node in reversed(filters))
    repeatable = takewhile(lambda each: each.deterministic(), asked)
    comparisons = [*filter(None, map(_to_comparison, repeatable))]
    clock = find_clock(filtered) if comparisons else Clock.NOT_ASKED
    if clock is Clock.UNKNOWN:
        return []
    return [*filter(None, map(_of_later, comparisons))] if clock is Clock.GROWING else comparisons


def _of_later(comparison: Comparison) -> Comparison | None:
    """Return what a comparison says also if its timestamp is computed again later."""
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
    operator = _OPERATORS.get(kind)
    if operator is None:
        return None
    left, right = expression.left(), expression.right()
    if _is_literal(left):
        left, right, operator = right, left, _MIRRORED[operator]
    if _kind(left) != "AttributeReference" or not _is_literal(right):
        return None
    value = _value(right)
    return None if value is None else Comparison(left.name().lower(), operator, value)


def _to_membership(expression: Any, kind: str) -> Comparison | None:  # noqa: ANN401 - of the JVM
    column = expression.child() if kind == "InSet" else expression.value()
    if _kind(column) != "AttributeReference":
        return None
    if kind == "InSet":  # what Spark makes of more than ten literals
        items = expression.hset().toSeq()
        literals = [items.apply(at) for at in range(items.size())]
        values = [_value_of(column.dataType(), each) for each in literals if each is not None]
    else:
        items = expression.list()
        literals = [items.apply(at) for at in range(items.size())]
        if not all(map(_is_literal, literals)):
            return None
        values = [_value(each) for each in literals if each.value() is not None]
    if None in values:  # of a type that is not known here
        return None
    return Comparison(column.name().lower(), "in", values)


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
            try:
                return _EPOCH + dt.timedelta(microseconds=int(value))
            except OverflowError:  # Spark's years go further than Python's
                return None
    return None

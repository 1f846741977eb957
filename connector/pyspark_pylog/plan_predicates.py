"""Comparisons and columns in a DataFrame's plan, as Spark's optimizer has simplified it.

Only what stands directly above the read is looked at. Through Spark Connect a client has no plan:
there nothing is found, and nothing pushed.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from pyspark_pylog.pushed_filters import Comparison

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

_OPERATORS = {
    "EqualTo": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
_MIRRORED = {"=": "=", ">": "<", ">=": "<=", "<": ">", "<=": ">="}
_RELATIONS = ("DataSourceV2ScanRelation", "DataSourceV2Relation")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def find_comparisons(frame: DataFrame) -> list[Comparison]:
    """Return the comparisons that every row of the relation in ``frame`` has to pass."""
    found: list[Comparison] = []
    for node in _nodes_above_relation(frame):
        if _kind(node) == "Filter":
            found += filter(None, map(_to_comparison, _conjuncts(node.condition())))
    return found


def find_columns(frame: DataFrame) -> list[str] | None:
    """Return the names of the relation's columns that ``frame`` needs, None if it is not known."""
    nodes = list(_nodes_above_relation(frame))
    if not nodes or _kind(nodes[0]) != "Project":
        return None
    names: dict[str, None] = {}
    for node in nodes:
        references = node.references().toSeq()
        for index in range(references.size()):
            names[references.apply(index).name()] = None
    return list(names)


def _nodes_above_relation(frame: DataFrame) -> Iterator[Any]:
    """Yield the nodes of a plan that is one chain of projections and filters, top first."""
    plan = getattr(frame, "_jdf", None)
    if plan is None:
        return
    node = plan.queryExecution().optimizedPlan()
    chain = []
    while _kind(node) in ("Filter", "Project"):
        chain.append(node)
        node = node.child()
    if _kind(node) in _RELATIONS:
        yield from chain


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
    if kind == "In":
        items = expression.list()
        literals = [items.apply(index) for index in range(items.size())]
        if _kind(expression.value()) != "AttributeReference" or not all(map(_is_literal, literals)):
            return None
        values = [_value(each) for each in literals if each.value() is not None]
        if None in values:  # of a type that is not known here
            return None
        return Comparison(expression.value().name(), "in", values)
    operator = _OPERATORS.get(kind)
    if operator is None:
        return None
    left, right = expression.left(), expression.right()
    if _is_literal(left):
        left, right, operator = right, left, _MIRRORED[operator]
    if _kind(left) != "AttributeReference" or not _is_literal(right):
        return None
    value = _value(right)
    return None if value is None else Comparison(left.name(), operator, value)


def _is_literal(expression: Any) -> bool:  # noqa: ANN401 - of the JVM
    return _kind(expression) == "Literal"


def _value(literal: Any) -> object:  # noqa: ANN401 - of the JVM
    """Return a literal's value as Spark's data sources would get it; None if it is not known."""
    kind, value = str(literal.dataType().typeName()), literal.value()
    if value is None:
        return None
    match kind:
        case "long" | "integer":
            return int(value)
        case "string":
            return str(value.toString())
        case "binary":
            return bytes(value)
        case "timestamp":
            return _EPOCH + dt.timedelta(microseconds=int(value))
    return None

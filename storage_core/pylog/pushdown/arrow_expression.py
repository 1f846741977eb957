"""The filter that a consumer of a ``pyarrow.dataset`` hands over, as far as a read can use it.

The consumer gets the rows that the whole expression passes, as pyarrow evaluates it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pylog.pushdown.comparison import Comparison
from pylog.pushdown.expression_tree import Call, Column, Literal, columns_in, expression_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow.compute as pc

    from pylog.pushdown.expression_tree import Node

_OPERATORS = {"equal": "=", "greater_equal": ">=", "greater": ">", "less_equal": "<=", "less": "<"}
_TURNED = {"=": "=", ">=": "<=", ">": "<", "<=": ">=", "<": ">"}
"""What ``5 < offset`` says of the offset."""

_EXACT_UNITS = ("s", "ms", "us")


def comparisons_of(expression: pc.Expression, schema: pa.Schema) -> Iterator[Comparison]:
    """Yield comparisons that every row has to pass which passes ``expression``.

    Parameters
    ----------
    expression
        About columns of ``schema``.
    schema
        Of the rows.
    """
    tree = expression_tree(expression)
    for term in [] if tree is None else _terms_of(tree, "and_kleene"):
        compared = _comparison(term, schema)
        if compared is not None:
            yield compared


def columns_of(expression: pc.Expression, schema: pa.Schema) -> list[str]:
    """Return the columns that an expression is about, or may be about if that is not known."""
    tree = expression_tree(expression)
    names = set(schema.names) if tree is None else columns_in(tree)
    return [name for name in schema.names if name in names]


def _terms_of(tree: Node, function: str) -> Iterator[Node]:
    """Yield what a function of two that is nested in itself joins: AND, or OR."""
    rest = [tree]
    while rest:
        node = rest.pop()
        if isinstance(node, Call) and node.function == function:
            rest += reversed(node.arguments)
        else:
            yield node


def _comparison(node: Node, schema: pa.Schema) -> Comparison | None:
    """Return what a term says; None if it is not a comparison of a column with constants."""
    match node:
        case Call("or_kleene", _, _):
            return _alternatives(node, schema)
        case Call("if_else", (Call("is_valid", (tested,), _), then, Literal(otherwise)), _):
            # What DuckDB writes around IN: NULL for NULL.
            if isinstance(then, Call) and then.arguments == (tested,) and not otherwise[0].as_py():
                return _comparison(then, schema)
        case Call("is_in", (Column(name, True),), pa.StructScalar() as options):
            values = _values(options["value_set"].values, name, schema)
            return None if values is None else Comparison(name, "in", values)
        case Call(function, (Column(name, True), Literal(literal)), _) if function in _OPERATORS:
            return _with_one(name, _OPERATORS[function], literal, schema)
        case Call(function, (Literal(literal), Column(name, True)), _) if function in _OPERATORS:
            return _with_one(name, _TURNED[_OPERATORS[function]], literal, schema)
    return None


def _with_one(name: str, operator: str, literal: pa.Array, schema: pa.Schema) -> Comparison | None:
    values = _values(literal, name, schema)
    return Comparison(name, operator, values[0]) if values else None


def _alternatives(node: Node, schema: pa.Schema) -> Comparison | None:
    """Return ``a = 1 OR a IN (2, 3)`` as one list."""
    values: list[object] = []
    names: set[str] = set()
    for term in _terms_of(node, "or_kleene"):
        compared = _comparison(term, schema)
        if compared is None or compared.operator not in ("=", "in"):
            return None
        names.add(compared.column)
        of_term = compared.value
        values += of_term if isinstance(of_term, list) else [of_term]
    return Comparison(names.pop(), "in", values) if len(names) == 1 else None


def _values(array: pa.Array, name: str, schema: pa.Schema) -> list[object] | None:
    """Return constants; None if one is null, or not of the kind that the column has."""
    if name not in schema.names or array.null_count:
        return None
    column, kind = schema.field(name).type, array.type
    is_alike = (
        (pa.types.is_integer(column) and pa.types.is_integer(kind))
        or (column == pa.string() and kind in (pa.string(), pa.large_string()))
        or (column == pa.binary() and kind in (pa.binary(), pa.large_binary()))
    )
    if pa.types.is_timestamp(column) and pa.types.is_timestamp(kind) and column.tz and kind.tz:
        is_alike = kind.unit in _EXACT_UNITS
        array = array.cast(pa.timestamp(kind.unit, "UTC"))
    if not is_alike:
        return None
    try:
        values: list[object] = array.to_pylist()
    except (ValueError, OverflowError):  # a year that Python does not know
        return None
    return values

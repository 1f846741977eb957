"""The predicate of a Polars query, as far as a read can make use of it.

Polars gives no access to the parts of an expression but its JSON, whose shape may be another one in
another version. So only what looks exactly as expected is taken for a comparison, and the whole
predicate is evaluated by Polars again. Literals have been cast to the column's type by Polars.

Of ``sort(…).head(…)`` Polars makes a *dynamic predicate*: a hint which rows cannot be among the
first, for its own readers. It cannot be evaluated outside of them, and nothing depends on it, so
that it is left out.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Self

import polars as pl
import pyarrow as pa

from pylog.pushdown.comparison import MIRRORED, Comparison, utc_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    import numpy.typing as npt

_OPERATORS = {
    "Eq": "=",
    "EqValidity": "=",
    "Gt": ">",
    "GtEq": ">=",
    "Lt": "<",
    "LtEq": "<=",
}
_BETWEEN = {
    "Both": (">=", "<="),
    "Left": (">=", "<"),
    "Right": (">", "<="),
    "None": (">", "<"),
}
_MASK = ""
_MICROSECONDS = {"Microseconds": 1, "Milliseconds": 1_000}


@dataclass(frozen=True, slots=True)
class PolarsPredicate:
    """A filter of Polars, and the comparisons in it that can be pushed down."""

    expression: pl.Expr | None
    comparisons: tuple[Comparison, ...]

    @classmethod
    def of(cls, predicate: pl.Expr) -> Self:
        """Return what ``predicate``, which Polars gave to a source, says."""
        terms = list(_conjuncts(json.loads(predicate.meta.serialize(format="json"))))
        lasting = [each for each in terms if not _is_dynamic(each)]
        expression: pl.Expr | None = predicate
        if len(lasting) < len(terms):
            parts = [io.BytesIO(json.dumps(each).encode()) for each in lasting]
            given = [pl.Expr.deserialize(each, format="json") for each in parts]
            expression = reduce(and_, given) if given else None
        return cls(expression, tuple(each for term in lasting for each in _known(_pairs_of(term))))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about."""
        names = [] if self.expression is None else self.expression.meta.root_names()
        return tuple(dict.fromkeys(names))

    def mask(self, rows: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Mask the rows that pass, as a `RowTest` does; Polars evaluates it."""
        expression = pl.lit(value=True) if self.expression is None else self.expression
        passes = pl.DataFrame(rows).with_columns(expression.alias(_MASK)).get_column(_MASK)
        mask: npt.NDArray[np.bool_] = passes.fill_null(value=False).to_numpy()
        return mask


NOTHING_ASKED = PolarsPredicate(None, ())
"""The predicate that every row passes."""


def _conjuncts(node: Any) -> Iterator[Any]:  # noqa: ANN401 - of JSON
    """Yield what has to hold at the same time, from left to right."""
    nodes = [node]
    while nodes:
        node = nodes.pop()
        match node:
            case {"BinaryExpr": {"left": left, "op": "And", "right": right}}:
                nodes += (right, left)
            case _:
                yield node


def _is_dynamic(node: Any) -> bool:  # noqa: ANN401 - of JSON
    match node:
        case {"Display": {"fmt_str": str(text)}}:
            return text.startswith("dynamic_pred")
    return False


def _known(pairs: Iterable[tuple[str, str, object]]) -> Iterator[Comparison]:
    for column, operator, value in pairs:
        if value is not None:
            yield Comparison(column, operator, value)


def _pairs_of(node: Any) -> Iterator[tuple[str, str, object]]:  # noqa: ANN401 - of JSON
    """Yield what a node compares; None for a value of a type that is not known here."""
    match node:
        case {"BinaryExpr": {"left": {"Column": str(column)}, "op": str(op), "right": value}}:
            if op in _OPERATORS:
                yield column, _OPERATORS[op], _value(value)
        case {"BinaryExpr": {"left": value, "op": str(op), "right": {"Column": str(column)}}}:
            if op in _OPERATORS:
                yield column, MIRRORED[_OPERATORS[op]], _value(value)
        case {
            "Function": {
                "input": [{"Column": str(column)}, low, high],
                "function": {"Boolean": {"IsBetween": {"closed": str(closed)}}},
            }
        } if closed in _BETWEEN:
            above, below = _BETWEEN[closed]
            yield column, above, _value(low)
            yield column, below, _value(high)
        case {
            "Function": {
                "input": [{"Column": str(column)}, members],
                # Otherwise null is in a list that has it.
                "function": {"Boolean": {"IsIn": {"nulls_equal": False}}},
            }
        }:
            yield column, "in", _value(members)


def _value(node: Any) -> object:  # noqa: ANN401 - of JSON
    """Return a literal's value; None if it is null, or of a type that is not known here."""
    match _scalar(node):
        case ("Int32" | "Int64", int(value)) | ("String", str(value)):
            return value
        case ("Binary", [*octets]):
            return bytes(octets)
        case ("Datetime", [int(count), str(unit), {"inner": "UTC"} | "UTC"]):
            return utc_time(count * _MICROSECONDS[unit]) if unit in _MICROSECONDS else None
        case ("List", [*octets]):
            return _members(bytes(octets))
    return None


def _scalar(node: Any) -> tuple[str, Any] | None:  # noqa: ANN401 - of JSON
    match node:
        # Polars 1 names the type beside the value.
        case {"Literal": {"Scalar": {"value": {**scalar}} | {**scalar}}} if len(scalar) == 1:
            [(kind, value)] = scalar.items()
            return str(kind).removesuffix("Owned"), value
    return None


def _members(data: bytes) -> list[object] | None:
    """Return the values of a list, which JSON has as a stream of Arrow's."""
    try:
        with pa.ipc.open_stream(data) as stream:
            column = stream.read_all().column(0)
    except (pa.ArrowException, OSError):
        return None
    values: list[object] = column.to_pylist()
    return values

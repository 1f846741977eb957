"""Comparisons and columns in the plan of a client of Spark Connect, a protocol buffer.

Nothing in it is resolved: columns are names, conditions are calls by name, or text. Only what is
directly above the read is looked at, where a name is a column of ours. Text is left to Spark: a
client has no parser, so a condition given as text narrows nothing.

Source: spark/connect/relations.proto, expressions.proto (Spark 4.0 to 4.3).
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from pylog.jobs import Comparison
from pyspark_pylog.spark_workarounds.classic_plan import MIRRORED, instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

_OPERATORS = {"==": "=", "<=>": "=", ">": ">", ">=": ">=", "<": "<", "<=": "<="}
_INTEGERS = ("byte", "short", "integer", "long")
_MICROSECONDS = {"timestamp_micros": 1, "timestamp_millis": 1_000, "timestamp_seconds": 1_000_000}
_WORD = re.compile(r"\w+")
# What names all its columns: in itself, in what it is made of, or as words of its text.
_NAMING = frozenset(
    {
        "alias",
        "call_function",
        "cast",
        "common_inline_user_defined_function",
        "expression_string",
        "lambda_function",
        "literal",
        "sort_order",
        "unresolved_attribute",
        "unresolved_extract_value",
        "unresolved_function",
        "unresolved_named_lambda_variable",
        "window",
    }
)
# What asks about a row more than the row says.
_RANDOM = (
    "monotonically_increasing_id",
    "spark_partition_id",
    "input_file_name",
    "input_file_block_start",
    "input_file_block_length",
    "rand",
    "random",
    "randn",
    "randstr",
    "uniform",
    "shuffle",
    "uuid",
    "identifier",  # names any function
)
_CALL = re.compile(rf"\b(?:{'|'.join(_RANDOM)})`?\s*\(", re.IGNORECASE)
_HIDING = re.compile(r"/\*|--|\$\{")
"""A comment between a name and its parenthesis, or a variable, which may hold both."""


def find_comparisons(filtered: DataFrame) -> list[Comparison]:
    """Return the comparisons that every row of the relation has to pass."""
    conditions = []
    node = _plan(filtered)
    while node.WhichOneof("rel_type") == "filter":
        conditions.append(node.filter.condition)
        node = node.filter.input
    comparisons: list[Comparison] = []
    if node.WhichOneof("rel_type") == "read":
        for condition in takewhile(_is_repeatable, reversed(conditions)):
            comparisons += _comparisons(condition)
    return comparisons


def find_columns(frame: DataFrame, known: Sequence[str]) -> list[str] | None:
    """Return which of the ``known`` columns ``frame`` may name, in their order; None for all."""
    named: set[str] = set()
    node = _plan(frame)
    while (kind := node.WhichOneof("rel_type")) in ("filter", "project"):
        given = [node.filter.condition] if kind == "filter" else node.project.expressions
        for expression in given:
            names = _names_in(expression)
            if names is None:
                return None
            named |= names
        node = getattr(node, kind).input
    if kind != "read":
        return None
    return [name for name in known if name.lower() in named]


def _plan(frame: DataFrame) -> Any:  # noqa: ANN401 - a protocol buffer
    ours: Any = frame
    return ours._plan.plan(ours.sparkSession._client)


def _is_repeatable(message: Any) -> bool:  # noqa: ANN401 - a protocol buffer
    """Whether a condition says the same of a row, whichever other rows there are."""
    match message.DESCRIPTOR.name:
        case "UnresolvedFunction" | "CallFunction" if message.function_name.lower() in _RANDOM:
            return False
        case "ExpressionString" if _CALL.search(text := message.expression) or _HIDING.search(text):
            return False
        case "CommonInlineUserDefinedFunction" if not message.deterministic:
            return False
    return all(
        _is_repeatable(each)
        for field, value in message.ListFields()
        if field.message_type is not None and not field.message_type.GetOptions().map_entry
        for each in ([value] if hasattr(value, "ListFields") else value)
    )


def _comparisons(expression: Any) -> Iterator[Comparison]:  # noqa: ANN401 - a protocol buffer
    if expression.WhichOneof("expr_type") != "unresolved_function":
        return
    function = expression.unresolved_function.function_name.lower()
    arguments = list(expression.unresolved_function.arguments)
    if function == "and":
        for each in arguments:
            yield from _comparisons(each)
    elif function == "in" and arguments:
        column = _column(arguments[0])
        listed = [each for each in arguments[1:] if not _is_null(each)]
        values = [_value(each, column) for each in listed]
        if column is not None and None not in values:
            yield Comparison(column, "in", values)
    elif function in _OPERATORS and len(arguments) == 2:
        yield from _comparison(_OPERATORS[function], *arguments)


def _comparison(operator: str, left: Any, right: Any) -> Iterator[Comparison]:  # noqa: ANN401
    column = _column(left)
    if column is None:
        column, right, operator = _column(right), left, MIRRORED[operator]
    value = _value(right, column)
    if column is not None and value is not None:
        yield Comparison(column, operator, value)


def _column(expression: Any) -> str | None:  # noqa: ANN401 - a protocol buffer
    """Return the column that an expression is, None if it is not the name of one alone."""
    if expression.WhichOneof("expr_type") != "unresolved_attribute":
        return None
    attribute = expression.unresolved_attribute
    # Of a certain DataFrame, which need not be this one; or hidden, as files' names are.
    if attribute.HasField("plan_id") or attribute.is_metadata_column:
        return None
    return str(attribute.unparsed_identifier).lower()


def _is_null(expression: Any) -> bool:  # noqa: ANN401 - a protocol buffer
    return bool(
        expression.WhichOneof("expr_type") == "literal"
        and expression.literal.WhichOneof("literal_type") == "null"
    )


def _value(expression: Any, column: str | None) -> object:  # noqa: ANN401 - a protocol buffer
    """Return a literal as Spark's data sources would get it; None if it is not known."""
    kind = expression.WhichOneof("expr_type")
    if kind == "unresolved_function":
        function = expression.unresolved_function
        scale = _MICROSECONDS.get(function.function_name.lower())
        arguments = [_value(each, None) for each in function.arguments]
        if scale is not None and len(arguments) == 1 and type(arguments[0]) is int:
            return instant(scale * arguments[0])
    if kind != "literal":
        return None
    literal_type = expression.literal.WhichOneof("literal_type")
    if literal_type in _INTEGERS:
        return int(getattr(expression.literal, literal_type))
    match literal_type:
        case "string":
            text = str(expression.literal.string)
            return text.encode() if column == "key" else text
        case "binary":
            return bytes(expression.literal.binary)
        case "timestamp":
            return instant(expression.literal.timestamp)
    return None


def _names_in(message: Any) -> set[str] | None:  # noqa: ANN401 - a protocol buffer
    """Return all that may be a column's name in an expression, lower-cased; None for any."""
    named = _names_of(message) if message.DESCRIPTOR.name == "Expression" else set()
    if named is None:
        return None
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            return None
        for each in [value] if hasattr(value, "ListFields") else value:
            names = _names_in(each)
            if names is None:
                return None
            named |= names
    return named


def _names_of(expression: Any) -> set[str] | None:  # noqa: ANN401 - a protocol buffer
    """Return the names that an expression itself has, without those of what it is made of."""
    kind = expression.WhichOneof("expr_type")
    if kind not in _NAMING:
        return None
    text = ""
    if kind == "expression_string":
        text = expression.expression_string.expression
    elif kind == "unresolved_attribute":
        text = expression.unresolved_attribute.unparsed_identifier
    words = {word.lower() for word in _WORD.findall(text)}
    # All columns, or a query, which may say so.
    return None if "*" in text or "select" in words else words

"""Some of Arrow's functions, without the import of `pyarrow.compute`.

That module makes a documented Python function of each of Arrow's 300. Its import takes a third as
long as Arrow's own, which a program that prints three lines notices. These here have the names and
the parameters of its functions and of an array's methods, and call what those call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyarrow._compute import (
    CastOptions,
    FilterOptions,
    JoinOptions,
    MatchSubstringOptions,
    ReplaceSubstringOptions,
    TakeOptions,
    call_function,
)

if TYPE_CHECKING:
    import pyarrow as pa


def cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column as another type; nothing may be lost."""
    return (
        column if column.type == kind else call_function("cast", [column], CastOptions.safe(kind))
    )


def binary_join(lists: pa.Array, separator: pa.Scalar) -> pa.Array:
    """Return the strings of each list with a separator between them."""
    return call_function("binary_join", [lists, separator])


def binary_join_element_wise(
    *columns: pa.Array | pa.Scalar, null_replacement: str | bytes | None = None
) -> pa.Array:
    """Return the strings of each row put together, with the last column between them.

    A null makes a row null, or else is replaced.
    """
    is_replaced = null_replacement is not None
    options = JoinOptions("replace" if is_replaced else "emit_null", null_replacement or "")
    return call_function("binary_join_element_wise", [*columns], options)


def equal(column: pa.Array, value: pa.Scalar) -> pa.Array:
    """Return whether each row is the value."""
    return call_function("equal", [column, value])


def filter_rows(column: pa.Array, mask: pa.Array) -> pa.Array:
    """Return the rows for which the mask is true; ``Array.filter``."""
    return call_function("filter", [column, mask], FilterOptions())


def if_else(condition: pa.Array, then: pa.Array | pa.Scalar, other: pa.Array) -> pa.Array:
    """Return for each row one of two."""
    return call_function("if_else", [condition, then, other])


def match_substring_regex(column: pa.Array, pattern: str) -> pa.Array:
    """Return whether the pattern is found in each row."""
    return call_function("match_substring_regex", [column], MatchSubstringOptions(pattern))


def not_equal(column: pa.Array, other: pa.Array) -> pa.Array:
    """Return whether each row differs from that of another column."""
    return call_function("not_equal", [column, other])


def replace_substring(column: pa.Array, pattern: str, replacement: str) -> pa.Array:
    """Return text with a part replaced wherever it is found."""
    options = ReplaceSubstringOptions(pattern, replacement)
    return call_function("replace_substring", [column], options)


def replace_with_mask(column: pa.Array, mask: pa.Array, replacements: pa.Array) -> pa.Array:
    """Return a column in which the rows of the mask are, one after the other, the replacements."""
    return call_function("replace_with_mask", [column, mask, replacements])


def take(column: pa.Array, rows: pa.Array) -> pa.Array:
    """Return the rows with these numbers."""
    return call_function("take", [column, rows], TakeOptions())

"""Columns of text in Arrow, from which lines are made column by column and not row by row.

All are of type ``large_string``, since the text of a batch may have more than 2 GiB. Arrays are
made from buffers, and scalars are taken out of arrays: ``pa.array`` and ``pa.scalar`` import pandas
wherever it is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.record_lines.arrow_functions import (
    binary_join,
    binary_join_element_wise,
    cast,
    filter_rows,
    if_else,
    match_substring_regex,
    replace_with_mask,
)
from pylog.text.words import UNPRINTABLE, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt


def text_column(texts: Sequence[bytes]) -> pa.Array:
    """Return ``texts``, each in UTF-8, as a column."""
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
    return pa.Array.from_buffers(pa.large_string(), len(texts), buffers, null_count=0)


def joined(*parts: pa.Array | str, null: str | None = None) -> pa.Array:
    """Return a column whose rows are those of ``parts``, put together."""
    strings = [part.encode() for part in parts if isinstance(part, str)]
    *scalars, separator = text_column([*strings, b""])
    unused = iter(scalars)
    columns = [
        next(unused) if isinstance(part, str) else cast(part, pa.large_string()) for part in parts
    ]
    if null is None:
        return binary_join_element_wise(*columns, separator)
    return binary_join_element_wise(*columns, separator, null_replacement=null)


def joined_bytes(*parts: pa.Array | bytes, null: bytes = b"") -> pa.Array:
    """Return a column of bytes whose rows are those of ``parts``, put together."""
    literals = [part for part in parts if isinstance(part, bytes)]
    *scalars, separator = cast(text_column([*literals, b""]), pa.large_binary())
    unused = iter(scalars)
    columns = [
        next(unused) if isinstance(part, bytes) else cast(part, pa.large_binary()) for part in parts
    ]
    return binary_join_element_wise(*columns, separator, null_replacement=null)


def joined_lists(ends: npt.NDArray[np.int32], entries: pa.Array) -> pa.Array:
    """Return a column of lists of entries with commas between them."""
    lists = pa.Array.from_buffers(
        pa.list_(entries.type),
        ends.size - 1,
        [None, pa.py_buffer(ends)],
        null_count=0,
        children=[entries],
    )
    return binary_join(lists, cast(text_column([b","]), entries.type)[0])


def ends_of(column: pa.Array) -> npt.NDArray[np.int32]:
    """Return where each row of a binary or list column begins, and where the last one ends."""
    ends: npt.NDArray[np.int32] = np.frombuffer(column.buffers()[1], np.int32)
    return ends[column.offset :][: len(column) + 1]


def whole_text(column: pa.Array) -> memoryview:
    """Return all rows of a column of text, one after the other; a view that keeps it alive."""
    ends = np.frombuffer(column.buffers()[1], np.int64)[column.offset :][: len(column) + 1]
    # Arrow calls its bytes signed; such a view equals no bytes above 0x7f.
    return memoryview(column.buffers()[2] or b"").cast("B")[ends[0] : ends[-1]]


# A column of bytes as text that is safe to print, by rules of the caller.
#
# Most values are printable text, as a rule, of which Arrow escapes a whole column at once. For the
# others it has no function; they are turned into text one by one.


_NOT_PRINTABLE_ASCII = "[^ -~]"


def escaped_column(
    column: pa.Array,
    of_printable: Callable[[pa.Array], pa.Array],
    of_value: Callable[[bytes], bytes],
) -> pa.Array:
    """Return the text of each value; nulls stay null."""
    try:
        text = cast(column, pa.large_string())
    except pa.ArrowInvalid:  # a value is not UTF-8, and which one is not said
        is_other = match_substring_regex(column, _NOT_PRINTABLE_ASCII)
        null = pa.nulls(1, column.type)[0]
        text = cast(if_else(is_other, null, column), pa.large_string())
    else:
        if _is_printable_ascii(column):
            return of_printable(text)
        is_other = match_substring_regex(text, UNPRINTABLE)
    others = text_column([of_value(value) for value in filter_rows(column, is_other).to_pylist()])
    return replace_with_mask(of_printable(text), is_other, others)


def printable_column(column: pa.Array) -> pa.Array:
    """Return text that may go to a terminal, of names or bytes; printable text stays as it is."""
    return escaped_column(cast(column, pa.binary()), _unchanged, _printable)


def _unchanged(column: pa.Array) -> pa.Array:
    return column


def _printable(value: bytes) -> bytes:
    return printable(value.decode("utf-8", "backslashreplace")).encode()


def _is_printable_ascii(column: pa.Array) -> bool:
    ends = ends_of(column)
    data = np.frombuffer(column.buffers()[2] or b"", np.uint8)[ends[0] : ends[-1]]
    return data.size == 0 or bool(data.min() >= ord(" ") and data.max() <= ord("~"))

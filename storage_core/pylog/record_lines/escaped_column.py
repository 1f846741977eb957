"""A column of bytes as text that is safe to print, by rules of the caller.

Most values are printable text, as a rule, of which Arrow escapes a whole column at once. For the
others it has no function; they are turned into text one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pylog.record_lines.text_column import ends_of, text_column
from pylog.text.printable import UNPRINTABLE, printable

if TYPE_CHECKING:
    from collections.abc import Callable

_NOT_PRINTABLE_ASCII = "[^ -~]"


def escaped_column(
    column: pa.Array,
    of_printable: Callable[[pa.Array], pa.Array],
    of_value: Callable[[bytes], bytes],
) -> pa.Array:
    """Return the text of each value; nulls stay null.

    Parameters
    ----------
    column
        Binary.
    of_printable
        Returns the text of a column of values that are UTF-8 and hold nothing that is
        `UNPRINTABLE`, given as ``large_string``.
    of_value
        Returns the text, in UTF-8, of any one value; the same for those.
    """
    try:
        text = column.cast(pa.large_string())
    except pa.ArrowInvalid:  # a value is not UTF-8, and which one is not said
        is_other = pc.match_substring_regex(column, _NOT_PRINTABLE_ASCII)
        null = pa.nulls(1, column.type)[0]
        text = pc.if_else(is_other, null, column).cast(pa.large_string())
    else:
        if _is_printable_ascii(column):
            return of_printable(text)
        is_other = pc.match_substring_regex(text, UNPRINTABLE)
    others = text_column([of_value(value) for value in column.filter(is_other).to_pylist()])
    return pc.replace_with_mask(of_printable(text), is_other, others)


def printable_column(column: pa.Array) -> pa.Array:
    """Return text that may go to a terminal, of names or bytes; printable text stays as it is."""
    return escaped_column(column.cast(pa.binary()), _unchanged, _printable)


def _unchanged(column: pa.Array) -> pa.Array:
    return column


def _printable(value: bytes) -> bytes:
    return printable(value.decode("utf-8", "backslashreplace")).encode()


def _is_printable_ascii(column: pa.Array) -> bool:
    ends = ends_of(column)
    data = np.frombuffer(column.buffers()[2] or b"", np.uint8)[ends[0] : ends[-1]]
    return data.size == 0 or bool(data.min() >= ord(" ") and data.max() <= ord("~"))

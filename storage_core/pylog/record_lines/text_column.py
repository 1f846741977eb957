"""Columns of text in Arrow, from which lines are made column by column and not row by row.

All are of type ``large_string``, since the text of a batch may have more than 2 GiB. Arrays are
made from buffers, and scalars are taken out of arrays: ``pa.array`` and ``pa.scalar`` import pandas
wherever it is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


def text_column(texts: Sequence[bytes]) -> pa.Array:
    """Return ``texts``, each in UTF-8, as a column."""
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
    return pa.Array.from_buffers(pa.large_string(), len(texts), buffers, null_count=0)


def joined(*parts: pa.Array | str, null: str | None = None) -> pa.Array:
    """Return a column whose rows are those of ``parts``, put together.

    Parameters
    ----------
    parts
        Columns of text or of integers, all of one length, and strings that stand in every row.
    null
        What stands in the place of a null. None: a row with a null in it is null.
    """
    strings = [part.encode() for part in parts if isinstance(part, str)]
    *scalars, separator = text_column([*strings, b""])
    unused = iter(scalars)
    columns = [
        next(unused) if isinstance(part, str) else part.cast(pa.large_string()) for part in parts
    ]
    if null is None:
        return pc.binary_join_element_wise(*columns, separator)
    return pc.binary_join_element_wise(
        *columns, separator, null_handling="replace", null_replacement=null
    )


def joined_bytes(*parts: pa.Array | bytes, null: bytes = b"") -> pa.Array:
    """Return a column of bytes whose rows are those of ``parts``, put together.

    Parameters
    ----------
    parts
        Columns of text or bytes, all of one length, and bytes that stand in every row.
    null
        What stands in the place of a null.
    """
    literals = [part for part in parts if isinstance(part, bytes)]
    *scalars, separator = text_column([*literals, b""]).cast(pa.large_binary())
    unused = iter(scalars)
    columns = [
        next(unused) if isinstance(part, bytes) else part.cast(pa.large_binary()) for part in parts
    ]
    return pc.binary_join_element_wise(
        *columns, separator, null_handling="replace", null_replacement=null
    )


def joined_lists(ends: npt.NDArray[np.int32], entries: pa.Array) -> pa.Array:
    """Return a column of lists of entries with commas between them.

    Row i has the entries from ``ends[i]`` to ``ends[i + 1]``.
    """
    lists = pa.Array.from_buffers(
        pa.list_(entries.type),
        ends.size - 1,
        [None, pa.py_buffer(ends)],
        null_count=0,
        children=[entries],
    )
    return pc.binary_join(lists, text_column([b","]).cast(entries.type)[0])


def ends_of(column: pa.Array) -> npt.NDArray[np.int32]:
    """Return where each row of a binary or list column begins, and where the last one ends."""
    ends: npt.NDArray[np.int32] = np.frombuffer(column.buffers()[1], np.int32)
    return ends[column.offset :][: len(column) + 1]


def whole_text(column: pa.Array) -> memoryview:
    """Return all rows of a column of text, one after the other; a view that keeps it alive."""
    ends = np.frombuffer(column.buffers()[1], np.int64)[column.offset :][: len(column) + 1]
    # Arrow calls its bytes signed; such a view equals no bytes above 0x7f.
    return memoryview(column.buffers()[2] or b"").cast("B")[ends[0] : ends[-1]]

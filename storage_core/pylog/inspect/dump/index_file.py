"""The entries of an index file as the tool sees them: raw, up to the zero tail, slot 0 included."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.files.byte_source import ByteSource

ENTRIES_AT_ONCE = 1 << 20


class EntryColumns(NamedTuple):
    """Consecutive entries; int64, one column a field, as stored."""

    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]


class EntryType(NamedTuple):
    """How an entry is stored.

    Attributes
    ----------
    dtype
        Fields ``first`` and ``second``, big-endian.
    offset_field
        Which of the two is the offset, relative to the segment's.
    """

    dtype: np.dtype[np.void]
    offset_field: int


OFFSET_INDEX = EntryType(np.dtype([("first", ">i4"), ("second", ">i4")]), 0)
TIME_INDEX = EntryType(np.dtype([("first", ">i8"), ("second", ">i4")]), 1)


def read_entries(source: ByteSource, kind: EntryType) -> Iterator[EntryColumns]:
    """Yield the entries, many at once, until one after the first has a relative offset of 0.

    That is how the zero tail of a preallocated index begins. Bytes at the end that make no whole
    entry are none.
    """
    width = kind.dtype.itemsize
    position = 0
    while True:
        data = source.read_at(position, ENTRIES_AT_ONCE * width)
        entries = np.frombuffer(data[: len(data) // width * width], dtype=kind.dtype)
        if not entries.size:
            return
        columns = EntryColumns(
            entries["first"].astype(np.int64), entries["second"].astype(np.int64)
        )
        is_zero = columns[kind.offset_field] == 0
        if position == 0:
            is_zero[0] = False
        places = np.flatnonzero(is_zero)
        if places.size:
            end = int(places[0])
            if end:
                yield EntryColumns(columns.first[:end], columns.second[:end])
            return
        yield columns
        position += len(entries) * width

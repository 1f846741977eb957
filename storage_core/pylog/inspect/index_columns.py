"""All entries of an offset or time index at once, as NumPy columns."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pylog.errors import SegmentVanishedError, UnreadableFileError
from pylog.files.offset_index import OffsetIndexEntries
from pylog.files.storage import open_file
from pylog.files.time_index import TimeIndexEntries

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from pylog.files.index_entries import EntryLayout, IndexEntries

MAX_INDEX_BYTES = 64 * 1024 * 1024
"""Eight million entries, six times the default size of the file: of more none is read."""


LIVE_PAUSES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Seconds between looks at a file that a broker seems to be writing just now."""


class IndexColumns(NamedTuple):
    """The entries before the zero tail, in file order.

    Attributes
    ----------
    offsets
        int64, shape (entries,); absolute.
    values
        int64, shape (entries,): positions of an offset index, timestamps (ms) of a time index.
    defect
        Why the file cannot be read; what Kafka's own check of it would complain about; or the
        first entry that is not above the one before it; None if nothing.
    """

    offsets: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]
    defect: str | None


def read_offset_index(path: str, base_offset: int) -> IndexColumns:
    """Return the entries of an ``.index`` file; none if there is no such file."""
    return _read(path, lambda: OffsetIndexEntries.open(path, base_offset))


def read_time_index(path: str, base_offset: int) -> IndexColumns:
    """Return the entries of a ``.timeindex`` file; none if there is no such file."""
    return _read(path, lambda: TimeIndexEntries.open(path, base_offset))


def _read(path: str, opened: Callable[[], IndexEntries[Any]]) -> IndexColumns:
    with opened() as index:
        columns = _read_now(path, index)
    for pause in LIVE_PAUSES:
        if not _may_be_being_written(columns):
            break
        time.sleep(pause)
        with opened() as index:
            columns = _read_now(path, index)
    return columns


def _may_be_being_written(columns: IndexColumns) -> bool:
    """Whether what is wrong is the second half of the last entry, which a broker writes later."""
    # Of an offset index: the last entry of a time index does not count before it is whole.
    return columns.defect is not None and columns.values.size > 1 and columns.values[-1] == 0


def _read_now(path: str, index: IndexEntries[Any]) -> IndexColumns:
    entry = _dtype_of(index.layout)
    data, defect = b"", None
    try:
        wanted = index.entry_count * entry.itemsize
        if wanted > MAX_INDEX_BYTES:
            defect = f"entries take {wanted} bytes, expected at most {MAX_INDEX_BYTES}"
        else:
            data = _read_whole(path, wanted)
    except UnreadableFileError as error:
        defect = error.reason
    whole = len(data) - len(data) % entry.itemsize
    entries = np.frombuffer(data[:whole], dtype=entry)
    offsets = entries["relative_offset"].astype(np.int64) + index.base_offset
    values = entries["value"].astype(np.int64)
    defect = defect or index.find_defect() or _disorder(offsets, values)
    return IndexColumns(offsets, values, defect)


def _dtype_of(layout: EntryLayout) -> np.dtype[np.void]:
    """Return the layout as NumPy has it; what is not the relative offset is the value."""
    names = ["value", "value"]
    names[layout.relative_offset_column] = "relative_offset"
    codes = layout.struct.format.removeprefix(">")
    return np.dtype([(name, f">{code}") for name, code in zip(names, codes, strict=True)])


def _read_whole(path: str, wanted: int) -> bytes:
    if not wanted:
        return b""
    try:
        with open_file(path) as source:
            return source.read_at(0, wanted)
    except SegmentVanishedError:
        return b""


def _disorder(offsets: npt.NDArray[np.int64], values: npt.NDArray[np.int64]) -> str | None:
    """Return which entry is the first that does not go up, as `goes_up` has it for one."""
    rises = (np.diff(offsets) > 0) & (np.diff(values) > 0)
    if rises.all():
        return None
    slot = int(np.argmin(rises)) + 1
    return (
        f"entry {slot} is ({offsets[slot]}, {values[slot]}), expected both above "
        f"({offsets[slot - 1]}, {values[slot - 1]})"
    )

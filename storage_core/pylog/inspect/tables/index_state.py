"""In what state the index files of a segment are, next to what its headers say."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from pylog.errors import CorruptIndexError, UnreadableFileError
from pylog.files.file_names import (
    INDEX_FILE_SUFFIX,
    TIME_INDEX_FILE_SUFFIX,
    TXN_INDEX_FILE_SUFFIX,
)
from pylog.files.transaction_index import read_transaction_index
from pylog.inspect.index_columns import read_offset_index, read_time_index

if TYPE_CHECKING:
    from pylog.inspect.index_columns import IndexColumns
    from pylog.reading.segments import LogSegmentView

INDEX_STATE_TYPE = pa.struct(
    [("state", pa.string()), ("entries", pa.int64()), ("reason", pa.string())]
)


class IndexState(NamedTuple):
    """One index file of a segment; a row's value of type `INDEX_STATE_TYPE`.

    Attributes
    ----------
    state
        ``missing``; ``empty``: no entry, as of a new segment; ``ok``; or ``damaged``: what Kafka
        would rebuild, what cannot be read, out of order, or pointing beyond the last batch. Readers
        do without.
    entries
        How many there are, those of a preallocated tail left out; None for a missing file and a
        transaction index that cannot be read.
    reason
        What is wrong with a damaged one.
    """

    state: str
    entries: int | None = None
    reason: str | None = None

    def to_struct(self) -> dict[str, object]:
        """Return the value as Arrow takes it."""
        return self._asdict()


_MISSING = IndexState("missing")


def index_states(
    segment: LogSegmentView, end_position: int, next_offset: int
) -> list[dict[str, object]]:
    """Return the states of a segment's offset, time and transaction index, in this order.

    Parameters
    ----------
    segment
        Whose files.
    end_position, next_offset
        Byte and offset after its last whole batch.
    """
    states = (
        _offset_index(segment, end_position),
        _time_index(segment, next_offset),
        _transaction_index(segment),
    )
    return [state.to_struct() for state in states]


def _offset_index(segment: LogSegmentView, end_position: int) -> IndexState:
    if INDEX_FILE_SUFFIX not in segment.suffixes:
        return _MISSING
    index = read_offset_index(segment.file_path(INDEX_FILE_SUFFIX), segment.base_offset)
    last = int(index.values[-1]) if index.values.size else -1
    contradiction = None
    if last >= end_position:
        contradiction = f"last entry is byte {last} of the log, whose batches end at {end_position}"
    return _state(index, contradiction)


def _time_index(segment: LogSegmentView, next_offset: int) -> IndexState:
    if not segment.has_time_index:
        return _MISSING
    index = read_time_index(segment.file_path(TIME_INDEX_FILE_SUFFIX), segment.base_offset)
    last = int(index.offsets[-1]) if index.offsets.size else -1
    contradiction = None
    if last >= next_offset:
        contradiction = (
            f"last entry has offset {last}, the segment's batches end before {next_offset}"
        )
    return _state(index, contradiction)


def _state(index: IndexColumns, contradiction: str | None) -> IndexState:
    entries = index.offsets.size
    reason = index.defect or contradiction
    if reason is not None:
        return IndexState("damaged", entries, reason)
    return IndexState("ok" if entries else "empty", entries)


def _transaction_index(segment: LogSegmentView) -> IndexState:
    if not segment.has_transaction_index:
        return _MISSING
    try:
        entries = len(read_transaction_index(segment.file_path(TXN_INDEX_FILE_SUFFIX)))
    except (CorruptIndexError, UnreadableFileError) as error:
        return IndexState("damaged", None, str(error.reason))
    return IndexState("ok" if entries else "empty", entries)

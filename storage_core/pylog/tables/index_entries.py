"""Table ``index_entries``: the three kinds of indexes, as they are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.checks.indexes import read_offset_index, read_time_index
from pylog.columnar.arrow_schema import fixed_width_array, string_array
from pylog.columnar.rows import TIMESTAMP, TableText
from pylog.errors import CorruptIndexError, UnreadableFileError
from pylog.files.file_names import INDEX_FILE_SUFFIX, TIME_INDEX_FILE_SUFFIX, TXN_INDEX_FILE_SUFFIX
from pylog.files.transaction_index import read_transaction_index
from pylog.locations import name_of
from pylog.model import NO_TIMESTAMP
from pylog.tables.metadata_table import MetadataTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.checks.indexes import IndexColumns
    from pylog.reading.log_view import LogView


_TEXT = TableText.of_partitions("""\
What the offset, time and transaction indexes say, a row an entry.

index              string       offset, time or transaction
file               string       name of the file
entry              int64        place in the file, from 0
offset             int64        offset, time: the offset indexed
position           int64        offset: byte of the ``.log`` file
timestamp          timestamp    time: the largest one up to that offset
producer_id        int64        transaction: of an aborted transaction
first_offset       int64        transaction: its first offset
last_offset        int64        transaction: that of its ABORT marker
last_stable_offset int64        transaction: right after the abort
defect             string       what is wrong with the file, in a row of its own after the entries
                                that can be read; all but the file's name is null there

As stored: nothing here is checked against the log. Slots of a preallocated file are not entries.
""")
_SCHEMA = _TEXT.schema

_TRANSACTION_COLUMNS = ("producer_id", "first_offset", "last_offset", "last_stable_offset")


def index_entries_of(view: LogView) -> Iterator[pa.RecordBatch]:
    """Yield the entries by segment, kind of index and place in the file, a record batch a file."""
    for segment in view.segments:
        path, base_offset = segment.file_path(INDEX_FILE_SUFFIX), segment.base_offset
        offset_index = read_offset_index(path, base_offset)
        columns = {"offset": offset_index.offsets, "position": offset_index.values}
        yield _record_batch(view, "offset", path, _arrays(columns))
        yield from _defect(view, "offset", path, offset_index)
        path = segment.file_path(TIME_INDEX_FILE_SUFFIX)
        time_index = read_time_index(path, base_offset)
        stamps = fixed_width_array(time_index.values, null=NO_TIMESTAMP).view(TIMESTAMP)
        arrays = {**_arrays({"offset": time_index.offsets}), "timestamp": stamps}
        yield _record_batch(view, "time", path, arrays)
        yield from _defect(view, "time", path, time_index)
        if segment.has_transaction_index:
            path = segment.file_path(TXN_INDEX_FILE_SUFFIX)
            yield _record_batch(view, "transaction", path, _transactions(path))


def _transactions(path: str) -> dict[str, pa.Array]:
    try:
        entries = read_transaction_index(path)
    except (CorruptIndexError, UnreadableFileError) as error:
        # A row and not an error: readers do without a transaction index that is damaged.
        return _defect_arrays(error.reason)
    return _arrays(
        {
            name: np.array([getattr(entry, name) for entry in entries], dtype=np.int64)
            for name in _TRANSACTION_COLUMNS
        }
    )


def _defect(
    view: LogView, index: str, path: str, columns: IndexColumns
) -> Iterator[pa.RecordBatch]:
    if columns.defect is not None:
        yield _record_batch(view, index, path, _defect_arrays(columns.defect))


def _defect_arrays(defect: str) -> dict[str, pa.Array]:
    return {"entry": pa.nulls(1, pa.int64()), "defect": string_array([defect])}


def _arrays(columns: dict[str, npt.NDArray[np.int64]]) -> dict[str, pa.Array]:
    arrays = {name: fixed_width_array(values) for name, values in columns.items()}
    entries = min(map(len, arrays.values()))
    return {"entry": fixed_width_array(np.arange(entries, dtype=np.int64)), **arrays}


def _record_batch(
    view: LogView, index: str, path: str, arrays: dict[str, pa.Array]
) -> pa.RecordBatch:
    rows = len(arrays["entry"])
    constants = {"topic": view.topic, "index": index, "file": name_of(path)}
    columns = {
        **arrays,
        **{name: pa.repeat(string_array([text])[0], rows) for name, text in constants.items()},
        "partition": fixed_width_array(np.full(rows, view.partition, dtype=np.int32)),
    }
    return pa.RecordBatch.from_arrays(
        [
            columns[field.name] if field.name in columns else pa.nulls(rows, field.type)
            for field in _SCHEMA
        ],
        schema=_SCHEMA,
    )


INDEX_ENTRIES = MetadataTable("index_entries", _SCHEMA, index_entries_of, text=_TEXT)

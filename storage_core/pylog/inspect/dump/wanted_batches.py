"""Which batches, and which of their records, a range of offsets and timestamps takes in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.inspect.dump import batch_table as columns

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.inspect.dump.dump_options import RecordRange
    from pylog.inspect.dump.record_arrays import RecordArrays
    from pylog.record.batch_scan import BatchHeaders

_EARLIEST = -(2**63)


def wanted_batches(headers: BatchHeaders, wanted: RecordRange) -> npt.NDArray[np.int64]:
    """Return the places of the batches that may hold wanted records, by what headers say.

    The first offset of a wrapper of v0 or v1 is taken to be the one after the batch before it. A
    batch whose records have the times of their creation may hold earlier ones than its header says.
    """
    if not wanted.is_restricted:
        return np.arange(len(headers))
    firsts = headers.offsets.copy()
    is_wrapper = ~headers.is_v2 & (headers.codec_ids != 0)
    before = np.append(np.int64(-1), headers.last_offsets[:-1])
    firsts[is_wrapper] = np.minimum(firsts, before + 1)[is_wrapper]
    is_in = wanted.has_offsets(firsts, headers.last_offsets)
    earliest = headers.max_timestamps.copy()
    has_one_time = headers.is_append_time | (headers.record_counts == 1)
    earliest[~has_one_time] = _EARLIEST
    is_in &= wanted.has_timestamps(earliest, headers.max_timestamps)
    places: npt.NDArray[np.int64] = np.flatnonzero(is_in)
    return places


def wanted_rows(
    table: npt.NDArray[np.int64],
    batch_rows: npt.NDArray[np.int64],
    records: RecordArrays,
    wanted: RecordRange,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], RecordArrays]:
    """Return the same without the records that are not wanted, and the batches that had only those.

    A batch without records stays if its offsets are in the range.
    """
    is_in = wanted.has_offsets(records.offsets) & wanted.has_timestamps(records.timestamps)
    ends = np.append(np.int64(0), np.cumsum(is_in))[np.append(np.int64(0), np.cumsum(batch_rows))]
    kept_rows = np.diff(ends)
    is_empty = (batch_rows == 0) & (table[:, columns.RECORD_COUNT] == 0)
    stays = (kept_rows > 0) | is_empty
    return table[stays], kept_rows[stays], records.select(is_in)

"""The ``batch`` column: where each record came from, a struct a row.

No array is cast or taken from: Arrow imports a module of its own for these, which takes as long as
all the rest of a short ``pylog cat``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.columnar.arrow_buffers import fixed_width_array, string_array
from pylog.columnar.arrow_schema import BATCH_TYPE
from pylog.model import CompressionType

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.record.batch_scan import BatchHeaders

_LABELS = string_array([codec.label for codec in CompressionType])


def batch_array(
    headers: BatchHeaders,
    base_offsets: npt.NDArray[np.int64],
    batch_rows: npt.NDArray[np.int64],
    segment: str,
    file_position: int,
) -> pa.StructArray:
    """Return the metadata of each row's batch.

    ``base_offsets`` are known for compressed v0/v1 wrappers only after decoding.
    """
    rows = int(batch_rows.sum())

    def column(
        values: npt.NDArray[np.int64], kind: type[np.int64 | np.int32], null: int | None = None
    ) -> pa.Array:
        return fixed_width_array(np.repeat(values.astype(kind, copy=False), batch_rows), null)

    fields = {
        "baseOffset": column(base_offsets, np.int64),
        "lastOffset": column(headers.last_offsets, np.int64),
        "leaderEpoch": column(headers.partition_leader_epochs, np.int32, null=-1),
        "producerId": column(headers.producer_ids, np.int64, null=-1),
        "producerEpoch": column(headers.producer_epochs, np.int32, null=-1),
        "sequence": column(headers.base_sequences, np.int32, null=-1),
        "isTransactional": fixed_width_array(np.repeat(headers.is_transactional, batch_rows)),
        "magic": column(headers.magics, np.int32),
        "compression": _codec_labels(headers.codec_ids, batch_rows),
        "sizeInBytes": column(headers.sizes_bytes, np.int64),
        "segment": pa.repeat(string_array([segment])[0], rows),
        "position": column(headers.positions + file_position, np.int64),
    }
    return pa.StructArray.from_arrays(
        [fields[field.name] for field in BATCH_TYPE], fields=list(BATCH_TYPE)
    )


def _codec_labels(codec_ids: npt.NDArray[np.int64], batch_rows: npt.NDArray[np.int64]) -> pa.Array:
    """Return the codec's name for each row; batches of one codec in a row are taken together."""
    if not codec_ids.size:
        return _LABELS[:0]
    starts = np.flatnonzero(np.diff(codec_ids, prepend=-1))
    rows = np.add.reduceat(batch_rows, starts)
    runs = zip(codec_ids[starts].tolist(), rows.tolist(), strict=True)
    return pa.concat_arrays([pa.repeat(_LABELS[codec], count) for codec, count in runs])

"""The ``batch`` column: where each record came from, a struct a row."""

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

_CODEC_LABELS = string_array([codec.label for codec in CompressionType])


def batch_array(
    headers: BatchHeaders,
    base_offsets: npt.NDArray[np.int64],
    batch_rows: npt.NDArray[np.int64],
    segment: str,
    file_position: int,
) -> pa.StructArray:
    """Return the metadata of each row's batch.

    Parameters
    ----------
    headers
        The batches, in order.
    base_offsets
        First offset of each batch, known for compressed v0/v1 wrappers only after decoding.
    batch_rows
        Rows that each batch gave.
    segment
        Name of the ``.log`` file.
    file_position
        Byte of the file that position 0 of ``headers`` is.
    """
    rows = int(batch_rows.sum())

    def column(
        values: npt.NDArray[np.int64], kind: pa.DataType, null: int | None = None
    ) -> pa.Array:
        return fixed_width_array(np.repeat(values, batch_rows), null).cast(kind)

    fields = {
        "baseOffset": column(base_offsets, pa.int64()),
        "lastOffset": column(headers.last_offsets, pa.int64()),
        "leaderEpoch": column(headers.partition_leader_epochs, pa.int32(), null=-1),
        "producerId": column(headers.producer_ids, pa.int64(), null=-1),
        "producerEpoch": column(headers.producer_epochs, pa.int32(), null=-1),
        "sequence": column(headers.base_sequences, pa.int32(), null=-1),
        "isTransactional": fixed_width_array(np.repeat(headers.is_transactional, batch_rows)),
        "magic": column(headers.magics, pa.int32()),
        "compression": _CODEC_LABELS.take(column(headers.codec_ids, pa.int64())),
        "sizeInBytes": column(headers.sizes_bytes, pa.int64()),
        "segment": pa.repeat(string_array([segment])[0], rows),
        "position": column(headers.positions + file_position, pa.int64()),
    }
    return pa.StructArray.from_arrays(
        [fields[field.name] for field in BATCH_TYPE], fields=list(BATCH_TYPE)
    )

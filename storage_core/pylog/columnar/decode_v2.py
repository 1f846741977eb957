"""Groups of v2 batches through the kernel `pylog.kernels.decode_records`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.columnar.headers_column import headers_array
from pylog.columnar.record_columns import RecordColumns
from pylog.errors import InvalidRecordError, TimestampOverflowError
from pylog.kernels import decode_headers as fields
from pylog.kernels import decode_records as kernel
from pylog.record.batch_header import codec_of
from pylog.record.batch_layout import (
    MAGIC_VALUE_V2,
    MIN_RECORD_SIZE_V2,
    RECORDS_OFFSET,
    TIMESTAMP_TYPE_MASK,
)
from pylog.record.record import decode_record

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.columnar.window import GroupRequest
    from pylog.errors import LogStorageError
    from pylog.model import CompressionType
    from pylog.record.batch_scan import BatchHeaders

_REASONS = {
    kernel.STATUS_BAD_VARINT: "a number runs past the end of the record",
    kernel.STATUS_BAD_RECORD_LENGTH: "the record's length does not fit into the batch",
    kernel.STATUS_BAD_KEY_LENGTH: "the key's length does not fit into the record",
    kernel.STATUS_BAD_VALUE_LENGTH: "the value's length does not fit into the record",
    kernel.STATUS_BAD_HEADER: "a header does not fit into the record",
    kernel.STATUS_LENGTH_MISMATCH: "the record's fields and its length disagree",
    kernel.STATUS_BYTES_REMAIN: "bytes remain after the last record that the batch counts",
}


# Rows of the headers that fill the columns of the kernel's table, some of them only for a moment.
_SOURCES = np.empty(kernel.BATCH_FIELDS, dtype=np.int64)
_SOURCES[kernel.BATCH_START] = fields.POSITION
_SOURCES[kernel.BATCH_END] = fields.POSITION
_SOURCES[kernel.BATCH_BASE_OFFSET] = fields.OFFSET
_SOURCES[kernel.BATCH_BASE_TIMESTAMP] = fields.BASE_TIMESTAMP
_SOURCES[kernel.BATCH_APPEND_TIME] = fields.ATTRIBUTES
_SOURCES[kernel.BATCH_MAX_TIMESTAMP] = fields.MAX_TIMESTAMP
_SOURCES[kernel.BATCH_RECORD_COUNT] = fields.RECORD_COUNT
_SOURCES[kernel.BATCH_LAST_OFFSET] = fields.LAST_OFFSET


def describe_batches(run: BatchHeaders) -> npt.NDArray[np.int64]:
    """Return the kernel's input table; its first two columns bound the records' bytes."""
    table = np.ascontiguousarray(run.columns[_SOURCES].T)
    table[:, kernel.BATCH_START] += RECORDS_OFFSET
    table[:, kernel.BATCH_END] += run.sizes_bytes
    table[:, kernel.BATCH_APPEND_TIME] &= TIMESTAMP_TYPE_MASK
    counts = run.record_counts
    if not counts.all():
        # As in Kafka, which opens the stream of an empty batch that is compressed. Differs from
        # Kafka: there has to be nothing in it.
        unseen = (counts == 0) & (run.codec_ids == 0)
        table[unseen, kernel.BATCH_END] = table[unseen, kernel.BATCH_START]
    return table


def stream_of(
    run: BatchHeaders, index: int, records: memoryview
) -> tuple[memoryview, CompressionType]:
    """Return the bytes to decompress of batch ``index``, and their codec."""
    return records, codec_of(int(run.codec_ids[index]), MAGIC_VALUE_V2)


def decode_group(
    request: GroupRequest, run: BatchHeaders, table: npt.NDArray[np.int64]
) -> RecordColumns:
    """Return the columns of the group's records.

    Parameters
    ----------
    request
        Buffer, offsets and columns wanted.
    run
        Headers of the batches in the group.
    table
        From `describe_batches`, its bounds pointing into ``request.buffer``.

    Raises
    ------
    InvalidRecordError
        The records break the format, are not as many as counted, or have offsets that do not go up
        or are not the batch's.
    TimestampOverflowError
        A timestamp does not fit the unit asked for.
    """
    sizes = table[:, kernel.BATCH_END] - table[:, kernel.BATCH_START]
    counts = table[:, kernel.BATCH_RECORD_COUNT]
    # Counts that the bytes cannot hold are refused before memory is made for them.
    if (counts * MIN_RECORD_SIZE_V2 > sizes).any() or counts.min() < 0:
        raise _count_error(request, run, counts, sizes // MIN_RECORD_SIZE_V2)
    most, data_bytes = int(counts.sum()), int(sizes.sum())
    columns = RecordColumns(most, data_bytes, request.want)
    with_headers = bool(request.want & kernel.WANT_HEADERS)
    header_positions = np.empty(most if with_headers else 0, dtype=np.int64)
    header_counts = np.empty(most if with_headers else 0, dtype=np.int32)
    columns.batch_rows = np.zeros(len(run), dtype=np.int64)
    columns.base_offsets = run.offsets
    totals = np.zeros(kernel.TOTALS, dtype=np.int64)
    rows, status, at = kernel.decode_records(
        request.buffer,
        table,
        request.start_offset,
        request.end_offset,
        request.want,
        request.timestamp_scale,
        columns.offsets,
        columns.timestamps,
        columns.key_ends,
        columns.key_data,
        columns.key_validity,
        columns.value_ends,
        columns.value_data,
        columns.value_validity,
        header_positions,
        header_counts,
        columns.batch_rows,
        totals,
    )
    if status != kernel.STATUS_OK:
        raise _error(request, run, table, status, totals, int(at))
    columns.finish(int(rows), totals, request.timestamp_type)
    if with_headers:
        columns.arrays["headers"] = headers_array(
            request.buffer, header_positions[:rows], header_counts[:rows]
        )
    return columns


def _count_error(
    request: GroupRequest,
    run: BatchHeaders,
    counts: npt.NDArray[np.int64],
    room: npt.NDArray[np.int64],
) -> InvalidRecordError:
    index = int(np.argmax((counts < 0) | (counts > room)))
    reason = f"batch counts {counts[index]} records, its bytes have room for {room[index]}"
    return InvalidRecordError(reason, request.path, request.position_of(run, index))


def _disorder(records: memoryview, run: BatchHeaders, index: int) -> str:
    """Return which record of a batch has an offset that it cannot have."""
    base, last = int(run.offsets[index]), int(run.last_offsets[index])
    lowest, at = base, 0
    while at < len(records):
        inside = at
        record, at = decode_record(records, at, len(records))
        offset = base + record.offset_delta
        if not lowest <= offset <= last:
            return (
                f"the record has offset {offset}, expected {lowest} to {last} "
                f"({inside} bytes into the batch's records)"
            )
        lowest = offset + 1
    return f"the records' offsets are not within {base} to {last}"


def _error(
    request: GroupRequest,
    run: BatchHeaders,
    table: npt.NDArray[np.int64],
    status: int,
    totals: npt.NDArray[np.int64],
    at: int,
) -> LogStorageError:
    index = int(totals[5])
    inside = at - int(table[index, kernel.BATCH_START])
    position = request.position_of(run, index)
    if status == kernel.STATUS_TIMESTAMP_OVERFLOW:
        return TimestampOverflowError(request.overflow_reason(inside), request.path, position)
    if status == kernel.STATUS_BAD_OFFSET:
        start, end = table[index, : kernel.BATCH_END + 1].tolist()
        records = request.buffer[start:end].data
        return InvalidRecordError(_disorder(records, run, index), request.path, position)
    reason = f"{_REASONS[status]} ({inside} bytes into the batch's records)"
    return InvalidRecordError(reason, request.path, position)

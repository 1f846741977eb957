"""Table ``batches``: a row for each batch, made of NumPy columns window by window."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.columnar.arrow_buffers import fixed_width_array, string_array
from pylog.columnar.rows import TableText, array_of
from pylog.locations import name_of, printable_location
from pylog.model import (
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    CompressionType,
    TimestampType,
)
from pylog.reading.headers import header_windows
from pylog.record.batch_header import UNKNOWN_RECORD_COUNT
from pylog.record.header_sums import has_horizon, last_sequences, valid_checksums
from pylog.tables.metadata_table import MetadataTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.reading.headers import HeaderWindow
    from pylog.reading.log_view import LogView
    from pylog.record.batch_scan import BatchHeaders


_TEXT = TableText.of_partitions("""\
Every header field of every batch, and where it lies.

segment                string       name of the ``.log`` file
position               int64        byte of the file where the batch begins
size_in_bytes          int64        of the whole batch
base_offset            int64        first offset it was written with; null for a compressed
                                    v0/v1 wrapper, whose records alone know it
last_offset            int64        last offset it was written with
records                int64        that it holds, control records too; null as base_offset
magic                  int32        record format, 0 to 2
crc                    int64        stored checksum, unsigned
is_valid_crc           bool         whether it is right; null unless it was asked for
attributes             int32        the attribute bits, low byte
codec                  string       none, gzip, snappy, lz4, zstd; null for an unknown id
timestamp_type         int32        -1 none (v0), 0 CreateTime, 1 LogAppendTime
base_timestamp         timestamp    of the first record written; null in v0 and where the field
                                    holds the delete horizon
max_timestamp          timestamp    the largest; null without one
delete_horizon         timestamp    when its tombstones may go; null where none is set
partition_leader_epoch int32        null in v0, v1 and where none is known
producer_id            int64        null without a producer
producer_epoch         int32        null without a producer
base_sequence          int32        null without a producer, and for markers
last_sequence          int32        null without a producer, and for markers
is_transactional       bool         whether it belongs to a transaction
is_control             bool         whether it holds a marker and no data
path                   string       of the partition directory
""")
_SCHEMA = _TEXT.schema

_CODEC_LABELS = string_array([codec.label for codec in CompressionType])


def batches_of(view: LogView, *, check_crc: bool = False) -> Iterator[pa.RecordBatch]:
    """Yield the batches of one partition in file order, a record batch a window of the file."""
    for headers in header_windows(view, checks_counts=False):
        yield _record_batch(view, headers, check_crc=check_crc)


def _record_batch(view: LogView, headers: HeaderWindow, *, check_crc: bool) -> pa.RecordBatch:
    scan = headers.window
    rows = len(scan.headers)
    constants = {
        "topic": view.topic,
        "segment": name_of(headers.segment.file_path()),
        "path": printable_location(view.directory.path),
    }
    columns = {
        name: pa.repeat(array_of([text], pa.string())[0], rows) for name, text in constants.items()
    }
    columns["partition"] = fixed_width_array(np.full(rows, view.partition, dtype=np.int32))
    columns["position"] = fixed_width_array(scan.headers.positions + headers.window.file_position)
    columns |= _header_columns(scan.headers)
    columns["is_valid_crc"] = (
        fixed_width_array(valid_checksums(scan)) if check_crc else pa.nulls(rows, pa.bool_())
    )
    return pa.RecordBatch.from_arrays(
        [_cast(columns[field.name], field.type) for field in _SCHEMA], schema=_SCHEMA
    )


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    return column.view(kind) if pa.types.is_timestamp(kind) else column.cast(kind)


def _header_columns(headers: BatchHeaders) -> dict[str, pa.Array]:
    has_no_base = has_horizon(headers)
    is_wrapper = ~headers.is_v2 & (headers.record_counts == UNKNOWN_RECORD_COUNT)
    types = headers.is_append_time.astype(np.int32)
    types[headers.magics == 0] = TimestampType.NO_TIMESTAMP_TYPE
    return {
        "size_in_bytes": fixed_width_array(headers.sizes_bytes),
        "base_offset": _nullable(headers.offsets, is_wrapper),
        "last_offset": fixed_width_array(headers.last_offsets),
        "records": _nullable(headers.record_counts, is_wrapper),
        "magic": fixed_width_array(headers.magics),
        "crc": fixed_width_array(headers.crcs),
        "attributes": fixed_width_array(headers.attributes),
        "codec": _CODEC_LABELS.take(
            _nullable(headers.codec_ids, headers.codec_ids >= len(_CODEC_LABELS))
        ),
        "timestamp_type": fixed_width_array(types),
        "base_timestamp": _nullable(
            headers.base_timestamps, has_no_base | (headers.base_timestamps == NO_TIMESTAMP)
        ),
        "max_timestamp": fixed_width_array(headers.max_timestamps, null=NO_TIMESTAMP),
        "delete_horizon": _nullable(headers.base_timestamps, ~has_no_base),
        "partition_leader_epoch": fixed_width_array(
            headers.partition_leader_epochs, null=NO_PARTITION_LEADER_EPOCH
        ),
        "producer_id": fixed_width_array(headers.producer_ids, null=NO_PRODUCER_ID),
        "producer_epoch": fixed_width_array(headers.producer_epochs, null=NO_PRODUCER_EPOCH),
        "base_sequence": fixed_width_array(headers.base_sequences, null=NO_SEQUENCE),
        "last_sequence": fixed_width_array(last_sequences(headers), null=NO_SEQUENCE),
        "is_transactional": fixed_width_array(headers.is_transactional),
        "is_control": fixed_width_array(headers.is_control),
    }


def _nullable(values: npt.NDArray[np.int64], is_null: npt.NDArray[np.bool_]) -> pa.Array:
    bitmap = pa.py_buffer(np.packbits(~is_null, bitorder="little"))
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.int64(), values.size, [bitmap, data])


BATCHES = MetadataTable(
    "batches", _SCHEMA, batches_of, text=_TEXT, options={"check_crc": "has no checksums"}
)

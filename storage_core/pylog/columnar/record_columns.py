"""The output columns of one decoded group: memory for a kernel to fill, then Arrow arrays.

No array is cast or taken from: Arrow imports a module of its own for these, which takes as long
as all the rest of a short ``pylog cat``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.columnar.arrow_buffers import (
    all_valid_bitmap,
    allocate,
    allocate_together,
    binary_array,
    fixed_width_array,
    string_array,
)
from pylog.columnar.arrow_schema import (
    BATCH_TYPE,
    CORRUPT_RECORD,
    HEADERS_TYPE,
    record_schema,
)
from pylog.kernels.decode_records import (
    HEADERS_KEY_BYTES,
    HEADERS_NULL_VALUES,
    HEADERS_TOTALS,
    HEADERS_VALUE_BYTES,
    TOTAL_KEY_BYTES,
    TOTAL_NULL_KEYS,
    TOTAL_NULL_VALUES,
    TOTAL_VALUE_BYTES,
    WANT_KEY,
    WANT_TIMESTAMP,
    WANT_VALUE,
    copy_headers,
)
from pylog.kernels.header_keys import measure_keys, replace_malformed
from pylog.model import CompressionType, TimestampType
from pylog.record.batch_header import TIMESTAMP_TYPE_MASK

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.model import TopicPartition
    from pylog.record.batch_scan import BatchHeaders


class ConstantColumns:
    """Makes constant arrays once and hands out slices of them.

    An array is made again, with twice the rows, only when more rows are wanted than ever before.
    One thread.
    """

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self._made: dict[str | int, pa.Array] = {}

    def _slice(self, constant: str | int, rows: int) -> pa.Array:
        array = self._made.get(constant)
        if array is None or len(array) < rows:
            one = string_array([constant]) if isinstance(constant, str) else _int32([constant])
            array = pa.repeat(one[0], max(1024, 2 * rows))
            self._made[constant] = array
        return array.slice(0, rows)

    def topic(self, rows: int) -> pa.Array:
        """Return the topic's name ``rows`` times."""
        return self._slice(self.topic_partition.topic, rows)

    def partition(self, rows: int) -> pa.Array:
        """Return the partition's number ``rows`` times."""
        return self._slice(self.topic_partition.partition, rows)

    def timestamp_type(
        self, headers: BatchHeaders, batch_rows: npt.NDArray[np.int64], rows: int
    ) -> pa.Array:
        """Return each row's timestamp type, which is its batch's."""
        if headers.traits.all_v2 and not headers.traits.any_has(TIMESTAMP_TYPE_MASK):
            return self._slice(TimestampType.CREATE_TIME.value, rows)
        types = headers.is_append_time.astype(np.int32)
        types[headers.magics == 0] = TimestampType.NO_TIMESTAMP_TYPE
        if types.min() == types.max():
            return self._slice(int(types[0]), rows)
        return fixed_width_array(np.repeat(types, batch_rows))


def _int32(values: list[int]) -> pa.Array:
    return fixed_width_array(np.array(values, dtype=np.int32))


_LABELS = string_array([codec.label for codec in CompressionType])


def batch_array(
    headers: BatchHeaders,
    base_offsets: npt.NDArray[np.int64],
    batch_rows: npt.NDArray[np.int64],
    segment: str,
    file_position: int,
) -> pa.StructArray:
    """Return the metadata of each row's batch."""
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


def headers_array(
    buffer: npt.NDArray[np.uint8],
    positions: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int32],
    key_and_value_bytes: tuple[int, int],
) -> pa.Array:
    """Return the headers column of the records whose headers start at ``positions``."""
    ends = np.zeros(counts.size + 1, dtype=np.int32)
    np.cumsum(counts, out=ends[1:])
    total = int(ends[-1])
    if total == 0:
        return pa.nulls(counts.size, HEADERS_TYPE)
    (key_ends, key_ends_view), (value_ends, value_ends_view) = allocate_together(
        (total + 1, np.int32), (total + 1, np.int32)
    )
    key_data, key_view = allocate(key_and_value_bytes[0])
    value_data, value_view = allocate(key_and_value_bytes[1])
    validity = all_valid_bitmap(total)
    totals = np.zeros(HEADERS_TOTALS, dtype=np.int64)
    copy_headers(
        buffer,
        positions,
        counts,
        key_ends_view,
        key_view,
        value_ends_view,
        value_view,
        validity,
        totals,
    )
    key_bytes = int(totals[HEADERS_KEY_BYTES])
    keys = _strings(key_ends, key_data.slice(0, key_bytes), total)
    if key_bytes and key_view[:key_bytes].max() > 0x7F:
        keys = _well_formed(keys, key_ends_view, key_view)
    values = binary_array(
        total,
        (value_ends, value_data.slice(0, int(totals[HEADERS_VALUE_BYTES]))),
        validity,
        int(totals[HEADERS_NULL_VALUES]),
    )
    entries = pa.StructArray.from_arrays([keys, values], fields=list(HEADERS_TYPE.value_type))
    has_none = counts == 0
    bitmap = pa.py_buffer(np.packbits(~has_none, bitorder="little"))
    return pa.Array.from_buffers(
        HEADERS_TYPE,
        counts.size,
        [bitmap, pa.py_buffer(ends)],
        null_count=int(has_none.sum()),
        children=[entries],
    )


def _strings(ends: pa.Buffer, data: pa.Buffer, count: int) -> pa.Array:
    return pa.Array.from_buffers(pa.string(), count, [None, ends, data], null_count=0)


def _well_formed(
    keys: pa.Array, ends: npt.NDArray[np.int32], data: npt.NDArray[np.uint8]
) -> pa.Array:
    """Replace malformed UTF-8 as Java's decoder does; Arrow strings must be valid."""
    try:
        keys.validate(full=True)
    except pa.ArrowInvalid:
        data = data.view()
        data.flags.writeable = False  # as the kernels' other inputs are: one compiled form
        replaced_data, data_view = allocate(measure_keys(data, ends))
        replaced_ends, ends_view = allocate(ends.nbytes)
        replace_malformed(data, ends, data_view, ends_view[: ends.nbytes].view(np.int32))
        return _strings(
            replaced_ends,
            replaced_data.slice(0, int(ends_view[: ends.nbytes].view(np.int32)[-1])),
            len(keys),
        )
    return keys


class RecordColumns:
    """Buffers of the upper bound of what a group can hold, trimmed once it is known."""

    def __init__(
        self,
        most_rows: int,
        key_and_value_bytes: tuple[int, int],
        want: int,
        base_offsets: npt.NDArray[np.int64],
    ) -> None:
        key_rows = most_rows if want & WANT_KEY else 0
        value_rows = most_rows if want & WANT_VALUE else 0
        timestamp_rows = most_rows if want & WANT_TIMESTAMP else 0
        self._want = want
        (
            (self._offsets, offsets),
            (self._timestamps, timestamps),
            (self._key_ends, key_ends),
            (self._value_ends, value_ends),
        ) = allocate_together(
            (most_rows, np.int64),
            (timestamp_rows, np.int64),
            (key_rows + 1, np.int32),
            (value_rows + 1, np.int32),
        )
        self._key_data, key_data = allocate(key_and_value_bytes[0] if key_rows else 0)
        self._value_data, value_data = allocate(key_and_value_bytes[1] if value_rows else 0)
        self._key_validity = all_valid_bitmap(key_rows)
        self._value_validity = all_valid_bitmap(value_rows)
        self.outputs = (
            offsets,
            timestamps,
            key_ends,
            key_data,
            self._key_validity,
            value_ends,
            value_data,
            self._value_validity,
        )
        self.rows = 0
        self.batch_rows, self.latest_timestamps = np.zeros((2, base_offsets.size), dtype=np.int64)
        self.base_offsets = base_offsets
        self.arrays: dict[str, pa.Array] = {}

    def finish(
        self,
        rows: int,
        totals: npt.NDArray[np.int64],
        timestamp_type: pa.DataType,
    ) -> None:
        """Make the arrays ``offset``, ``timestamp``, ``key`` and ``value`` of what was filled."""
        self.rows = rows
        wide = 8 * rows
        self.arrays["offset"] = pa.Array.from_buffers(
            pa.int64(), rows, [None, self._offsets.slice(0, wide)], null_count=0
        )
        if self._want & WANT_TIMESTAMP:
            self.arrays["timestamp"] = pa.Array.from_buffers(
                timestamp_type, rows, [None, self._timestamps.slice(0, wide)], null_count=0
            )
        if self._want & WANT_KEY:
            self.arrays["key"] = binary_array(
                rows,
                (self._key_ends, self._key_data.slice(0, int(totals[TOTAL_KEY_BYTES]))),
                self._key_validity,
                int(totals[TOTAL_NULL_KEYS]),
            )
        if self._want & WANT_VALUE:
            self.arrays["value"] = binary_array(
                rows,
                (self._value_ends, self._value_data.slice(0, int(totals[TOTAL_VALUE_BYTES]))),
                self._value_validity,
                int(totals[TOTAL_NULL_VALUES]),
            )


def damaged_row(schema: pa.Schema, topic_partition: TopicPartition, reason: str) -> pa.RecordBatch:
    """Return one row: where and why in ``_corrupt_record``, topic and partition, else nulls."""
    known = {
        "topic": lambda: string_array([topic_partition.topic]),
        "partition": lambda: fixed_width_array(np.array([topic_partition.partition], np.int32)),
        CORRUPT_RECORD: lambda: string_array([reason]),
    }
    arrays = [
        known[field.name]() if field.name in known else pa.nulls(1, field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


PLACE_COLUMNS = frozenset(("topic", "partition"))
_ROWS_A_BATCH = 1 << 16


def place_rows(
    topic_partition: TopicPartition, count: int, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield ``count`` rows of a partition."""
    constant = ConstantColumns(topic_partition)
    whole = record_schema(("topic", "partition"))
    for start in range(0, count, _ROWS_A_BATCH):
        rows = min(_ROWS_A_BATCH, count - start)
        columns = [constant.topic(rows), constant.partition(rows)]
        yield pa.RecordBatch.from_arrays(columns, schema=whole).select(schema.names)

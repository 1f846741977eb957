"""Records whose lines are written: from a decoder's columns, or read one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from pylog.columnar.arrow_schema import (
    HEADERS_TYPE,
    all_valid_bitmap,
    binary_array,
    bytes_array,
    fixed_width_array,
    int64_values,
    string_array,
)
from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.record.batch_header import MAGIC_OFFSET, MAGIC_VALUE_V2
from pylog.record.batch_scan import find_batches
from pylog.record.compression import Decompressor
from pylog.record.legacy_batch import StoredMessage, iter_stored_messages
from pylog.record.record_batch import RecordBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from pylog.columnar.decode import DecodedGroup
    from pylog.record.record import Record

    Int64Array = npt.NDArray[np.int64]


_MOST_RECORDS = 1 << 14
"""As many as are read one by one before their lines are written."""

_NO_CHECKS = np.zeros(0, dtype=np.int64)


class Records(NamedTuple):
    """The records of some batches, in order."""

    offsets: Int64Array
    timestamps: Int64Array
    checks: Int64Array
    keys: pa.Array
    values: pa.Array
    headers: pa.Array

    @property
    def rows(self) -> int:
        """How many records there are."""
        return int(self.offsets.size)

    def filter(self, is_in: npt.NDArray[np.bool_]) -> Records:
        """Return the records that a mask picks."""
        mask = fixed_width_array(is_in)
        checks = self.checks[is_in] if self.checks.size else self.checks
        arrays = (each.filter(mask) for each in (self.keys, self.values, self.headers))
        return Records(self.offsets[is_in], self.timestamps[is_in], checks, *arrays)

    def as_kernels_take_them(self) -> tuple[npt.NDArray[Any], ...]:
        """Return offsets, timestamps, checks, keys, values and header names as flat arrays."""
        names = self.headers.values.field(0)
        return (
            *(self.offsets, self.timestamps, self.checks),
            *(*_ends_and_data(self.keys), _bits(self.keys)),
            *(*_ends_and_data(self.values), _bits(self.values)),
            _ends(self.headers),
            *_ends_and_data(names),
        )


_NO_BYTES = bytes_array([])
NO_RECORDS = Records(
    _NO_CHECKS, _NO_CHECKS, _NO_CHECKS, _NO_BYTES, _NO_BYTES, pa.nulls(0, HEADERS_TYPE)
)


def decoded_records(group: DecodedGroup, is_valid: npt.NDArray[np.bool_]) -> Records:
    """Return the records of a group; of its batches, ``is_valid`` have a right checksum."""
    if not group.columns.rows:
        return NO_RECORDS
    arrays = group.columns.arrays
    return Records(
        int64_values(arrays["offset"]),
        int64_values(arrays["timestamp"]),
        _stored_checksums(group, is_valid),
        arrays["key"],
        arrays["value"],
        arrays["headers"],
    )


class RecordsOneByOne:
    """Iterates the records of one batch in parts, as Kafka's tool reads them: up to a fault."""

    def __init__(self, data: memoryview, max_decompressed_bytes: int) -> None:
        self.fault: str | None = None
        decompressor = Decompressor(max_decompressed_bytes)
        self._reading: Iterator[Record | StoredMessage] = (
            RecordBatch(data, decompressor).unassigned_records()
            if data[MAGIC_OFFSET] >= MAGIC_VALUE_V2
            else iter_stored_messages(data, decompressor)
        )

    def __iter__(self) -> Iterator[Records]:
        """Yield at least one part."""
        taken: list[Record | StoredMessage] = []
        try:
            for each in self._reading:
                if len(taken) == _MOST_RECORDS:
                    yield records_of(taken)
                    taken = []
                taken.append(each)
        except (CorruptRecordError, InvalidRecordError) as error:
            self.fault = error.reason
        yield records_of(taken)


def records_of(read: Sequence[Record | StoredMessage]) -> Records:
    """Return records that were read one by one."""
    stored = [each for each in read if isinstance(each, StoredMessage)]
    records = [each.record if isinstance(each, StoredMessage) else each for each in read]
    names = [[name for name, _ in each.headers] for each in records]
    list_ends = np.cumsum([0, *map(len, names)], dtype=np.int32)
    all_names = string_array([name for each in names for name in each])
    return Records(
        np.array([each.offset for each in records], dtype=np.int64),
        np.array([each.timestamp for each in records], dtype=np.int64),
        np.array([each.crc if each.is_valid else -1 - each.crc for each in stored], dtype=np.int64),
        _binary_array([each.key for each in records]),
        _binary_array([each.value for each in records]),
        pa.ListArray.from_arrays(
            fixed_width_array(list_ends), pa.StructArray.from_arrays([all_names], ["key"])
        ),
    )


def _binary_array(values: Sequence[bytes | None]) -> pa.Array:
    ends = np.cumsum([0, *(len(each or b"") for each in values)], dtype=np.int32)
    data = b"".join(each or b"" for each in values)
    present = np.packbits([each is not None for each in values] or [True], bitorder="little")
    buffers = (pa.py_buffer(ends), pa.py_buffer(data))
    return binary_array(len(values), buffers, present, sum(each is None for each in values))


def _ends(array: pa.Array) -> npt.NDArray[np.int32]:
    ends: npt.NDArray[np.int32] = np.frombuffer(array.buffers()[1] or bytes(4), dtype=np.int32)
    return ends[array.offset : array.offset + len(array) + 1]


def _ends_and_data(array: pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    return _ends(array), np.frombuffer(array.buffers()[2] or b"", dtype=np.uint8)


def _bits(array: pa.Array) -> npt.NDArray[np.uint8]:
    bitmap = array.buffers()[0]
    if bitmap is None:
        return all_valid_bitmap(len(array))
    bits: npt.NDArray[np.uint8] = np.frombuffer(bitmap, dtype=np.uint8)
    if array.offset:
        flags = np.unpackbits(bits, bitorder="little")
        bits = np.packbits(flags[array.offset : array.offset + len(array)], bitorder="little")
    return bits


def _stored_checksums(group: DecodedGroup, is_valid: npt.NDArray[np.bool_]) -> Int64Array:
    headers = group.headers
    if headers.traits.all_v2:
        return _NO_CHECKS
    crcs = np.where(is_valid, headers.crcs, -1 - headers.crcs)
    if not headers.codec_ids.any():
        return crcs
    # Messages in wrappers have right checksums, or the group would not have been decoded.
    return np.concatenate(
        [
            find_batches(group.buffer[start:end]).headers.crcs if codec_id else crcs[index, None]
            for index, (codec_id, (start, end)) in enumerate(
                zip(headers.codec_ids.tolist(), group.bounds.tolist(), strict=True)
            )
        ]
    )

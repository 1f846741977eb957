"""Records as the arrays that the kernel of the lines takes, from Arrow columns or one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from pylog.columnar.arrow_buffers import all_valid_bitmap, int64_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from pylog.record.legacy_batch import StoredMessage
    from pylog.record.record import Record

    Int64Array = npt.NDArray[np.int64]
    Ends = npt.NDArray[np.int32]
    Bytes = npt.NDArray[np.uint8]

_NO_BYTES = np.zeros(0, dtype=np.uint8)
_NO_NAMES = np.zeros(1, dtype=np.int32)


class BinaryColumn(NamedTuple):
    """Keys or values: value r is ``data[ends[r]:ends[r + 1]]`` unless its bit is not set."""

    ends: Ends
    data: Bytes
    validity: Bytes

    @classmethod
    def of_array(cls, array: pa.Array) -> Self:
        """Return the buffers of a binary array; they keep its memory."""
        rows = len(array)
        bitmap, ends, data = array.buffers()
        return cls(
            np.frombuffer(ends, dtype=np.int32)[array.offset : array.offset + rows + 1],
            np.frombuffer(data or b"", dtype=np.uint8),
            _bits(bitmap, array.offset, rows),
        )

    @classmethod
    def of_values(cls, values: Sequence[bytes | None]) -> Self:
        """Return a column of ``values``; None is null."""
        ends = np.cumsum([0, *(len(each or b"") for each in values)], dtype=np.int32)
        data = np.frombuffer(b"".join(each or b"" for each in values), dtype=np.uint8)
        present = np.array([each is not None for each in values], dtype=np.bool_)
        return cls(ends, data, _bitmap(present))

    def value(self, row: int) -> bytes | None:
        """Return the value of a row."""
        if not self.validity[row >> 3] >> (row & 7) & 1:
            return None
        return self.data[self.ends[row] : self.ends[row + 1]].tobytes()

    def select(self, is_in: npt.NDArray[np.bool_]) -> BinaryColumn:
        """Return the values of the rows that a mask picks, copied."""
        sizes = np.diff(self.ends)
        is_byte_in = np.repeat(is_in, sizes)
        start = int(self.ends[0])
        present = np.unpackbits(self.validity, count=is_in.size, bitorder="little")
        return BinaryColumn(
            _ends(sizes[is_in]),
            self.data[start : start + is_byte_in.size][is_byte_in],
            _bitmap(present[is_in]),
        )


def _ends(sizes: npt.NDArray[np.int32]) -> Ends:
    ends: Ends = np.append(np.int32(0), np.cumsum(sizes, dtype=np.int32))
    return ends


def _bitmap(present: npt.NDArray[np.bool_] | Bytes) -> Bytes:
    bits = np.zeros(present.size // 8 + 1, dtype=np.uint8)
    packed = np.packbits(present, bitorder="little")
    bits[: packed.size] = packed
    return bits


def _bits(bitmap: pa.Buffer | None, offset: int, rows: int) -> Bytes:
    if bitmap is None:
        return all_valid_bitmap(rows)
    bits: Bytes = np.frombuffer(bitmap, dtype=np.uint8)
    if offset == 0:
        return bits
    return _bitmap(np.unpackbits(bits, bitorder="little")[offset : offset + rows].astype(np.bool_))


class HeaderNames(NamedTuple):
    """The names of record r are those from ``list_ends[r]`` to ``list_ends[r + 1]``."""

    list_ends: Ends
    ends: Ends
    data: Bytes

    @classmethod
    def of_array(cls, array: pa.Array) -> Self:
        """Return the names in the column ``headers``."""
        list_ends = np.frombuffer(array.buffers()[1], dtype=np.int32)
        list_ends = list_ends[array.offset : array.offset + len(array) + 1]
        if list_ends[-1] == 0:
            return cls(list_ends, _NO_NAMES, _NO_BYTES)
        names = array.values.field(0)
        ends = np.frombuffer(names.buffers()[1], dtype=np.int32)
        ends = ends[names.offset : names.offset + len(names) + 1]
        return cls(list_ends, ends, np.frombuffer(names.buffers()[2] or b"", dtype=np.uint8))

    def select(self, is_in: npt.NDArray[np.bool_]) -> HeaderNames:
        """Return the names of the records that a mask picks, copied."""
        if self.list_ends[-1] == 0:
            return HeaderNames(self.list_ends[: int(is_in.sum()) + 1], self.ends, self.data)
        counts = np.diff(self.list_ends)
        sizes = np.diff(self.ends)
        is_name_in = np.repeat(is_in, counts)
        first = int(self.list_ends[0])
        is_byte_in = np.repeat(is_name_in, sizes[first : first + is_name_in.size])
        start = int(self.ends[first])
        return HeaderNames(
            _ends(counts[is_in]),
            _ends(sizes[first : first + is_name_in.size][is_name_in]),
            self.data[start : start + is_byte_in.size][is_byte_in],
        )

    @classmethod
    def of_names(cls, lists: Sequence[Sequence[str]]) -> Self:
        """Return the names of records, one list each."""
        names = [name.encode() for each in lists for name in each]
        list_ends = np.cumsum([0, *map(len, lists)], dtype=np.int32)
        ends = np.cumsum([0, *map(len, names)], dtype=np.int32)
        return cls(list_ends, ends, np.frombuffer(b"".join(names), dtype=np.uint8))


class RecordArrays(NamedTuple):
    """The records of some batches, in order.

    Attributes
    ----------
    offsets, timestamps
        int64; ms.
    checks
        int64: the checksum that each record of v0 and v1 stores, -1 - it where it is wrong; empty
        for records of v2.
    keys, values, names
        Of all records.
    """

    offsets: Int64Array
    timestamps: Int64Array
    checks: Int64Array
    keys: BinaryColumn
    values: BinaryColumn
    names: HeaderNames

    @classmethod
    def of_columns(cls, arrays: Mapping[str, pa.Array], checks: Int64Array) -> Self:
        """Return what a decoder has made, at least one record; nothing is copied."""
        return cls(
            int64_values(arrays["offset"]),
            int64_values(arrays["timestamp"]),
            checks,
            BinaryColumn.of_array(arrays["key"]),
            BinaryColumn.of_array(arrays["value"]),
            HeaderNames.of_array(arrays["headers"]),
        )

    @classmethod
    def of_records(cls, records: Sequence[Record]) -> Self:
        """Return records of v2 that were read one by one."""
        return cls._of(records, np.zeros(0, dtype=np.int64))

    @classmethod
    def of_messages(cls, messages: Sequence[StoredMessage]) -> Self:
        """Return messages of v0 and v1 that were read one by one."""
        checks = [each.crc if each.is_valid else -1 - each.crc for each in messages]
        return cls._of([each.record for each in messages], np.array(checks, dtype=np.int64))

    @classmethod
    def _of(cls, records: Sequence[Record], checks: Int64Array) -> Self:
        return cls(
            np.array([each.offset for each in records], dtype=np.int64),
            np.array([each.timestamp for each in records], dtype=np.int64),
            checks,
            BinaryColumn.of_values([each.key for each in records]),
            BinaryColumn.of_values([each.value for each in records]),
            HeaderNames.of_names([[name for name, _ in each.headers] for each in records]),
        )

    def select(self, is_in: npt.NDArray[np.bool_]) -> RecordArrays:
        """Return the records that a mask picks."""
        return RecordArrays(
            self.offsets[is_in],
            self.timestamps[is_in],
            self.checks[is_in] if self.checks.size else self.checks,
            self.keys.select(is_in),
            self.values.select(is_in),
            self.names.select(is_in),
        )

    @property
    def rows(self) -> int:
        """How many records there are."""
        return int(self.offsets.size)


def no_records() -> RecordArrays:
    """Return the records of batches that have none, or whose records are not looked at."""
    return RecordArrays.of_records([])

"""One large v2 record, measured: exactly as much memory is made for it as its columns take.

For the records of a group, columns get the upper bound of what its bytes can hold: the bytes
themselves, for keys and values and header keys and header values alike. Of a record of hundreds of
megabytes that would be several times too much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.kernels import header_keys as kernel
from pylog.record.varint import decode_varint, decode_varlong

if TYPE_CHECKING:
    import numpy.typing as npt

LARGE_RECORD_BYTES = 1 << 21
"""A record from here on is measured before it is decoded."""

_END_BYTES = 4
_INT32_MAX = 2**31 - 1


class RecordMeasures(NamedTuple):
    """Bytes of one record, by where they go.

    Attributes
    ----------
    key_and_value
        Of the record's key and value; 0 for null.
    header_count
        How many headers there are.
    header_keys_and_values
        Of all header keys as they are stored, and of all header values.
    replaced_header_keys
        Of all header keys once malformed UTF-8 is replaced; 0 where none is malformed.
    """

    key_and_value: tuple[int, int]
    header_count: int
    header_keys_and_values: tuple[int, int]
    replaced_header_keys: int

    @property
    def column_bytes(self) -> int:
        """Memory that the columns of key, value and headers take while they are made."""
        ends = self.header_count * 2 * _END_BYTES + self.header_count // 8  # and a bit for null
        if self.replaced_header_keys:
            ends += self.header_count * _END_BYTES + self.replaced_header_keys
        return sum(self.key_and_value) + sum(self.header_keys_and_values) + ends

    @property
    def fits_arrow(self) -> bool:
        """Whether the header keys can be addressed by Arrow's int32 offsets."""
        return self.replaced_header_keys <= _INT32_MAX


def measure_record(buffer: npt.NDArray[np.uint8], start: int, end: int) -> RecordMeasures:
    """Return the measures of the record in ``[start, end)``, which has been found sound."""
    data = buffer.data
    _, at = decode_varint(data, start, end)
    _, at = decode_varlong(data, at + 1, end)  # after one byte of attributes
    _, at = decode_varint(data, at, end)
    key_bytes, at = decode_varint(data, at, end)
    at += max(0, key_bytes)
    value_bytes, at = decode_varint(data, at, end)
    at += max(0, value_bytes)
    header_count, at = decode_varint(data, at, end)
    measures = np.zeros(kernel.MEASURES, dtype=np.int64)
    kernel.measure_headers(buffer, at, header_count, measures)
    return RecordMeasures(
        (max(0, key_bytes), max(0, value_bytes)),
        header_count,
        (int(measures[kernel.KEY_BYTES]), int(measures[kernel.VALUE_BYTES])),
        int(measures[kernel.REPLACED_KEY_BYTES]),
    )

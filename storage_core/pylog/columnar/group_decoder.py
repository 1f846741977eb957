"""What `RecordDecoder` asks of a format family, v2 or v0/v1: its batches as columns.

How much memory the records of one batch may take, decompressed and as Arrow columns.

A few kilobytes can decompress to gigabytes, and seven bytes of them are a record, two a header,
each of which takes more than that in Arrow's columns. So a batch's decompressed size is limited,
and what is large within the limit becomes columns piece by piece: several Arrow record batches.

In units of the limit, decoding a batch takes at most

==== ===================================================================================
1    its bytes in the file, where they do not shrink by compression
1    its records, decompressed
0.5  the window of a zstd stream (at most 128 MiB, whatever the limit)
1.5  the columns of one piece; more where the records, decompressed, are less
==== ===================================================================================

where not all can be at their most at once: what does not shrink has no tiny headers. One record
alone cannot be cut. Its columns take what its bytes do, unless there are a great many headers of
few bytes each; where these would take more than is left, the batch is refused.

One call of a decoding kernel: what it is asked for, and the errors about what it refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import numpy as np

from pylog.errors import CorruptRecordError, InvalidRecordError, TimestampOverflowError
from pylog.kernels.split_batch import PIECE_FIELDS, split_batch
from pylog.record.batch_header import MIN_RECORD_SIZE_V2
from pylog.record.byte_buffer import over_limit

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from pylog.columnar.record_columns import RecordColumns
    from pylog.model import CompressionType
    from pylog.record.batch_scan import BatchHeaders


_LEAST_PIECE_BYTES = 1 << 16
_MOST_PIECE_BYTES = 1 << 24
_LEAST_PIECE_ROWS = 1 << 10
_MOST_PIECE_ROWS = 1 << 18
_ROW_BYTES = 1 << 10
"""More than a row takes in all columns but key, value and headers; a topic's name has 249."""


class DecodeLimits(NamedTuple):
    """What follows from the limit on a batch's decompressed size."""

    batch_bytes: int
    piece_bytes: int
    piece_rows: int
    record_bytes: int

    @property
    def small_bytes(self) -> int:
        """A batch with no more bytes than this is not large, however many records it has."""
        return min(self.piece_bytes, self.piece_rows * MIN_RECORD_SIZE_V2)

    @classmethod
    def of(cls, batch_bytes: int) -> DecodeLimits:
        """Return the limits for ``batch_bytes``, the most that a batch may decompress to."""
        return cls(
            batch_bytes,
            min(max(batch_bytes // 16, _LEAST_PIECE_BYTES), _MOST_PIECE_BYTES, batch_bytes),
            min(max(batch_bytes // _ROW_BYTES, _LEAST_PIECE_ROWS), _MOST_PIECE_ROWS),
            2 * batch_bytes + batch_bytes // 2,
        )

    def is_large(
        self, sizes: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Mask the batches that are decoded in pieces, each a group of its own."""
        return (sizes > self.piece_bytes) | (rows > self.piece_rows)

    def pieces(
        self, buffer: npt.NDArray[np.uint8], start: int, end: int, records: int, *, is_v2: bool
    ) -> npt.NDArray[np.int64]:
        """Return the output of `split_batch` for records in ``[start, end)``, at most so many."""
        most = 2 * ((end - start) // self.piece_bytes) + records // self.piece_rows + 2
        pieces = np.empty((most, PIECE_FIELDS), dtype=np.int64)
        count = split_batch(buffer, start, end, is_v2, self.piece_bytes, self.piece_rows, pieces)
        return pieces[:count]

    def too_many_headers(self, count: int, size_bytes: int) -> str:
        """Return the text for a batch with a record that does not fit into `record_bytes`."""
        return over_limit(
            f"a record's {count} headers need {size_bytes} bytes of memory as columns, more than "
            f"{self.record_bytes}, which is 2.5 times what the batch may have",
            self.batch_bytes,
        )


BATCH_START, BATCH_END = 0, 1
"""Columns of both kernels' input tables: where in the buffer a batch's records lie."""

_BatchError = TypeVar("_BatchError", CorruptRecordError, InvalidRecordError, TimestampOverflowError)


class GroupRequest(NamedTuple):
    """The bytes of a group of batches, the offsets and columns wanted, and names for errors."""

    buffer: npt.NDArray[np.uint8]
    start_offset: int
    end_offset: int
    want: int
    timestamp_type: pa.DataType
    path: str
    file_position: int
    last_offset_before: int = -1
    large_batch_start: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no record can be in the range."""
        return self.start_offset >= self.end_offset

    def of_nothing(self) -> GroupRequest:
        """Return the request to look at every record and give none."""
        return self._replace(start_offset=0, end_offset=0, want=0)

    @property
    def timestamp_scale(self) -> int:
        """What milliseconds are multiplied with."""
        return 1000 if self.timestamp_type.unit == "us" else 1

    def error(
        self, kind: type[_BatchError], reason: str, run: BatchHeaders, index: int
    ) -> _BatchError:
        """Return the error about batch ``index`` of ``run``, with its file and position."""
        return kind(reason, self.path, self.file_position + int(run.positions[index]))


class Refusal(NamedTuple):
    """A batch that a kernel refused, and where in it."""

    request: GroupRequest
    run: BatchHeaders
    batch_index: int
    inside: int

    @classmethod
    def at(
        cls,
        request: GroupRequest,
        run: BatchHeaders,
        table: npt.NDArray[np.int64],
        batch_index: int,
        position: int,
    ) -> Refusal:
        """Return the refusal of a batch for a record at ``position`` of the buffer."""
        start = request.large_batch_start
        inside = position - (int(table[batch_index, BATCH_START]) if start is None else start)
        return cls(request, run, batch_index, inside)

    def error(self, kind: type[_BatchError], reason: str) -> _BatchError:
        """Return the error with this reason."""
        return self.request.error(kind, reason, self.run, self.batch_index)

    def timestamp_overflow(self) -> TimestampOverflowError:
        """Return the error for a timestamp that does not fit the unit asked for."""
        reason = (
            f"the timestamp of the record {self.inside} bytes into this batch does not fit into "
            "64-bit microseconds; leave the column 'timestamp' out, or (in the library) ask for "
            "timestamp_unit='ms'"
        )
        return self.error(TimestampOverflowError, reason)


class GroupDecoder(Protocol):
    """Decodes groups of consecutive batches of one format family; without state of its own."""

    def describe_batches(self, run: BatchHeaders) -> npt.NDArray[np.int64]:
        """Return the table of these batches."""

    def stream_of(self, records: memoryview, codec: CompressionType, magic: int) -> memoryview:
        """Return the bytes to decompress of a batch."""

    def most_rows(self, run: BatchHeaders, table: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return how many records each batch has at the most."""

    def decode(
        self, request: GroupRequest, run: BatchHeaders, table: npt.NDArray[np.int64]
    ) -> RecordColumns:
        """Return the columns of the group's records."""

    def cut_into_pieces(
        self,
        request: GroupRequest,
        run: BatchHeaders,
        table: npt.NDArray[np.int64],
        limits: DecodeLimits,
    ) -> npt.NDArray[np.int64]:
        """Return the table's one large batch as several rows, each for a piece of its records."""

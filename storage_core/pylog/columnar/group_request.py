"""One call of a decoding kernel: what it is asked for, and the errors about what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pylog.errors import CorruptRecordError, InvalidRecordError, TimestampOverflowError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from pylog.record.batch_scan import BatchHeaders

BATCH_START, BATCH_END = 0, 1
"""Columns of both kernels' input tables: where in the buffer a batch's records lie."""

_BatchError = TypeVar("_BatchError", CorruptRecordError, InvalidRecordError, TimestampOverflowError)


class GroupRequest(NamedTuple):
    """The bytes of a group of batches, the offsets and columns wanted, and names for errors.

    Attributes
    ----------
    buffer
        uint8, read-only: the window, or the decompressed group.
    start_offset, end_offset
        Records with ``start_offset <= offset < end_offset`` are wanted.
    want
        Sum of the kernels' ``WANT_…``.
    timestamp_type
        Arrow type of the timestamps, "us" or "ms".
    path, file_position
        The ``.log`` file, and the byte of it that position 0 of the headers is.
    last_offset_before
        The last offset of the batch before the group, in whatever window; -1 if there is none.
    large_batch_start
        Where in the buffer the records of a large batch begin, which has been checked as a whole
        and is decoded in pieces; None for whole batches.
    """

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
    """A batch that a kernel refused, and where in it.

    Attributes
    ----------
    request
        What the kernel was asked for.
    run, batch_index
        Headers of the group, and which of them the batch's is.
    inside
        Where the record at fault begins, in bytes of the batch's records, decompressed.
    """

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

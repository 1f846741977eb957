"""What the decoder is given: batches in memory, and what is wanted of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from pylog.record.batch_scan import BatchHeaders


@dataclass(frozen=True, slots=True)
class Window:
    """Whole batches in memory, and where they lie in their file.

    Attributes
    ----------
    buffer
        uint8, read-only; ``headers.positions`` index it.
    headers
        The batches to be decoded, in order; their checksums have been verified.
    path
        The ``.log`` file.
    file_position
        Byte of the file that ``buffer[0]`` is.
    """

    buffer: npt.NDArray[np.uint8]
    headers: BatchHeaders
    path: str
    file_position: int


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """One kernel call: the bytes, the offsets and columns wanted, and names for errors.

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
    pieces_from
        Where in the buffer the records of a batch begin that has been checked as a whole, and is
        decoded in pieces; None for whole batches.
    """

    buffer: npt.NDArray[np.uint8]
    start_offset: int
    end_offset: int
    want: int
    timestamp_type: pa.DataType
    path: str
    file_position: int
    last_offset_before: int = -1
    pieces_from: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no record can be in the range."""
        return self.start_offset >= self.end_offset

    def of_nothing(self) -> GroupRequest:
        """Return the request to look at every record and give none."""
        return replace(self, start_offset=0, end_offset=0, want=0)

    @property
    def timestamp_scale(self) -> int:
        """What milliseconds are multiplied with."""
        return 1000 if self.timestamp_type.unit == "us" else 1

    def position_of(self, run: BatchHeaders, index: int) -> int:
        """Return the byte of the file where batch ``index`` of ``run`` begins."""
        return self.file_position + int(run.positions[index])

    def overflow_reason(self, inside: int) -> str:
        """Return the text for a timestamp that does not fit, ``inside`` bytes into its batch."""
        return (
            f"the timestamp of the record {inside} bytes into the batch does not fit into 64-bit "
            "microseconds; leave the column 'timestamp' out, or (in the library) ask for "
            "timestamp_unit='ms'. The batch begins"
        )

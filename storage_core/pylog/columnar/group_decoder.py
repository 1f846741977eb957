"""What `RecordDecoder` asks of a format family, v2 or v0/v1: its batches as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pylog.columnar.decode_limits import DecodeLimits
    from pylog.columnar.group_request import GroupRequest
    from pylog.columnar.record_columns import RecordColumns
    from pylog.model import CompressionType
    from pylog.record.batch_scan import BatchHeaders


class GroupDecoder(Protocol):
    """Decodes groups of consecutive batches of one format family; without state of its own.

    A *table* is the kernel's input: int64, shape (batches, columns), with the bounds of each
    batch's records in the columns `pylog.columnar.group_request.BATCH_START` and ``BATCH_END``.
    They point into the window until batches are decompressed, then into what these became.
    """

    def describe_batches(self, run: BatchHeaders) -> npt.NDArray[np.int64]:
        """Return the table of these batches."""

    def stream_of(self, records: memoryview, codec: CompressionType, magic: int) -> memoryview:
        """Return the bytes to decompress of a batch.

        ``records`` is what the table's bounds say of it, ``codec`` and ``magic`` its header.
        """

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

"""How much memory the records of one batch may take, decompressed and as Arrow columns.

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
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.kernels.split_batch import PIECE_FIELDS, split_batch
from pylog.record.batch_layout import MIN_RECORD_SIZE_V2
from pylog.record.decompression_limit import over_limit

if TYPE_CHECKING:
    import numpy.typing as npt

_LEAST_PIECE_BYTES = 1 << 16
_MOST_PIECE_BYTES = 1 << 24
_LEAST_PIECE_ROWS = 1 << 10
_MOST_PIECE_ROWS = 1 << 18
_ROW_BYTES = 1 << 10
"""More than a row takes in all columns but key, value and headers; a topic's name has 249."""


class DecodeLimits(NamedTuple):
    """What follows from the limit on a batch's decompressed size.

    Attributes
    ----------
    batch_bytes
        The limit.
    piece_bytes, piece_rows
        A batch with more bytes or more records becomes several Arrow record batches.
    record_bytes
        Most bytes that a batch, decompressed, and the columns of one of its records may take.
    """

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
        """Return the output of `split_batch` for the records in ``[start, end)``, at most so many.

        They have been decoded once and found sound.
        """
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

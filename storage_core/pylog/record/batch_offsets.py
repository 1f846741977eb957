"""Which offsets a stored batch takes up."""

from __future__ import annotations

from typing import NamedTuple

from pylog.record.batch_header import parse_batch_header
from pylog.record.compression import Decompressor
from pylog.record.legacy_batch import iter_legacy_records


class BatchOffsets(NamedTuple):
    """The offsets ``[first, following)``; a log can be cut at either, and nowhere in between."""

    first: int
    following: int

    def are_cut_at(self, offset: int) -> bool:
        """Whether a cut at ``offset`` would go through the batch."""
        return self.first < offset < self.following


def batch_offsets(batch: memoryview) -> BatchOffsets:
    """Return the offsets of the batch that ``batch`` begins with.

    Parameters
    ----------
    batch
        A whole batch; more may follow it.

    Raises
    ------
    CorruptRecordError, InvalidRecordError
        It is a compressed batch of v0 or v1, whose header does not have its first offset, and it
        cannot be read.
    """
    header = parse_batch_header(batch, 0)
    first = header.base_offset
    if first is None:
        records = iter_legacy_records(batch[: header.size_bytes], Decompressor())
        first = next(records).offset
    return BatchOffsets(first, header.next_offset)

"""``.entries`` beside a staged file: where each of its batches is, without a look at the batches.

A row a batch, in their order, big-endian:

===== ===== ============================================================
pos   width field
===== ===== ============================================================
0     4     size of the batch in bytes
4     4     number of its records
8     8     largest timestamp, ms
16    4     checksum that the batch stores (unsigned)
===== ===== ============================================================

Positions and offsets follow: a batch begins where the one before it ends. Who commits gives the
batches their offsets, and the segment its index entries, by these rows; so the rows have a
checksum of their own, which travels with the description of the staged file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import CorruptRecordError
from pylog.files.storage import open_file
from pylog.lazy_modules import LazyModule

if TYPE_CHECKING:
    import os

    import numpy as np
    import numpy.typing as npt

    from pylog.files.staged_files import StagedFile
    from pylog.native import checksum

    Int64Array = npt.NDArray[np.int64]
else:
    checksum = LazyModule("pylog.native.checksum")
    np = LazyModule("numpy")


_ROW_BYTES = 20
_ROW = [("size_bytes", ">i4"), ("record_count", ">i4"), ("max_timestamp", ">i8"), ("crc", ">u4")]
_LEAST_BATCH_BYTES = 61


class StagedEntries:
    """What the batches of one staged file are like; columns of int64, a row a batch."""

    __slots__ = ("crcs", "max_timestamps", "record_counts", "sizes_bytes")

    def __init__(
        self,
        sizes_bytes: Int64Array,
        record_counts: Int64Array,
        max_timestamps: Int64Array,
        crcs: Int64Array,
    ) -> None:
        self.sizes_bytes = sizes_bytes
        self.record_counts = record_counts
        self.max_timestamps = max_timestamps
        self.crcs = crcs

    def __len__(self) -> int:
        return int(self.sizes_bytes.size)

    def to_bytes(self) -> bytes:
        """Return the file's content."""
        rows = np.empty(len(self), dtype=_ROW)
        rows["size_bytes"] = self.sizes_bytes
        rows["record_count"] = self.record_counts
        rows["max_timestamp"] = self.max_timestamps
        rows["crc"] = self.crcs
        return rows.tobytes()


def read_staged_entries(path: str | os.PathLike[str], staged: StagedFile) -> StagedEntries:
    """Return the rows of a ``.entries`` file."""
    expected = staged.batch_count * _ROW_BYTES
    with open_file(path) as file:
        size = file.size()
        if size != expected:
            reason = f"staged entries have {size} bytes, expected {expected}"
            raise CorruptRecordError(reason, path)
        content = file.read_at(0, expected)
    computed = checksum.crc32c(content)
    if computed != staged.entries_crc:
        reason = f"staged entries have checksum {computed:#x}, expected {staged.entries_crc:#x}"
        raise CorruptRecordError(reason, path)
    rows = np.frombuffer(content, dtype=_ROW)
    entries = StagedEntries(*(rows[name].astype(np.int64) for name in rows.dtype.names or ()))
    _ensure_consistent(entries, staged, path)
    return entries


def _ensure_consistent(
    entries: StagedEntries, staged: StagedFile, path: str | os.PathLike[str]
) -> None:
    sums = int(entries.sizes_bytes.sum()), int(entries.record_counts.sum())
    is_possible = (
        entries.sizes_bytes.min() >= _LEAST_BATCH_BYTES
        and entries.record_counts.min() >= 1
        and sums == (staged.size_bytes, staged.record_count)
        and (entries.crcs[0], entries.crcs[-1]) == (staged.first_crc, staged.last_crc)
    )
    if not is_possible:
        reason = (
            f"staged entries are of {sums[0]} bytes and {sums[1]} records, expected "
            f"{staged.size_bytes} and {staged.record_count}"
        )
        raise CorruptRecordError(reason, path)

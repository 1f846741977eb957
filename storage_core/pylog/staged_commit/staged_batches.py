"""The batches of one staged file: read in windows, or given their offsets where they lie."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import CorruptRecordError
from pylog.files.staged_entries import StagedEntries, read_staged_entries
from pylog.files.storage import open_file
from pylog.kernels import decode_headers as fields
from pylog.model import NO_PRODUCER_ID
from pylog.record.batch_layout import LOG_OVERHEAD, MAGIC_VALUE_V2
from pylog.record.batch_scan import BatchHeaders, find_bad_checksum, find_batches
from pylog.record.batches_writer import set_base_offsets, set_partition_leader_epochs

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.files.durable_io import DurableIO
    from pylog.files.staged_files import StagedFile

    Int64Array = npt.NDArray[np.int64]

_WINDOW_BYTES = 4 << 20
_put_start = struct.Struct(">qii").pack
"""Base offset, length and leader epoch: the first 16 bytes of a batch."""


class Window(NamedTuple):
    """Neighbouring batches of a staged file.

    Attributes
    ----------
    first
        Which batch of the file the first one is.
    position
        Where it begins in the file.
    records
        Their bytes, writable.
    headers
        Theirs, with positions in ``records``.
    """

    first: int
    position: int
    records: memoryview
    headers: BatchHeaders


class StagedBatches:
    """A staged file with its entries. One thread.

    Parameters
    ----------
    log_directory
        Where the files lie.
    staged
        What is known of them.

    Attributes
    ----------
    staged, entries
        The description, and a row for each batch.

    Raises
    ------
    SegmentVanishedError
        There are no entries.
    CorruptRecordError
        They are not those that were staged.
    """

    def __init__(self, log_directory: str, staged: StagedFile) -> None:
        self.staged = staged
        self.path = os.path.join(log_directory, staged.name)  # noqa: PTH118 - kept as text
        self.entries: StagedEntries = read_staged_entries(
            os.path.join(log_directory, staged.entries_name),  # noqa: PTH118 - kept as text
            staged,
        )
        self._ends = np.cumsum(self.entries.sizes_bytes)

    def ensure_complete(self) -> None:
        """Raise unless the file is there, as long as it was, with its first and last batch.

        Raises
        ------
        SegmentVanishedError
            It is not there.
        CorruptRecordError
            It is another one.
        """
        with open_file(self.path) as file:
            size = file.size()
            if size != self.staged.size_bytes:
                reason = f"staged file has {size} bytes, expected {self.staged.size_bytes}"
                raise CorruptRecordError(reason, self.path)
        self._window(0, 1)
        self._window(len(self.entries) - 1, len(self.entries))

    def windows(self, first: int = 0) -> Iterator[Window]:
        """Yield all batches from ``first`` on, checked, a few MiB at a time.

        Raises
        ------
        CorruptRecordError
            A batch is not the one that was staged.
        """
        count = len(self.entries)
        while first < count:
            start = int(self._ends[first] - self.entries.sizes_bytes[first])
            fitting = int(np.searchsorted(self._ends, start + _WINDOW_BYTES, side="right"))
            stop = max(first + 1, fitting)
            yield self._window(first, stop)
            first = stop

    def _window(self, first: int, stop: int) -> Window:
        entries = self.entries
        start = int(self._ends[first] - entries.sizes_bytes[first])
        content = bytearray(int(self._ends[stop - 1]) - start)
        with open_file(self.path) as file:
            size = file.read_into(start, memoryview(content))
        view = memoryview(content)
        scan = find_batches(np.frombuffer(view[:size].toreadonly(), dtype=np.uint8))
        headers, rows = scan.headers, slice(first, stop)
        is_same = (
            len(headers) == stop - first
            and np.array_equal(headers.sizes_bytes, entries.sizes_bytes[rows])
            and np.array_equal(headers.record_counts, entries.record_counts[rows])
            and np.array_equal(headers.crcs, entries.crcs[rows])
        )
        if not is_same:
            reason = (
                f"batches {first} to {stop - 1} of the staged file are not those of its entries"
            )
            raise CorruptRecordError(reason, self.path, start)
        bad = find_bad_checksum(scan)
        if bad is not None:
            position = start + int(headers.positions[bad.index])
            raise CorruptRecordError(bad.reason, self.path, position)
        return Window(first, start, view, headers)

    def placed(self, window: Window, base_offset: int, leader_epoch: int) -> BatchHeaders:
        """Give the batches of a window their offsets; return their headers as they are then.

        Parameters
        ----------
        window
            Its records are changed.
        base_offset
            Of the first batch of the window.
        leader_epoch
            Of all.
        """
        headers = _with_offsets(window.headers.columns, base_offset, leader_epoch)
        set_base_offsets(window.records, headers.positions, headers.offsets)
        set_partition_leader_epochs(window.records, headers.positions, leader_epoch)
        return headers

    def place_in_file(self, io: DurableIO, base_offset: int, leader_epoch: int) -> BatchHeaders:
        """Give all batches their offsets where they lie; return what the headers are then.

        The file is on the disk with them when this returns. Nothing else of it is touched or read,
        and no checksum covers what is: the cost grows with the batches, not with their bytes.

        Raises
        ------
        KafkaStorageError
            The disk failed; some batches may have their offsets. This can be repeated.
        """
        headers = self._headers(base_offset, leader_epoch)
        starts = zip(
            headers.positions.tolist(),
            headers.offsets.tolist(),
            (headers.sizes_bytes - LOG_OVERHEAD).tolist(),
            strict=True,
        )
        with io.open(self.path) as file:
            write = file.write_at
            for position, offset, length in starts:
                write(position, _put_start(offset, length, leader_epoch))
            file.sync()
        return headers

    def _headers(self, base_offset: int, leader_epoch: int) -> BatchHeaders:
        """Return headers of what the entries say; other fields have their usual values."""
        entries = self.entries
        columns = np.zeros((fields.FIELD_COUNT, len(entries)), dtype=np.int64)
        columns[fields.POSITION] = self._ends - entries.sizes_bytes
        columns[fields.SIZE_BYTES] = entries.sizes_bytes
        columns[fields.RECORD_COUNT] = entries.record_counts
        columns[fields.MAX_TIMESTAMP] = entries.max_timestamps
        columns[fields.CRC] = entries.crcs
        columns[fields.MAGIC] = MAGIC_VALUE_V2
        columns[fields.PRODUCER_ID] = NO_PRODUCER_ID
        return _with_offsets(columns, base_offset, leader_epoch)


def _with_offsets(columns: Int64Array, base_offset: int, leader_epoch: int) -> BatchHeaders:
    columns = columns.copy()
    next_offsets = base_offset + np.cumsum(columns[fields.RECORD_COUNT])
    columns[fields.OFFSET] = next_offsets - columns[fields.RECORD_COUNT]
    columns[fields.LAST_OFFSET] = next_offsets - 1
    columns[fields.PARTITION_LEADER_EPOCH] = leader_epoch
    return BatchHeaders(columns)

"""The batches of one staged file: read in windows, or given their offsets where they lie."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import CorruptRecordError
from pylog.files.staged_entries import StagedEntries, read_staged_entries
from pylog.files.storage import open_file
from pylog.kernels import decode_headers as fields
from pylog.model import NO_PRODUCER_ID
from pylog.native.checksum import crc32c
from pylog.record.batch_header import LOG_OVERHEAD, MAGIC_VALUE_V2, V2_START
from pylog.record.batch_scan import BatchHeaders, find_bad_checksum, find_batches
from pylog.record.batches_writer import (
    set_append_times,
    set_base_offsets,
    set_partition_leader_epochs,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.files.durable_io import DurableIO
    from pylog.files.staged_files import StagedFile

    Int64Array = npt.NDArray[np.int64]


_WINDOW_BYTES = 4 << 20


class StagedWindow(NamedTuple):
    """Neighbouring batches of a staged file."""

    first: int
    position: int
    records: memoryview
    headers: BatchHeaders


class StagedBatches:
    """A staged file with its entries. One thread."""

    def __init__(self, log_directory: str, staged: StagedFile) -> None:
        self.staged = staged
        self.path = os.path.join(log_directory, staged.name)  # noqa: PTH118 - kept as text
        self.entries: StagedEntries = read_staged_entries(
            os.path.join(log_directory, staged.entries_name),  # noqa: PTH118 - kept as text
            staged,
        )
        self._ends = np.cumsum(self.entries.sizes_bytes)

    def ensure_complete(self) -> None:
        """Raise unless the file is there, as long as it was, with its first and last batch."""
        with open_file(self.path) as file:
            size = file.size()
            if size != self.staged.size_bytes:
                reason = f"staged file has {size} bytes, expected {self.staged.size_bytes}"
                raise CorruptRecordError(reason, self.path)
        self._window(0, 1)
        self._window(len(self.entries) - 1, len(self.entries))

    def windows(self, first: int = 0) -> Iterator[StagedWindow]:
        """Yield all batches from ``first`` on, checked, a few MiB at a time."""
        count = len(self.entries)
        while first < count:
            start = int(self._ends[first] - self.entries.sizes_bytes[first])
            fitting = int(np.searchsorted(self._ends, start + _WINDOW_BYTES, side="right"))
            stop = max(first + 1, fitting)
            yield self._window(first, stop)
            first = stop

    def _window(self, first: int, stop: int) -> StagedWindow:
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
        return StagedWindow(first, start, view, headers)

    def placed(self, window: StagedWindow, base_offset: int, leader_epoch: int) -> BatchHeaders:
        """Give the batches of a window their offsets; return their headers as they are then."""
        headers = _with_offsets(window.headers.columns, base_offset, leader_epoch)
        set_base_offsets(window.records, headers.positions, headers.offsets)
        set_partition_leader_epochs(window.records, headers.positions, leader_epoch)
        return headers

    def place_in_file(self, io: DurableIO, base_offset: int, leader_epoch: int) -> BatchHeaders:
        """Give all batches their offsets where they lie; return what the headers are then."""
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
                write(position, V2_START.pack(offset, length, leader_epoch))
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


# Staged batches of a topic with LogAppendTime: stamped with the time of the commit.
#
# Timestamp type and largest timestamp lie inside the checksum, so this is a pass over all bytes. It
# comes before the manifest, whose checksums are those of the stamped batches.
def stamp_append_time(batches: StagedBatches, io: DurableIO, time_ms: int) -> StagedFile:
    """Stamp all batches of a staged file; return what is known of it then."""
    crcs = []
    with io.open(batches.path) as file:
        for window in batches.windows():
            headers, records = window.headers, window.records
            ends = headers.positions + headers.sizes_bytes
            set_append_times(records, headers.positions, ends, headers.codec_ids, time_ms)
            file.write_at(window.position, records)
            stamped = find_batches(np.frombuffer(records.toreadonly(), dtype=np.uint8))
            crcs.append(stamped.headers.crcs)
        file.sync()
    before = batches.entries
    entries = StagedEntries(
        before.sizes_bytes,
        before.record_counts,
        np.full(len(before), time_ms, dtype=np.int64),
        np.concatenate(crcs),
    )
    content = entries.to_bytes()
    staged = batches.staged._replace(
        first_crc=int(entries.crcs[0]),
        last_crc=int(entries.crcs[-1]),
        entries_crc=crc32c(content),
    )
    directory = os.path.dirname(batches.path)  # noqa: PTH120 - kept as text
    path = os.path.join(directory, staged.entries_name)  # noqa: PTH118 - kept as text
    io.write_file(path, content, sync=True)
    return staged

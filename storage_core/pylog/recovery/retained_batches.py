"""Batches of a log with some of their records: those of a range, without those that are left out.

A batch that keeps all its records is taken as it is, byte for byte. Any other one is written anew,
as a cleaning writes it: producer, epochs, timestamps, attributes and codec stay, at the codec's
default level.

===================================== =========================================================
batch                                 gets
===================================== =========================================================
begins before the range               the range's start as its base offset, and the sequence number
                                      of that record
ends after the range                  the last offset of the range as its last one
keeps none of the records in it       its header alone, without codec: producers and offsets are
                                      known from it; unless it begins before the range
is of v0 or v1                        the format v2, and the offsets of the records it keeps
===================================== =========================================================
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from pylog.cleaner.batch_rebuilding import BatchRebuilder
from pylog.cleaner.batch_retention import BatchRetention, RetainedRecords
from pylog.cleaner.keyed_records import KeyedRecordReader
from pylog.cleaner.offset_map import HashKey
from pylog.kernels import decode_headers as fields
from pylog.model import NO_SEQUENCE
from pylog.producers.sequence_number import MAX_SEQUENCE
from pylog.record.batch_scan import BatchHeaders, find_batches
from pylog.record.batch_writer import MAX_INT64

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.cleaner.keyed_records import KeyedRecords
    from pylog.record.batch_scan import Window

    BoolArray = npt.NDArray[np.bool_]

_NO_KEYS = range(0)
_NO_HASH = HashKey(0, 0)
_ADVICE = "; the batch cannot be written anew"


class Omission(Protocol):
    """A rule that leaves records of a range out."""

    def batches(self, window: Window) -> BoolArray:
        """Return in which batches of a window there may be one."""

    def records(self, records: KeyedRecords) -> BoolArray:
        """Return which records of such batches are left out."""


class RetainedBatches(NamedTuple):
    """Neighbouring batches, whole, with headers whose positions count from the first byte.

    None of them where all that was there is left out.
    """

    data: memoryview
    headers: BatchHeaders
    is_rewritten: bool
    left_out: int = 0  # records, and those of them in transactions
    left_out_of_transactions: int = 0


class BatchSelection:
    """Takes what stays of the batches of a range. One thread.

    Attributes
    ----------
    start_offset, end_offset
        The range, cut exactly; None where whole batches are taken on that side.
    """

    def __init__(
        self, start_offset: int | None, end_offset: int | None, omission: Omission | None = None
    ) -> None:
        self.start_offset = -1 if start_offset is None else start_offset
        self.end_offset = MAX_INT64 if end_offset is None else end_offset
        self._omission = omission
        self._reader = KeyedRecordReader(advice=_ADVICE)
        self._rebuilder = BatchRebuilder(MAX_INT64, 1)  # past all time: no delete horizon

    def select(self, window: Window) -> Iterator[RetainedBatches]:
        """Yield what stays of a window whose batches all have offsets of the range."""
        headers = window.headers
        is_touched = self._is_cut(headers)
        if self._omission is not None:
            is_touched |= self._omission.batches(window)
        bounds = [0, *(np.flatnonzero(np.diff(is_touched)) + 1).tolist(), len(headers)]
        for start, end in itertools.pairwise(bounds):
            if is_touched[start]:
                yield from self._rewritten(window, np.arange(start, end))
            else:
                yield _as_they_are(window, start, end)

    def _is_cut(self, headers: BatchHeaders) -> BoolArray:
        firsts = headers.offsets
        if not headers.traits.all_v2:  # a wrapper of v0 and v1 does not say where it begins
            lowest = max(self.start_offset - 1, -1)  # without a start nothing is below it
            before = np.concatenate([[lowest], headers.last_offsets[:-1]])
            firsts = np.where(headers.is_v2 | (headers.codec_ids == 0), firsts, before)
        cut: BoolArray = (firsts < self.start_offset) | (headers.last_offsets >= self.end_offset)
        return cut

    def _rewritten(
        self, window: Window, batches: npt.NDArray[np.int64]
    ) -> Iterator[RetainedBatches]:
        count = len(window.headers)
        for records in self._reader.read(window, batches, _NO_HASH, _NO_KEYS):
            offsets, is_cut = records.offsets, self._is_cut(records.headers)
            kept = (offsets >= self.start_offset) & (offsets < self.end_offset)
            counts = records.counts(kept)
            if self._omission is not None:
                kept &= ~self._omission.records(records)
            left_out = counts - records.counts(kept)
            of_transactions = left_out[records.headers.is_transactional]
            headers = self._cut_headers(records.headers)
            keeps_header = np.zeros(count, dtype=np.bool_)
            found = records.headers
            is_inside = found.offsets >= self.start_offset
            is_inside |= found.last_offsets >= self.end_offset
            # Of a wrapper of v0 and v1 it is known only now where it begins.
            keeps_header[records.batches] = is_inside & (found.offsets < self.end_offset)
            written = self._rebuilder.rebuild(
                window,
                records._replace(headers=headers),
                BatchRetention(keeps_header, keeps_header, np.zeros(count, dtype=np.bool_)),
                RetainedRecords(kept, 0),
                has_new_header=is_cut,
            )
            data = memoryview(b"".join(written.data))
            yield RetainedBatches(
                data,
                find_batches(np.frombuffer(data, dtype=np.uint8)).headers,
                is_rewritten=True,
                left_out=int(left_out.sum()),
                left_out_of_transactions=int(of_transactions.sum()),
            )

    def _cut_headers(self, headers: BatchHeaders) -> BatchHeaders:
        columns = headers.columns.copy()
        shift = np.where(headers.is_v2, np.maximum(self.start_offset - headers.offsets, 0), 0)
        sequences = headers.base_sequences
        columns[fields.OFFSET] += shift
        columns[fields.LAST_OFFSET] = np.minimum(headers.last_offsets, self.end_offset - 1)
        columns[fields.BASE_SEQUENCE] = np.where(
            sequences == NO_SEQUENCE, NO_SEQUENCE, (sequences + shift) % (MAX_SEQUENCE + 1)
        )
        return BatchHeaders(columns)


def _as_they_are(window: Window, start: int, end: int) -> RetainedBatches:
    headers = window.headers.select(slice(start, end))
    first = int(headers.positions[0])
    last = int(headers.positions[-1] + headers.sizes_bytes[-1])
    if first:
        columns = headers.columns.copy()
        columns[fields.POSITION] -= first
        headers = BatchHeaders(columns)
    return RetainedBatches(window.buffer.data[first:last], headers, is_rewritten=False)

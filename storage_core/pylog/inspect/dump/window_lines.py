"""The lines of the batches of one window, and of their records.

Kernels decode and write whole groups of batches. Where they refuse one, since its records break the
format or are stranger than a reader may serve, the rest of the window goes record by record through
the readable reference, which is as forgiving as the tool: it prints what comes before the fault.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pylog.errors import CorruptRecordError, InvalidRecordError, TimestampOverflowError
from pylog.inspect.dump import batch_table as columns
from pylog.inspect.dump.batch_table import batch_table
from pylog.inspect.dump.line_writer import write_lines
from pylog.inspect.dump.offset_gaps import OffsetGaps
from pylog.inspect.dump.record_arrays import RecordArrays, no_records
from pylog.inspect.dump.single_batch import SingleBatch
from pylog.inspect.dump.stored_checks import stored_checks
from pylog.inspect.dump.wanted_batches import wanted_batches, wanted_rows
from pylog.model import CompressionType
from pylog.record.batch_scan import find_bad_checksum

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from pylog.columnar.decode import DecodedGroup
    from pylog.inspect.dump.log_context import LogContext
    from pylog.inspect.dump.odd_batch import OddBatch
    from pylog.record.batch_scan import BatchHeaders
    from pylog.record.window import Window

    Int64Array = npt.NDArray[np.int64]

_MOST_RECORDS = 1 << 14
"""As many records as are read one by one before their lines are written."""

_NO_POSITION = -1
_LOWEST_OFFSET, _HIGHEST_OFFSET = -(2**63), 2**63 - 1


class WindowLines:
    """Iterates the lines of one window; once, in any thread.

    Parameters
    ----------
    context
        Of the file.
    window
        Its memory stays as it is until the iteration ends.
    odd
        What the headers do not say, where the window is that of an odd batch.

    Attributes
    ----------
    gaps
        Of the records' offsets, once the iteration has ended.
    invalid_batches
        How many of the batches have a wrong checksum.

    Raises
    ------
    CorruptRecordError, InvalidRecordError
        The records of a batch break the format, after the lines of what comes before.
    """

    def __init__(self, context: LogContext, window: Window, *, odd: OddBatch | None = None) -> None:
        self.gaps = OffsetGaps(has_start=False)
        self.invalid_batches = 0
        self._context = context
        self._options = context.options
        self._window = window
        self._odd = odd
        self._last_line = _NO_POSITION  # of the batch whose own line was written last

    def __iter__(self) -> Iterator[memoryview]:
        """Yield text in UTF-8."""
        scan = self._window
        chosen = wanted_batches(scan.headers, self._options.wanted)
        unknown = np.flatnonzero(scan.headers.codec_ids > max(CompressionType))
        if unknown.size:  # the tool ends there
            chosen = chosen[chosen < unknown[0]]
        headers = scan.headers.select(chosen)
        is_valid = _valid_batches(scan)[chosen]
        if self._odd is not None and self._odd.is_valid is not None:
            is_valid[:] = self._odd.is_valid
        self.invalid_batches = int(is_valid.size - is_valid.sum())
        table = batch_table(headers, is_valid, self._window.file_position)
        fault = None
        if self._odd is not None:
            table[:, columns.MAGIC] = self._odd.magic
            table[:, columns.SIZE_BYTES] = self._odd.size_bytes
            fault = self._odd.fault
        if not self._options.is_deep or fault is not None:
            rows = np.zeros(len(headers), dtype=np.int64)
            yield from write_lines(self._context.template, table, rows, no_records())
            if self._options.is_deep and fault is not None and len(headers):
                raise self._error(fault, 0)
        elif len(headers):
            yield from self._deep(headers, table)
        if unknown.size:
            index = int(unknown[0])
            reason = f"Unknown compression type id: {scan.headers.codec_ids[index]}"
            raise self._error(reason, int(scan.headers.positions[index]))

    def _deep(self, headers: BatchHeaders, table: Int64Array) -> Iterator[memoryview]:
        window = replace(self._window, headers=headers, path=self._context.path)
        decoder = self._context.decoders.take()
        done = 0  # batches of which all lines have been written
        is_continued = False
        try:
            for group in decoder.decode_groups(window, _LOWEST_OFFSET, _HIGHEST_OFFSET):
                first = int(np.searchsorted(headers.positions, group.headers.positions[0]))
                is_continued = first < done  # one more piece of a large batch
                rows = table[first : first + len(group.headers)]
                yield from self._group_lines(group, rows)
                done = first + len(rows)
        except (CorruptRecordError, InvalidRecordError, TimestampOverflowError):
            if is_continued:
                raise
            for index in range(done, len(headers)):
                position = int(headers.positions[index])
                data = window.buffer.data[position : position + int(headers.sizes_bytes[index])]
                yield from self._batch_lines(data, position, table[index : index + 1])
        self._context.decoders.give_back(decoder)

    def _group_lines(self, group: DecodedGroup, table: Int64Array) -> Iterator[memoryview]:
        records = no_records()
        if group.columns.rows:
            checks = stored_checks(group, table[:, columns.IS_VALID] != 0)
            records = RecordArrays.of_columns(group.columns.arrays, checks)
        batch_rows = group.columns.batch_rows
        table, batch_rows, records = self._wanted(table, batch_rows, records)
        details, fault = self._details(table, batch_rows, records)
        if fault is not None:
            raise InvalidRecordError(fault[1])
        self._note(records)
        yield from self._write(table, batch_rows, records, details)

    def _batch_lines(
        self, data: memoryview, position: int, table: Int64Array
    ) -> Iterator[memoryview]:
        """Yield the lines of one batch, read record by record."""
        batch = SingleBatch(data, self._options.max_decompressed_bytes)
        while not batch.is_finished:
            records = batch.next_part(_MOST_RECORDS)
            rows = np.array([records.rows], dtype=np.int64)
            chosen, rows, records = self._wanted(table, rows, records)
            details, fault = self._details(chosen, rows, records)
            if fault is not None:
                records = records.select(np.arange(records.rows) < fault[0])
                rows[:] = fault[0]
            self._note(records)
            yield from self._write(chosen, rows, records, details)
            reason = batch.fault if fault is None else fault[1]
            if reason is not None:
                raise self._error(reason, position)

    def _note(self, records: RecordArrays) -> None:
        if not self._options.wanted.is_restricted:  # else there are gaps by intention
            self.gaps.note(records.offsets)

    def _write(
        self,
        table: Int64Array,
        batch_rows: Int64Array,
        records: RecordArrays,
        details: Mapping[int, str],
    ) -> Iterator[memoryview]:
        if not table.shape[0]:
            return
        is_continued = int(table[0, columns.POSITION]) == self._last_line
        self._last_line = int(table[-1, columns.POSITION])
        yield from write_lines(
            self._context.template,
            table,
            batch_rows,
            records,
            details=details,
            is_continued=is_continued,
        )

    def _wanted(
        self, table: Int64Array, batch_rows: Int64Array, records: RecordArrays
    ) -> tuple[Int64Array, Int64Array, RecordArrays]:
        if not self._options.wanted.is_restricted:
            return table, batch_rows, records
        return wanted_rows(table, batch_rows, records, self._options.wanted)

    def _details(
        self, table: Int64Array, batch_rows: Int64Array, records: RecordArrays
    ) -> tuple[dict[int, str], tuple[int, str] | None]:
        """Return the texts that are made for single records, by their place.

        Also the place of the first record that no text can be made for, and why, if there is one.
        """
        make = self._context.details
        texts: dict[int, str] = {}
        if not make.is_of_all and not table[:, columns.IS_CONTROL].any():
            return texts, None
        is_control = np.repeat(table[:, columns.IS_CONTROL] != 0, batch_rows)
        rows = np.arange(records.rows) if make.is_of_all else np.flatnonzero(is_control)
        for row in rows.tolist():
            key, value = records.keys.value(row), records.values.value(row)
            try:
                if is_control[row]:
                    texts[row] = make.of_control(key, value)
                else:
                    texts[row] = make.of_data(key, value, int(records.offsets[row]))
            except InvalidRecordError as error:
                return texts, (row, error.reason)
        return texts, None

    def _error(self, reason: str, position: int) -> InvalidRecordError:
        at = self._window.file_position + position
        return InvalidRecordError(reason, self._context.path, at)


def _valid_batches(scan: Window) -> npt.NDArray[np.bool_]:
    """Return whether the checksum of each batch is right."""
    is_valid = np.ones(len(scan.headers), dtype=np.bool_)
    bad = find_bad_checksum(scan)
    if bad is None:
        return is_valid
    left = is_valid.copy()
    while bad is not None:
        is_valid[bad.index] = False
        left[: bad.index + 1] = False
        bad = find_bad_checksum(scan, left)
    return is_valid

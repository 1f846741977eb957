"""A slice of a ``.log`` file as windows of batches that have been checked.

Boundaries, offsets, checksums, and the records of control batches. What is wrong is an error
(FAILFAST) or, with a `DamageReport`, a gap: the range up to the next intact batch is reported and
skipped.

A base offset lies outside its batch's checksum. What bounds it are its neighbours, the file's name
and the name of the next file. No row comes of a control batch, so nobody decodes it; yet one that
breaks its format may have been the marker that aborts a transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.files.byte_source import LocalFile
from pylog.kernels.decode_headers import (
    NEEDS_REFERENCE,
    decode_control_types,
)
from pylog.log_file.batch_walk import HIGHEST_OFFSET, has_valid_checksum, read_header
from pylog.log_file.resynchronisation import find_next_batch
from pylog.log_file.segment_windows import (
    DEFAULT_WINDOW_BYTES,
    FIRST_WINDOW_BYTES,
    SegmentWindows,
    WindowMemory,
)
from pylog.model import ControlRecordType
from pylog.reading.damage import DamagedRange, ReadMode
from pylog.record.batch_header import (
    CONTROL_FLAG_MASK,
    HEADER_SIZE_UP_TO_MAGIC,
    OFFSET_LENGTH,
    TRANSACTIONAL_FLAG_MASK,
)
from pylog.record.batch_scan import (
    BatchScan,
    Window,
    find_bad_checksum,
    find_batches,
)
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.record.control_record import parse_control_record_type
from pylog.record.record_batch import RecordBatch

if TYPE_CHECKING:
    from collections.abc import Generator

    import numpy.typing as npt

    from pylog.files.byte_source import ByteSource
    from pylog.log_file.batch_walk import PositionedHeader
    from pylog.reading.damage import DamageReport
    from pylog.reading.task_range import SegmentSlice
    from pylog.reading.typed_records import TypedRecords

    Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The arguments of `pylog.scan` that every reader of one scan takes."""

    mode: ReadMode = ReadMode.FAILFAST
    window_bytes: int = DEFAULT_WINDOW_BYTES
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
    threads: int = 1
    typed: TypedRecords | None = None
    """What decodes keys and values; None if they stay bytes."""


class Misplaced(NamedTuple):
    """Batches ``[first, last]`` whose offsets cannot be believed, by index; and why."""

    first: int
    last: int
    reason: str


def find_misplaced(
    offsets: Int64Array,
    last_offsets: Int64Array,
    lowest_offset: int,
    limit_offset: int | None,
    most_offset: int = HIGHEST_OFFSET,
) -> Misplaced | None:
    """Return the first batch whose offsets go back or leave the segment, None if all go up.

    Offsets lie below the next segment's, ``limit_offset``, and what this one can hold.
    """
    bad = last_offsets < offsets
    bad[1:] |= offsets[1:] <= last_offsets[:-1]
    bad[0] |= offsets[0] < lowest_offset
    limit = most_offset if limit_offset is None else min(limit_offset, most_offset)
    if last_offsets[-1] < limit and not bad.any():
        return None
    bad |= last_offsets >= limit  # any of them, where they do not go up
    index = int(np.argmax(bad))
    if last_offsets[index] >= limit:
        first = index
    else:
        first = _first_misplaced(offsets, last_offsets, index, lowest_offset)
    lowest = lowest_offset if index == 0 else int(last_offsets[index - 1]) + 1
    is_too_high = limit_offset is not None or last_offsets[index] >= limit
    below = f" and below {limit}" if is_too_high else ""
    reason = (
        f"batch has offsets {offsets[index]} to {last_offsets[index]}, "
        f"expected from {lowest} on{below}"
    )
    is_certain = first == index or _is_borne_out(offsets, last_offsets, index, lowest_offset)
    return Misplaced(first, first if is_certain else index, reason)


def _before(last_offsets: Int64Array, index: int, lowest_offset: int) -> int:
    """Return the offset after the batch before the one before ``index``."""
    return lowest_offset if index < 2 else int(last_offsets[index - 2]) + 1


def _first_misplaced(
    offsets: Int64Array, last_offsets: Int64Array, index: int, lowest_offset: int
) -> int:
    """Return ``index``, or the one before it if that has gone too far up."""
    offset = int(offsets[index])
    if index == 0 or last_offsets[index] < offset:
        return index
    before = _before(last_offsets, index, lowest_offset)
    # Without the one before, this one would have to fit; if it follows without a gap, it is right.
    if offset < before or offsets[index - 1] == before:
        return index
    return index - 1


def _is_borne_out(
    offsets: Int64Array, last_offsets: Int64Array, index: int, lowest_offset: int
) -> bool:
    """Whether batch ``index`` joins on to its neighbours once the one before it is left out."""
    span = int(last_offsets[index - 1]) - int(offsets[index - 1]) + 1
    if int(offsets[index]) - _before(last_offsets, index, lowest_offset) == span:
        return True
    return index + 1 < len(offsets) and bool(offsets[index + 1] == last_offsets[index] + 1)


@dataclass(frozen=True, slots=True)
class UnreadableBatch:
    """The first batch of a scan that cannot be read; ``index`` counts batches."""

    index: int
    reason: str


def control_types(scan: BatchScan | Window, which: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the `ControlRecordType` of the control batches with indexes ``which``."""
    types = _usual_types(scan, which)
    for place in np.flatnonzero(types == NEEDS_REFERENCE).tolist():
        types[place] = _type_by_reference(scan, int(which[place]))
    return types


class TransactionalBatches(NamedTuple):
    """Batches of transactions, data and markers, in the order of their window."""

    which: Int64Array  # their indexes among all batches
    is_control: npt.NDArray[np.bool_]
    kinds: Int64Array  # of control batches the `ControlRecordType`; UNKNOWN of data


def transactional_batches(
    window: Window, where: npt.NDArray[np.bool_] | None = None
) -> TransactionalBatches:
    """Return the batches of a window that belong to transactions, of those that a mask has."""
    headers = window.headers
    if not headers.traits.any_has(TRANSACTIONAL_FLAG_MASK):
        nothing = np.empty(0, dtype=np.int64)
        return TransactionalBatches(nothing, nothing.astype(np.bool_), nothing)
    which = np.flatnonzero(
        headers.is_transactional if where is None else headers.is_transactional & where
    )
    is_control = headers.is_control[which]
    kinds = np.full(which.size, ControlRecordType.UNKNOWN, dtype=np.int64)
    if is_control.any():
        window.read_batches(headers.is_control)
        kinds[is_control] = control_types(window, which[is_control])
    return TransactionalBatches(which, is_control, kinds)


def find_bad_control_batch(scan: BatchScan | Window, before: int) -> UnreadableBatch | None:
    """Return the first control batch whose records break the format, None if all can be read.

    Only batches with an index below ``before`` are looked at: those whose checksums are right.
    Kafka's consumer fails at such a batch, too; it looks at keys only where it reads committed
    records.
    """
    headers = scan.headers
    if not len(headers) or not headers.traits.any_has(CONTROL_FLAG_MASK):
        return None
    which = np.flatnonzero(headers.is_control[:before])
    types = _usual_types(scan, which)
    for index in which[types == NEEDS_REFERENCE].tolist():
        try:
            _type_by_reference(scan, index)
        except (CorruptRecordError, InvalidRecordError) as error:
            return UnreadableBatch(index, f"control batch cannot be read: {error.reason}")
    return None


def _usual_types(scan: BatchScan | Window, which: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    headers = scan.headers
    types = np.full(which.size, NEEDS_REFERENCE, dtype=np.int64)
    plain = (headers.codec_ids[which] == 0) & (headers.record_counts[which] == 1)
    plain_types = types[plain]
    decode_control_types(
        scan.buffer, headers.positions[which][plain], headers.sizes_bytes[which][plain], plain_types
    )
    types[plain] = plain_types
    return types


def _type_by_reference(scan: BatchScan | Window, index: int) -> ControlRecordType:
    """Return the type of the first record of any control batch; all are looked at."""
    data = scan.buffer.data[int(scan.headers.positions[index]) :]
    types = [parse_control_record_type(record.key) for record in RecordBatch(data).records()]
    return types[0] if types else ControlRecordType.UNKNOWN


class _Fault(NamedTuple):
    """What is wrong, where it begins, and where the last batch at fault begins."""

    position: int
    last_position: int
    reason: str
    # Of a batch whose header is right, so that it has its offsets all the same
    next_offset: int | None = None
    is_misplaced: bool = False  # one batch, of which the offsets alone are wrong


def _find_impossible_count(window: Window, before: int) -> UnreadableBatch | None:
    """Return the first batch that counts more records than it has offsets, or less than none."""
    headers = window.headers
    wrong = np.flatnonzero((headers.is_v2 & ~headers.has_possible_count)[:before])
    if not wrong.size:
        return None
    index = int(wrong[0])
    reason = (
        f"record count is {headers.record_counts[index]}, expected 0 to "
        f"{headers.last_offsets[index] - headers.offsets[index] + 1}"
    )
    return UnreadableBatch(index, reason)


class CheckedWindows:
    """Iterates the intact batches of one slice. One thread, one iteration."""

    def __init__(  # noqa: PLR0913 - keyword-only options
        self,
        source: ByteSource,
        segment_slice: SegmentSlice,
        options: ReadOptions | None = None,
        *,
        lowest_offset: int = 0,
        damage: DamageReport | None = None,
        verifies_checksums: bool = True,
        checks_counts: bool = False,
        first_window_bytes: int = FIRST_WINDOW_BYTES,
        memory: WindowMemory | None = None,
    ) -> None:
        self._source = source
        self._memory = memory
        self._window_bytes = DEFAULT_WINDOW_BYTES if options is None else options.window_bytes
        # A look-up decodes nothing.
        self._max_decompressed_bytes = None if options is None else options.max_decompressed_bytes
        self._slice = segment_slice
        self._limit = segment_slice.limit_offset
        self._damage = damage
        self._verifies_checksums = verifies_checksums or damage is not None
        self._checks_counts = checks_counts
        self.moved: dict[int, tuple[int, int]] = {}
        """Where batches begin that have other offsets than they say, and their first and last."""
        self._first_window_bytes = first_window_bytes
        self.next_offset = segment_slice.base_offset
        if not segment_slice.skipped_below:
            self.next_offset = max(lowest_offset, self.next_offset)

    def __iter__(self) -> Generator[Window, None, None]:
        """Yield windows in file order; to be closed before the file is, if it is not exhausted."""
        position = self._slice.start_position
        while True:
            fault = yield from self._until_fault(position)
            if fault is None:
                return
            if self._damage is None:
                raise CorruptRecordError(fault.reason, self._slice.path, fault.position)
            position, kept = self._skip(fault, self._damage)
            if kept is not None:
                yield self._passed(kept)

    def _until_fault(self, position: int) -> Generator[Window, None, _Fault | None]:
        segment_slice = self._slice
        windows = SegmentWindows(
            self._source,
            position,
            segment_slice.end_position,
            window_bytes=self._window_bytes,
            first_window_bytes=self._first_window_bytes,
            only_headers=not self._verifies_checksums,
            max_decompressed_bytes=self._max_decompressed_bytes,
            make_memory=self._memory,
        )
        try:
            for window in windows:
                fault = self._find_fault(window)
                if fault is None:
                    yield self._passed(window)
                    continue
                if fault.position > window.file_position:
                    yield self._passed(_head(window, fault.position))
                return fault
        except CorruptRecordError as error:  # a batch too large to be read before it is checked
            at = segment_slice.start_position if error.position is None else error.position
            return _Fault(at, at, error.reason)
        return self._find_tail_fault(windows)

    def _passed(self, window: Window) -> Window:
        self.next_offset = int(window.headers.last_offsets[-1]) + 1
        return window

    def _find_fault(self, window: Window) -> _Fault | None:
        headers = window.headers
        misplaced = find_misplaced(
            headers.offsets,
            headers.last_offsets,
            self.next_offset,
            self._slice.next_base_offset,
            self._limit,
        )
        is_last = window.end_position == self._slice.end_position
        # A look at the header after each window of an object store would be a request for each.
        looks_on = is_last or self._damage is not None or isinstance(self._source, LocalFile)
        if misplaced is None and looks_on:
            misplaced = self._misplaced_last(window)
        bad = None
        if self._verifies_checksums or misplaced is not None:
            window.read_batches()
            bad = find_bad_checksum(window)
        # Whatever stands before the first of the other faults is about to be given.
        before = len(headers) if bad is None else bad.index
        before = before if misplaced is None else min(before, misplaced.first)
        unreadable = self._find_unreadable(window, before)
        if unreadable is not None:
            at = window.position_of(unreadable.index)
            next_offset = int(headers.last_offsets[unreadable.index]) + 1
            return _Fault(at, at, unreadable.reason, next_offset)
        # A wrong checksum is the cause to report, even if offsets show it first.
        if bad is not None and (misplaced is None or bad.index <= misplaced.last):
            at = window.position_of(bad.index)
            return _Fault(at, at, bad.reason)
        if misplaced is None:
            return None
        first = window.position_of(misplaced.first)
        last = window.end_position  # the batch after the window, which may be that one
        if misplaced.last < len(headers):
            last = window.position_of(misplaced.last)
        return _Fault(first, last, misplaced.reason, is_misplaced=first == last)

    def _find_unreadable(self, window: Window, before: int) -> UnreadableBatch | None:
        """Return the first of the batches before one that is intact and cannot be read."""
        found = _find_impossible_count(window, before) if self._checks_counts else None
        if self._verifies_checksums:
            before = before if found is None else found.index
            found = find_bad_control_batch(window, before) or found
        return found

    def _misplaced_last(self, window: Window) -> Misplaced | None:
        """Return the window's last batch if the one after the window shows that it is misplaced."""
        position, end = window.end_position, self._source.size()
        if end - position < HEADER_SIZE_UP_TO_MAGIC:
            return None
        try:
            following = read_header(self._source, position, end)
        except CorruptRecordError:
            return None
        headers = window.headers
        if following is None or following.header.offset > headers.last_offsets[-1]:
            return None
        if not has_valid_checksum(self._source, following):
            return None  # what is damaged contradicts nobody
        misplaced = find_misplaced(
            np.append(headers.offsets, following.header.offset),
            np.append(headers.last_offsets, following.header.last_offset),
            self.next_offset,
            self._slice.next_base_offset,
            self._limit,
        )
        return None if misplaced is None or misplaced.first == len(headers) else misplaced

    def _find_tail_fault(self, windows: SegmentWindows) -> _Fault | None:
        """Return what is wrong about an end of whole batches that could hide records."""
        segment_slice = self._slice
        position, defect = windows.tail
        if defect is not None:
            return _Fault(position, position, defect)
        if position == segment_slice.end_position:
            return None
        if segment_slice.runs_to_segment_end and self.next_offset == segment_slice.next_base_offset:
            return None  # the torn or preallocated rest holds no offset of the log
        missing = (
            f"; the next segment begins at offset {segment_slice.next_base_offset}, "
            f"so records from {self.next_offset} on may be missing"
            if segment_slice.runs_to_segment_end
            else ""
        )
        rest = segment_slice.end_position - position
        reason = f"whole batches end {rest} bytes before they should{missing}"
        return _Fault(position, position, reason)

    def _skip(self, fault: _Fault, damage: DamageReport) -> tuple[int, Window | None]:
        """Report the range from a fault to the next intact batch; return where that begins.

        And the batch in it, if its neighbours prove where it belongs.
        """
        segment_slice = self._slice
        end = find_next_batch(
            self._source,
            fault.last_position,
            segment_slice.end_position,
            lowest_offset=self.next_offset,
            limit_offset=self._limit,
        )
        following = segment_slice.next_base_offset
        if end < segment_slice.end_position or not segment_slice.runs_to_segment_end:
            batch = self._batch_at(end)
            following = following if batch is None else batch.header.offset
        kept = None
        if fault.is_misplaced and following is not None:
            kept = self._between(fault.position, end, following)
        damage.add(
            DamagedRange(
                segment_slice.path,
                fault.position,
                end,
                self.next_offset,
                following,
                fault.reason,
                is_kept=kept is not None,
            )
        )
        if fault.next_offset is not None:
            self.next_offset = fault.next_offset
        return end, kept

    def _batch_at(self, position: int) -> PositionedHeader | None:
        """Return the intact batch at a byte, which may be behind the slice; None if none is."""
        try:
            batch = read_header(self._source, position, self._source.size())
        except CorruptRecordError:
            return None
        is_sound = batch is not None and has_valid_checksum(self._source, batch)
        fits = batch is not None and self.next_offset <= batch.header.offset < self._limit
        return batch if is_sound and fits else None

    def _between(self, position: int, end: int, following: int) -> Window | None:
        """Return the one batch in a range if the offsets around leave just the room for it.

        All of its offsets, which are then those; or the last ones, where it ends just before the
        next batch and repeats offsets of those before it: these are not to be given again.
        """
        data = bytearray(self._source.read_at(position, end - position))
        scan = find_batches(np.frombuffer(data, dtype=np.uint8))
        window = Window.of(scan, self._slice.path, position)
        headers = window.headers
        is_one = len(headers) == 1 and scan.valid_bytes == end - position
        # How many records a compressed message holds, its header does not say.
        if not is_one or not (headers.is_v2[0] or headers.codec_ids[0] == 0):
            return None
        if (
            find_bad_checksum(window) is not None
            or _find_impossible_count(window, 1) is not None
            or self._find_unreadable(window, 1) is not None
        ):
            return None
        first, last = int(headers.offsets[0]), int(headers.last_offsets[0])
        if following - self.next_offset == last - first + 1:
            self.moved[position] = self.next_offset, following - 1
            data[:OFFSET_LENGTH] = self.next_offset.to_bytes(OFFSET_LENGTH)
            scan = find_batches(np.frombuffer(data, dtype=np.uint8))
            return Window.of(scan, self._slice.path, position)
        return window if first < self.next_offset <= last == following - 1 else None


def check_some(window: Window, segment_slice: SegmentSlice, which: npt.NDArray[np.bool_]) -> None:
    """Raise `CorruptRecordError` if a batch that the mask ``which`` picks has a wrong checksum."""
    window.read_batches(which)
    bad = find_bad_checksum(window, which)
    if bad is not None:
        position = window.position_of(bad.index)
        raise CorruptRecordError(bad.reason, segment_slice.path, position)


def _head(window: Window, end_position: int) -> Window:
    """Return the batches of a window before a byte of the file where one begins."""
    end = end_position - window.file_position
    count = int((window.headers.positions < end).sum())
    return replace(window.select(slice(0, count)), size_bytes=end)

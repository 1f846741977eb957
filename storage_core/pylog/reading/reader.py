"""A `TaskRange` to Arrow record batches, or to a count.

Window by window: batches that have been checked (`pylog.reading.checked_windows`); control batches,
aborted batches and batches outside the range left out; the rest decoded. FAILFAST raises an error
with file, position and cause, once the intact batches before it have been given. The other modes
skip exactly what is damaged and report it.

A working broker rolls, deletes and compacts segments under a reader. A segment that is gone, or
that compaction has replaced, is looked for again by offset: what the log now holds of the rest of
the range is read. Records that are below the log's start by then are lost: an error, or
skipped with a warning where the user said so (``failOnDataLoss=false``).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from pylog.columnar.arrow_schema import ConstantColumns, damaged_row, record_schema
from pylog.columnar.decode import RecordDecoder
from pylog.errors import (
    CorruptRecordError,
    InvalidRecordError,
    LogDirectoryError,
    LogStorageError,
    MisplacedBatchError,
    SegmentReplacedError,
    SegmentVanishedError,
)
from pylog.files.looks import Looks
from pylog.log_file.segment_windows import WindowMemory
from pylog.reading.checked_windows import CheckedWindows, ReadOptions, check_some
from pylog.reading.damage import DamagedRange, DamageReport, ReadMode
from pylog.reading.filtered_decode import FilteredDecoder, SearchDecoder, is_past
from pylog.reading.log_view import LogView
from pylog.reading.slicing import open_slice, segment_slices, without_early_batches
from pylog.reading.transactions import AbortedTransactions, AbortWatch
from pylog.record.batch_header import CONTROL_FLAG_MASK
from pylog.record.compression import Decompressor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt
    import pyarrow as pa

    from pylog.model import TopicPartition
    from pylog.reading.segments import LogSegmentView
    from pylog.reading.slicing import ScannedBytes
    from pylog.reading.task_range import SegmentSlice, TaskRange
    from pylog.record.batch_scan import Window

    Decoder = RecordDecoder | FilteredDecoder | SearchDecoder


_LOGGER = logging.getLogger(__name__)


# Batches whose records break the format, although their checksum is right, as damaged ranges.
#
# None of such a batch's own offsets is believed: its range starts after the last intact batch
# before it, and ends where the next intact one starts. That one may be in a window that has not
# been read yet, so a range is reported once it is known.


class _Refused(NamedTuple):
    """Batches in a row that were refused, and what is wrong with the first of them."""

    segment_slice: SegmentSlice
    position: int
    end_position: int
    next_offset: int
    reason: str


class RefusedBatches:
    """Collects what a decoder refuses of the windows of one read, in file order. One thread."""

    def __init__(self, damage: DamageReport) -> None:
        self._damage = damage
        # bytes of the file, of the window that was entered last
        self.in_window: list[tuple[int, int]] = []
        self._open: _Refused | None = None
        self._path = ""
        self._next_offset = 0

    def enter(self, segment_slice: SegmentSlice, window: Window) -> None:
        """Note that a window has been read whose checksums and order are sound."""
        self.in_window = []
        if segment_slice.path != self._path:
            self.finish()
            self._path = segment_slice.path
        self._next_offset = max(self._next_offset, segment_slice.base_offset)

    def leave(self, window: Window) -> None:
        """Note that all wanted records of a window have been decoded."""
        self.settle(window)
        if self._open is None:
            self._next_offset = int(window.headers.last_offsets[-1]) + 1

    def add(
        self,
        segment_slice: SegmentSlice,
        window: Window,
        positions: tuple[int, int],
        reason: str,
    ) -> None:
        """Note that the batches that start at two bytes of the file, and between, are refused."""
        headers = window.headers
        first, last = np.searchsorted(
            headers.positions, np.array(positions) - window.file_position
        ).tolist()
        end = window.file_position + int(headers.positions[last] + headers.sizes_bytes[last])
        self.in_window.append((positions[0], end))
        if self._open is not None and self._open.end_position == positions[0]:
            self._open = self._open._replace(end_position=end)
            return
        self.settle(window)
        before = self._next_offset if first == 0 else int(headers.last_offsets[first - 1]) + 1
        self._open = _Refused(segment_slice, positions[0], end, before, reason)

    def settle(self, window: Window) -> None:
        """Report what is open if the batch after it is in the window, where it has proved sound."""
        if self._open is None or self._open.end_position >= window.end_position:
            return
        headers = window.headers
        at = self._open.end_position - window.file_position
        following = int(np.searchsorted(headers.positions, at))
        self._report(self._open, int(headers.offsets[following]))

    def finish(self) -> None:
        """Report what is open: nothing sound follows in its file."""
        if self._open is not None:
            self._report(self._open, self._open.segment_slice.next_base_offset)

    def _report(self, refused: _Refused, end_offset: int | None) -> None:
        segment_slice, position, end_position, next_offset, reason = refused
        self._open = None
        self._damage.add(
            DamagedRange(
                segment_slice.path, position, end_position, next_offset, end_offset, reason
            )
        )


_Decoded = TypeVar("_Decoded")

_AFTER_DAMAGE = 16
"""Batches that are decoded together after one that was refused, twice as many each time they are
sound: every refusal costs what was decoded with it."""


def decode_sound(
    decoder: Decoder,
    refused: RefusedBatches,
    segment_slice: SegmentSlice,
    window: Window,
    decode: Callable[[Window], Iterable[_Decoded]],
) -> Iterator[_Decoded]:
    """Yield what ``decode`` does, with ``decoder``, of a window's intact batches, part by part."""
    start, size = 0, len(window.headers)
    while start < len(window.headers):
        part = window.select(slice(start, start + size))
        try:
            for batch in decode(part):
                refused.settle(window)  # the first of this part is sound, then
                yield batch
        except (CorruptRecordError, InvalidRecordError) as error:
            if error.position is None:
                raise
            bad = int(np.searchsorted(part.headers.positions, error.position - part.file_position))
            done = decoder.finished_batches
            first = bad
            if isinstance(error, MisplacedBatchError) and bad > done:
                first = bad - 1  # nobody knows which of the two is wrong
            start += done
            if first > done:
                size = first - done  # what is before may be sound; then this one once more
                continue
            if done:
                refused.settle(window)
            positions = part.position_of(first), error.position
            refused.add(segment_slice, window, positions, error.reason)
            start += bad + 1 - done
            size = _AFTER_DAMAGE
        else:
            refused.settle(window)
            start += len(part.headers)
            size *= 2


class TaskWindows:
    """Iterates (slice, window) over a task, in offset order. One thread, one iteration."""

    def __init__(
        self,
        task: TaskRange,
        options: ReadOptions | None = None,
        *,
        damage: DamageReport | None = None,
        verifies_checksums: bool = True,
        memory: WindowMemory | None = None,
    ) -> None:
        self._task = task
        self._options = options
        self._memory = memory
        self._damage = damage
        self._verifies_checksums = verifies_checksums
        self._next_offset = 0
        # Records of the window that was given last are a reader's from here on: what is below has
        # been given, or is outside the task.
        self.position = task.start_offset

    def __iter__(self) -> Iterator[tuple[SegmentSlice, Window]]:
        """Yield windows with the slices that they are of.

        `SegmentVanishedError`: records of the range have been deleted since the task was planned.
        `SegmentReplacedError`: a file in an object store was replaced while it was read. Noticed
        after the last read of the file: a caller that stops earlier has rows that were not checked.
        """
        slices = self._task.slices
        looks = Looks()
        while True:
            try:
                for segment_slice in slices:
                    yield from self._windows_of(segment_slice)
            except SegmentReplacedError:
                raise  # rows that were given already may be of either file
            except SegmentVanishedError as error:
                reason = "the log changes faster than it is read"
                looks.again(SegmentVanishedError(reason, self._task.directory.path))
                slices = self._slices_now(error)
            else:
                return

    def _windows_of(self, segment_slice: SegmentSlice) -> Iterator[tuple[SegmentSlice, Window]]:
        where = self._task.where
        opened = open_slice(segment_slice, self._damage, self._next_offset)
        if opened is None:
            return
        with opened as source:
            looks = self._task.looks_for_late
            if looks and where is not None:
                segment_slice = without_early_batches(source, segment_slice, where)
            windows = CheckedWindows(
                source,
                segment_slice,
                self._options,
                lowest_offset=self._next_offset,
                damage=self._damage,
                verifies_checksums=self._verifies_checksums,
                memory=self._memory,
            )
            for window in windows:
                if window.end_position >= segment_slice.end_position:
                    source.ensure_same()  # before the caller gets the last rows
                self.position = max(self.position, self._next_offset)
                self._next_offset = windows.next_offset
                yield segment_slice, window
            # The slice's whole range of offsets is done, also where the last batches held less.
            self._next_offset = max(windows.next_offset, self._next_offset)

    def _slices_now(self, vanished: SegmentVanishedError) -> tuple[SegmentSlice, ...]:
        """Return where the rest of the task's range lies now."""
        task = self._task
        start = max(task.start_offset, self._next_offset)
        try:
            look = self._look_again(start)
        except LogDirectoryError as error:
            raise SegmentVanishedError(
                f"{vanished.reason}; its directory: {error.reason}", vanished.path
            ) from error
        if look.lost is not None:
            first, end = look.log_range
            reason = (
                f"{vanished.reason}; records of {task.topic_partition} with offsets "
                f"{look.lost[0]} to {look.lost[1]} (exclusive) are lost, the log holds {first} "
                f"to {end} (exclusive) now"
            )
            if task.fail_on_data_loss:
                raise SegmentVanishedError(reason, vanished.path) from vanished
            _LOGGER.warning("%s", SegmentVanishedError(reason, vanished.path))
        return look.slices

    def _look_again(self, start: int) -> _Look:
        looks = Looks()
        while True:
            view = LogView(self._task.directory, damage=self._damage, access=self._task.access)
            try:
                first, end = view.log_start_offset, view.log_end_offset
                lost = _lost_offsets(view, self._task, start)
                rest = max(start, first), min(self._task.end_offset, end)
                return _Look((first, end), lost, segment_slices(view, *rest, checks_gap=False))
            except SegmentVanishedError as error:
                looks.again(error)


class _Look(NamedTuple):
    """What a directory holds of a task's range at one moment."""

    log_range: tuple[int, int]
    lost: tuple[int, int] | None
    slices: tuple[SegmentSlice, ...]


def _lost_offsets(view: LogView, task: TaskRange, start: int) -> tuple[int, int] | None:
    """Return the offsets ``[from, to)`` of the task gone from ``start`` on, or None."""
    if view.log_start_offset > start and start != task.earliest_offset:
        return start, min(view.log_start_offset, task.end_offset)
    if view.log_end_offset < task.end_offset:
        return view.log_end_offset, task.end_offset
    planned = {
        base_offset: (file_id, stamp)
        for each in task.slices
        if each.defect is None
        for base_offset, file_id, stamp in [
            *([] if each.file_before is None else [each.file_before]),
            (each.segment_base_offset, each.file_id, each.stamp),
        ]
    }
    # Not by path: a segment that takes the place of others has two names, one after the other.
    now = {segment.base_offset: segment for segment in view.segments}
    for segment_slice in task.slices:
        if segment_slice.defect is not None:
            continue
        if (segment_slice.next_base_offset or task.end_offset) <= start:
            continue
        segment = now.get(segment_slice.segment_base_offset)
        # No broker shortens an old file. Compaction leaves the replaced ones for a while, and the
        # new file may have the inode number of one that is gone.
        has_shrunk = (
            segment is not None
            and not view.leftover_file_count
            and _has_shrunk(segment, segment_slice)
        )
        if segment is not None and not has_shrunk:
            continue
        if segment_slice.base_offset < view.log_start_offset:
            continue  # retention is faster than a reader that began at the log's start
        index = view.find_segment(segment_slice.base_offset)
        if has_shrunk or index is None or not _has_taken_over(view.segments[index], planned):
            following = segment_slice.next_base_offset
            return (
                max(start, segment_slice.base_offset),
                task.end_offset if following is None else following,
            )
    return None


def _has_shrunk(segment: LogSegmentView, segment_slice: SegmentSlice) -> bool:
    """Whether the very file that was planned is shorter now."""
    is_same = bool(segment_slice.file_id) and segment.file_id == segment_slice.file_id
    return is_same and segment.size_bytes < segment_slice.end_position


def _has_taken_over(segment: LogSegmentView, planned: dict[int, tuple[int, int]]) -> bool:
    """Whether a segment is not the file that was there when the task was planned.

    Compaction puts what it keeps of several segments into one, which may have nothing from the
    offset on that is looked for. Whoever removes a file by hand leaves the ones around it.
    """
    if segment.base_offset not in planned:
        return True
    file_id, stamp = planned[segment.base_offset]
    has_changed = stamp != 0 and segment.stamp not in (0, stamp)
    return segment.file_id != file_id or has_changed


class ReadMemory:
    """What readers use one after the other: fresh memory would cost more than small tasks do."""

    def __init__(self, options: ReadOptions) -> None:
        self.windows = WindowMemory()
        self.decompressor = Decompressor(options.max_decompressed_bytes)
        self._constants: ConstantColumns | None = None

    def constants(self, topic_partition: TopicPartition) -> ConstantColumns:
        """Return those of a partition; they are kept until another one's are wanted."""
        if self._constants is None or self._constants.topic_partition != topic_partition:
            self._constants = ConstantColumns(topic_partition)
        return self._constants


class TaskReader:
    """Reads one task; holds at most one window and what it decodes to. For one thread."""

    def __init__(
        self,
        task: TaskRange,
        schema: pa.Schema | None = None,
        options: ReadOptions | None = None,
        *,
        damage: DamageReport | None = None,
        scanned: ScannedBytes | None = None,
        memory: ReadMemory | None = None,
    ) -> None:
        self._task = task
        self._options = options = options or ReadOptions()
        self._memory = memory or ReadMemory(options)
        self._scanned = scanned
        self._mode = mode = options.mode
        self.is_past = False
        self.damage = DamageReport() if damage is None else damage
        self._pass_damage = self.damage  # of one pass, see `record_batches`
        self._refused = RefusedBatches(self._pass_damage)
        self._given_ranges = 0
        self._position = task.start_offset
        self._aborted = AbortedTransactions(task.aborted)
        self._filter = task.where if task.where and task.where.needs_records else None
        self._shows_damage = mode is ReadMode.PERMISSIVE and not (
            task.where and task.where.is_about_records
        )
        self._schema = record_schema() if schema is None else schema
        self._decoder = self._make_decoder()

    def _make_decoder(self) -> Decoder:
        partition, shared = self._task.topic_partition, self._memory.decompressor
        if self._filter is None:
            constants = self._memory.constants(partition)
            return RecordDecoder(partition, self._schema, decompressor=shared, constants=constants)
        kind = SearchDecoder if self._filter.needs_content else FilteredDecoder
        return kind(partition, self._schema, self._filter, shared)

    def record_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the task's records in offset order, as record batches that own their memory."""
        self._pass_damage = self.damage.for_one_read(self._task.start_offset, self._task.end_offset)
        self._refused = RefusedBatches(self._pass_damage)
        self._given_ranges = 0
        watch = self._abort_watch()
        windows = self._windows(verifies_checksums=True)
        for segment_slice, window in windows:
            if self._scanned is not None:
                self._scanned.add(window)
            self._refused.enter(segment_slice, window)
            yield from self._damaged_rows()
            self._position = windows.position
            wanted = self._wanted(window)
            if watch is not None:
                watch.look(window, wanted, segment_slice.path)
            yield from self._decode(window.select(wanted), segment_slice)
            self._refused.leave(window)
            yield from self._damaged_rows()
            if self._filter is not None and is_past(self._filter, window.headers):
                self.is_past = True
                break
        self._refused.finish()
        if watch is not None:
            watch.look_on()
        yield from self._damaged_rows()

    def _abort_watch(self) -> AbortWatch | None:
        """Return what holds the transaction index against the markers in one pass."""
        task = self._task
        if self._mode.skips_damage or not task.is_committed or not task.access.use_indexes:
            return None  # the markers alone have decided
        return AbortWatch(task)

    def count(self) -> int:
        """Return how many records `record_batches` gives, from batch headers.

        Only batches that the range cuts, compressed v0/v1 wrappers, and batches that count more
        records than they have offsets, are decoded. Checksums and records are looked at of those
        alone: the count trusts the other headers. In modes that skip damage all is decoded, since
        only then it is known what is damaged.
        """
        if self._mode.skips_damage or self._filter is not None:
            return sum(batch.num_rows for batch in self.record_batches())
        total = 0
        watch = self._abort_watch()
        windows = self._windows(verifies_checksums=False)
        for segment_slice, window in windows:
            headers = window.headers
            self._position = start = windows.position
            wanted = self._wanted(window)
            if watch is not None:
                check_some(window, segment_slice, headers.is_control)
                watch.look(window, wanted, segment_slice.path)
            counts = headers.record_counts
            is_possible = headers.has_possible_count
            if wanted is None and headers.offsets[0] >= start and is_possible.all():
                total += int(counts.sum())
                continue
            whole = (
                is_possible
                & (headers.offsets >= start)
                & (headers.last_offsets < self._task.end_offset)
            )
            cut = ~whole
            if wanted is not None:
                whole &= wanted
                cut &= wanted
            total += int(counts[whole].sum())
            if cut.any():
                check_some(window, segment_slice, cut)
                total += sum(
                    batch.num_rows for batch in self._decode(window.select(cut), segment_slice)
                )
        if watch is not None:
            watch.look_on()
        return total

    def _windows(self, *, verifies_checksums: bool) -> TaskWindows:
        return TaskWindows(
            self._task,
            self._options,
            damage=self._pass_damage if self._mode.skips_damage else None,
            verifies_checksums=verifies_checksums,
            memory=self._memory.windows,
        )

    def _wanted(self, window: Window) -> npt.NDArray[np.bool_] | None:
        """Mask the batches that may hold records of the range that an application sees."""
        headers = window.headers
        traits = headers.traits
        if (
            traits.all_v2
            and not traits.any_has(CONTROL_FLAG_MASK)
            and not self._task.aborted
            and headers.last_offsets[0] >= self._position
            and headers.last_offsets[-1] < self._task.end_offset
        ):
            return None
        wanted = ~headers.is_control & (headers.last_offsets >= self._position)
        # A compressed v0/v1 wrapper's offset is its last; it may begin inside the range.
        wanted &= (headers.offsets < self._task.end_offset) | (headers.record_counts < 0)
        if self._task.aborted:
            wanted &= ~self._aborted.mask(headers)
        return wanted

    def _decode(self, window: Window, segment_slice: SegmentSlice) -> Iterator[pa.RecordBatch]:
        if not self._mode.skips_damage:
            yield from self._decode_up_to_error(window)
            return
        # What is left out are batches whose records are not what their header promises.
        decode = self._decode_batches
        for batch in decode_sound(self._decoder, self._refused, segment_slice, window, decode):
            yield from self._damaged_rows()
            yield batch

    def _decode_up_to_error(self, window: Window) -> Iterator[pa.RecordBatch]:
        """Decode; where a batch is wrong, those before it are given before the error."""
        try:
            yield from self._decode_batches(window)
        except LogStorageError as error:
            position = getattr(error, "position", None)
            if position is not None and not self._decoder.has_given_more:
                positions = window.headers.positions
                bad = int(np.searchsorted(positions, position - window.file_position))
                before = window.select(slice(self._decoder.finished_batches, bad))
                if len(before.headers):
                    yield from self._decode_up_to_error(before)
            raise

    def _decode_batches(self, window: Window) -> Iterator[pa.RecordBatch]:
        return self._decoder.decode(window, self._position, self._task.end_offset)

    def _damaged_rows(self) -> Iterator[pa.RecordBatch]:
        ranges_left = self._pass_damage.ranges[self._given_ranges :]
        self._given_ranges += len(ranges_left)
        if self._shows_damage:
            for each in ranges_left:
                yield damaged_row(self._decoder.schema, self._task.topic_partition, str(each))

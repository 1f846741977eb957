"""A `TaskRange` to Arrow record batches, or to a count.

Window by window: batches that have been checked (`pylog.reading.checked_windows`); control batches,
aborted batches and batches outside the range left out; the rest decoded. FAILFAST raises an error
with file, position and cause, once the intact batches before it have been given. The other modes
skip exactly what is damaged and report it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np

from pylog.columnar.arrow_schema import record_schema
from pylog.columnar.decode import RecordDecoder
from pylog.columnar.record_columns import ConstantColumns, damaged_row
from pylog.errors import (
    LogStorageError,
)
from pylog.lazy_modules import LazyModule
from pylog.log_file.segment_windows import WindowMemory
from pylog.reading.checked_windows import ReadOptions, check_some
from pylog.reading.damage import DamageReport, ReadMode
from pylog.reading.refused_batches import RefusedBatches, decode_sound
from pylog.reading.task_windows import TaskWindows
from pylog.reading.transactions import AbortedTransactions, AbortWatch
from pylog.record.batch_header import CONTROL_FLAG_MASK
from pylog.record.compression import Decompressor

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    import pyarrow as pa

    from pylog.model import TopicPartition
    from pylog.reading import filtered_decode
    from pylog.reading.planned_bytes import ScannedBytes
    from pylog.reading.task_range import SegmentSlice, TaskRange
    from pylog.record.batch_scan import Window

    Decoder = RecordDecoder | filtered_decode.FilteredDecoder | filtered_decode.SearchDecoder
else:
    filtered_decode = LazyModule("pylog.reading.filtered_decode")  # few reads have a filter


_LOGGER = logging.getLogger(__name__)


class ReadMemory:
    """What readers use one after the other: fresh memory would cost more than small tasks do."""

    def __init__(self, options: ReadOptions) -> None:
        self.windows = WindowMemory()
        self.decompressor = Decompressor(options.max_decompressed_bytes)
        self.typed = options.typed and options.typed.for_one_thread()
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
        self._pass_damage = self.damage  # of one pass, see `_raw_batches`
        self._refused = RefusedBatches(self._pass_damage)
        self._given_ranges = 0
        self._position = task.start_offset
        self._aborted = AbortedTransactions(task.aborted)
        self._filter = task.where if task.where and task.where.needs_records else None
        self._shows_damage = mode is ReadMode.PERMISSIVE and not (
            task.where and task.where.is_about_records
        )
        self._schema = record_schema() if schema is None else schema
        self._typed = self._memory.typed
        if self._typed is not None and not self._typed.is_wanted(self._schema):
            self._typed = None
        self._typed_schema = self._schema
        if self._typed is not None:
            self._schema = self._typed.raw_schema(self._schema)
        self._decoder = self._make_decoder()

    def _make_decoder(self) -> Decoder:
        partition, shared = self._task.topic_partition, self._memory.decompressor
        if self._filter is None:
            constants = self._memory.constants(partition)
            return RecordDecoder(partition, self._schema, decompressor=shared, constants=constants)
        kind = (
            filtered_decode.SearchDecoder
            if self._filter.needs_content
            else filtered_decode.FilteredDecoder
        )
        return kind(partition, self._schema, self._filter, shared)

    def record_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the task's records in offset order, as record batches that own their memory."""
        if self._typed is None:
            return self._raw_batches()
        partition, mode = self._task.topic_partition, self._mode
        return self._typed.decoded(self._raw_batches(), self._typed_schema, partition, mode)

    def _raw_batches(self) -> Iterator[pa.RecordBatch]:
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
            if self._filter is not None and filtered_decode.is_past(self._filter, window.headers):
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
        tests_fields = self._typed is not None and self._typed.where
        if self._mode.skips_damage or self._filter is not None or tests_fields:
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

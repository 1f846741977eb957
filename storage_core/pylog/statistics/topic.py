"""One topic: what was found in its partitions, put together, as rows of the tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pylog.columnar.arrow_schema import record_schema
from pylog.columnar.decode import RecordDecoder
from pylog.errors import (
    CorruptRecordError,
    InvalidRecordError,
    LogStorageError,
    SegmentVanishedError,
)
from pylog.locations import name_of, printable_location
from pylog.reading.headers import SegmentHeaders
from pylog.record.batch_scan import Window, find_bad_checksum, find_batches
from pylog.record.batch_writer import MAX_INT64
from pylog.record.header_sums import codec_label
from pylog.statistics.batches import BatchStatistics
from pylog.statistics.keys import KeySample, LargestRecords
from pylog.statistics.partition import DataRecords
from pylog.statistics.recompression import Recompression, variants_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pylog.cleaner.offset_map import HashKey
    from pylog.statistics.keys import HotKey
    from pylog.statistics.partition import (
        BatchRun,
        PartitionResult,
        PartitionStatistics,
        SegmentStatistics,
        TopicCounts,
    )

    Row = tuple[object, ...]
    FindRecord = Callable[[str, int, int], tuple[bytes | None, int | None]]


# A sample of one topic: its hot keys, its largest records, and what would be saved.
#
# A topic that is small enough is read as a whole, and then nothing is uncertain.


_RECOMPRESSED_BYTES = 8 << 20
"""Of a topic, before compression: every variant has to compress them."""
_RECOMPRESSED_A_RUN = 1 << 20
_COLUMNS = ("key", "value", "timestamp", "headers")


class TopicSample:
    """What is found in a sample of some partitions. One thread."""

    def __init__(
        self,
        partitions: Sequence[PartitionStatistics],
        codec_ids: Sequence[int],
        hash_key: HashKey,
        most: int,
    ) -> None:
        # What was found
        self.hot_keys: list[HotKey] = []
        self.largest = LargestRecords(most)
        # what other codecs and batch sizes make of it
        self.recompression = Recompression(variants_for(codec_ids))
        self.sampled_bytes = 0  # of ``.log`` files, what has been read.
        self.problems: list[str] = []  # what could not be read, a line for each
        self._partitions = partitions
        self._keys = KeySample()
        self._most = most
        self._records = DataRecords(hash_key)
        self._plain_bytes = 0

    def read(self, budget_bytes: int, advance: Callable[[int], None]) -> None:
        """Read so many bytes, or a little more; all of the partitions if they have no more."""
        whole = sum(each.size_bytes for each in self._partitions)
        windows = self._all_windows() if whole <= budget_bytes else self._runs(budget_bytes)
        for source, path, window in windows:
            try:
                self._add(source, path, window)
            except LogStorageError as error:
                self._note(error)
            self.sampled_bytes += window.size_bytes
            advance(window.size_bytes)
        self.hot_keys = list(self._keys.hot_keys(self._most, self._sampled_share))
        self._keys = KeySample()  # which may be large

    @property
    def is_part(self) -> bool:
        """Whether the sample is less than the whole topic."""
        return self._sampled_share < 1

    @property
    def _sampled_share(self) -> float:
        whole = sum(each.valid_bytes for part in self._partitions for each in part.segments)
        return min(1.0, self.sampled_bytes / whole) if whole else 1.0

    def _all_windows(self) -> Iterator[tuple[int, str, Window]]:
        for source, partition in enumerate(self._partitions):
            try:
                for index, segment in enumerate(partition.view.segments):
                    for window in SegmentHeaders(partition.view, index, verifies_checksums=True):
                        yield source, segment.file_path(), window
            except LogStorageError as error:
                self._note(error)

    def _runs(self, budget_bytes: int) -> Iterator[tuple[int, str, Window]]:
        chosen = [
            (key, source, run)
            for source, partition in enumerate(self._partitions)
            for key, run in partition.runs
        ]
        for _, source, run in sorted(chosen, reverse=True):
            if self.sampled_bytes >= budget_bytes:
                return
            try:
                yield self._read_run(source, run)
            except LogStorageError as error:
                self._note(error)

    def _read_run(self, source: int, run: BatchRun) -> tuple[int, str, Window]:
        segment = self._partitions[source].view.segments[run.segment]
        path = segment.file_path()
        with segment.open_log() as log:
            data = log.read_at(run.position, run.size_bytes)
        if len(data) < run.size_bytes:
            reason = "file has become shorter since its headers were read"
            raise SegmentVanishedError(reason, path, run.position)
        window = Window.of(find_batches(np.frombuffer(data, dtype=np.uint8)), path, run.position)
        bad = find_bad_checksum(window)
        if bad is not None:
            position = run.position + int(window.headers.positions[bad.index])
            raise CorruptRecordError(bad.reason, path, position)
        return source, path, window

    def _note(self, error: LogStorageError) -> None:
        if str(error) not in self.problems:
            self.problems.append(str(error))

    def _add(self, source: int, path: str, window: Window) -> None:
        self._keys.begin_run()
        wanted_bytes = min(_RECOMPRESSED_A_RUN, _RECOMPRESSED_BYTES - self._plain_bytes)
        plain_bytes = 0
        batches: list[int] = []
        if wanted_bytes > 0:
            self.recompression.begin_run()
        try:
            for records in self._records.read(window):
                self._keys.add(records, source)
                sizes = records.sizes_bytes
                self.largest.add(sizes, records.offsets, source)
                if plain_bytes < wanted_bytes:
                    stored = window.headers.sizes_bytes[records.batches]
                    self.recompression.add_batches(records, int(stored.sum()))
                    plain_bytes += int(sizes.sum())
                    batches += records.batches.tolist()
            if batches:
                self._rebatch(source, path, window, batches)
        except LogStorageError:
            if wanted_bytes > 0:
                self.recompression.drop_run()
            raise
        self._plain_bytes += plain_bytes

    def _rebatch(self, source: int, path: str, window: Window, batches: list[int]) -> None:
        schema = record_schema(_COLUMNS, timestamp_unit="ms")
        decoder = RecordDecoder(self._partitions[source].view.topic_partition, schema)
        found = window.select(np.array(batches, dtype=np.int64))
        records = list(decoder.decode(found, 0, MAX_INT64))
        try:
            self.recompression.add_records(records)
        except ValueError as error:  # a timestamp that no producer may give
            reason = f"records cannot be put into other batches: {error}"
            raise InvalidRecordError(reason, path, window.file_position) from error


@dataclass(slots=True)
class TopicStatistics:
    """The partitions of one topic, in their order; counts of its records, and a sample, if any."""

    topic: str
    partitions: Sequence[PartitionResult]
    counts: TopicCounts | None = None
    sample: TopicSample | None = None

    @property
    def size_bytes(self) -> int:
        """The bytes of all ``.log`` files of the topic."""
        return sum(each.headers.size_bytes for each in self.partitions)

    def batches(self) -> BatchStatistics:
        """Return the sums over all headers of the topic."""
        merged = BatchStatistics()
        for each in self.partitions:
            merged.merge(each.headers.batches)
        return merged

    def codec_ids(self) -> list[int]:
        """Return the codecs of the topic, the one with the most bytes first."""
        by_codec = self.batches().by_codec
        return sorted(by_codec, key=lambda each: (-by_codec[each].size_bytes, each))


class TopicRows:
    """The rows that a topic gives each table, by the table's name."""

    def __init__(self, topic: TopicStatistics, most: int, find_record: FindRecord) -> None:
        self._topic = topic
        self._most = most
        self._find_record = find_record

    @cached_property
    def _batches(self) -> BatchStatistics:
        return self._topic.batches()

    def rows(self) -> dict[str, list[Row]]:
        """Return the rows of every table."""
        return {
            "topics": [self._topic_row()],
            "partitions": [self._partition_row(each) for each in self._topic.partitions],
            "segments": list(self._segment_rows()),
            "codecs": list(self._codec_rows()),
            "batch_sizes": list(self._batch_size_rows()),
            "times": list(self._time_rows()),
            "recompression": list(self._recompression_rows()),
            "hot_keys": list(self._hot_key_rows()),
            "largest_records": list(self._largest_record_rows()),
        }

    def _topic_row(self) -> Row:
        parts = self._topic.partitions
        largest = max(parts, key=lambda each: each.headers.size_bytes)
        mean = self._topic.size_bytes / len(parts)
        known = [each.is_compacted for each in parts if each.is_compacted is not None]
        live = [each.live for each in parts]
        is_live_known = bool(live) and all(each is not None for each in live)
        found = [each for each in live if each is not None] if is_live_known else []
        return (
            self._topic.topic,
            len(parts),
            sum(len(each.headers.segments) for each in parts),
            self._topic.size_bytes,
            largest.headers.topic_partition.partition,
            largest.headers.size_bytes / mean if mean else None,
            *_counted(self._batches, (each for part in parts for each in part.headers.segments)),
            any(known) if known else None,
            sum(each.live_bytes for each in found) if is_live_known else None,
            sum(each.dead_bytes for each in found) if is_live_known else None,
        )

    def _partition_row(self, part: PartitionResult) -> Row:
        headers = part.headers
        segments = headers.segments
        return (
            self._topic.topic,
            headers.topic_partition.partition,
            len(segments),
            headers.size_bytes,
            segments[0].base_offset if segments else None,
            segments[-1].next_offset if segments else None,
            *_counted(headers.batches, segments),
            part.is_compacted,
            None if part.live is None else part.live.live_bytes,
            None if part.live is None else part.live.dead_bytes,
            printable_location(headers.view.directory.path),
            headers.problems,
        )

    def _segment_rows(self) -> Iterator[Row]:
        for part in self._topic.partitions:
            for each in part.headers.segments:
                yield (
                    self._topic.topic,
                    part.headers.topic_partition.partition,
                    name_of(each.path),
                    each.base_offset,
                    each.next_offset,
                    each.size_bytes,
                    each.valid_bytes,
                    each.sums.batches,
                    each.sums.records,
                    each.sums.min_timestamp,
                    each.sums.max_timestamp,
                    [codec_label(codec) for codec in sorted(each.sums.codec_ids)],
                )

    def _codec_rows(self) -> Iterator[Row]:
        for codec_id in self._topic.codec_ids():
            sums = self._batches.by_codec[codec_id]
            yield (
                self._topic.topic,
                codec_label(codec_id),
                sums.batches,
                sums.records,
                sums.uncounted_batches,
                sums.size_bytes,
            )

    def _batch_size_rows(self) -> Iterator[Row]:
        for measure, histogram in (
            ("bytes", self._batches.by_size),
            ("records", self._batches.by_records),
        ):
            for each in histogram:
                yield (self._topic.topic, measure, *each)

    def _time_rows(self) -> Iterator[Row]:
        times = self._batches.times
        for each in times:
            yield (self._topic.topic, each.start_ms, times.interval_ms, *each[1:])
        if times.untimed.batches:
            yield (self._topic.topic, None, None, *times.untimed[1:])

    def _recompression_rows(self) -> Iterator[Row]:
        sample = self._topic.sample
        data_bytes = self._batches.data.size_bytes
        if sample is None or not data_bytes:
            return
        for each in sample.recompression.savings(sample.recompression.stored_bytes / data_bytes):
            yield (
                self._topic.topic,
                each.variant.codec.label,
                each.variant.level,
                each.variant.batch_size,
                each.stored_bytes,
                each.recompressed_bytes,
                each.ratio.estimate,
                each.ratio.low,
                None if math.isinf(each.ratio.high) else each.ratio.high,
                round(each.ratio.estimate * data_bytes),
            )

    def _records(self) -> tuple[TopicCounts | TopicSample | None, bool]:
        """Return what is known of keys and single records, and whether it is that of a sample."""
        sample = self._topic.sample
        if self._topic.counts is not None or sample is None:
            return self._topic.counts, False
        return sample, sample.is_part

    def _hot_key_rows(self) -> Iterator[Row]:
        found, is_sampled = self._records()
        for hot in () if found is None else found.hot_keys:
            key, partition = None, None
            if hot.source is not None and hot.offset is not None:
                partition = self._partition_of(hot.source)
                key, _ = self._find_record(self._topic.topic, partition, hot.offset)
            yield (
                self._topic.topic,
                key,
                partition,
                hot.offset,
                hot.records,
                dict(zip(("share", "low", "high"), hot.of_records, strict=True)),
                dict(zip(("share", "low", "high"), hot.of_bytes, strict=True)),
                is_sampled,
            )

    def _largest_record_rows(self) -> Iterator[Row]:
        found, is_sampled = self._records()
        for each in () if found is None else found.largest:
            partition = self._partition_of(each.source)
            key, timestamp = self._find_record(self._topic.topic, partition, each.offset)
            yield (
                self._topic.topic,
                partition,
                each.offset,
                each.size_bytes,
                key,
                timestamp,
                is_sampled,
            )

    def _partition_of(self, source: int) -> int:
        return self._topic.partitions[source].headers.topic_partition.partition


def _counted(batches: BatchStatistics, segments: Iterable[SegmentStatistics]) -> Row:
    """Return what topics and partitions have in common, up to the largest lateness."""
    data, order = batches.data, batches.order
    sums = [each.sums for each in segments]
    lowest = [each.min_timestamp for each in sums if each.min_timestamp is not None]
    highest = [each.max_timestamp for each in sums if each.max_timestamp is not None]
    return (
        data.batches,
        data.records,
        data.uncounted_batches,
        data.size_bytes,
        batches.control.batches,
        batches.transactional.records,
        min(lowest, default=None),
        max(highest, default=None),
        order.late_batches,
        order.latest_by_ms,
        order.future_batches,
    )

"""The tables of `LogStatistics`: their columns, and the rows that a topic gives each of them.

Each table is declared as its text, see `pylog.columnar.rows`.

``size_in_bytes`` is the size of ``.log`` files, ``bytes`` that of batches as they are stored.
Records and batches are without control records, which are the broker's own; segments count all.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

from pylog.columnar.rows import TableText
from pylog.locations import name_of, printable_location
from pylog.record.header_sums import codec_label

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from pylog.statistics.batches import BatchStatistics
    from pylog.statistics.partition import PartitionResult, SegmentStatistics, TopicCounts
    from pylog.statistics.topic import TopicSample, TopicStatistics

    Row = tuple[object, ...]
    FindRecord = Callable[[str, int, int], tuple[bytes | None, int | None]]


_COUNTED = """\
batches               int64     whole ones, without those of control records
records               int64     in them, without those of uncounted batches
uncounted_batches     int64     compressed v0/v1 wrappers: unless all records are read, these
                                hide how many they hold
bytes                 int64     of batches as they are stored
control_batches       int64     what brokers wrote themselves
transactional_records int64     records in transactions
min_timestamp         timestamp the smallest that a header has
max_timestamp         timestamp the largest that a header has
late_batches          int64     whose largest timestamp is below that of a batch before them
late_by_ms            int64     by how much at the most
future_batches        int64     whose largest timestamp is after the moment of these statistics
is_compacted          bool      null where that is not known, or not all records have been read
live_bytes            int64     what a compaction of the whole log would keep; null likewise
dead_bytes            int64     what it would remove; null likewise
"""
_TEXTS = {
    "topics": f"""Topics.

topic                 string
partitions            int64
segments              int64
size_in_bytes         int64
largest_partition     int32
skew                  double    size of the largest partition ÷ mean size
{_COUNTED}""",
    "partitions": f"""Partitions.

topic                 string
partition             int32
segments              int64
size_in_bytes         int64
start_offset          int64
end_offset            int64
{_COUNTED}path                  string    of the directory
problems              list<string> what could not be read, and is not counted
""",
    "segments": """Segments, control batches and all.

topic                 string
partition             int32
segment               string
base_offset           int64
next_offset           int64
size_in_bytes         int64
valid_bytes           int64
batches               int64
records               int64
min_timestamp         timestamp
max_timestamp         timestamp
codecs                list<string>
""",
    "codecs": """Batches by their codec.

topic                 string
codec                 string
batches               int64
records               int64
uncounted_batches     int64
bytes                 int64
""",
    "batch_sizes": """Batches by what they hold, in ranges ``[start, end)`` of a measure.

topic                 string
measure               string    bytes or records
start                 int64
end                   int64
batches               int64
records               int64
bytes                 int64
""",
    "times": """Batches by the interval that their largest timestamp is in.

topic                 string
start                 timestamp null for batches without a timestamp
interval_ms           int64
batches               int64
records               int64
bytes                 int64
spanning_records      int64     of batches that began before the interval
spanning_bytes        int64     likewise
""",
    "recompression": """What batches take with another codec, level or size, by a sample.

topic                 string
codec                 string
level                 int32
batch_size            int64     before compression; null for batches as they are
sampled_bytes         int64
recompressed_bytes    int64
ratio                 double    to what they take now
ratio_low             double    in 95 % of samples it is above this
ratio_high            double    and below this; null where one run is too little
estimated_bytes       int64
""",
    "disk": """All files under the log directories, as ``du --apparent-size`` counts them.

path                  string    of the log directory, or of a partition's that was named itself
kind                  string    log, index, timeindex, txnindex, snapshot; deleted, cleaned, swap by
                                the end of the name; delete, stray, future by that of the
                                partition directory; checkpoint; other; beside the partitions
size_in_bytes         int64
""",
    "hot_keys": """The most frequent keys; the row without an offset is for records without a key.

topic                 string
key                   binary
partition             int32
offset                int64
records               int64
of_records            share     of the topic's records: certainly between low and high where all
                                were read, in 95 % of samples otherwise
of_bytes              share     of their bytes before compression
is_sampled            bool
""",
    "largest_records": """The largest records.

topic                 string
partition             int32
offset                int64
record_bytes          int64
key                   binary
timestamp             timestamp
is_sampled            bool
""",
}
SCHEMAS: dict[str, pa.Schema] = {
    name: TableText.parse(text).schema for name, text in _TEXTS.items()
}
"""The columns of each table."""


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

"""One topic: what was found in its partitions, put together, with a sample of its records."""

from __future__ import annotations

from dataclasses import dataclass
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
from pylog.reading.headers import SegmentHeaders
from pylog.record.batch_scan import Window, find_bad_checksum, find_batches
from pylog.record.batch_writer import MAX_INT64
from pylog.statistics.batches import BatchStatistics
from pylog.statistics.keys import KeySample, LargestRecords
from pylog.statistics.partition import DataRecords
from pylog.statistics.recompression import Recompression, variants_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pylog.cleaner.offset_map import HashKey
    from pylog.statistics.keys import HotKey
    from pylog.statistics.partition import (
        BatchRun,
        PartitionResult,
        PartitionStatistics,
        TopicCounts,
    )


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

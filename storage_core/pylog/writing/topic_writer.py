"""Records from Arrow to a topic's logs: a partition for each row, batches, appends.

Rows keep their order within a partition. Whatever has been appended stays, also where a later row
is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pylog.columnar.encode import DEFAULT_BATCH_SIZE_BYTES, EncodedChunk, RecordEncoder
from pylog.files.file_names import ensure_valid_topic, ensure_valid_topic_partition
from pylog.model import CompressionType, TopicPartition
from pylog.record.batches_writer import set_base_offsets
from pylog.validation.record_rules import size_rules
from pylog.writing.partitioner import UNASSIGNED, PartitionAssignment, rows_by_partition
from pylog.writing.record_rows import RecordRow, rows_to_batch
from pylog.writing.topics import (
    add_partition,
    closed_logs_of_topic,
    open_logs_of_topic,
)
from pylog.writing.write_summary import PartitionSummary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from pylog.config import LogConfig
    from pylog.log.log_manager import LogManager
    from pylog.log.unified_log import UnifiedLog
    from pylog.writing.partitioner import Partitioner


def encoder_for(
    config: LogConfig, compression: CompressionType, level: int | None, batch_size_bytes: int
) -> RecordEncoder:
    """Return what makes batches as a topic wants them: in its codec, and not above its limits."""
    target = config.target_compression_type(compression)
    if target is not compression:  # the log would decompress, and compress with this
        level = config.target_compression_level
    most = min(each.most_bytes for each in size_rules(config))
    if target is not CompressionType.NONE:
        most -= most // 100  # what cannot be compressed grows a little
    size = batch_size_bytes if batch_size_bytes < 1 else min(batch_size_bytes, max(most, 1))
    return RecordEncoder(
        compression=target,
        level=level,
        batch_size_bytes=size,
        max_record_bytes=config.max_decompressed_message_bytes,
    )


class TopicWriter:
    """Appends rows to the logs of one topic. One thread."""

    def __init__(  # noqa: PLR0913 - keyword-only options
        self,
        topic: str,
        logs: Mapping[int, UnifiedLog],
        config: LogConfig,
        *,
        compression: CompressionType = CompressionType.NONE,
        level: int | None = None,
        batch_size_bytes: int = DEFAULT_BATCH_SIZE_BYTES,
        partitioner: Partitioner | None = None,
    ) -> None:
        self.summaries: dict[int, PartitionSummary] = {}
        self._topic = topic
        self._logs = logs
        self._assignment = PartitionAssignment(topic, logs, partitioner)
        self._encoder = encoder_for(config, compression, level, batch_size_bytes)

    def assign(
        self, batch: pa.RecordBatch, partitions: npt.NDArray[np.integer[Any]] | None
    ) -> npt.NDArray[np.int64]:
        """Return the partition that each row is appended to."""
        return self._assignment.assign(batch, partitions)

    def append(
        self,
        batch: pa.RecordBatch,
        *,
        timestamp_ms: int,
        partitions: npt.NDArray[np.integer[Any]] | None = None,
    ) -> None:
        """Append all rows."""
        if batch.num_rows == 0:
            return
        assigned = self.assign(batch, partitions)
        for partition, rows in rows_by_partition(assigned):
            part = batch if rows is None else batch.take(pa.array(rows))
            self._append_to(partition, part, timestamp_ms)

    def _append_to(self, partition: int, rows: pa.RecordBatch, timestamp_ms: int) -> None:
        log = self._logs[partition]
        leader_epoch = max(log.latest_epoch or 0, 0)
        for chunk in self._encoder.encode_chunks(rows, timestamp_ms=timestamp_ms):
            # The log gives offsets; no checksum covers it.
            set_base_offsets(chunk.data, chunk.positions, 0)
            end_before = log.log_end_offset
            try:
                log.append_batches_as_leader(chunk.data, leader_epoch)
            finally:
                self._count(partition, chunk, end_before)

    def _count(self, partition: int, chunk: EncodedChunk, end_before: int) -> None:
        """Count the batches of a chunk that are in the log, which ended at ``end_before``."""
        end_offset = self._logs[partition].log_end_offset
        counts = np.cumsum(chunk.record_counts)
        appended = int(np.searchsorted(counts, end_offset - end_before, side="right"))
        if not appended:
            return
        summary = self.summaries.get(partition)
        if summary is None:
            place = TopicPartition(self._topic, partition)
            summary = self.summaries[partition] = PartitionSummary(place)
        summary.add(int(counts[appended - 1]), int(chunk.ends[appended - 1]), end_offset)


class TopicDestination:
    """One topic: its logs, and the rows that are about to be appended to them."""

    def __init__(
        self,
        manager: LogManager,
        topic: str,
        make_writer: Callable[..., TopicWriter],
        partitions: int = 1,
    ) -> None:
        ensure_valid_topic(topic)
        self._manager = manager
        self._topic = topic
        self._logs = open_logs_of_topic(manager, topic)
        self._closed = closed_logs_of_topic(manager, topic)
        self.is_new = not self._logs and not self._closed
        self._has_config = not self.is_new
        self._default_partitions = range(partitions)
        self._to_make: set[int] = set()
        self._rows: list[RecordRow] = []
        self._partitions: list[int] = []
        self._batches: list[tuple[pa.RecordBatch, npt.NDArray[np.int64]]] = []
        config = manager.config if self.is_new else manager.config_of(topic)
        self._writer = make_writer(topic, self._logs, config)

    @property
    def summaries(self) -> list[PartitionSummary]:
        """The summaries of the partitions that were appended to."""
        return list(self._writer.summaries.values())

    @property
    def partitions(self) -> list[int]:
        """The numbers of the partitions that exist."""
        return sorted(self._logs)

    def add(self, partition: int | None, row: RecordRow) -> None:
        """Take a row; a topic that is new gets the partitions that its rows name."""
        self._ensure_some_partition(partition)
        self._rows.append(row)
        self._partitions.append(UNASSIGNED if partition is None else partition)

    def add_batch(self, partition: int | None, rows: pa.RecordBatch) -> None:
        """Take many rows of one partition, or of whichever each is given; see `add`."""
        self._ensure_some_partition(partition)
        self._end_rows()
        number = UNASSIGNED if partition is None else partition
        self._batches.append((rows, np.full(rows.num_rows, number, dtype=np.int64)))

    def _ensure_some_partition(self, partition: int | None) -> None:
        if partition is not None:
            self.ensure_partition(partition)
        elif self._closed:  # without them, keys would go to other partitions
            raise next(iter(self._closed.values()))
        elif not self._logs and not self._to_make:
            self._to_make.update(self._default_partitions)

    def _end_rows(self) -> None:
        if self._rows:
            partitions = np.array(self._partitions, dtype=np.int64)
            self._batches.append((rows_to_batch(self._rows), partitions))
            self._rows, self._partitions = [], []

    def ensure_partition(self, partition: int) -> None:
        """Note that the partition has to be there, or raise ``ValueError``: see `add`."""
        if partition in self._logs:
            return
        if partition in self._closed:
            raise self._closed[partition]
        if not self.is_new:
            there = ", ".join(map(str, self._logs))
            msg = f"topic {self._topic!r} has no partition {partition} here; found {there}"
            raise ValueError(msg)
        ensure_valid_topic_partition(TopicPartition(self._topic, partition))
        self._to_make.add(partition)

    def flush(self, now_ms: int) -> None:
        """Append the rows taken; those without a timestamp are of ``now_ms``."""
        self._end_rows()
        batches, self._batches = self._batches, []
        for batch, partitions in batches:
            self._make_partitions()
            self._writer.append(batch, timestamp_ms=now_ms, partitions=partitions)

    def _make_partitions(self) -> None:
        if not self._has_config:
            self._manager.store_topic_config(self._topic, {})  # not those of one that was deleted
            self._has_config = True
        for partition in sorted(self._to_make):
            self._logs[partition] = add_partition(self._manager, self._topic, partition)
        self._to_make.clear()

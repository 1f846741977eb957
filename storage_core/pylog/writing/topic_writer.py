"""Records from Arrow to a topic's logs: a partition for each row, batches, appends.

Rows keep their order within a partition. Whatever has been appended stays, also where a later row
is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pylog.columnar.encode import DEFAULT_BATCH_SIZE_BYTES, EncodedChunk, RecordEncoder
from pylog.model import CompressionType, TopicPartition
from pylog.record.batches_writer import set_base_offsets
from pylog.writing.partition_assignment import PartitionAssignment, rows_by_partition
from pylog.writing.write_summary import PartitionSummary

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from pylog.config import LogConfig
    from pylog.log.unified_log import UnifiedLog
    from pylog.writing.partition_assignment import Partitioner


def parse_compression(name: str | CompressionType) -> CompressionType:
    """Return the codec that ``name`` stands for, in any case.

    Raises
    ------
    ValueError
        There is no codec of that name.
    """
    if isinstance(name, CompressionType):
        return name
    for codec in CompressionType:
        if name.strip().lower() == codec.label:
            return codec
    known = ", ".join(codec.label for codec in CompressionType)
    msg = f"compression {name!r} is not one of {known}"
    raise ValueError(msg)


def encoder_for(
    config: LogConfig, compression: CompressionType, level: int | None, batch_size_bytes: int
) -> RecordEncoder:
    """Return what makes batches as a topic wants them: in its codec, and not above its limits.

    Parameters
    ----------
    config
        Of the topic.
    compression, level, batch_size_bytes
        What is wanted, as of `TopicWriter`.

    Raises
    ------
    ValueError
        The codec has no such level, or the size is out of range.
    """
    target = config.target_compression_type(compression)
    if target is not compression:  # the log would decompress, and compress with this
        level = config.target_compression_level
    most = min(config.max_message_bytes, config.segment_bytes)
    if target is not CompressionType.NONE:
        most -= most // 100  # what cannot be compressed grows a little
    size = batch_size_bytes if batch_size_bytes < 1 else min(batch_size_bytes, max(most, 1))
    return RecordEncoder(compression=target, level=level, batch_size_bytes=size)


class TopicWriter:
    """Appends rows to the logs of one topic. One thread.

    Parameters
    ----------
    topic
        The name of the topic, for errors.
    logs
        The logs by partition; more may be added while the writer is used.
    config
        The configuration of the topic. If it demands a codec, records are compressed with that one.
    compression, level
        The codec of the batches, and its level; None for Kafka's default.
    batch_size_bytes
        See `RecordEncoder`; never more than the topic allows.
    partitioner
        A function that returns the partition of each row of a record batch; `ByKey` if None.

    Attributes
    ----------
    summaries
        What has been appended, by partition.

    Raises
    ------
    ValueError
        The codec has no such level, or the size is out of range.
    """

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

    def append(
        self,
        batch: pa.RecordBatch,
        *,
        timestamp_ms: int,
        partitions: npt.NDArray[np.integer[Any]] | None = None,
    ) -> None:
        """Append all rows.

        Parameters
        ----------
        batch
            With columns ``key`` and ``value``, perhaps ``timestamp`` and ``headers``, as
            `pylog.columnar.encode` describes.
        timestamp_ms
            Of the rows that have none.
        partitions
            Of each row; `UNASSIGNED` where the partitioner shall choose. None: of all rows.

        Raises
        ------
        ValueError
            A column is of a wrong type, a row's content impossible, or its partition not there.
        LogStorageError
            The log refuses a batch: see `UnifiedLog.append_batches_as_leader`.
        """
        if batch.num_rows == 0:
            return
        assigned = self._assignment.assign(batch, partitions)
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

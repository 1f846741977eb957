"""Records from Arrow to a topic's logs: a partition for each row, batches, appends.

Rows keep their order within a partition. Whatever has been appended stays, also where a later row
is refused.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pylog.columnar.binary_column import binary_column
from pylog.columnar.encode import DEFAULT_BATCH_SIZE_BYTES, EncodedChunk, RecordEncoder
from pylog.model import CompressionType, TopicPartition
from pylog.record.batches_writer import set_base_offsets
from pylog.writing.partitioner import DefaultPartitioner
from pylog.writing.write_summary import PartitionSummary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from pylog.config import LogConfig
    from pylog.log.unified_log import UnifiedLog

    Partitioner = Callable[[pa.RecordBatch], npt.ArrayLike]

UNASSIGNED = -1
"""Stands for a row whose partition the partitioner chooses."""

_RECORD_OVERHEAD = 8  # bytes of an encoded record beside key and value, about


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


def record_sizes(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Return about how many bytes each record takes, for a partitioner that balances bytes."""
    sizes = np.full(batch.num_rows, _RECORD_OVERHEAD, dtype=np.int64)
    for name in ("key", "value"):
        ends = binary_column(batch.column(name), name).ends
        if ends.size:
            sizes += np.diff(ends)
    return sizes


class ByKey:
    """Kafka's default partitioner as a function of a record batch; see `DefaultPartitioner`."""

    def __init__(self, partition_count: int, random_source: random.Random | None = None) -> None:
        self.partition_count = partition_count
        self._partitioner = DefaultPartitioner(partition_count, random_source or random.Random())  # noqa: S311 - no secret

    def __call__(self, batch: pa.RecordBatch) -> npt.NDArray[np.int32]:
        """Return the partition of each row."""
        return self._partitioner.partition_column(batch.column("key"), record_sizes(batch))


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
        self._partitioner = partitioner
        self._by_key: ByKey | None = None
        target = config.target_compression_type(compression)
        if target is not compression:  # the log would decompress, and compress with this
            level = config.target_compression_level
        most = min(config.max_message_bytes, config.segment_bytes)
        size = batch_size_bytes if batch_size_bytes < 1 else min(batch_size_bytes, max(most, 1))
        self._encoder = RecordEncoder(compression=target, level=level, batch_size_bytes=size)

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
        assigned = self._assigned(batch, partitions)
        first = int(assigned[0])
        if (assigned == first).all():
            self._append_to(first, batch, timestamp_ms)
            return
        # Stable: rows of a partition stay in order.
        order = np.argsort(assigned, kind="stable")
        numbers, starts = np.unique(assigned[order], return_index=True)
        for partition, rows in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
            self._append_to(partition, batch.take(pa.array(rows)), timestamp_ms)

    def _assigned(
        self, batch: pa.RecordBatch, partitions: npt.NDArray[np.integer[Any]] | None
    ) -> npt.NDArray[np.int64]:
        if partitions is None:
            assigned = self._chosen(batch)
        else:
            is_open = partitions == UNASSIGNED
            assigned = partitions.astype(np.int64)
            if is_open.any():
                assigned[is_open] = self._chosen(batch.filter(pa.array(is_open)))
        known = np.fromiter(self._logs, dtype=np.int64)
        is_unknown = ~np.isin(assigned, known)
        if is_unknown.any():
            row = int(is_unknown.argmax())
            there = ", ".join(map(str, self._logs)) or "none"
            msg = (
                f"row {row} goes to partition {assigned[row]} of topic {self._topic!r}; "
                f"partitions that are there: {there}"
            )
            raise ValueError(msg)
        return assigned

    def _chosen(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        if self._partitioner is None and list(self._logs) == [0]:
            return np.zeros(batch.num_rows, dtype=np.int64)
        partitioner = self._partitioner or self._by_key_now()
        chosen = np.asarray(partitioner(batch))
        if chosen.shape != (batch.num_rows,) or chosen.dtype.kind not in "iu":
            msg = (
                f"partitioner gave {chosen.dtype} of shape {chosen.shape}, expected "
                f"{batch.num_rows} integers"
            )
            raise ValueError(msg)
        return chosen.astype(np.int64)

    def _by_key_now(self) -> ByKey:
        """Return the default partitioner over the partitions that are there now."""
        count = len(self._logs)
        if set(range(count)) != set(self._logs):
            msg = (
                f"partitions {', '.join(map(str, self._logs))} of topic {self._topic!r} are "
                "here, not all from 0 on: a key then does not decide the partition; name "
                "the partition of each record"
            )
            raise ValueError(msg)
        if self._by_key is None or self._by_key.partition_count != count:
            self._by_key = ByKey(count)
        return self._by_key

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

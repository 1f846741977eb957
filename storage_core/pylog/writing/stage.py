"""What a task stages: batches of each topic-partition, in files that a commit takes in.

Rows are held against everything that a leader's append holds them against, by the configuration
that the topic has now, so that a commit need not look at them. A row that cannot be written is an
error that names it, by its number in the attempt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pylog.columnar.encode_input import columns_of, is_binary_type
from pylog.files.owned_directories import writable_log_directory
from pylog.files.staged_files import (
    StagedFile,
    StagedRecords,
)
from pylog.lazy_modules import LazyModule
from pylog.log.log_context import LogContext
from pylog.record.compressor import parse_compression
from pylog.writing.partitioner import (
    UNASSIGNED,
    ensure_known_partitioner,
    rows_by_partition,
)
from pylog.writing.record_rows import ColumnNames, find_columns
from pylog.writing.stage_files import StageFiles
from pylog.writing.staged_topic import StagedTopic, TopicState

if TYPE_CHECKING:
    from types import TracebackType

    import numpy.typing as npt

    from pylog.writing import column_encoder
    from pylog.writing.write_summary import JobDescription
else:
    column_encoder = LazyModule("pylog.writing.column_encoder")


_WAITING_BYTES = 64 << 20
"""Of the open batches of all partitions; then all are written, full or not."""


class JobStage:
    """Takes the rows of one attempt; see `WriteJob.stage`. One thread."""

    def __init__(
        self, job: JobDescription, attempt: str, context: LogContext | None = None
    ) -> None:
        self.job = job
        self.attempt = attempt
        self.row_count = 0
        self._context = context or LogContext()
        ensure_known_partitioner(job.partitioner)
        parse_compression(job.compression)
        self._files = StageFiles(writable_log_directory(job.directory), self._context.io, job.key)
        self._topics: dict[str, StagedTopic] = {}
        self._staged: StagedRecords | None = None

    @property
    def staged(self) -> StagedRecords:
        """What has been staged, for `WriteJob.commit`; known after the ``with`` block."""
        if self._staged is None:
            msg = f"nothing was staged by attempt {self.attempt!r}: its block has not ended well"
            raise ValueError(msg)
        return self._staged

    def append(self, batch: pa.RecordBatch) -> None:
        """Take rows; columns and types as of `pylog.write_topic`, by their usual names."""
        first_row = self.row_count
        partition = "partition" if "partition" in batch.schema.names else None
        encoders = self.job.encoders
        names = ColumnNames(None, "value", None, None, partition)
        columns = find_columns(batch.schema, names, encoders)
        parts = {name: batch.column(found) for name, found in columns.items()}
        if encoders:
            typed = pa.RecordBatch.from_arrays(list(parts.values()), names=list(parts))
            encoded = column_encoder.encode_columns(typed, encoders, first_row)
            parts = dict(zip(encoded.schema.names, encoded.columns, strict=True))
        named = _named_partitions(parts.pop("partition", None), first_row)
        parts.setdefault("key", pa.nulls(batch.num_rows, pa.binary()))
        now_ms = self._context.clock.milliseconds()
        checked = columns_of(
            pa.RecordBatch.from_arrays(list(parts.values()), names=list(parts)), now_ms, first_row
        )
        parts["timestamp"] = pa.array(checked.timestamps)
        rows = pa.RecordBatch.from_arrays(list(parts.values()), names=list(parts))
        numbers = np.arange(first_row, first_row + batch.num_rows, dtype=np.int64)
        for topic, chosen in self._by_topic(batch, first_row):
            if chosen is None:
                self._topic(topic).add(rows, checked, named, numbers, now_ms)
                continue
            taken = rows.take(pa.array(chosen))
            of_topic = None if named is None else named[chosen]
            self._topic(topic).add(
                taken, columns_of(taken, now_ms, first_row), of_topic, numbers[chosen], now_ms
            )
        self.row_count += batch.num_rows
        self._limit_memory()

    def _topic(self, name: str) -> StagedTopic:
        topic = self._topics.get(name)
        if topic is None:
            state = TopicState(self.job, self._files.directory, name)
            topic = self._topics[name] = StagedTopic(self.job, state, self._files)
            io = self._context.io
            io.make_directory(self._files.directory, exist_ok=True)
        return topic

    def _by_topic(
        self, batch: pa.RecordBatch, first_row: int
    ) -> list[tuple[str, npt.NDArray[np.intp] | None]]:
        """Return the topics of the rows, each with its rows; None for all of them."""
        if not batch.num_rows:
            return []
        if self.job.topic is not None:
            return [(self.job.topic, None)]
        column = _topic_column(batch)
        if column.null_count:
            row = first_row + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            msg = f"row {row} has no topic: name one for all rows, or leave the row out"
            raise ValueError(msg)
        encoded = column.cast(pa.string()).dictionary_encode()
        codes = encoded.indices.to_numpy().astype(np.int64)
        names = encoded.dictionary.to_pylist()
        return [(names[code], chosen) for code, chosen in rows_by_partition(codes)]

    def _limit_memory(self) -> None:
        partitions = [each for topic in self._topics.values() for each in topic.partitions.values()]
        if sum(each.waiting_bytes for each in partitions) >= _WAITING_BYTES:
            for each in partitions:
                each.write()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._files.discard()
            return
        try:
            self._finish()
        except BaseException:
            self._files.discard()
            raise

    def _finish(self) -> None:
        files: list[StagedFile] = []
        for topic in self._topics.values():
            for _, partition in sorted(topic.partitions.items()):
                files += partition.finish()
        self._files.sync()
        rules = tuple(topic.rules for topic in self._topics.values())
        self._staged = StagedRecords(self.job.key, self.attempt, tuple(files), rules)


def _topic_column(batch: pa.RecordBatch) -> pa.Array:
    if batch.schema.names.count("topic") != 1:
        names = ", ".join(batch.schema.names)
        msg = (
            f"neither does the job name a topic, nor is there one column 'topic'; columns: {names}"
        )
        raise ValueError(msg)
    column = batch.column("topic")
    if not is_binary_type(column.type):
        msg = f"column 'topic' is of type {column.type}, expected text"
        raise ValueError(msg)
    return column


def _named_partitions(column: pa.Array | None, first_row: int) -> npt.NDArray[np.int64] | None:
    if column is None:
        return None
    if column.null_count < len(column) and pc.min(column).as_py() < 0:
        row = first_row + int(np.argmax(column.fill_null(0).to_numpy() < 0))
        msg = f"row {row} names partition {pc.min(column).as_py()}: partitions count from 0"
        raise ValueError(msg)
    named: npt.NDArray[np.int64] = (
        column.cast(pa.int64()).fill_null(UNASSIGNED).to_numpy(zero_copy_only=False)
    )
    return named

"""The rows of one attempt of a task, staged for a job: checked, given partitions, written.

Rows are held against everything that a leader's append holds them against, by the configuration
that the topic has now, so that a commit need not look at them. A row that cannot be written is an
error that names it, by its number in the attempt.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pylog.columnar.binary_column import is_binary_type
from pylog.columnar.encode_input import columns_of
from pylog.config import LogConfig
from pylog.errors import InvalidRecordError, InvalidTimestampError, KafkaStorageError
from pylog.files.commit_manifest import read_manifest
from pylog.files.partition_directories import partition_directories
from pylog.files.staged_files import StagedRecords, TopicRules, entries_name, staged_file_name
from pylog.files.topic_configs import TopicConfigs
from pylog.files.topic_name import ensure_valid_topic
from pylog.files.writable_directory import writable_log_directory
from pylog.log.log_context import LogContext
from pylog.model import NO_TIMESTAMP, TimestampType, TopicPartition
from pylog.writing.named_partitioners import ensure_known_partitioner, partitioner_for
from pylog.writing.partition_assignment import (
    UNASSIGNED,
    PartitionAssignment,
    rows_by_partition,
)
from pylog.writing.record_rows import ColumnNames
from pylog.writing.staged_partition import StagedPartition, StageFiles
from pylog.writing.table_columns import find_columns
from pylog.writing.topic_writer import encoder_for, parse_compression

if TYPE_CHECKING:
    from types import TracebackType

    import numpy.typing as npt

    from pylog.files.commit_manifest import NewTopic
    from pylog.files.staged_files import StagedFile
    from pylog.writing.job_description import JobDescription

_PARTITION_BYTES = 1 << 20
"""Rows of a partition are encoded together until there are that many bytes of them."""
_WAITING_BYTES = 64 << 20
"""Of all partitions together; then all are written."""

_RULES = (
    "cleanup.policy",
    "compression.type",
    "max.message.bytes",
    "message.timestamp.type",
    "message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms",
)
"""Properties that rows are held against when they are staged."""


class TopicState:
    """What a log directory says of one topic, without its lock.

    A topic that a commit is making has all its partitions from the manifest on: of those that were
    made already some may be missing, and after a crash for long.

    Attributes
    ----------
    rules
        What rows are held against.
    config
        The topic's configuration.
    """

    def __init__(self, job: JobDescription, directory: str, topic: str) -> None:
        ensure_valid_topic(topic)
        announced = _announced(directory, topic)
        numbers = sorted(
            name.topic_partition.partition
            for _, name in (partition_directories(directory) if os.path.isdir(directory) else [])  # noqa: PTH112
            if name.topic_partition.topic == topic and not name.state
        )
        announced = announced or _announced(directory, topic)  # it may have begun meanwhile
        configs = TopicConfigs(LogConfig())
        if announced is not None:
            numbers = sorted({*numbers, *range(announced.partitions)})
            self.config = configs.with_properties(announced.properties)
        elif numbers:
            configs.load([directory])
            self.config = configs.config_of(topic)
        else:
            self.config = configs.with_properties(job.config)
        self.rules = rules_of(
            topic, numbers or range(job.partitions or 1), self.config, is_new=not numbers
        )


def _announced(directory: str, topic: str) -> NewTopic | None:
    """Return a topic as a commit is making it; None if no commit does."""
    manifest = read_manifest(directory)
    topics = () if manifest is None else manifest.new_topics
    return next((each for each in topics if each.topic == topic), None)


def rules_of(
    topic: str, partitions: range | list[int], config: LogConfig, *, is_new: bool
) -> TopicRules:
    """Return what rows of a topic are held against."""
    properties = config.properties()
    return TopicRules(
        topic, tuple(partitions), is_new, tuple((name, properties[name]) for name in _RULES)
    )


class _StagedTopic:
    """The partitions of one topic, and the rules for its rows."""

    def __init__(self, job: JobDescription, state: TopicState, files: StageFiles) -> None:
        self.rules = state.rules
        self._config = state.config
        self._files = files
        partitions = state.rules.partitions
        self._assignment = PartitionAssignment(
            state.rules.topic, partitions, partitioner_for(job.partitioner, len(partitions))
        )
        self._encoder = encoder_for(
            state.config, parse_compression(job.compression), job.level, job.batch_size_bytes
        )
        self.partitions: dict[int, StagedPartition] = {}

    def add(
        self,
        batch: pa.RecordBatch,
        named: npt.NDArray[np.int64] | None,
        rows: npt.NDArray[np.int64],
        now_ms: int,
    ) -> None:
        """Take rows of the topic; ``rows`` are their numbers."""
        self._ensure_allowed(batch, rows, now_ms)
        assigned = self._assignment.assign(batch, named, rows)
        for number, chosen in rows_by_partition(assigned):
            partition = self.partitions.get(number)
            if partition is None:
                place = TopicPartition(self.rules.topic, number)
                partition = StagedPartition(place, self._config, self._encoder, self._files)
                self.partitions[number] = partition
            if chosen is None:
                partition.add(batch, rows)
            else:
                partition.add(batch.take(pa.array(chosen)), rows[chosen])
            if partition.waiting_bytes >= _PARTITION_BYTES:
                partition.write()

    def _ensure_allowed(
        self, batch: pa.RecordBatch, rows: npt.NDArray[np.int64], now_ms: int
    ) -> None:
        config = self._config
        topic = self.rules.topic
        keys = batch.column("key")
        if config.is_compact and keys.null_count:
            row = rows[int(np.argmax(keys.is_null().to_numpy(zero_copy_only=False)))]
            reason = (
                f"row {row} has no key, and topic {topic!r} is compacted: give it a key, or leave "
                "the row out"
            )
            raise InvalidRecordError(reason)
        if config.message_timestamp_type is not TimestampType.CREATE_TIME:
            return
        times = batch.column("timestamp").to_numpy()
        has_time = times != NO_TIMESTAMP
        is_early = has_time & (now_ms - times > config.message_timestamp_before_max_ms)
        is_late = has_time & (times - now_ms > config.message_timestamp_after_max_ms)
        for is_wrong, name in (
            (is_early, "message.timestamp.before.max.ms"),
            (is_late, "message.timestamp.after.max.ms"),
        ):
            if is_wrong.any():
                at = int(is_wrong.argmax())
                reason = (
                    f"row {rows[at]} for topic {topic!r} has timestamp {times[at]} ms, the time "
                    f"is {now_ms}: {name} of the topic is {config.properties()[name]}"
                )
                raise InvalidTimestampError(reason)


class JobStage:
    """Takes the rows of one attempt; see `WriteJob.stage`. One thread.

    Attributes
    ----------
    job, attempt
        Whose rows these are.
    row_count
        How many rows have been taken.
    """

    def __init__(
        self, job: JobDescription, attempt: str, context: LogContext | None = None
    ) -> None:
        self.job = job
        self.attempt = attempt
        self.row_count = 0
        self._context = context or LogContext()
        ensure_known_partitioner(job.partitioner)
        parse_compression(job.compression)
        self._token = secrets.token_hex(4)
        self._names: list[str] = []
        self._files = StageFiles(
            writable_log_directory(job.directory), self._context.io, self._next_name
        )
        self._topics: dict[str, _StagedTopic] = {}
        self._staged: StagedRecords | None = None

    def _next_name(self) -> str:
        name = staged_file_name(self.job.key, self._token, len(self._names))
        self._names.append(name)
        return name

    @property
    def staged(self) -> StagedRecords:
        """What has been staged, for `WriteJob.commit`; known after the ``with`` block.

        Raises
        ------
        ValueError
            The block has not ended, or failed.
        """
        if self._staged is None:
            msg = f"nothing was staged by attempt {self.attempt!r}: its block has not ended well"
            raise ValueError(msg)
        return self._staged

    def append(self, batch: pa.RecordBatch) -> None:
        """Take rows; columns and types as of `pylog.write_topic`, by their usual names.

        Parameters
        ----------
        batch
            With column ``value``, perhaps ``key``, ``timestamp``, ``headers``, ``partition``, and
            ``topic`` unless the job names one. Other columns are left out.

        Raises
        ------
        ValueError
            A column is missing or of a wrong type, or a row's content impossible.
        LogStorageError
            The topic does not allow a row, or the disk failed. Texts name the row, which counts
            from 0 in this attempt.
        """
        first_row = self.row_count
        columns = find_columns(batch.schema, _names_in(batch.schema))
        parts = {name: batch.column(found) for name, found in columns.items()}
        named = _named_partitions(parts.pop("partition", None), first_row)
        parts.setdefault("key", pa.nulls(batch.num_rows, pa.binary()))
        now_ms = self._context.clock.milliseconds()
        checked = columns_of(
            pa.RecordBatch.from_arrays(list(parts.values()), names=list(parts)), now_ms, first_row
        )
        parts["timestamp"] = pa.array(checked.timestamps)
        parts = {name: parts[name] for name in sorted(parts)}  # so that batches can be put together
        rows = pa.RecordBatch.from_arrays(list(parts.values()), names=list(parts))
        numbers = np.arange(first_row, first_row + batch.num_rows, dtype=np.int64)
        for topic, chosen in self._by_topic(batch, first_row):
            if chosen is None:
                self._topic(topic).add(rows, named, numbers, now_ms)
                continue
            taken = rows.take(pa.array(chosen))
            of_topic = None if named is None else named[chosen]
            self._topic(topic).add(taken, of_topic, numbers[chosen], now_ms)
        self.row_count += batch.num_rows
        self._limit_memory()

    def _topic(self, name: str) -> _StagedTopic:
        topic = self._topics.get(name)
        if topic is None:
            state = TopicState(self.job, self._files.directory, name)
            topic = self._topics[name] = _StagedTopic(self.job, state, self._files)
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
            self._discard()
            return
        try:
            self._finish()
        except BaseException:
            self._discard()
            raise

    def _finish(self) -> None:
        files: list[StagedFile] = []
        for topic in self._topics.values():
            for _, partition in sorted(topic.partitions.items()):
                files += partition.finish()
        if files:
            self._context.io.sync_directory(self._files.directory)
        rules = tuple(topic.rules for topic in self._topics.values())
        self._staged = StagedRecords(self.job.key, self.attempt, tuple(files), rules)

    def _discard(self) -> None:
        """Remove all files; what the disk refuses is left for an abort."""
        for name in self._names:
            for each in (name, entries_name(name)):
                with suppress(KafkaStorageError):
                    self._context.io.remove(self._files.path(each), missing_ok=True)


def _names_in(schema: pa.Schema) -> ColumnNames:
    partition = "partition" if "partition" in schema.names else None
    return ColumnNames("key" if "key" in schema.names else None, "value", None, None, partition)


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

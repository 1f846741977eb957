"""One topic that a job stages rows for: the rules that hold there, and its partitions.

The rules are those of the topic as it is when the first of its rows comes. The commit holds them
against the topic as it is then.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from pylog.config.stored_topic_configs import TopicConfigs
from pylog.errors import InvalidRecordError, InvalidTimestampError
from pylog.files.commit_manifest import read_manifest
from pylog.files.file_names import ensure_valid_topic
from pylog.files.owned_directories import partition_directories
from pylog.files.staged_files import TopicRules
from pylog.model import NO_TIMESTAMP, TimestampType, TopicPartition
from pylog.writing.named_partitioners import partitioner_for
from pylog.writing.partition_assignment import PartitionAssignment, rows_by_partition
from pylog.writing.staged_partition import StagedPartition
from pylog.writing.topic_writer import encoder_for, parse_compression

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from pylog.columnar.encode_input import Columns
    from pylog.config import LogConfig
    from pylog.files.commit_manifest import NewTopic
    from pylog.writing.job_description import JobDescription
    from pylog.writing.stage_files import StageFiles

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
        configs = TopicConfigs(None)
        if announced is not None:
            numbers = sorted({*numbers, *range(announced.partitions)})
            self.config = configs.default.with_properties(announced.properties)
        elif numbers:
            configs.load([directory])
            self.config = configs.config_of(topic)
        else:
            self.config = configs.default.with_properties(job.config)
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


class StagedTopic:
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
        columns: Columns,
        named: npt.NDArray[np.int64] | None,
        rows: npt.NDArray[np.int64],
        now_ms: int,
    ) -> None:
        """Take rows of the topic, all of which have a timestamp.

        Parameters
        ----------
        batch, columns
            The rows, and the same rows as the encoder takes them.
        named
            The partition that each row names; None: no row does.
        rows
            What errors call each row.
        now_ms
            The time.
        """
        self._ensure_allowed(batch, rows, now_ms)
        assigned = self._assignment.assign(batch, named, rows)
        for number, chosen in rows_by_partition(assigned):
            partition = self.partitions.get(number)
            if partition is None:
                place = TopicPartition(self.rules.topic, number)
                partition = StagedPartition(place, self._config, self._encoder, self._files)
                self.partitions[number] = partition
            if chosen is None:
                partition.add(columns, np.arange(rows.size), rows)
            else:
                partition.add(columns, chosen, rows[chosen])

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

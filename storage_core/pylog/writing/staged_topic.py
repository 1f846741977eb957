"""One topic that a job stages rows for: the rules that hold there, and its partitions.

The rules are those of the topic as it is when the first of its rows comes. The commit holds them
against the topic as it is then.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from pylog.columnar.encode import OpenBatch
from pylog.config.stored_topic_configs import TopicConfigs
from pylog.errors import (
    InvalidRecordError,
    InvalidTimestampError,
    RecordValidationError,
)
from pylog.files.commit_manifest import read_manifest
from pylog.files.owned_directories import partition_directories
from pylog.files.staged_entries import StagedEntries
from pylog.files.staged_files import MAX_STAGED_BYTES, StagedFile, TopicRules
from pylog.model import NO_TIMESTAMP, TimestampType, TopicPartition
from pylog.native.checksum import crc32c
from pylog.record.batches_writer import set_base_offsets
from pylog.record.compressor import parse_compression
from pylog.validation.record_rules import TimestampRange, broken_size_rule, size_rules
from pylog.writing.partitioner import (
    PartitionAssignment,
    partitioner_for,
    rows_by_partition,
)
from pylog.writing.topic_configs import cluster_topic_configs
from pylog.writing.topic_writer import encoder_for
from pylog.writing.topics import ensure_no_collision, ensure_no_similar_topic

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt
    import pyarrow as pa

    from pylog.columnar.encode import EncodedChunk, RecordEncoder
    from pylog.columnar.encode_input import Columns
    from pylog.config import LogConfig
    from pylog.files.commit_manifest import NewTopic
    from pylog.writing.stage_files import StageFiles
    from pylog.writing.write_summary import JobDescription


class StagedPartition:
    """Encodes rows of one partition and writes their batches. One thread."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        config: LogConfig,
        encoder: RecordEncoder,
        files: StageFiles,
    ) -> None:
        self._topic_partition = topic_partition
        self._config = config
        self._encoder = encoder
        self._files = files
        self._open = OpenBatch()
        self._first_open_row = 0  # what errors call the first row of the open batch
        self._names: list[str] = []
        self._entries: list[list[StagedEntries]] = []
        self._size_bytes = 0
        self._record_count = 0

    @property
    def waiting_bytes(self) -> int:
        """How many bytes of a batch wait for more records before they are written."""
        return self._open.size_bytes

    def add(
        self, columns: Columns, chosen: npt.NDArray[np.intp], rows: npt.NDArray[np.int64]
    ) -> None:
        """Take rows, and write the batches that they fill."""
        self._write_chunks(self._encoder.encode_selected(columns, chosen, self._open), rows)
        opened = self._open.record_count
        if 0 < opened <= rows.size:
            self._first_open_row = int(rows[-opened])

    def write(self) -> None:
        """Write the batch that is open; errors as of `add`."""
        self._write_chunks(self._encoder.close_batch(self._open), np.empty(0, dtype=np.int64))
        self._open.give_back_memory()

    def _write_chunks(self, chunks: Iterable[EncodedChunk], rows: npt.NDArray[np.int64]) -> None:
        row = -self._open.record_count  # those that were added before come first
        for chunk in chunks:
            self._ensure_sizes(chunk, rows, row)
            row += int(chunk.record_counts.sum())
            self._write_chunk(chunk)

    def _ensure_sizes(self, chunk: EncodedChunk, rows: npt.NDArray[np.int64], first: int) -> None:
        """Raise for a batch or record that is too large; the first row is at place ``first``."""
        if chunk.large_record is not None:
            place, size = chunk.large_record
            reason = (
                f"row {self._row_at(first + place, rows)} is a record of {size} bytes for "
                f"partition {self._topic_partition}, max.decompressed.message.bytes of the topic "
                f"is {self._config.max_decompressed_message_bytes}: raise it, or leave the row out"
            )
            raise InvalidRecordError(reason)
        sizes = chunk.ends - chunk.positions
        most = min(each.most_bytes for each in size_rules(self._config))
        at = int((sizes > most).argmax()) if sizes.size else 0
        rule = broken_size_rule(int(sizes[at]), self._config) if sizes.size else None
        if rule is None:
            return
        row = self._row_at(first + int(chunk.record_counts[:at].sum()), rows)
        reason = (
            f"row {row} makes a batch of {sizes[at]} bytes for partition {self._topic_partition}, "
            f"{rule.name} of the topic is {rule.most_bytes}: raise it, compress, or leave the row "
            "out"
        )
        raise rule.error(reason)

    def _row_at(self, place: int, rows: npt.NDArray[np.int64]) -> int:
        """Return what errors call a row; those of the open batch are not told apart."""
        return self._first_open_row if place < 0 else int(rows[place])

    def _write_chunk(self, chunk: EncodedChunk) -> None:
        """Write batches; a new file is begun where a segment would be rolled."""
        start, count = 0, len(chunk.positions)
        most_bytes = min(self._config.segment_bytes, MAX_STAGED_BYTES)
        while start < count:
            sizes = np.cumsum((chunk.ends - chunk.positions)[start:])
            records = np.cumsum(chunk.record_counts[start:])
            fits = (self._size_bytes + sizes <= most_bytes) & (
                self._record_count + records <= MAX_STAGED_BYTES
            )
            taken = count - start if fits.all() else int(fits.argmin())
            if not self._names or (taken == 0 and self._size_bytes):
                self._begin_file()
                continue
            stop = start + max(taken, 1)
            self._write_batches(chunk, start, stop)
            start = stop

    def _begin_file(self) -> None:
        self._names.append(self._files.begin())
        self._entries.append([])
        self._size_bytes = 0
        self._record_count = 0

    def _write_batches(self, chunk: EncodedChunk, start: int, stop: int) -> None:
        first, end = int(chunk.positions[start]), int(chunk.ends[stop - 1])
        data = chunk.data[first:end]
        counts = chunk.record_counts[start:stop]
        offsets = self._record_count + np.cumsum(counts) - counts
        set_base_offsets(data, chunk.positions[start:stop] - first, offsets)
        self._entries[-1].append(
            StagedEntries(
                chunk.ends[start:stop] - chunk.positions[start:stop],
                counts,
                chunk.max_timestamps[start:stop],
                chunk.crcs[start:stop],
            )
        )
        self._files.write(self._names[-1], self._size_bytes, data)
        self._size_bytes += end - first
        self._record_count += int(counts.sum())

    def finish(self) -> list[StagedFile]:
        """Write what is left and the entries; return the files, which are still to be synced."""
        self.write()
        return [
            self._finish_file(name, entries)
            for name, entries in zip(self._names, self._entries, strict=True)
        ]

    def _finish_file(self, name: str, parts: list[StagedEntries]) -> StagedFile:
        entries = StagedEntries(
            np.concatenate([each.sizes_bytes for each in parts]),
            np.concatenate([each.record_counts for each in parts]),
            np.concatenate([each.max_timestamps for each in parts]),
            np.concatenate([each.crcs for each in parts]),
        )
        content = entries.to_bytes()
        self._files.write_entries(name, content)
        return StagedFile(
            name,
            self._topic_partition,
            int(entries.sizes_bytes.sum()),
            len(entries),
            int(entries.record_counts.sum()),
            int(entries.crcs[0]),
            int(entries.crcs[-1]),
            crc32c(content),
        )


_RULES = (
    "cleanup.policy",
    "compression.type",
    "max.message.bytes",
    "max.decompressed.message.bytes",
    "message.timestamp.type",
    "message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms",
)
"""Properties that rows are held against when they are staged."""


_HOW_TO_CREATE = (
    "A new topic is made with creates_similar_topic=True (in Spark option createTopic, in ingest "
    "create_topic)"
)


class TopicState:
    """What a log directory says of one topic, without its lock.

    A topic that a commit is making has all its partitions from the manifest on: of those that were
    made already some may be missing, and after a crash for long.
    """

    def __init__(self, job: JobDescription, directory: str, topic: str) -> None:
        job.ensure_topic(topic)
        announced, existing = _found(directory, topic)
        _ensure_meant(job, topic, announced, existing)
        numbers = sorted(each.partition for each in existing if each.topic == topic)
        configs = TopicConfigs(None, cluster_topic_configs(directory) if numbers else None)
        if announced is not None:
            numbers = sorted({*numbers, *range(announced.partitions)})
            self.config = configs.default.with_properties(announced.properties)
        elif numbers:
            configs.load([directory])
            self.config = configs.config_of(topic)
        else:
            self.config = configs.default.with_properties(job.config)
        self.rules = rules_of(topic, numbers or range(job.partitions or 1), self.config)


def ensure_topic_is_meant(job: JobDescription, directory: str, topic: str) -> None:
    """Raise if a job's topic is new, and its name nearly another's; see `WriteJob`."""
    _ensure_meant(job, topic, *_found(directory, topic))


def _ensure_meant(
    job: JobDescription, topic: str, announced: NewTopic | None, existing: list[TopicPartition]
) -> None:
    known = {each.topic for each in existing}
    if announced is not None or topic in known:
        return
    ensure_no_collision(topic, known)
    if topic == job.topic and not job.creates_similar_topic:
        ensure_no_similar_topic(topic, known, _HOW_TO_CREATE)


def _found(directory: str, topic: str) -> tuple[NewTopic | None, list[TopicPartition]]:
    """Return a topic as a commit is making it, and all partitions that a directory has."""
    announced = _announced(directory, topic)
    directories = partition_directories(directory) if os.path.isdir(directory) else []  # noqa: PTH112
    existing = [name.topic_partition for _, name in directories if not name.state]
    return announced or _announced(directory, topic), existing  # it may have begun meanwhile


def _announced(directory: str, topic: str) -> NewTopic | None:
    manifest = read_manifest(directory)
    topics = () if manifest is None else manifest.new_topics
    return next((each for each in topics if each.topic == topic), None)


def rules_of(topic: str, partitions: range | list[int], config: LogConfig) -> TopicRules:
    """Return the rules that rows of a topic must meet."""
    properties = config.properties()
    return TopicRules(topic, tuple(partitions), tuple((name, properties[name]) for name in _RULES))


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
        """Take rows of the topic, all of which have a timestamp."""
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
            raise RecordValidationError(reason)
        if config.message_timestamp_type is not TimestampType.CREATE_TIME:
            return
        times = batch.column("timestamp").to_numpy()
        has_time = times != NO_TIMESTAMP
        allowed = TimestampRange.at(now_ms, config)
        is_early = has_time & (times < allowed.lowest)
        is_late = has_time & (times > allowed.highest)
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

"""Lines of records to the logs of a log directory, and the count of what was appended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pylog.cli.byte_size import format_bytes
from pylog.clock import SystemClock
from pylog.errors import InvalidRecordError, LogStorageError
from pylog.files.topic_name import ensure_valid_topic, ensure_valid_topic_partition
from pylog.model import TopicPartition
from pylog.writing.record_rows import RecordRow, rows_to_batch
from pylog.writing.topic_creation import add_partition, logs_of_topic
from pylog.writing.topic_writer import UNASSIGNED, TopicWriter, parse_compression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pylog.cli.line_source import Lines
    from pylog.cli.record_line import ParsedLine
    from pylog.log.log_manager import LogManager
    from pylog.writing.write_summary import PartitionSummary


@dataclass(frozen=True, slots=True)
class AppendOptions:
    """What the user said of where records go, and how.

    Attributes
    ----------
    topic, partition
        For lines; None: each line's own topic, the partition of its key.
    compression, level, batch_size_bytes
        Of the batches.
    """

    topic: str | None
    partition: int | None
    compression: str
    level: int | None
    batch_size_bytes: int


class _Destination:
    """One topic: its logs, and the rows that are about to be appended to them.

    A topic that is not there, and its partitions, are made when rows of theirs are appended. So
    options and lines that are wrong leave nothing of it.
    """

    def __init__(self, manager: LogManager, topic: str, options: AppendOptions) -> None:
        ensure_valid_topic(topic)
        self._manager = manager
        self._topic = topic
        self._logs = logs_of_topic(manager, topic)
        self._is_new = not self._logs
        self._has_config = not self._is_new
        self._to_make: set[int] = set()
        self._rows: list[RecordRow] = []
        self._partitions: list[int] = []
        self.writer = TopicWriter(
            topic,
            self._logs,
            manager.config if self._is_new else manager.config_of(topic),
            compression=parse_compression(options.compression),
            level=options.level,
            batch_size_bytes=options.batch_size_bytes,
        )

    def add(self, partition: int | None, row: RecordRow) -> None:
        """Take a row; a topic that is new gets the partitions that its rows name.

        Raises
        ------
        ValueError
            The topic was there before and has no such partition.
        """
        if partition is not None:
            self.ensure_partition(partition)
        elif not self._logs and not self._to_make:
            self._to_make.add(0)
        self._rows.append(row)
        self._partitions.append(UNASSIGNED if partition is None else partition)

    def ensure_partition(self, partition: int) -> None:
        """Note that the partition has to be there, or raise ``ValueError``: see `add`."""
        if partition in self._logs:
            return
        if not self._is_new:
            there = ", ".join(map(str, self._logs))
            msg = f"topic {self._topic!r} has no partition {partition} here; found {there}"
            raise ValueError(msg)
        ensure_valid_topic_partition(TopicPartition(self._topic, partition))
        self._to_make.add(partition)

    def flush(self, now_ms: int) -> None:
        """Append the rows taken."""
        rows, partitions = self._rows, np.array(self._partitions, dtype=np.int64)
        self._rows, self._partitions = [], []
        if rows:
            batch = rows_to_batch(rows)
            self._make_partitions()
            self.writer.append(batch, timestamp_ms=now_ms, partitions=partitions)

    def _make_partitions(self) -> None:
        if not self._has_config:
            self._manager.store_topic_config(self._topic, {})  # not those of one that was deleted
            self._has_config = True
        for partition in sorted(self._to_make):
            self._logs[partition] = add_partition(self._manager, self._topic, partition)
        self._to_make.clear()


class LineAppender:
    """Appends lines, in order; what `append` has returned from is in the logs.

    Parameters
    ----------
    manager
        Open.
    options
        See there.
    parse
        Makes a record of a line, None of one that holds none; its ``ValueError`` says what is wrong
        with it.
    source
        Names the input in errors.

    Attributes
    ----------
    line_count
        Lines whose records were appended, empty ones included.

    Raises
    ------
    ValueError
        The options are wrong, or the partition named is not there.
    """

    def __init__(
        self,
        manager: LogManager,
        options: AppendOptions,
        parse: Callable[[bytes], ParsedLine | None],
        source: str,
    ) -> None:
        self.line_count = 0
        self._manager = manager
        self._options = options
        self._parse = parse
        self._source = source
        self._clock = SystemClock()
        self._destinations: dict[str, _Destination] = {}
        if options.topic is not None and options.partition is not None:
            self._destination(options.topic).ensure_partition(options.partition)

    def append(self, lines: Lines) -> None:
        """Append the records of some lines.

        Raises
        ------
        InvalidRecordError
            A line is malformed; the records of all lines before it have been appended.
        LogStorageError
            The log refuses a record, or the disk failed; notes tell between which lines.
        """
        for number, line in enumerate(lines.lines, lines.first_number):
            try:
                self._take(line)
            except ValueError as error:
                self._flush(lines.first_number, number - 1)
                reason = f"{self._source}, line {number}: {error}; {self._fate_before(number)}"
                raise InvalidRecordError(reason) from error
        self._flush(lines.first_number, lines.first_number + len(lines.lines) - 1)

    def _fate_before(self, number: int) -> str:
        if number == 1:
            return "nothing was appended"
        return f"all lines before it have been appended ({_count(self.record_count, 'record')})"

    def _take(self, line: bytes) -> None:
        parsed = self._parse(line)
        if parsed is None:
            return
        topic = self._options.topic if self._options.topic is not None else parsed.topic
        if topic is None:
            msg = "it names no topic, and --topic is not given"
            raise ValueError(msg)
        partition = self._options.partition if parsed.partition is None else parsed.partition
        self._destination(topic).add(partition, parsed.row)

    def _destination(self, topic: str) -> _Destination:
        found = self._destinations.get(topic)
        if found is None:
            found = _Destination(self._manager, topic, self._options)
            self._destinations[topic] = found
        return found

    def _flush(self, first_number: int, last_number: int) -> None:
        now_ms = self._clock.milliseconds()
        try:
            for destination in self._destinations.values():
                destination.flush(now_ms)
        except LogStorageError as error:
            error.add_note(
                f"met in lines {first_number} to {last_number} of {self._source}; "
                f"{_count(self.record_count, 'record')} had been appended before"
            )
            raise
        self.line_count = last_number

    @property
    def record_count(self) -> int:
        """Records appended so far."""
        return sum(each.records for each in self.partitions())

    def partitions(self) -> list[PartitionSummary]:
        """Return what has been appended, by partition, sorted."""
        found = [
            summary
            for destination in self._destinations.values()
            for summary in destination.writer.summaries.values()
        ]
        return sorted(found, key=lambda summary: summary.topic_partition)

    def to_json(self) -> dict[str, Any]:
        """Return the summary as a JSON document."""
        partitions = self.partitions()
        return {
            "lines": self.line_count,
            "records": sum(each.records for each in partitions),
            "sizeInBytes": sum(each.size_bytes for each in partitions),
            "partitions": [
                {
                    "topic": each.topic_partition.topic,
                    "partition": each.topic_partition.partition,
                    "records": each.records,
                    "sizeInBytes": each.size_bytes,
                    "logEndOffset": each.end_offset,
                }
                for each in partitions
            ],
        }

    def text_lines(self) -> Iterator[str]:
        """Yield the summary as lines of text."""
        partitions = self.partitions()
        size = format_bytes(sum(each.size_bytes for each in partitions))
        yield f"appended {_count(self.record_count, 'record')}, {size} in batches"
        for each in partitions:
            records = _count(each.records, "record")
            yield f"{each.topic_partition}: {records}, end offset {each.end_offset}"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"

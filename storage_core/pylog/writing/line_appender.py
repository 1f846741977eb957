"""Lines of records to the logs of a log directory, and the count of what was appended."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pylog.columnar.encode import DEFAULT_BATCH_SIZE_BYTES
from pylog.errors import InvalidLineError, LogStorageError
from pylog.record.compressor import ensure_level, parse_compression
from pylog.scheduling.clock import SystemClock
from pylog.writing.partitioner import NamedPartitioner, ensure_integer_key, ensure_known_partitioner
from pylog.writing.record_line import LINE_PARSERS, VALUE_PARSERS, LineRuns, parse_json_line
from pylog.writing.topic_writer import TopicDestination, TopicWriter
from pylog.writing.topics import ensure_no_similar_topic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pylog.config import LogConfig
    from pylog.log.log_manager import LogManager
    from pylog.log.unified_log import UnifiedLog
    from pylog.model import CompressionType
    from pylog.writing.schema_registration import SchemaRegistration
    from pylog.writing.write_summary import PartitionSummary

_FEWEST_LINES_OF_RUNS = 64
"""Fewer lines at once are typed, or made by a slow program: no kernel is loaded for them."""


class LineAppender:
    """Appends lines in order. When `append` returns, their records are in the logs.

    Parameters
    ----------
    manager
        An open manager.
    source
        What errors call the input.
    line_format
        ``jsonl`` or ``text``: see `pylog.writing.record_line`.
    values
        ``text`` or ``base64``: how to read keys and values of JSON lines without ``values``.
    topic, partition
        Where lines go that do not say it themselves. If None, every line names its topic, and
        ``partitioner`` decides.
    partitions
        How many partitions a topic gets that does not exist, if no line names one.
    partitioner
        ``default``, ``round_robin`` or ``integer_key``: see `write_topic`.
    creates_similar_topic
        Whether ``topic`` may be created where one of a similar name exists. A name in a line is
        taken as it is: nobody typed it.
    compression, level, batch_size_bytes
        As for `write_topic`.
    schemas
        What encodes keys and values of JSON lines, `pylog.jobs.plan_registration`; needs ``topic``.
        New schemas are registered before the first record.

    Attributes
    ----------
    line_count
        How many lines have been appended, empty ones included.

    Raises
    ------
    UnknownTopicOrPartitionError
        The topic does not exist, and one of a similar name does.
    ValueError
        An option is wrong, or the partition does not exist.
    """

    def __init__(  # noqa: PLR0913 - keyword-only options
        self,
        manager: LogManager,
        *,
        source: str,
        line_format: str = "jsonl",
        values: str = "text",
        topic: str | None = None,
        partition: int | None = None,
        partitions: int = 1,
        partitioner: str = "default",
        creates_similar_topic: bool = False,
        compression: str | CompressionType = "none",
        level: int | None = None,
        batch_size_bytes: int = DEFAULT_BATCH_SIZE_BYTES,
        schemas: SchemaRegistration | None = None,
    ) -> None:
        if line_format not in LINE_PARSERS:
            msg = f"line format {line_format!r} is not one of {', '.join(LINE_PARSERS)}"
            raise ValueError(msg)
        if values not in VALUE_PARSERS:
            msg = f"values {values!r} are not one of {', '.join(VALUE_PARSERS)}"
            raise ValueError(msg)
        self.line_count = 0
        self._manager = manager
        self._source = source
        self._parse = LINE_PARSERS[line_format]
        self._is_text = values == "text"
        ensure_known_partitioner(partitioner)
        self._partitioner = partitioner
        self._needs_integer_keys = partitioner == "integer_key"
        # A key that is not an integer is an error that names its line.
        self._finds_runs = line_format == "jsonl" and not self._needs_integer_keys
        self._schemas = schemas
        encoders = None if schemas is None else schemas.encoders
        if line_format == "jsonl":
            self._finds_runs = self._finds_runs and not encoders
            self._parse = partial(parse_json_line, values=values, encoders=encoders)
        elif encoders:
            raise ValueError("keys and values are encoded by a schema from JSON lines alone")
        self._topic = topic
        self._partition = partition
        self._new_partitions = partitions
        codec = parse_compression(compression)
        # Before the first line: an option that is wrong is not the line's fault.
        ensure_level(codec, level)
        self._new_writer = partial(
            TopicWriter,
            compression=codec,
            level=level,
            batch_size_bytes=batch_size_bytes,
        )
        self._clock = SystemClock()
        self._destinations: dict[str, TopicDestination] = {}
        if topic is not None:
            destination = self._destination(topic)
            if destination.is_new and not creates_similar_topic:
                advice = "--create makes a new topic"
                ensure_no_similar_topic(topic, manager.topics, advice)
            if partition is not None:
                destination.ensure_partition(partition)
        elif encoders:
            raise ValueError("keys and values are encoded for one topic: name it")

    def append(self, lines: Sequence[bytes]) -> None:
        """Append the records of the next lines, which have no line ends.

        Raises
        ------
        InvalidLineError
            A line is malformed; the records of all lines before it have been appended.
        LogStorageError
            The log refuses a record, or the disk failed; notes say between which lines.
        """
        first_number = self.line_count + 1
        taken = 0
        try:
            for count in self._taken(lines):
                taken += count
        except ValueError as error:
            number = first_number + taken
            self._flush(first_number, number - 1)
            reason = f"{self._source}, line {number}: {error}; {self._fate_before(number)}"
            raise InvalidLineError(reason) from error
        except LogStorageError as error:  # the next line is for a log that was left closed
            number = first_number + taken
            self._flush(first_number, number - 1)
            error.add_note(f"{self._source}, line {number}: {self._fate_before(number)}")
            raise
        self._flush(first_number, first_number + len(lines) - 1)

    def _fate_before(self, number: int) -> str:
        if number == 1:
            return "nothing was appended"
        return f"all lines before it have been appended ({self._records_appended()})"

    def _taken(self, lines: Sequence[bytes]) -> Iterator[int]:
        """Take all lines, and yield how many after each step."""
        runs = None
        if self._finds_runs and len(lines) >= _FEWEST_LINES_OF_RUNS:
            runs = LineRuns(lines, is_text=self._is_text)
        at = 0
        next_look = 0
        step = 1
        while at < len(lines):
            run = runs.run_from(at) if runs is not None and at >= next_look else None
            if run is not None:
                partition = self._partition_of(run.partition)
                self._destination_of(run.topic).add_batch(partition, run.rows)
                count, step = run.rows.num_rows, 1
            else:
                if at >= next_look:  # where lines are of another form, looking is given up soon
                    next_look, step = at + step, 2 * step
                self._take(lines[at])
                count = 1
            at += count
            yield count

    def _take(self, line: bytes) -> None:
        parsed = self._parse(line)
        if parsed is not None:
            partition = self._partition_of(parsed.partition)
            if partition is None and self._needs_integer_keys:
                ensure_integer_key(parsed.row.key)
            self._destination_of(parsed.topic).add(partition, parsed.row)

    def _partition_of(self, partition: int | None) -> int | None:
        return self._partition if partition is None else partition

    def _destination_of(self, topic: str | None) -> TopicDestination:
        wanted = self._topic if self._topic is not None else topic
        if wanted is None:
            msg = "it names no topic, and --topic is not given"
            raise ValueError(msg)
        return self._destination(wanted)

    def _destination(self, topic: str) -> TopicDestination:
        destination = self._destinations.get(topic)
        if destination is None:
            destination = TopicDestination(
                self._manager, topic, self._make_writer, self._new_partitions
            )
            self._destinations[topic] = destination
        return destination

    def _make_writer(
        self, topic: str, logs: Mapping[int, UnifiedLog], config: LogConfig
    ) -> TopicWriter:
        chosen = (
            None if self._partitioner == "default" else NamedPartitioner(self._partitioner, logs)
        )
        return self._new_writer(topic, logs, config, partitioner=chosen)

    def _flush(self, first_number: int, last_number: int) -> None:
        now_ms = self._clock.milliseconds()
        try:
            if self._schemas is not None:
                self._schemas.enter(self._manager)
                self._schemas = None
            for destination in self._destinations.values():
                destination.flush(now_ms)
        except LogStorageError as error:
            error.add_note(
                f"this happened in lines {first_number} to {last_number} of {self._source}; "
                f"{self._records_appended()} had been appended before"
            )
            raise
        self.line_count = last_number

    def _records_appended(self) -> str:
        count = sum(each.records for each in self.partitions())
        return f"{count} record{'' if count == 1 else 's'}"

    def partitions(self) -> list[PartitionSummary]:
        """Return what has been appended, by partition, sorted."""
        summaries = [
            summary
            for destination in self._destinations.values()
            for summary in destination.summaries
        ]
        return sorted(summaries, key=lambda summary: summary.topic_partition)

    def created_topics(self) -> dict[str, list[int]]:
        """Return the topics that did not exist before, with the partitions they have now."""
        return {
            topic: destination.partitions
            for topic, destination in sorted(self._destinations.items())
            if destination.is_new and destination.partitions
        }

"""``pylog append``: records from lines of text into a topic."""

from __future__ import annotations

import os
import select
import stat
import sys
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import click

import pylog
from pylog.cli import exit_status, options, progress
from pylog.cli.options import FILE, TOPIC, CodecType, argument, command
from pylog.cli.output import write_summary
from pylog.cli.progress import Interruption
from pylog.cli.written_schemas import WrittenSchemas, written_schemas
from pylog.text.words import counted, format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pylog.jobs import LineAppender
    from pylog.results import PartitionSummary


STANDARD_INPUT = "-"


@command(
    "append",
    "pylog append /mnt/kafka-logs --topic orders < orders.jsonl",
    "pylog append /mnt/kafka-logs --topic notes --format text notes.txt",
)
@options.writable_directory
@argument(
    "file",
    metavar="FILE",
    required=False,
    default=STANDARD_INPUT,
    type=FILE,
    help_text="The lines. Default, and -: standard input.",
)
@click.option(
    "--topic",
    "-t",
    metavar="T",
    type=TOPIC,
    help="The topic. Default with jsonl: the topic that each line names.",
)
@options.flag(
    "--create",
    "creates_similar_topic",
    help="Create the topic even if one of a similar name exists; without this, such a name counts "
    "as a typing error.",
)
@options.number(
    "--partition",
    "-p",
    help="The partition of records whose line does not name one. Default: see --partitioner.",
)
@click.option(
    "--partitioner",
    type=click.Choice(pylog.PARTITIONER_NAMES),
    default=pylog.PARTITIONER_NAMES[0],
    help="Who chooses the partition if neither the line nor --partition names it. default: the "
    "key, as with Kafka's producers; records without a key are spread. round_robin: one partition "
    "after the other. integer_key: the key, a decimal number, modulo the number of partitions.",
)
@click.option(
    "--compression",
    metavar="C",
    type=CodecType(),
    default="none",
    help="none, gzip, snappy, lz4 or zstd. A compression.type that the topic's own configuration "
    "has takes precedence.",
)
@click.option("--level", metavar="L", type=int, help="The codec's level. Default: Kafka's.")
@options.number(
    "--batch-size",
    "batch_size_bytes",
    at_least=1,
    metavar="BYTES",
    default=16_384,
    help="The most bytes that a batch of records may have before compression.",
)
@click.option(
    "--format",
    "line_format",
    type=click.Choice(options.LINE_FORMATS),
    default="jsonl",
    help="jsonl: one JSON object a line. text: key, tab, value.",
)
@click.option(
    "--values",
    type=click.Choice(pylog.jobs.VALUE_FORMATS),
    help="With jsonl: how to read keys, values and headers' values of lines without "
    '"values". Default: text.',
)
@written_schemas
@options.server_properties
@options.recover_as_broker
@options.as_json
def append(
    directory: str,
    file: str,
    *,
    topic: str | None,
    line_format: str,
    values: str | None,
    schemas: WrittenSchemas,
    server_properties: pylog.ServerProperties | None,
    recover_as_broker: bool,
    as_json: bool,
    **of_library: Any,  # noqa: ANN401 - options that `pylog.jobs.LineAppender` has, too
) -> int:
    r"""Append records to a topic, from JSON lines or text.

    jsonl reads what pylog cat prints, so that pylog cat A --isolation read_committed | pylog
    append B copies a topic (without that option, also what aborted transactions left): key and
    value (text, {"base64": ...} or null), headers ([[name, value or null], ...]), timestamp (ms;
    without it, now), partition and topic; the log assigns offset, leaderEpoch and timestampType. In
    a line with "values":"base64" (pylog cat --values base64), keys and values are base64 or null.
    text reads what pylog cat --format text prints: \N is null, and a backslash begins an escape.

    With --value-schema or --key-schema, values or keys are JSON as pylog cat --value-format prints
    it, and are encoded as Confluent's serializers do. A new schema is registered in the directory's
    topic _schemas if it is compatible with the versions before.

    A topic that does not exist is created with its first records, and the summary says so. It has
    the partitions that the lines name; if they name none, num.partitions of --server-properties, or
    one. If --topic names a new topic whose name is similar to that of an existing one, that is an
    error unless --create is given.

    A malformed line ends the command after the lines before it have been appended. Ctrl-C ends it
    properly, too: what was appended is kept, and the status is 130.

    Exit status: 0 everything was appended, 1 damage in the directory, 2 wrong usage, a malformed
    line, a record that the topic refuses, or a directory that is locked or cannot be written.
    """
    if topic is None and line_format == "text":
        raise click.UsageError("--format text needs --topic")
    if values is not None and line_format == "text":
        raise click.UsageError("--values is for --format jsonl; text has always text")
    registration = schemas.plan(directory, topic, line_format, values)
    topics = {topic} if registration is None else {topic, *registration.topics}

    def make_appender(manager: pylog.logs.LogManager) -> LineAppender:
        return pylog.jobs.LineAppender(
            manager,
            source="standard input" if file == STANDARD_INPUT else file,
            line_format=line_format,
            values=values or pylog.jobs.VALUE_FORMATS[0],
            topic=topic,
            partitions=1 if server_properties is None else server_properties.num_partitions,
            schemas=registration,
            **of_library,
        )

    appender: LineAppender | None = None
    is_begun = is_interrupted = False
    try:
        with Interruption() as interruption, LineSource(file, interruption) as source:
            owner = pylog.logs.own_log_directory(
                directory,
                server_properties=server_properties,
                recover_as_broker=recover_as_broker,
                works_on=lambda each: topic is None or each.topic in topics,
            )
            # What refuses the first lines refuses them before the directory is owned.
            with owner.rehearsal(lambda each: topic is None or each.topic in topics) as rehearsed:
                rehearsing = make_appender(rehearsed)
                is_begun = True
                lines = iter(source)
                first = _first_of(lines)
                _rehearse(rehearsing, first or [])
            if first is None:
                is_interrupted = True
            else:
                is_begun = False
                with owner as manager:
                    is_begun = True
                    appender = make_appender(manager)
                    is_interrupted = not _append_all(appender, chain([first], lines), source)
    finally:
        if is_begun:
            appended = [] if appender is None else appender.partitions()
            created = {} if appender is None else appender.created_topics()
            count = 0 if appender is None else appender.line_count
            document = append_document(count, appended, created)
            document["isInterrupted"] = is_interrupted
            line = append_line(appended, created, is_interrupted=is_interrupted)
            write_summary(document, [line], as_json=as_json)
    return exit_status.INTERRUPTED if is_interrupted else exit_status.SOUND


_LINES_REHEARSED = 1_000


def _first_of(lines: Iterator[list[bytes]]) -> list[bytes] | None:
    """Return the first lines, none if there is none; None if Ctrl-C came before."""
    try:
        return next(lines, [])
    except KeyboardInterrupt:
        return None


def _rehearse(appender: LineAppender, lines: list[bytes]) -> None:
    """Raise what refuses the first lines, if none before them can be appended."""
    try:
        appender.append(lines[:_LINES_REHEARSED])
    except pylog.LogStorageError:
        if not appender.partitions():
            raise


def _append_all(appender: LineAppender, parts: Iterable[list[bytes]], source: LineSource) -> bool:
    """Append all lines, with a progress bar; return False if Ctrl-C came before their end."""
    has_bar = progress.is_seen()
    with progress.ProgressBar("appending", source.total_bytes) as bar:
        try:
            for lines in parts:
                appender.append(lines)
                if has_bar:
                    bar.show(source.read_bytes)
        except KeyboardInterrupt:
            return False
    return True


def append_document(
    line_count: int,
    partitions: Sequence[PartitionSummary],
    created_topics: Mapping[str, Sequence[int]],
) -> dict[str, Any]:
    """Return the summary as a JSON document."""
    return {
        "lines": line_count,
        "records": sum(each.records for each in partitions),
        "sizeInBytes": sum(each.size_bytes for each in partitions),
        "partitions": pylog.jobs.document_of(partitions, {"end_offset": "logEndOffset"}),
        "createdTopics": [
            {"topic": topic, "partitions": list(numbers)}
            for topic, numbers in created_topics.items()
        ],
    }


def append_line(
    partitions: Sequence[PartitionSummary],
    created_topics: Mapping[str, Sequence[int]],
    *,
    is_interrupted: bool = False,
) -> str:
    """Return the summary in one line, however many topics and partitions there are."""
    line = _created(created_topics) + _appended(partitions)
    if not is_interrupted:
        return line
    kept = "; they are kept" if partitions else ""
    return f"interrupted: {line}{kept}"


def _created(topics: Mapping[str, Sequence[int]]) -> str:
    if not topics:
        return ""
    names = f"topic {next(iter(topics))}" if len(topics) == 1 else counted(len(topics), "topic")
    partitions = counted(sum(map(len, topics.values())), "partition")
    return f"created {names} with {partitions}, "


def _appended(partitions: Sequence[PartitionSummary]) -> str:
    records = counted(sum(each.records for each in partitions), "record")
    if not partitions:
        return f"appended {records}"
    size = format_bytes(sum(each.size_bytes for each in partitions))
    if len(partitions) == 1:
        (only,) = partitions
        where = f"{only.topic_partition}, which ends at offset {only.end_offset} (exclusive)"
    else:
        topics = {each.topic_partition.topic for each in partitions}
        what = f"topic {topics.pop()}" if len(topics) == 1 else counted(len(topics), "topic")
        where = f"{len(partitions)} partitions of {what}"
    return f"appended {records} ({size} in batches) to {where}"


READ_BYTES = 1 << 20
BYTES_AT_ONCE = 4 << 20


class LineSource:
    """Reads a file, or standard input for ``-``; a context manager."""

    def __init__(self, path: str, interruption: Interruption) -> None:
        self._interruption = interruption
        self._is_own = path != STANDARD_INPUT
        if self._is_own:
            self._descriptor = os.open(path, os.O_RDONLY)
        elif sys.stdin is None:
            raise ValueError("standard input is closed")
        else:
            self._descriptor = sys.stdin.fileno()
        status = os.fstat(self._descriptor)
        # length of the file; None if it has none, like a pipe
        self.total_bytes = status.st_size if stat.S_ISREG(status.st_mode) else None
        self.read_bytes = 0  # how many have been read

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._is_own:
            os.close(self._descriptor)

    def __iter__(self) -> Iterator[list[bytes]]:
        """Yield all lines without their ends, some at a time; a last one without an end counts."""
        rest: list[bytes] = []
        while True:
            read, has_line, is_end = self._read_what_is_there()
            rest += read
            if not has_line and not is_end:
                continue
            lines = b"".join(rest).split(b"\n")
            last = lines.pop()
            rest = [last] if last else []
            if is_end and last:
                lines.append(last)
            if lines:
                yield lines
            if is_end:
                return

    def _read_what_is_there(self) -> tuple[list[bytes], bool, bool]:
        """Return what was read, whether a line ends in it, and whether the input does."""
        parts: list[bytes] = []
        size = 0
        has_line = False
        while True:
            with self._interruption.allowed():
                part = os.read(self._descriptor, READ_BYTES)
            if not part:
                return parts, has_line, True
            parts.append(part)
            size += len(part)
            self.read_bytes += len(part)
            has_line = has_line or b"\n" in part
            if size >= BYTES_AT_ONCE or not self._has_more():
                return parts, has_line, False

    def _has_more(self) -> bool:
        """Tell whether a read would return at once, also at the end."""
        waiting = select.poll()  # not select(), to which descriptors above 1,023 are unknown
        waiting.register(self._descriptor, select.POLLIN)
        return bool(waiting.poll(0))

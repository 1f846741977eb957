"""`dump`: what ``kafka-dump-log`` prints of files, as bytes of text or of JSON lines.

Source: DumpLogSegments (Kafka 3.9 and 4.3).
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Literal

from pylog.dump_log.indexes import (
    offset_index_lines,
    snapshot_lines,
    time_index_lines,
    transaction_index_lines,
)
from pylog.dump_log.lines import json_line
from pylog.dump_log.log import Decoders, DumpPart, log_parts, text_part
from pylog.dump_log.options import (
    DEFAULT_MAX_MESSAGE_BYTES,
    DumpFile,
    DumpOptions,
    RecordRange,
    dump_files,
)
from pylog.dump_log.report import FileReport
from pylog.errors import LogStorageError
from pylog.files.storage import open_file
from pylog.internal_topics.decoders import DecoderName, dump_decoder
from pylog.internal_topics.versions import LATEST_KAFKA_VERSION, KafkaVersion
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.scheduling.worker_threads import WorkerThreads, thread_count, usable_processors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


_MOST_BYTES = 1 << 23
"""How much text a thread makes of a part before it is asked for; the rest is made then."""


class Dump:
    """Iterates the text of a dump, and knows afterwards what was found. One iteration.

    Attributes
    ----------
    reports
        One for each file, in order; complete once the iteration has ended.
    done_bytes
        How much of the ``.log`` files has been dumped.
    """

    def __init__(self, files: Sequence[DumpFile], options: DumpOptions, threads: int) -> None:
        self.reports: list[FileReport] = []
        self.done_bytes = 0
        self._files = files
        self._options = options
        self._threads = threads
        self._decoders = Decoders()

    def planned_bytes(self) -> int:
        """Return how much the ``.log`` files have, of which one may not be there."""
        total = 0
        for file in self._files:
            if file.suffix == ".log":
                with suppress(LogStorageError), open_file(file.location) as source:
                    total += source.size()
        return total

    @property
    def is_sound(self) -> bool:
        """Whether all files of the dump are intact."""
        return all(report.is_sound for report in self.reports)

    @property
    def is_readable(self) -> bool:
        """Whether at least one of the files could be read, or there was none."""
        return not self.reports or any(not report.is_unreadable for report in self.reports)

    def __iter__(self) -> Iterator[memoryview]:
        with WorkerThreads(self._threads) as workers:
            for part, lines in self._with_lines(workers):
                yield from self._lines_of(part, lines)
        if self._options.is_json:
            for report in self.reports:
                for line in report.json_lines():
                    yield memoryview(line.encode())

    def texts(self) -> Iterator[str]:
        """Yield what the tool writes to stderr in the end: what does not agree, by file."""
        version = self._options.kafka_version
        for report in self.reports:
            yield from report.index_texts()
        for report in self.reports:
            yield from report.time_index_texts(version)
        for report in self.reports:
            yield from report.log_texts(version)

    def _lines_of(self, part: DumpPart, lines: Iterable[memoryview]) -> Iterator[memoryview]:
        if part.report.has_ended:
            return
        try:
            yield from lines
        except LogStorageError as error:
            part.report.end(error)
        part.finish()
        self.done_bytes += part.size_bytes

    def _with_lines(
        self, workers: WorkerThreads
    ) -> Iterator[tuple[DumpPart, Iterable[memoryview]]]:
        """Yield the parts in order; with threads, the next ones are being made meanwhile."""
        if workers.count == 1:
            return ((each, each.lines) for each in self._parts())
        return workers.each_ahead(self._parts(), lambda each: iter(each.lines), _MOST_BYTES)

    def _parts(self) -> Iterator[DumpPart]:
        for file in self._files:
            report = FileReport(file.path, file.absolute_path)
            self.reports.append(report)
            for part in _file_parts(file, report, self._options, self._decoders):
                yield part
                if report.has_ended:
                    break


def _file_parts(
    file: DumpFile, report: FileReport, options: DumpOptions, decoders: Decoders
) -> Iterator[DumpPart]:
    of_file = json_line({"type": "file", "path": file.path})
    yield text_part(report, of_file if options.is_json else f"Dumping {file.path}\n")
    match file.suffix:
        case ".log" | ".checkpoint":
            try:
                yield from log_parts(file, report, options, decoders)
            except LogStorageError as error:
                yield DumpPart(report, [], finish=partial(report.end, error))
        case ".index":
            yield DumpPart(report, offset_index_lines(file, options, report))
        case ".timeindex":
            yield DumpPart(report, time_index_lines(file, options, report, decoders))
        case ".snapshot":
            yield DumpPart(report, snapshot_lines(file, options))
        case ".txnindex":
            yield DumpPart(report, transaction_index_lines(file, options))
        case _:
            report.errors.append(f"Ignoring unknown file {file.path}")


def dump(  # noqa: PLR0913 - keyword-only options of the tool
    *paths: str | os.PathLike[str],
    topics: Sequence[str] = (),
    partitions: Sequence[int] = (),
    print_data_log: bool = False,
    deep_iteration: bool = False,
    skip_record_metadata: bool = False,
    max_bytes: int | None = None,
    max_message_size: int = DEFAULT_MAX_MESSAGE_BYTES,
    verify_index_only: bool = False,
    index_sanity_check: bool = False,
    decoder: DecoderName | None = None,
    kafka_version: str | KafkaVersion = LATEST_KAFKA_VERSION,
    start_offset: int | None = None,
    end_offset: int | None = None,
    start_timestamp: int | None = None,
    end_timestamp: int | None = None,
    output: Literal["text", "jsonl"] = "text",
    values: Literal["text", "base64"] = "text",
    threads: int | None = None,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> Dump:
    """Return what ``kafka-dump-log`` prints of files, line for line.

    Parameters
    ----------
    *paths
        Files (``.log``, ``.index``, ``.timeindex``, ``.txnindex``, ``.snapshot``,
        ``.checkpoint``), topic-partition directories, or log directories.
    topics, partitions
        Of directories, these alone. Default: all topics that are not internal, and the partition
        of a directory that was given by itself.
    print_data_log
        Print keys and values; records are looked at, then.
    deep_iteration
        Print a line for each record, not only for each batch.
    skip_record_metadata
        Of a record's line, print keys and values alone.
    max_bytes
        Read only so many bytes of each ``.log`` file.
    max_message_size
        How many bytes after an index entry's position are read to verify it.
    verify_index_only
        Verify ``.index`` and ``.timeindex`` files without printing their entries.
    index_sanity_check
        Make the check alone that a broker makes of such files when it starts.
    decoder
        What makes text of keys and values: that of an internal topic. None for UTF-8.
    kafka_version
        Whose text to print: "3.9" to "4.4".
    start_offset, end_offset, start_timestamp, end_timestamp
        Only records, and their batches, in this range; ends are exclusive, timestamps in ms. Of a
        directory, only ``.log`` files are dumped then. Where records are not looked at, batches are
        printed that may have a wanted one as far as their headers say.
    output, values
        The tool's text, or JSON objects, one a line, and how keys and values are written in these;
        text that is not UTF-8 is ``{"base64": …}``.
    threads
        How many make text; None for the environment variable ``PYLOG_NUM_THREADS``, else one for
        each processor.
    max_decompressed_bytes
        The most that the records of a batch may have, decompressed.

    Returns
    -------
    Dump
        To be iterated: bytes of whole lines. Nothing is read before. A file that is damaged, or
        cannot be read, ends where the tool would end, and the next one follows; `Dump.reports` says
        what was wrong.

    Raises
    ------
    LogDirectoryError, UnknownTopicOrPartitionError
        A path leads to nothing that could be dumped, or a topic or partition is not there.
    ValueError
        An argument is out of its range.

    Examples
    --------
    >>> for lines in pylog.dump("kafka/intact/orders-0/00000000000000000000.timeindex"):
    ...     print(str(lines, "utf-8"), end="")
    Dumping kafka/intact/orders-0/00000000000000000000.timeindex
    timestamp: 1731000021427 offset: 14
    """
    version = KafkaVersion.parse(str(kafka_version))
    for name, value, known in (
        ("output", output, ("text", "jsonl")),
        ("values", values, ("text", "base64")),
    ):
        if value not in known:
            msg = f"{name} is {value!r}, expected one of {', '.join(known)}"
            raise ValueError(msg)
    prints_data = print_data_log or decoder is not None
    wanted = RecordRange(start_offset, end_offset, start_timestamp, end_timestamp)
    options = DumpOptions(
        is_deep=deep_iteration or prints_data,
        prints_data=prints_data,
        skips_record_metadata=skip_record_metadata,
        max_bytes=max_bytes,
        max_message_bytes=max_message_size,
        only_verifies_indexes=verify_index_only,
        only_checks_sanity=index_sanity_check,
        decoder=None if decoder is None else dump_decoder(decoder, version),
        kafka_version=version,
        is_json=output == "jsonl",
        values=values,
        wanted=wanted,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    files = dump_files([os.fspath(path) for path in paths], topics, partitions, wanted)
    return Dump(list(files), options, thread_count(threads, default=usable_processors()))

"""Options of the commands that read records: which records, and how they are read.

Each group becomes one value, which the command's function takes as its first arguments.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

import click

import pylog
from pylog.cli import options
from pylog.cli.options import FILE, ParsedType, stored_paths
from pylog.errors import CorruptRecordError, InvalidRecordError, UndecodableValueError
from pylog.text.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Literal

    import pyarrow as pa

    from pylog.cli.options import CommandFunction, Decorator


@contextmanager
def advice_on_damage(mode: str) -> Iterator[None]:
    """Let an error about damage name the mode that reads what is intact."""
    try:
        yield
    except (CorruptRecordError, InvalidRecordError) as error:
        if mode == pylog.ReadMode.FAILFAST:
            error.add_note(
                "--mode DROPMALFORMED leaves out exactly what is damaged, and names it on stderr"
            )
        raise
    except UndecodableValueError as error:
        if mode == pylog.ReadMode.FAILFAST:
            error.add_note(
                "--mode PERMISSIVE prints null with the reason and the bytes, DROPMALFORMED leaves "
                "the record out"
            )
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenRecords:
    """Paths, topics and partitions, and a range in each of them."""

    paths: tuple[str, ...]
    topics: tuple[str, ...]
    pattern: str | None
    partitions: tuple[int, ...]
    isolation: Literal["read_uncommitted", "read_committed"]
    offset: str | int | pylog.FromEnd | None
    start_offset: int | None
    end_offset: int | None
    start_timestamp: int | None
    end_timestamp: int | None
    include_stray: bool
    replica: str | None

    @property
    def start(self) -> str | int | pylog.Timestamp | pylog.FromEnd:
        """The position that the range starts at."""
        if self.offset is not None:
            if (self.start_offset, self.start_timestamp) != (None, None):
                msg = "give either -o, --start-offset or --start-timestamp, not two of them"
                raise click.UsageError(msg)
            return self.offset
        return position("start", self.start_offset, self.start_timestamp, "earliest")

    @property
    def end(self) -> str | int | pylog.Timestamp:
        """The position before which it ends."""
        return position("end", self.end_offset, self.end_timestamp, "latest")

    @property
    def extent(self) -> dict[str, Any]:
        """The range as arguments of `pylog.scan` and `pylog.search`."""
        return {"start": self.start, "end": self.end, "isolation": self.isolation}

    @property
    def names(self) -> list[str]:
        """The topics that were named."""
        return options.names_in(self.topics, self.pattern)

    @property
    def is_restricted(self) -> bool:
        """Whether a part of the records was asked for."""
        return (self.start, self.end) != ("earliest", "latest")

    def directory(self) -> pylog.results.LogDirectory:
        """Return the log directory, or several as one, under the paths."""
        return pylog.open_directory(
            *self.paths,
            include_stray=self.include_stray,
            replica=self.replica,
            takes_segment_files=True,
        )

    def arguments(self) -> dict[str, Any]:
        """Return the options as arguments of `pylog.search`."""
        return {
            "topics": self.names,
            "partitions": self.partitions,
            "pattern": self.pattern,
            **self.extent,
        }

    def scan(self, way: WayOfReading, **arguments: Any) -> pylog.results.Scan:  # noqa: ANN401 - of pylog.scan
        """Return the scan of them, with further arguments of `pylog.scan`."""
        directory, choice = self.choice()
        return pylog.scan(directory, **choice, **way.arguments(), **arguments)

    def choice(self) -> tuple[pylog.results.LogDirectory, dict[str, Any]]:
        """Return the directory, and which of its records as arguments of `pylog.scan`."""
        names, extent = self.names, self.extent
        directory = self.directory()
        assign = pylog.jobs.choose_partitions(
            directory, names, self.partitions, pattern=self.pattern
        )
        return directory, {"assign": assign, **extent}


class EarlierRecords:
    """Counts records of a range by time that are earlier than its beginning.

    A look-up by time gives an offset; what is behind it may be earlier. (Nothing before its end is
    later, since that is the first such record.)
    """

    def __init__(self, chosen: ChosenRecords) -> None:
        self._start = chosen.start_timestamp
        self._count = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Count those of a batch, if it has their times (in ms)."""
        if self._start is not None and "timestamp" in batch.schema.names:
            times = batch.column("timestamp").view("int64").to_numpy()
            self._count += int((times < self._start).sum())

    def note(self) -> str | None:
        """Return the note that the user is told."""
        if not self._count:
            return None
        return (
            f"{counted(self._count, 'record is', 'records are')} earlier than --start-timestamp: "
            "timestamps are out of order, and a time only looks up an offset; --min-timestamp "
            "filters"
        )


def of_times(min_timestamp: int | None, max_timestamp: int | None) -> pylog.RecordFilter | None:
    """Return the filter for records with a timestamp between these; None if both are."""
    if max_timestamp is not None and min_timestamp is None:
        min_timestamp = 0  # a record without a timestamp has -1
    if min_timestamp is None:
        return None
    return pylog.RecordFilter(min_timestamp=min_timestamp, max_timestamp=max_timestamp)


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOfReading:
    """How files are read; the records do not depend on it."""

    ignore_indexes: bool
    threads: int | None
    leave_page_cache: bool
    max_decompressed_bytes: int

    def arguments(self) -> dict[str, Any]:
        """Return it as arguments of `pylog.scan` and `pylog.search`."""
        return {
            "use_indexes": not self.ignore_indexes,
            "threads": self.threads,
            "leave_page_cache": self.leave_page_cache,
            "max_decompressed_bytes": self.max_decompressed_bytes,
        }


def position(
    which: str, offset: int | None, timestamp: int | None, default: str
) -> str | int | pylog.Timestamp:
    """Return a position that two options give, of which at most one is set."""
    if offset is not None and timestamp is not None:
        raise click.UsageError(f"give either --{which}-offset or --{which}-timestamp, not both")
    if timestamp is not None:
        return pylog.Timestamp(timestamp, if_missing="latest")
    return default if offset is None else offset


_WORDS = {"beginning": "earliest", "end": "latest", "earliest": "earliest", "latest": "latest"}
_LARGEST_OFFSET = 2**63 - 1


def _kcat_offset(text: str) -> str | int | pylog.FromEnd:
    """Return a position as kcat's option ``-o`` has it."""
    if text in _WORDS:
        return _WORDS[text]
    digits = text.removeprefix("-")
    # More digits than Kafka's largest offset has could take Python forever.
    is_short = len(digits) <= len(str(_LARGEST_OFFSET))
    if not (digits.isascii() and digits.isdecimal() and is_short) or int(digits) > _LARGEST_OFFSET:
        raise ValueError(f"{text!r} is not beginning, end, an offset, or -N")
    return pylog.FromEnd(int(digits)) if text.startswith("-") else int(digits)


_Group = TypeVar("_Group")


def packed(kind: type[_Group], name: str, decorators: Sequence[Decorator]) -> Decorator:
    """Return the decorator that adds options and gives the function one value for all of them."""

    def decorate(function: CommandFunction) -> CommandFunction:
        @functools.wraps(function)
        def with_group(**parameters: Any) -> int:  # noqa: ANN401 - click's own
            group = kind(**{each.name: parameters.pop(each.name) for each in fields(kind)})  # type: ignore[arg-type]
            return function(**{name: group}, **parameters)

        return options.together(*decorators)(with_group)

    return decorate


chosen_records = packed(
    ChosenRecords,
    "chosen",
    (
        stored_paths(
            type=FILE,
            help_text="Log directories (entries of a broker's log.dirs), <topic>-<partition> "
            "directories, or single .log files in them.",
        ),
        options.topics(
            "Only these topics; may be given several times. Default: all but internal ones (a PATH "
            "that is a partition directory is read whatever its topic)."
        ),
        options.pattern(
            "; ^ and $ stand for the name's start and end. Internal topics are left out, except "
            "__remote_log_metadata, which brokers treat as an ordinary topic."
        ),
        options.partitions(),
        options.isolation(
            "read_committed leaves out aborted transactions, and everything from the first open "
            "transaction on."
        ),
        click.option(
            "-o",
            "offset",
            metavar="OFFSET",
            type=ParsedType("offset", _kcat_offset),
            help="Where to begin in every partition read, as in kcat: beginning, end, an offset, "
            "or -N for the last N offsets.",
        ),
        options.number(
            "--start-offset",
            help="First offset to read (inclusive), in every partition read. Default: the "
            "earliest.",
        ),
        options.number(
            "--end-offset",
            help="Offset before which to stop (exclusive). Default: the end of the log.",
        ),
        options.instant(
            "--start-timestamp",
            help="Begin at the first record whose timestamp is TIME or later (inclusive). TIME: "
            "see above. A partition without such a record is skipped.",
        ),
        options.instant(
            "--end-timestamp",
            help="Stop before the first record whose timestamp is TIME or later (exclusive).",
        ),
        options.of_several_disks,
    ),
)
"""Gives a command's function the argument ``chosen``, a `ChosenRecords`."""

way_of_reading = packed(
    WayOfReading,
    "way",
    (
        options.flag(
            "--ignore-indexes",
            help="Do not open .index, .timeindex and .txnindex files: everything is looked up in "
            "the .log files. This is slower; the records are the same unless an index file was "
            "forged.",
        ),
        options.threads("threads decompress and decode records", default="1"),
        options.flag(
            "--leave-page-cache",
            help="Leave the system's page cache as it was: what is read of .log files does not "
            "stay there, and so does not evict what a broker on this host serves from. An error "
            "where the system cannot do it.",
        ),
        options.max_decompressed_bytes(" Reading a batch takes at most four times as much memory."),
    ),
)
"""Gives a command's function the argument ``way``, a `WayOfReading`."""

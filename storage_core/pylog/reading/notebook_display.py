"""What a notebook or a `repr` shows of several logs: those of a directory, and those of a scan.

A look at an object has to be quick, and must not fail: at most `MOST_LOGS` logs are looked at, each
by names, side files and a few headers; what cannot be read is a note after the table. The logs of
an object store are not looked at, since every look is a request.
"""

from __future__ import annotations

import reprlib
from functools import partial
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from pylog.locations import is_remote, printable_location
from pylog.model import NO_TIMESTAMP
from pylog.reading.damage import Attempts
from pylog.reading.html_table import MOST_ROWS, html_table, shown_time
from pylog.reading.log_view import first_timestamp, read_unless_deleted
from pylog.text.words import counted, named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pylog.reading.damage import ReadMode
    from pylog.reading.discovery import PartitionDirectory
    from pylog.reading.log_view import LogView
    from pylog.reading.planner import ScanRequest
    from pylog.reading.scan_task import ScanTask


_SHORTENED = reprlib.Repr()
_SHORTENED.maxdict = _SHORTENED.maxlist = _SHORTENED.maxset = 8
_SHORTENED.maxfrozenset = 8
_SHORTENED.maxstring = _SHORTENED.maxother = 120


def short_repr(value: object) -> str:
    """Return the `repr` of ``value``, with "..." for what is more than eight members of it."""
    return _SHORTENED.repr(value)


def directories_repr(directories: Iterable[PartitionDirectory]) -> str:
    """Return the paths and, by topic, the partition numbers, without secrets of a URI."""
    paths: dict[str, None] = {}
    topics: dict[str, list[int]] = {}
    for each in directories:
        paths[printable_location(each.path if each.is_named else each.log_directory)] = None
        topics.setdefault(each.topic_partition.topic, []).append(each.topic_partition.partition)
    given = [repr(path) for path in paths]
    if len(given) > 2:
        given[1:] = [f"and {len(given) - 1} more"]
    return f"{', '.join(given)}, topics={short_repr(topics)}"


def scan_choices(
    columns: list[str], wanted: ScanRequest, mode: ReadMode, limit: int | None
) -> list[str]:
    """Return what was chosen for a scan, such as ``start='earliest'``."""
    choices = [
        f"columns={short_repr(columns)}",
        f"start={short_repr(wanted.start)}",
        f"end={short_repr(wanted.end)}",
        f"isolation={wanted.isolation.label!r}",
        f"mode={str(mode)!r}",
    ]
    if wanted.where is not None:
        choices.append(f"where={short_repr(wanted.where)}")
    if limit is not None:
        choices.append(f"limit={limit}")
    return choices


MOST_LOGS = 100


class _Measures(NamedTuple):
    """What is shown of one log; None for what cannot be read."""

    start_offset: int | None
    end_offset: int | None
    size_bytes: int | None
    first: int | None
    last: int | None

    @property
    def offsets(self) -> int | None:
        if self.start_offset is None or self.end_offset is None:
            return None
        return self.end_offset - self.start_offset


def _measure(view: LogView, attempts: Attempts) -> _Measures:
    last = attempts.read(partial(read_unless_deleted, view, attrgetter("end.last"), None))
    stamp = NO_TIMESTAMP if last is None else last.header.max_timestamp
    return _Measures(
        *_range_and_size(view, attempts),
        attempts.read(partial(read_unless_deleted, view, first_timestamp, None)),
        None if stamp == NO_TIMESTAMP else stamp,
    )


def _range_and_size(view: LogView, attempts: Attempts) -> tuple[int | None, int | None, int | None]:
    """Return start, end and bytes of a log; of a new look at it if files change meanwhile."""
    start, end, size_bytes = (
        attempts.read(partial(read_unless_deleted, view, attrgetter(name), None))
        for name in ("log_start_offset", "log_end_offset", "size_bytes")
    )
    return start, end, size_bytes


def topics_html(
    directories: Iterable[PartitionDirectory],
    others: Sequence[PartitionDirectory],
    view_of: Callable[[PartitionDirectory], LogView],
) -> str:
    """Return a table of topics."""
    topics: dict[str, list[PartitionDirectory]] = {}
    for each in directories:
        topics.setdefault(each.topic_partition.topic, []).append(each)
    count = sum(map(len, topics.values()))
    attempts = Attempts()
    notes: list[str] = []
    remote = any(is_remote(each.path) for each in chain.from_iterable(topics.values()))
    if remote:
        notes.append("Sizes, offsets and times of an object store are not looked up here.")
    elif count > MOST_LOGS:
        notes.append(
            f"Sizes, offsets and times are those of topics among the first {MOST_LOGS} partitions."
        )
    rows = list(
        islice(_topic_rows(topics, view_of, attempts, 0 if remote else MOST_LOGS), MOST_ROWS)
    )
    if others:
        states = sorted({each.state.removeprefix("-") for each in others})
        notes.append(f"Not live, and not counted: {len(others)} ({', '.join(states)})")
    return html_table(
        f"LogDirectory {_places(chain.from_iterable(topics.values()))}: "
        f"{_counted(len(topics), 'topic')}, {_counted(count, 'partition')}",
        ("topic", "partitions", "offsets", "bytes", "first timestamp (UTC)", "last timestamp"),
        rows,
        len(topics),
        notes=[*notes, *attempts.notes()],
    )


def _topic_rows(
    topics: Mapping[str, list[PartitionDirectory]],
    view_of: Callable[[PartitionDirectory], LogView],
    attempts: Attempts,
    most_logs: int,
) -> Iterator[tuple[str | int | None, ...]]:
    for topic, directories in topics.items():
        most_logs -= len(directories)
        if most_logs < 0:
            yield topic, len(directories), None, None, None, None
            continue
        logs = [_measure(view_of(each), attempts) for each in directories]
        firsts = [each.first for each in logs if each.first is not None]
        lasts = [each.last for each in logs if each.last is not None]
        yield (
            topic,
            len(directories),
            _sum(each.offsets for each in logs),
            _sum(each.size_bytes for each in logs),
            shown_time(min(firsts, default=None)),
            shown_time(max(lasts, default=None)),
        )


def scan_html(views: Sequence[LogView], tasks: Sequence[ScanTask] | None, choices: str) -> str:
    """Return a table of what a scan reads."""
    attempts = Attempts()
    if tasks is not None:
        return html_table(
            f"Scan of {_places(view.directory for view in views)}: "
            f"{_counted(len(tasks), 'task')}, {sum(each.size_bytes for each in tasks):,} bytes",
            ("topic", "partition", "start offset", "end offset", "bytes to read"),
            (
                (*each.topic_partition, each.start_offset, each.end_offset, each.size_bytes)
                for each in tasks
            ),
            len(tasks),
            notes=[choices],
        )
    rows = [_log_row(view, attempts) for view in views[:MOST_ROWS]]
    return html_table(
        f"Scan of {_places(view.directory for view in views)}: "
        f"{_counted(len(views), 'partition')}, not planned yet",
        ("topic", "partition", "log start offset", "log end offset", "bytes"),
        rows,
        len(views),
        notes=[choices, *attempts.notes()],
    )


def _log_row(view: LogView, attempts: Attempts) -> tuple[str | int | None, ...]:
    if is_remote(view.directory.path):
        return (*view.topic_partition, None, None, None)
    return (*view.topic_partition, *_range_and_size(view, attempts))


def _sum(values: Iterable[int | None]) -> int | None:
    """Return the sum; None if a value is missing, so that no sum is too small."""
    total = 0
    for each in values:
        if each is None:
            return None
        total += each
    return total


def _places(directories: Iterable[PartitionDirectory]) -> str:
    paths = dict.fromkeys(
        printable_location(each.path if each.is_named else each.log_directory)
        for each in directories
    )
    return named(list(paths), 1) or "(nothing)"


def _counted(count: int, noun: str) -> str:
    return counted(count, noun, digits=",")

"""Long work in a process of its own: it never holds up the screen, and can be ended at any time.

A regular expression that backtracks, or a batch that takes long to decode, cannot be interrupted in
a thread. The other process sends what it finds through a pipe, which blocks it while nobody reads.
"""

from __future__ import annotations

import multiprocessing
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import pylog
from pylog.cli.browse.record_windows import Row, record_rows
from pylog.cli.commands.search import summary_lines
from pylog.errors import LogStorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

    import pyarrow as pa

    Emit = Callable[[object], None]

MOST_MATCHES = 10_000
_SECONDS_BETWEEN = 0.1


class Progress(NamedTuple):
    """How far the work has come."""

    done_bytes: int
    total_bytes: int


class Match(NamedTuple):
    """A record that a search has found, and what of it is why."""

    partition: pylog.TopicPartition
    row: Row
    key_spans: list[tuple[int, int]]
    value_spans: list[tuple[int, int]]


class Summary(NamedTuple):
    """What is said at the end."""

    lines: list[str]


class Failure(NamedTuple):
    """Why there is no more."""

    message: str


class BackgroundWork:
    """A function that works in another process, and what it has to say."""

    def __init__(self, work: Callable[..., None], *arguments: object) -> None:
        context = multiprocessing.get_context("spawn")
        self._receiver, sender = context.Pipe(duplex=False)
        self._process = context.Process(target=_run, args=(sender, work, arguments), daemon=True)
        self._process.start()
        sender.close()  # so that the end of the process is the end of what is received

    def messages(self) -> Iterator[object]:
        """Yield what the process sends, until it has ended; in a thread."""
        while True:
            try:
                yield self._receiver.recv()
            except (EOFError, OSError):  # it has ended, or has been ended
                return

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()
        self._process.join()


def _run(sender: Connection, work: Callable[..., None], arguments: tuple[object, ...]) -> None:
    try:
        work(sender.send, *arguments)
    except BrokenPipeError:
        pass  # nobody wants to know any more
    except (LogStorageError, OSError, ValueError) as error:
        sender.send(Failure(str(error)))
    except Exception as error:  # noqa: BLE001 - the last place where it can be told
        sender.send(Failure(f"this is a bug in pylog: {type(error).__name__}: {error}"))


def _progress(emit: Emit) -> Callable[[int, int], None]:
    """Return what sends progress, as often as somebody can see it change."""
    sent_at = 0.0

    def send(done_bytes: int, total_bytes: int) -> None:
        nonlocal sent_at
        now = time.monotonic()
        if now - sent_at >= _SECONDS_BETWEEN:
            sent_at = now
            emit(Progress(done_bytes, total_bytes))

    return send


def find_matches(
    emit: Emit,
    open_directory: Callable[[], pylog.results.LogDirectory],
    tests: dict[str, Any],
    arguments: dict[str, Any],
) -> None:
    """Send the matches of a search, and what it has come to."""
    of_times = {"partitioner", "min_timestamp", "max_timestamp", "trust_batch_timestamps"}
    where = pylog.RecordFilter.matching(
        **{name: each for name, each in tests.items() if name not in of_times}
    )
    found = pylog.search(
        open_directory(),
        **{"limit": MOST_MATCHES, **arguments},
        **tests,
        columns=("topic", "partition", "offset", "timestamp", "key", "value"),
        timestamp_unit="ms",
        progress=_progress(emit),
    )
    for batch in found:
        emit(list(_matches(batch, where)))
    emit(Summary(list(summary_lines(found.summary))))


def _matches(batch: pa.RecordBatch, where: pylog.RecordFilter) -> Iterator[Match]:
    places = map(
        pylog.TopicPartition,
        batch.column("topic").to_pylist(),
        batch.column("partition").to_pylist(),
    )
    for place, row in zip(places, record_rows(batch), strict=True):
        spans = (
            list(where.spans(name, text)) if text else []
            for name, text in (("key", row.key), ("value", row.value))
        )
        yield Match(place, row, *spans)


def find_findings(
    emit: Emit, paths: tuple[str, ...], path: str, partition: pylog.TopicPartition
) -> None:
    """Send the findings of a partition, the worst first, and what a broker does to it."""
    is_live = not path.endswith(("-stray", "-delete", "-future"))
    report = pylog.doctor(
        *(paths if is_live else (path,)),
        topics=[partition.topic] if is_live else None,
        partitions=[partition.partition],
        threads=1,
        progress=_progress(emit),
    )
    findings = [each for checked in report.partitions for each in checked.findings]
    emit(sorted(findings, key=lambda each: each.severity.rank))
    emit(Summary(report.verdict))

"""Long work in a process of its own: it never holds up the screen, and can be ended at any time.

A regular expression that backtracks, or a batch that takes long to decode, cannot be interrupted in
a thread. The other process sends what it finds through a pipe, which blocks it while nobody reads.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import pylog
from pylog.cli.browse.record_windows import Row, record_rows
from pylog.cli.commands.search import filter_of, summary_lines
from pylog.errors import LogStorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    Emit = Callable[[object], None]

MOST_MATCHES = 10_000
_SECONDS_BETWEEN = 0.1


class Progress(NamedTuple):
    """Bytes that are done, and all bytes of the work."""

    done_bytes: int
    total_bytes: int


class Match(NamedTuple):
    """A record that a search has found, and what of it is why."""

    partition: pylog.TopicPartition
    row: Row
    key_spans: list[tuple[int, int]]
    value_spans: list[tuple[int, int]]


class Summary(NamedTuple):
    """The lines that are shown at the end."""

    lines: list[str]


class Failure(NamedTuple):
    """Why there is no more."""

    message: str


class BackgroundWork:
    """A function that works in another process, and the messages that it sends."""

    def __init__(self, work: Callable[..., None], *arguments: object) -> None:
        # As multiprocessing does it, which wants standard streams that are files: the screen has
        # taken their place.
        code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve()"
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, with our own module
            [sys.executable, "-P", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        with self._opened(self._process.stdin) as stdin:
            pickle.dump((work, arguments), stdin)

    def messages(self) -> Iterator[object]:
        """Yield what the process sends, until it has ended; in a thread."""
        with self._opened(self._process.stdout) as stdout:
            while True:
                try:
                    yield pickle.load(stdout)  # noqa: S301 - from our own process
                except (EOFError, pickle.UnpicklingError):  # it has ended, or has been ended
                    break
        self._process.wait()

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()

    @staticmethod
    def _opened(stream: IO[bytes] | None) -> IO[bytes]:
        if stream is None:  # it has been asked for as a pipe
            raise OSError("the other process has no pipe")
        return stream


def serve() -> None:
    """Do what standard input asks for, in the other process."""
    work, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own process
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever a library prints is no message

    def emit(message: object) -> None:
        pickle.dump(message, output)
        output.flush()

    try:
        work(emit, *arguments)
    except BrokenPipeError:
        pass  # nobody wants to know any more
    except (LogStorageError, OSError, ValueError) as error:
        emit(Failure(str(error)))
    except Exception as error:  # noqa: BLE001 - the last place where it can be told
        emit(Failure(f"this is a bug in pylog: {type(error).__name__}: {error}"))


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
    """Send the matches of a search, and its progress."""
    where = filter_of(tests)
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
    # The command has named each of them above.
    emit(Summary([line.removesuffix(", see above") for line in summary_lines(found.summary)]))


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


def find_all_findings(emit: Emit, paths: tuple[str, ...]) -> None:
    """Send the findings of all partitions, those with the worst first, and the verdict."""
    report = pylog.doctor(*paths, progress=_progress(emit))
    emit(
        {
            each.topic_partition: sorted(each.findings, key=lambda one: one.severity.rank)
            for each in report.partitions
        }
    )
    emit(Summary(report.verdict.reasons[:1]))


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
    emit(Summary(report.verdict.reasons[:1]))

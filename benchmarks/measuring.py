"""What a figure is: one repetition, several of them, and what was read in them."""

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class Tally(NamedTuple):
    """Sums over everything read; a reader whose sums differ from the data set's read wrongly."""

    records: int
    key_bytes: int
    value_bytes: int
    offsets: int
    timestamps_ms: int


class WrongAnswerError(RuntimeError):
    """A reader's sums are not those of what was written."""


class NotHereError(RuntimeError):
    """A peer cannot be measured on this machine; the message says why."""


@dataclass(frozen=True, slots=True)
class Run:
    """One repetition; the clock ran from the first byte asked for to the last record seen."""

    seconds: float
    cpu_seconds: float  # of the whole process, every thread


class Reader(Protocol):
    """One way to read one data set."""

    @property
    def name(self) -> str:
        """What the table calls it."""

    @property
    def records(self) -> int:
        """Records that one repetition reads."""

    @property
    def log_bytes(self) -> int:
        """Bytes of ``.log`` files that hold them."""

    def check(self) -> None:
        """Read once, uncounted, and compare with what was written."""

    def repeat(self) -> Run:
        """Read once, counted."""


@dataclass(slots=True)
class Figure:
    """What one reader did with one data set, all repetitions."""

    reader: str
    records: int
    log_bytes: int
    runs: list[Run] = field(default_factory=list)

    def seconds(self) -> list[float]:
        """Return the wall times in the order of the rounds."""
        return [run.seconds for run in self.runs]

    @property
    def best_seconds(self) -> float:
        """The fastest repetition."""
        return min(self.seconds())

    @property
    def median_seconds(self) -> float:
        """The middle repetition."""
        return statistics.median(self.seconds())

    @property
    def best_cpu_us_per_record(self) -> float:
        """Microseconds of processor time a record, all threads, in the thriftiest repetition."""
        return min(run.cpu_seconds for run in self.runs) / self.records * 1e6

    @property
    def best_seconds_per_record(self) -> float:
        """Wall time a record in the fastest repetition; compares readers of unequal samples."""
        return self.best_seconds / self.records

    @property
    def median_seconds_per_record(self) -> float:
        """Wall time a record in the middle repetition."""
        return self.median_seconds / self.records


def timed(work: Callable[[], object]) -> Run:
    """Return how long one call of `work` took, with the garbage of earlier ones collected."""
    gc.collect()
    cpu_started, started = time.process_time(), time.perf_counter()
    work()
    return Run(time.perf_counter() - started, time.process_time() - cpu_started)


def rounds_of(readers: Sequence[Reader], rounds: int) -> list[Figure]:
    """Return a figure a reader: each is checked once, then all take turns for `rounds` rounds.

    Turns, not blocks: what else the machine does hits every reader alike.
    """
    figures = [Figure(reader.name, reader.records, reader.log_bytes) for reader in readers]
    for reader in readers:
        reader.check()
    for _ in range(rounds):
        for reader, figure in zip(readers, figures, strict=True):
            figure.runs.append(reader.repeat())
    return figures


def ensure_equal(reader: str, read: object, written: object) -> None:
    """Raise :class:`WrongAnswerError` unless `read` is what was written."""
    if read != written:
        raise WrongAnswerError(f"{reader} read {read}, written was {written}")

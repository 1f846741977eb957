"""Part ``own``: appending through a log that we own, recovering it, opening many.

Appending is measured with batches that are ready, as they come from a producer: checked, given
offsets, indexed, written to the page cache, not forced to disk. Beside it stand encoding the same
records and writing the same bytes with nothing else, which is what the file system takes.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

import pyarrow as pa

from benchmarks.data_sets import Bench, DataSet
from benchmarks.encoding import leading_columns
from benchmarks.measuring import Figure, Reader, Run, ensure_equal, rounds_of, timed
from pylog.columnar.encode import RecordEncoder
from pylog.config import LogConfig
from pylog.files.durable_io import DurableIO
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.log.unified_log import UnifiedLog
from pylog.model import TopicPartition
from pylog.record.record_batch_builder import RecordBatchBuilder

ENCODE = "encoding alone"
APPEND = "UnifiedLog.append_as_leader"
APPEND_BATCHES = "UnifiedLog.append_batches_as_leader"
WRITE = "write(2) alone"
RECOVER = "recovery"
LARGE_BATCH_BYTES = 1 << 20
SMALL_BATCH_BYTES = 16_384
PARTITIONS = 1_000
QUICK_PARTITIONS = 50
SEGMENTS = 20
_SAMPLE_DIVISOR = 2
_ANY_TIME = 2**62
_PARTITION = TopicPartition("own", 0)


@dataclass(frozen=True, slots=True)
class AppendResult:
    """Figures of one value and batch size, by what was done."""

    value_bytes: int
    batch_bytes: int
    figures: dict[str, Figure]


@dataclass(slots=True)
class OpenFigure:
    """One start on many closed logs."""

    partitions: int
    segments: int
    logs_opened: int
    runs: list[Run] = field(default_factory=list)


@dataclass(slots=True)
class OwnResults:
    """Everything of this part."""

    appends: list[AppendResult] = field(default_factory=list)
    recoveries: list[Figure] = field(default_factory=list)
    opened: OpenFigure | None = None


def _manager(directory: Path, segment_bytes: int = 1 << 30) -> LogManager:
    settings = LogConfig(
        segment_bytes=segment_bytes,
        max_message_bytes=2 * LARGE_BATCH_BYTES,
        message_timestamp_after_max_ms=_ANY_TIME,
    )
    return LogManager([directory], settings)


class _Task:
    """Something done to the same batches again and again."""

    def __init__(self, name: str, batches: Sequence[bytearray], records: int) -> None:
        self.name = name
        self.records = records
        self.log_bytes = sum(map(len, batches))
        self._batches = batches


class _Encoding(_Task):
    def __init__(
        self, columns: pa.RecordBatch, batch_bytes: int, batches: Sequence[bytearray]
    ) -> None:
        super().__init__(ENCODE, batches, columns.num_rows)
        self._columns = columns
        self._batch_bytes = batch_bytes

    def _encode(self) -> int:
        encoder = RecordEncoder(batch_size_bytes=self._batch_bytes)
        return sum(batch.size_bytes for batch in encoder.encode(self._columns))

    def check(self) -> None:
        ensure_equal(self.name, self._encode(), self.log_bytes)

    def repeat(self) -> Run:
        return timed(self._encode)


class _Appending(_Task):
    name_of_what = APPEND

    def __init__(self, root: Path, batches: Sequence[bytearray], records: int) -> None:
        super().__init__(self.name_of_what, batches, records)
        self._directory = root / "own-append"

    def _append_all(self, log: UnifiedLog) -> None:
        for batch in self._batches:
            log.append_as_leader(batch)

    def repeat(self) -> Run:
        shutil.rmtree(self._directory, ignore_errors=True)
        for batch in self._batches:
            batch[:8] = bytes(8)  # appending writes the base offset into the batch
        manager = _manager(self._directory).startup()
        try:
            log = manager.get_or_create_log(_PARTITION)
            run = timed(lambda: self._append_all(log))
            ensure_equal(self.name, (log.log_end_offset, log.size_bytes), self._written())
        finally:
            manager.abandon()
        shutil.rmtree(self._directory)
        return run

    def _written(self) -> tuple[int, int]:
        return self.records, self.log_bytes

    def check(self) -> None:
        self.repeat()


class _AppendingBatches(_Appending):
    """All batches in one buffer."""

    name_of_what = APPEND_BATCHES

    def __init__(self, root: Path, batches: Sequence[bytearray], records: int) -> None:
        super().__init__(root, batches, records)
        self._buffer = bytearray(self.log_bytes)
        self._positions = [*accumulate(map(len, batches), initial=0)][:-1]

    def repeat(self) -> Run:
        for start, batch in zip(self._positions, self._batches, strict=True):
            self._buffer[start : start + len(batch)] = batch
            self._buffer[start : start + 8] = bytes(8)
        return super().repeat()

    def _append_all(self, log: UnifiedLog) -> None:
        log.append_batches_as_leader(self._buffer)


class _Writing(_Task):
    def __init__(self, root: Path, batches: Sequence[bytearray], records: int) -> None:
        super().__init__(WRITE, batches, records)
        self._path = root / "own-write"

    def _write(self, descriptor: int) -> None:
        position = 0
        for batch in self._batches:
            position += os.pwrite(descriptor, batch, position)
        ensure_equal(self.name, position, self.log_bytes)

    def repeat(self) -> Run:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        try:
            return timed(lambda: self._write(descriptor))
        finally:
            os.close(descriptor)
            self._path.unlink()

    def check(self) -> None:
        self.repeat()


class _Recovering:
    """Start-up after an unclean stop of a log that is one segment of a data set."""

    def __init__(self, bench: Bench, data_set: DataSet) -> None:
        self.name = f"{RECOVER} of {data_set.name}"
        self.records = data_set.records
        self.log_bytes = data_set.log_bytes
        self._source = bench.directory(data_set.name)
        self._directory = bench.root / "own-recovery"

    def check(self) -> None:
        self.repeat()

    def repeat(self) -> Run:
        shutil.rmtree(self._directory, ignore_errors=True)
        shutil.copytree(self._source, self._directory)
        manager = _manager(self._directory)
        try:
            run = timed(manager.startup)
            (log,) = manager.logs.values()
            (loading,) = manager.loadings
            found = log.log_end_offset, len(loading.recovered_segments), loading.truncated_bytes
            ensure_equal(self.name, found, (self.records, 1, 0))
        finally:
            manager.abandon()
            shutil.rmtree(self._directory)
        return run


class _CountingIO(DurableIO):
    """Counts how many ``.log`` files are opened; none can be read without."""

    def __init__(self) -> None:
        self.logs_opened = 0

    def open_to_write(self, path: str, *, create: bool) -> int:
        self.logs_opened += path.endswith(".log")
        return super().open_to_write(path, create=create)


def _append_results(
    bench: Bench, value_sizes: Sequence[int], rounds: int, say: Callable[[str], None]
) -> list[AppendResult]:
    results = []
    for value_bytes in value_sizes:
        data_set = bench.base(value_bytes, "none")
        columns = leading_columns(bench, data_set, data_set.records // _SAMPLE_DIVISOR)
        for batch_bytes in (LARGE_BATCH_BYTES, SMALL_BATCH_BYTES):
            say(f"appending records of {data_set.name} in batches of {batch_bytes:,} bytes")
            encoder = RecordEncoder(batch_size_bytes=batch_bytes)
            batches = [bytearray(each.data) for each in encoder.encode(columns)]
            tasks: list[Reader] = [
                _Encoding(columns, batch_bytes, batches),
                _Appending(bench.root, batches, columns.num_rows),
                _AppendingBatches(bench.root, batches, columns.num_rows),
                _Writing(bench.root, batches, columns.num_rows),
            ]
            figures = rounds_of(tasks, rounds)
            by_name = {figure.reader: figure for figure in figures}
            results.append(AppendResult(value_bytes, batch_bytes, by_name))
    return results


def _closed_logs(bench: Bench, partitions: int) -> Path:
    """Return a directory of cleanly closed logs, made at the first call."""
    directory = bench.root / f"own-closed-{partitions}"
    done = directory / "made"
    if done.exists():
        return directory
    shutil.rmtree(directory, ignore_errors=True)
    builder = RecordBatchBuilder()
    for number in range(20):
        builder.append(1_700_000_000_000 + number, b"key", bytes(80))
    batch = builder.build()
    with _manager(directory, segment_bytes=2 * len(batch)) as manager:
        for partition in range(partitions):
            log = manager.get_or_create_log(TopicPartition("own", partition))
            for _ in range(2 * SEGMENTS):
                log.append_as_leader(batch)
            ensure_equal("segments", len(log.segments), SEGMENTS)
    done.touch()
    return directory


def _open_many(bench: Bench, rounds: int, say: Callable[[str], None]) -> OpenFigure:
    partitions = QUICK_PARTITIONS if bench.quick else PARTITIONS
    say(f"opening {partitions:,} logs of {SEGMENTS} segments")
    directory = _closed_logs(bench, partitions)
    figure = OpenFigure(partitions, SEGMENTS, 0)
    for _ in range(rounds):
        io = _CountingIO()
        manager = LogManager([directory], context=LogContext(io=io))
        try:
            figure.runs.append(timed(manager.startup))
            figure.logs_opened = max(figure.logs_opened, io.logs_opened)
            ensure_equal("logs", len(manager.logs), partitions)
        finally:
            manager.shutdown()
    return figure


def measure_owned_logs(
    bench: Bench, value_sizes: Sequence[int], rounds: int, say: Callable[[str], None]
) -> OwnResults:
    """Return what appending, recovering and opening take."""
    results = OwnResults(_append_results(bench, value_sizes, rounds, say))
    say("recovering")
    sets = [bench.base(value_bytes, "none") for value_bytes in value_sizes]
    results.recoveries = rounds_of([_Recovering(bench, each) for each in sets], rounds)
    results.opened = _open_many(bench, min(rounds, 3), say)
    return results

"""Part ``cleaning``: one round of compaction, by ours and by Kafka's own ``Cleaner``.

Both clean the same directory, a copy each, one core each: a map of 128 MiB, everything dirty, 20
records a key. The clock runs over the round alone, not over opening and closing the log. Ours runs
in a process of its own each time, whose peak memory is counted; Kafka's in a warm JVM. What is left
must be the same, file by file, or record by record where batches were compressed anew.

``python -m benchmarks.cleaning DIRECTORY SEGMENT_BYTES`` cleans and prints what it came to.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

import pylog
from benchmarks.batches import CODECS
from benchmarks.data_sets import PAYLOAD_BYTES, QUICK_DIVISOR, Bench
from benchmarks.java_peer import WARM_UP_SECONDS
from benchmarks.measuring import Figure, NotHereError, Run, ensure_equal, rounds_of
from benchmarks.memory import peak_bytes
from pylog.cleaner.cleanable_offsets import LogToClean
from pylog.cleaner.cleaner import Cleaner
from pylog.columnar.encode import RecordEncoder
from pylog.config import CleanerConfig, LogConfig
from pylog.model import CompressionType, TopicPartition
from pylog.record.batch_scan import find_batches
from pylog.scheduling.clock import SystemClock
from tests.differential.kafka_log import KafkaLogs
from tests.support.kafka_broker_jars import KafkaNotFoundError

OURS = "pylog's Cleaner"
KAFKAS = "Kafka's Cleaner"
RECORDS = 2_000_000
LARGE_TIMES = 10
RECORDS_A_KEY = 20
VALUE_BYTES = 180
"""With the key and what surrounds both, a record takes 200 bytes."""

_MADE_AS = 1  # raise it when what is written changes
_CHUNK = 100_000
_VALUES = 20_000
_SEGMENTS = 8
_MAP_BYTES = 128 << 20
_HEAP = "1g"
_NOW_MS = 1_700_000_000_000
PARTITION = TopicPartition("cleaning", 0)
_REPOSITORY = Path(__file__).parents[1]
_SECONDS = 600


@dataclass(slots=True)
class CleaningResult:
    """What both took for the partition of one codec; ``figures`` by cleaner."""

    codec: str
    figures: dict[str, Figure]
    live_records: int
    peaks: list[int] = field(default_factory=list)

    @property
    def peak_mb(self) -> float:
        """The largest peak of ours, in MB."""
        return max(self.peaks) / 1e6


def _config(segment_bytes: int) -> LogConfig:
    return LogConfig(
        segment_bytes=segment_bytes,
        cleanup_policy=frozenset({"compact"}),
        message_timestamp_after_max_ms=2**62,
    )


def keyed_columns(records: int) -> Iterator[pa.RecordBatch]:
    """Yield records with random keys and values of JSON text, always the same ones."""
    chance = np.random.default_rng(16)
    values = pa.array([_value(chance) for _ in range(_VALUES)], type=pa.binary())
    for start in range(0, records, _CHUNK):
        count = min(_CHUNK, records - start)
        numbers = chance.integers(0, records // RECORDS_A_KEY, count)
        keys = np.char.zfill(numbers.astype("S"), 8)
        yield pa.record_batch(
            {
                "key": pa.array(keys.tolist(), type=pa.binary()),
                "value": values.take(pa.array(chance.integers(0, _VALUES, count))),
                "timestamp": pa.array(np.full(count, _NOW_MS), type=pa.timestamp("ms", "UTC")),
            }
        )


def _value(chance: np.random.Generator) -> bytes:
    names = ("id", "user", "item", "price", "stock", "seen", "sold", "left")
    numbers = chance.integers(0, 10**9, len(names)).tolist()
    text = json.dumps(dict(zip(names, numbers, strict=True)))
    return text.encode().ljust(VALUE_BYTES)[:VALUE_BYTES]


class DirtyPartition:
    """A partition of which everything is dirty, made once."""

    def __init__(self, bench: Bench, codec: str, records: int) -> None:
        self.codec = codec
        self.records = records
        self.directory = bench.root / f"cleaning-{codec}-{records}"
        self.segment_bytes = records * 200 // _SEGMENTS
        made = self.directory.with_suffix(".made")
        if not (made.exists() and made.read_text() == str(_MADE_AS)):
            shutil.rmtree(self.directory, ignore_errors=True)
            self.directory.mkdir(parents=True)
            self._write()
            made.write_text(str(_MADE_AS))
        self.log_bytes = sum(path.stat().st_size for path in self._logs())

    def _logs(self) -> list[Path]:
        return sorted((self.directory / str(PARTITION)).glob("*.log"))

    def _write(self) -> None:
        encoder = RecordEncoder(
            compression=CompressionType[self.codec.upper()],
            batch_size_bytes=PAYLOAD_BYTES[self.codec],
            partition_leader_epoch=0,
        )
        with pylog.logs.LogManager([self.directory], _config(self.segment_bytes)) as manager:
            log = manager.get_or_create_log(PARTITION)
            for columns in keyed_columns(self.records):
                data = bytearray()
                for batch in encoder.encode(columns):  # its memory is used again
                    data += batch.data
                headers = find_batches(np.frombuffer(data, dtype=np.uint8)).headers
                log.append_finished(memoryview(data), headers)
            log.roll()


def copy_of(directory: Path, target: Path) -> Path:
    """Copy a log directory, and return the copy; files that are replaced as a whole are linked."""
    shutil.rmtree(target, ignore_errors=True)

    def copy(source: str, to: str) -> None:
        path = Path(source)
        if path.suffix == ".log" and path != max(path.parent.glob("*.log")):
            os.link(source, to)
        else:
            shutil.copy2(source, to)

    shutil.copytree(directory, target, copy_function=copy)
    return target


class _Cleaning:
    """One cleaner, cleaning copy after copy."""

    def __init__(self, name: str, partition: DirtyPartition, scratch: Path) -> None:
        self.name = name
        self.records = partition.records
        self.log_bytes = partition.log_bytes
        self.left = ""
        self.live_records = 0
        self._partition = partition
        self._scratch = scratch

    def check(self) -> None:
        self.repeat()

    def repeat(self) -> Run:
        copy_of(self._partition.directory, self._scratch)
        try:
            run = self._clean()
            self.left = _left_in(self._scratch)
        finally:
            shutil.rmtree(self._scratch)
        return run

    def _clean(self) -> Run:
        raise NotImplementedError


class _OurCleaning(_Cleaning):
    def __init__(self, partition: DirtyPartition, scratch: Path) -> None:
        super().__init__(OURS, partition, scratch)
        self.peaks: list[int] = []

    def _clean(self) -> Run:
        done = subprocess.run(
            _on_one_core(
                *(sys.executable, "-m", "benchmarks.cleaning"),
                *(str(self._scratch.resolve()), str(self._partition.segment_bytes)),
            ),
            check=True,
            cwd=_REPOSITORY,
            stdout=subprocess.PIPE,
            text=True,
            timeout=_SECONDS,
        )
        found = json.loads(done.stdout)
        self.live_records = found["live_records"]
        self.peaks.append(found["peak_bytes"])
        return Run(found["seconds"], found["cpu_seconds"])


class _KafkasCleaning(_Cleaning):
    def __init__(self, partition: DirtyPartition, scratch: Path, kafka: KafkaLogs) -> None:
        super().__init__(KAFKAS, partition, scratch)
        self._kafka = kafka

    def check(self) -> None:
        """Clean until the JVM has compiled what is measured."""
        seconds = 0.0
        while seconds < WARM_UP_SECONDS:
            seconds += self.repeat().seconds

    def _clean(self) -> Run:
        job = {
            "topic": PARTITION.topic,
            "partition": PARTITION.partition,
            "now": time.time_ns() // 1_000_000,
            "config": {
                "cleanup.policy": "compact",
                "segment.bytes": str(self._partition.segment_bytes),
            },
            "cleaner": {"dedupeBufferSize": _MAP_BYTES},
            "retention": False,
        }
        answer = self._kafka.run("clean", self._scratch.resolve(), job)
        self.live_records = answer["stats"]["messagesWritten"]
        return Run(answer["cleanNanos"] / 1e9, answer["cleanCpuNanos"] / 1e9)


def _on_one_core(*command: str) -> list[str]:
    """Return the command, kept to the last core where there is a way to."""
    taskset = shutil.which("taskset")
    core = max(os.sched_getaffinity(0))
    return [*([taskset, "-c", str(core)] if taskset else []), *command]


def _left_in(directory: Path) -> str:
    """Return a digest of the records that are left; the bytes of compressed batches may differ."""
    scan = pylog.scan(directory, columns=["offset", "timestamp", "key", "value"])
    digest = hashlib.sha256()
    for column in scan.to_table().columns:
        whole = column.combine_chunks()
        for buffer in filter(None, whole.buffers()):
            digest.update(buffer)
    return digest.hexdigest()


def measure_cleaning(bench: Bench, rounds: int, say: Callable[[str], None]) -> list[CleaningResult]:
    """Return what both cleaners took for each codec; `NotHereError` if there is no Kafka."""
    records = RECORDS // (QUICK_DIVISOR if bench.quick else 1)
    records *= LARGE_TIMES if bench.large else 1
    results = []
    with ExitStack() as stack:
        try:
            kafka = stack.enter_context(
                KafkaLogs(_on_one_core(), (f"-Xmx{_HEAP}", f"-Xms{_HEAP}", "-XX:+UseSerialGC"))
            )
        except KafkaNotFoundError as error:
            raise NotHereError(str(error)) from error
        for codec in (each for each in CODECS if each in ("none", "lz4", "zstd")):
            say(f"cleaning {records:,} records, {codec}")
            partition = DirtyPartition(bench, codec, records)
            scratch = bench.root / "cleaning-scratch"
            ours = _OurCleaning(partition, scratch)
            kafkas = _KafkasCleaning(partition, scratch, kafka)
            figures = {each.reader: each for each in rounds_of([ours, kafkas], rounds)}
            ensure_equal(OURS, (ours.live_records, ours.left), (kafkas.live_records, kafkas.left))
            results.append(CleaningResult(codec, figures, ours.live_records, ours.peaks))
    return results


def main() -> None:
    """Clean the directory named on the command line, and print what it took."""
    directory, segment_bytes = sys.argv[1:]
    with pylog.logs.LogManager([directory], _config(int(segment_bytes))) as manager:
        log = manager.get_log(PARTITION)
        cleaner = Cleaner(CleanerConfig(dedupe_buffer_size=_MAP_BYTES), SystemClock())
        candidate = LogToClean(log, log.log_start_offset, log.segments[-1].base_offset)
        cpu_started, started = time.process_time(), time.perf_counter()
        stats = cleaner.clean(candidate).stats
        found = {
            "seconds": time.perf_counter() - started,
            "cpu_seconds": time.process_time() - cpu_started,
            "live_records": stats.records_written,
        }
    sys.stdout.write(json.dumps({**found, "peak_bytes": peak_bytes()}) + "\n")


if __name__ == "__main__":
    main()

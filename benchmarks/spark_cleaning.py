"""Part ``spark-compact``: the job ``compact`` on Spark against `pylog.compact` in one process.

Each cleans a copy of the same log directory; both are left with the same files, byte by byte. The
session runs before the clock does.

* One partition whose keys do not fit into the dedupe buffer that the job is given: Spark's shuffle
  finds the last record of each key. The peer has a buffer that holds all keys.
* Many small partitions, which share tasks.
"""

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

import pylog
from benchmarks.cleaning import (
    PARTITION,
    RECORDS,
    DirtyPartition,
    copy_of,
    keyed_columns,
)
from benchmarks.data_sets import PAYLOAD_BYTES, QUICK_DIVISOR, Bench
from benchmarks.measuring import ensure_equal
from benchmarks.pair_figure import PairFigure
from benchmarks.spark_scan import spark_session
from pylog.columnar.encode import RecordEncoder
from pylog.config import LogConfig
from pylog.model import CompressionType, TopicPartition
from pylog.record.batch_scan import find_batches
from pylog_jobs import compact

ONE = "one partition, by a shuffle of its keys"
OF_1_MB = "partitions of 1 MB"
PEER = "pylog.compact"
LARGE_TIMES = {ONE: 5, OF_1_MB: 10}
PARTITIONS = 100

_SMALL_BUFFER = 1_048_600
"""Bytes; holds 39,000 keys."""
_RECORDS_OF_1_MB = 5_000
_MADE_AS = 1  # raise it when what is written changes
_NOW_MS = 1_800_000_000_000
_MOST_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class _Pair:
    """A log directory, and the properties that both clean it by."""

    figure: PairFigure
    directory: Path
    topic: str
    properties: dict[str, str]
    server_properties: pylog.ServerProperties | None
    by_engine: int

    def measure_round(self, spark: SparkSession, scratch: Path) -> None:
        """Have both clean a copy each; hold what they leave against each other."""
        ours, theirs = copy_of(self.directory, scratch / "ours"), scratch / "theirs"
        copy_of(self.directory, theirs)
        found: dict[str, object] = {}

        def by_spark() -> None:
            job = pylog.jobs.CompactionJob(
                ours,
                topics=[self.topic],
                config=self.properties,
                server_properties=self.server_properties,
                now_ms=_NOW_MS,
            )
            found.update(compact.run(spark, job).summary)

        def by_one_process() -> None:
            pylog.compact(theirs, topics=[self.topic], config=self.properties, now_ms=_NOW_MS)

        try:
            self.figure.measure_round(by_spark, by_one_process)
            outcome = found["partitionsByEngine"], found["isComplete"], found["failures"]
            ensure_equal(self.figure.name, outcome, (self.by_engine, True, []))
            ensure_equal(self.figure.name, _digest(ours), _digest(theirs))
        finally:
            shutil.rmtree(scratch)


def _digest(directory: Path) -> str:
    """Return a digest of the names and contents of all files."""
    digest = hashlib.sha256()
    for path in sorted(each for each in directory.rglob("*") if each.is_file()):
        digest.update(str(path.relative_to(directory)).encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _one(bench: Bench) -> _Pair:
    records = RECORDS // (QUICK_DIVISOR if bench.quick else 1)
    records *= LARGE_TIMES[ONE] if bench.large else 1
    partition = DirtyPartition(bench, "none", records)
    server = bench.root / "small-buffer.properties"
    server.write_text(f"log.cleaner.dedupe.buffer.size={_SMALL_BUFFER}\n")
    return _Pair(
        PairFigure(f"{ONE}, {partition.log_bytes / 1e6:,.0f} MB", PEER),
        partition.directory,
        PARTITION.topic,
        {"cleanup.policy": "compact", "segment.bytes": str(partition.segment_bytes)},
        pylog.ServerProperties.read(server),
        by_engine=0 if bench.quick else 1,  # the keys of a twentieth fit
    )


def _many(bench: Bench) -> _Pair:
    partitions = PARTITIONS // (QUICK_DIVISOR if bench.quick else 1)
    partitions *= LARGE_TIMES[OF_1_MB] if bench.large else 1
    directory = bench.root / f"cleaning-many-{partitions}"
    made = directory.with_suffix(".made")
    if not (made.exists() and made.read_text() == str(_MADE_AS)):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        _write_many(directory, partitions)
        made.write_text(str(_MADE_AS))
    return _Pair(
        PairFigure(f"{partitions:,} {OF_1_MB}", PEER),
        directory,
        PARTITION.topic,
        {"cleanup.policy": "compact"},
        None,
        by_engine=0,
    )


def _write_many(directory: Path, partitions: int) -> None:
    """Write so many partitions, all with the same records."""
    encoder = RecordEncoder(
        compression=CompressionType.NONE,
        batch_size_bytes=PAYLOAD_BYTES["none"],
        partition_leader_epoch=0,
    )
    [columns] = keyed_columns(_RECORDS_OF_1_MB)
    data = b"".join(bytes(batch.data) for batch in encoder.encode(columns))
    headers = find_batches(np.frombuffer(data, dtype=np.uint8)).headers
    config = LogConfig(cleanup_policy=frozenset({"compact"}), message_timestamp_after_max_ms=2**62)
    with pylog.logs.LogManager([directory], config) as manager:
        for number in range(partitions):
            log = manager.get_or_create_log(TopicPartition(PARTITION.topic, number))
            log.append_finished(memoryview(bytearray(data)), headers)
            log.roll()


def measure_spark_cleaning(
    bench: Bench, rounds: int, say: Callable[[str], None]
) -> list[PairFigure]:
    """Return the figures of both pairs."""
    say("compaction by Spark")
    pairs = [_many(bench), _one(bench)]
    scratch = bench.root / "spark-cleaning-scratch"
    session = spark_session()
    try:
        warm_up = _many(Bench(bench.root.parent if bench.quick else bench.root, quick=True))
        warm_up.measure_round(session, scratch)
        for pair in pairs:
            for _ in range(min(rounds, _MOST_ROUNDS)):
                say(pair.figure.name)
                pair.measure_round(session, scratch)
    finally:
        session.stop()
    return [pair.figure for pair in pairs]

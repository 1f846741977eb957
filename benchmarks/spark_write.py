"""A DataFrame written by Spark: ours against the ``kafka`` sink and uncompressed Parquet.

A program of its own, as `benchmarks.kafka_source` is. The rows are computed by each write
anew, which costs the JVM little and all ways the same. Each write begins with an empty topic or
directory, and with nothing left to force to the disk, since ours alone forces its files to it.

A fourth way hands the same Arrow batches to a Python writer that drops them: what Spark and Python
cost ours before it does anything.
"""

import argparse
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pylog
from benchmarks.data_sets import QUICK_DIVISOR, Bench
from benchmarks.dropping_sink import NAME as DROPPING
from benchmarks.dropping_sink import DroppingDataSource
from benchmarks.kafka_source import BROKER_JVM, BROKER_PROPERTIES, kafka_session
from benchmarks.measuring import ensure_equal
from benchmarks.own_program import figures_of_program, write_figures
from tests.support.kafka_broker import KafkaBroker

OURS = 'format("pylog")'
KAFKA = "Spark's kafka sink"
PARQUET = "Spark's uncompressed Parquet"
DROPPED = "a Python sink that drops Arrow batches"
ROWS = {100: 5_000_000, 1000: 1_000_000}
"""By bytes of a value."""

LEAST_ROUNDS = 3
WARM_UP_ROWS = 200_000
_PARTITIONS = 4
_TOPIC = "rows"
_NUMBER_BYTES = 16
_SECONDS = 3600
_DELETE_DELAY_MS = "1000"


@dataclass(frozen=True, slots=True)
class WriteRun:
    """One write.

    Attributes
    ----------
    seconds
        Wall time.
    cpu_seconds
        Processor time of Spark's JVM, its Python processes and the caller.
    broker_cpu_seconds
        Processor time of the broker.
    """

    seconds: float
    cpu_seconds: float
    broker_cpu_seconds: float


@dataclass(slots=True)
class WriteFigure:
    """One way to write rows of one size, all rounds."""

    way: str
    value_bytes: int
    rows: int
    runs: list[WriteRun] = field(default_factory=list)

    @property
    def median_seconds(self) -> float:
        """The wall time of the middle round."""
        return median(run.seconds for run in self.runs)

    def times_as_fast_as(self, peer: "WriteFigure") -> float:
        """Return how many times the peer's rows a second this writes: the median of the rounds."""
        rounds = zip(self.runs, peer.runs, strict=True)
        return median(their.seconds / our.seconds for our, their in rounds)


class _Processors:
    """The processor time of this process and of those below it."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id

    def used(self) -> tuple[float, float]:
        """Return seconds without the broker, and the broker's."""
        own = broker = 0.0
        this = psutil.Process()
        for process in [this, *this.children(recursive=True)]:
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            if process.pid == self._broker_id:
                broker += times.user + times.system
            else:  # with that of workers that have ended
                own += times.user + times.system + times.children_user + times.children_system
        return own, broker


class _Ways:
    """All ways to write, in one session; each replaces what it has written before."""

    def __init__(self, spark: SparkSession, broker: KafkaBroker, directory: Path) -> None:
        self._spark = spark
        self._broker = broker
        self._directory = directory
        self._processors = _Processors(broker.process_id)
        self._topics = 0
        self._by_name: dict[str, Callable[[DataFrame, int], WriteRun]] = {
            OURS: self._ours,
            KAFKA: self._kafka,
            PARQUET: self._parquet,
            DROPPED: self._dropped,
        }

    @property
    def names(self) -> list[str]:
        """What there is."""
        return list(self._by_name)

    def write(self, way: str, value_bytes: int, rows: int) -> WriteRun:
        """Write rows, look whether they are there, and remove them."""
        numbers = self._spark.range(0, rows, 1, _PARTITIONS)
        number = sf.lpad(sf.col("id").cast("string"), _NUMBER_BYTES, "0")
        filler = sf.lit("x" * (value_bytes - _NUMBER_BYTES))
        frame = numbers.select(
            sf.lpad(sf.col("id").cast("string"), 8, "0").alias("key"),
            sf.concat(number, filler).alias("value"),
        )
        return self._by_name[way](frame, rows)

    def _timed(self, work: Callable[[], object]) -> WriteRun:
        os.sync()
        own, broker = self._processors.used()
        start = perf_counter()
        work()
        seconds = perf_counter() - start
        own_after, broker_after = self._processors.used()
        return WriteRun(seconds, own_after - own, broker_after - broker)

    def _ours(self, frame: DataFrame, rows: int) -> WriteRun:
        target = self._directory / "pylog"
        writer = frame.write.format("pylog").mode("append")
        writer = writer.option("topic", _TOPIC).option("numPartitions", _PARTITIONS)
        run = self._timed(lambda: writer.save(str(target)))
        ends = [each.log_end_offset for each in pylog.open_directory(target)]
        ensure_equal(OURS, (len(ends), sum(ends)), (_PARTITIONS, rows))
        shutil.rmtree(target)
        return run

    def _kafka(self, frame: DataFrame, rows: int) -> WriteRun:
        self._topics += 1
        topic = f"{_TOPIC}-{self._topics}"
        self._broker.create_topic(topic, partitions=_PARTITIONS)
        servers = self._broker.bootstrap_servers
        writer = frame.write.format("kafka").option("kafka.bootstrap.servers", servers)
        run = self._timed(writer.option("topic", topic).save)
        with self._broker.consumer((topic, each) for each in range(_PARTITIONS)) as consumer:
            ends = consumer.end_offsets(consumer.assignment())
        ensure_equal(KAFKA, sum(ends.values()), rows)
        self._broker.admin().delete_topics([topic])
        return run

    def _parquet(self, frame: DataFrame, rows: int) -> WriteRun:
        target = str(self._directory / "parquet")
        writer = frame.write.option("compression", "uncompressed")
        run = self._timed(lambda: writer.parquet(target))
        ensure_equal(PARQUET, self._spark.read.parquet(target).count(), rows)
        shutil.rmtree(target)
        return run

    def _dropped(self, frame: DataFrame, rows: int) -> WriteRun:
        del rows  # nothing is left to count
        return self._timed(frame.write.format(DROPPING).mode("append").save)


def _measure(rounds: int, *, quick: bool) -> list[WriteFigure]:
    properties = BROKER_PROPERTIES | {"log.segment.delete.delay.ms": _DELETE_DELAY_MS}
    figures = []
    with tempfile.TemporaryDirectory(prefix="pylog-bench-write") as name:
        directory = Path(name)
        broker = KafkaBroker(directory / "broker", properties=properties, java_options=BROKER_JVM)
        with broker:
            spark = kafka_session(with_sockets=True)
            spark.dataSource.register(DroppingDataSource)
            ways = _Ways(spark, broker, directory)
            for value_bytes, all_rows in ROWS.items():
                rows = all_rows // QUICK_DIVISOR if quick else all_rows
                of_size = [WriteFigure(way, value_bytes, rows) for way in ways.names]
                for figure in of_size:
                    ways.write(figure.way, value_bytes, min(rows, WARM_UP_ROWS))
                for number in range(rounds):
                    for figure in of_size if number % 2 == 0 else reversed(of_size):
                        figure.runs.append(ways.write(figure.way, value_bytes, rows))
                figures += of_size
            spark.stop()
    return figures


def measure_spark_writes(
    bench: Bench, rounds: int, say: Callable[[str], None]
) -> list[WriteFigure]:
    """Return the figures of all ways, measured by a process of its own.

    Raises
    ------
    NotHereError
        There is no broker, or the jars cannot be fetched.
    """
    say("writes by Spark")
    arguments = ["--rounds", str(max(rounds, LEAST_ROUNDS)), *["--quick"] * bench.quick]
    return [
        WriteFigure(**{**each, "runs": [WriteRun(**run) for run in each["runs"]]})
        for each in figures_of_program(__spec__.name, arguments, _SECONDS)
    ]


def main() -> None:
    """Measure, and write a line of JSON a figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=LEAST_ROUNDS)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    write_figures(lambda: _measure(given.rounds, quick=given.quick))


if __name__ == "__main__":
    main()

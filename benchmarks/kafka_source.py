"""Ours against Spark's own ``kafka`` source, which reads the same bytes from a local broker.

A program of its own: Spark fetches the jars of that source when its JVM starts. It writes a line
of JSON for each figure. The broker gets copies of the partitions, in a directory that is
removed afterwards, and a JVM as large and as well compiled as its defaults make it.
"""

import argparse
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pyspark_pylog
from benchmarks.data_sets import Bench
from benchmarks.measuring import ensure_equal
from benchmarks.own_program import figures_of_program, write_figures
from benchmarks.pair_figure import PairFigure
from benchmarks.pruning import large_topic
from benchmarks.spark_scan import UNIX_SOCKET, save, spark_session
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_broker_jars import FROM_PYSPARK, KAFKA_SOURCE
from tests.support.large_topic import FIRST_TIMESTAMP_MS, STEP_MS

PEER = "Spark's kafka source"
ONE_OFFSET = "one offset of 1 GB"
ONE_PER_CENT = "1 % of the time of 1 GB by options"
PREDICATE = "1 % of the time of 1 GB by predicate"
VALUE_SIZES = (100, 1000)
LEAST_ROUNDS = 5
_SECONDS = 1800
BROKER_JVM = ("-Xms1g", "-Xmx1g")
BROKER_PROPERTIES = {"log.retention.ms": "-1", "num.network.threads": "3", "num.io.threads": "8"}


def full_scan(value_bytes: int, *, with_sockets: bool) -> str:
    """Return the name of the figure of a full scan."""
    return f"full scan, {value_bytes} B, {'with' if with_sockets else 'without'} Unix sockets"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that lies in a log directory of ours and in the broker's."""

    directories: list[Path]
    records: int

    @property
    def name(self) -> str:
        return self.directories[0].name.rpartition("-")[0]

    @property
    def path(self) -> str:
        return str(self.directories[0].parent)


@contextmanager
def broker_with(topics: list[Topic]) -> Iterator[KafkaBroker]:
    """Run a broker that holds copies of the topics' segments."""
    with tempfile.TemporaryDirectory(prefix="pylog-bench-broker") as directory:
        broker = KafkaBroker(Path(directory), properties=BROKER_PROPERTIES, java_options=BROKER_JVM)
        with broker:
            for topic in topics:
                broker.create_topic(topic.name, partitions=len(topic.directories))
            broker.stop()
            for each in (each for topic in topics for each in topic.directories):
                target = broker.log_dir / each.name
                for old in target.iterdir():
                    if old.name != "partition.metadata":
                        old.unlink()
                for log in each.glob("*.log"):
                    shutil.copy(log, target)
            broker.start()
            yield broker


def kafka_session(*, with_sockets: bool, more_packages: str = "") -> SparkSession:
    """Return a session that has Spark's ``kafka`` source and sink, and other packages."""
    ivy = Path(__file__).parents[1] / "build" / "ivy-spark"  # another kafka-clients than the peers
    return spark_session(
        {
            "spark.jars.packages": ",".join(filter(None, (KAFKA_SOURCE, more_packages))),
            "spark.jars.excludes": FROM_PYSPARK,
            "spark.jars.ivy": str(ivy),
            UNIX_SOCKET: str(with_sockets).lower(),
        }
    )


_Pair = tuple[PairFigure, Callable[[], DataFrame], Callable[[], DataFrame]]


class _Ways:
    """Both ways to read, in one session."""

    def __init__(self, spark: SparkSession, bootstrap_servers: str) -> None:
        self._spark = spark
        self._servers = bootstrap_servers

    def pair(self, name: str, topic: Topic, records: int, **options: str) -> _Pair:
        """Return how to read a topic by options that both have, after a check of both."""
        if "assign" not in options:
            options["subscribe"] = topic.name

        def ours() -> DataFrame:
            return self._spark.read.format("pylog").options(**options).load(topic.path)

        def theirs() -> DataFrame:
            reader = self._spark.read.format("kafka").options(**options)
            return reader.option("kafka.bootstrap.servers", self._servers).load()

        return _checked(name, records, ours, theirs)

    def pair_by_predicate(self, name: str, topic: Topic, records: int, times: range) -> _Pair:
        """Return how to read by a predicate on timestamps in ms, after a check of both."""
        first, end = (sf.timestamp_millis(sf.lit(each)) for each in (times.start, times.stop))
        condition = (sf.col("timestamp") >= first) & (sf.col("timestamp") < end)

        def ours() -> DataFrame:
            table = pyspark_pylog.table(self._spark, topic.path, subscribe=topic.name)
            return table.where(condition).to_df()

        def theirs() -> DataFrame:
            reader = self._spark.read.format("kafka").option("subscribe", topic.name)
            reader = reader.option("kafka.bootstrap.servers", self._servers)
            return reader.load().where(condition)

        return _checked(name, records, ours, theirs)


def _checked(
    name: str, records: int, ours: Callable[[], DataFrame], theirs: Callable[[], DataFrame]
) -> _Pair:
    for read in (ours, theirs):  # which also warms up
        ensure_equal(name, read().count(), records)
        save(read)
    return PairFigure(name, PEER), ours, theirs


def _small_pairs(ways: _Ways, bench: Bench, large: Topic) -> Iterator[_Pair]:
    """Yield one offset and one per cent of the time, the latter in two ways, from the middle."""
    topic = large_topic(bench)
    middle, name = topic.end_offset // 2, large.name
    one = {
        "assign": json.dumps({name: [0]}),
        "startingOffsets": json.dumps({name: {"0": middle}}),
        "endingOffsets": json.dumps({name: {"0": middle + 1}}),
    }
    yield ways.pair(ONE_OFFSET, large, 1, **one)
    batches = topic.end_offset // topic.batch_records
    first, share = batches // 2, batches // 100
    times = range(
        FIRST_TIMESTAMP_MS + first * STEP_MS, FIRST_TIMESTAMP_MS + (first + share) * STEP_MS
    )
    records = share * topic.batch_records
    options = {"startingTimestamp": str(times.start), "endingTimestamp": str(times.stop)}
    yield ways.pair(ONE_PER_CENT, large, records, **options)
    yield ways.pair_by_predicate(PREDICATE, large, records, times)


def _measure(rounds: int, *, quick: bool, with_sockets: bool) -> list[PairFigure]:
    bench = Bench(Path(__file__).parents[1] / "build" / "bench", quick=quick)
    sets = {size: bench.spark(size) for size in VALUE_SIZES}
    whole = {
        size: Topic([log.parent for log in bench.logs(each.name)], each.records)
        for size, each in sets.items()
    }
    topic = large_topic(bench)
    large = Topic([topic.directory], topic.end_offset)
    with broker_with([*whole.values(), large]) as broker:
        spark = kafka_session(with_sockets=with_sockets)
        ways = _Ways(spark, broker.bootstrap_servers)
        pairs = [
            ways.pair(full_scan(size, with_sockets=with_sockets), each, each.records)
            for size, each in whole.items()
        ]
        if with_sockets:
            pairs += _small_pairs(ways, bench, large)
        for _ in range(rounds):
            for figure, ours, theirs in pairs:
                figure.measure_round(partial(save, ours), partial(save, theirs))
        spark.stop()
    return [figure for figure, _, _ in pairs]


def measure_kafka_source(bench: Bench, rounds: int, say: Callable[[str], None]) -> list[PairFigure]:
    """Return the figures with Unix sockets and without, each measured by a process of its own.

    Raises
    ------
    NotHereError
        There is no broker, or the jars cannot be fetched.
    """
    figures = []
    for with_sockets in (True, False):
        say(f"Spark's kafka source, {'with' if with_sockets else 'without'} Unix sockets")
        arguments = ["--rounds", str(max(rounds, LEAST_ROUNDS)), *["--quick"] * bench.quick]
        arguments += ["--without-sockets"] * (not with_sockets)
        found = figures_of_program(__spec__.name, arguments, _SECONDS)
        figures += [PairFigure(**each) for each in found]
    return figures


def main() -> None:
    """Measure, and write a line of JSON a figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=LEAST_ROUNDS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--without-sockets", action="store_true")
    given = parser.parse_args()
    with_sockets = not given.without_sockets
    write_figures(lambda: _measure(given.rounds, quick=given.quick, with_sockets=with_sockets))


if __name__ == "__main__":
    main()

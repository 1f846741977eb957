"""Part three: a full scan by Spark into the ``noop`` sink, ours and its peers in one session."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import aiokafka.record.memory_records
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from benchmarks import ours
from benchmarks.data_sets import Bench, DataSet
from benchmarks.measuring import Figure, Run, ensure_equal, rounds_of, timed
from benchmarks.prebuilt_source import ARROW_SCHEMA, NAME, PrebuiltDataSource

OURS = 'format("pylog")'
PREBUILT = "prebuilt Arrow from Python"
CYCLING = "256 MB of prebuilt Arrow from Python"
PARQUET = "Spark's Parquet scan"
CORES = 2
MASTER = f"local[{CORES}]"
LEAST_ROUNDS = 5
WARM_UPS = 2
UNIX_SOCKET = "spark.python.unix.domain.socket.enabled"

_REPOSITORY = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class SparkResult:
    """The figures of one data set; `settings` says what the session ran with."""

    data_set: DataSet
    batch_rows: int
    figures: dict[str, Figure]
    settings: str


def spark_session(more: Mapping[str, str] | None = None) -> SparkSession:
    """Return a session under ``spark-conf/`` and `more`, its workers in this environment."""
    conf = _REPOSITORY / "spark-conf"
    if (conf / "spark-defaults.conf").exists():
        os.environ["SPARK_CONF_DIR"] = str(conf)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    paths = [str(_REPOSITORY), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))  # for the prebuilt source
    builder = SparkSession.Builder().master(MASTER).appName("pylog benchmarks")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        **(more or {}),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.dataSource.register(PrebuiltDataSource)
    return session


def save(load: Callable[[], DataFrame]) -> None:
    """Load, and write into the sink that drops all rows."""
    load().write.format("noop").mode("overwrite").save()


def _tables(bench: Bench, data_set: DataSet) -> Iterator[pa.Table]:
    """Yield each partition's rows as aiokafka reads them: no result rests on pylog's reading."""
    for partition, log in enumerate(bench.logs(data_set.name)):
        columns: list[list[object]] = [[], [], [], []]
        records = aiokafka.record.memory_records.MemoryRecords(log.read_bytes())
        while records.has_next():
            for record in records.next_batch():
                columns[0].append(record.key)
                columns[1].append(record.value)
                columns[2].append(record.offset)
                columns[3].append(record.timestamp * 1000)
        keys, values, offsets, timestamps = columns
        rows = len(keys)
        topics, partitions, types = [data_set.name] * rows, [partition] * rows, [0] * rows
        data = [keys, values, topics, partitions, offsets, timestamps, types]
        arrays = [
            pa.array(column, pa.int64()).cast(kind)
            if pa.types.is_timestamp(kind)
            else pa.array(column, kind)
            for column, kind in zip(data, ARROW_SCHEMA.types, strict=True)
        ]
        yield pa.Table.from_arrays(arrays, schema=ARROW_SCHEMA)


def _parquet(bench: Bench, data_set: DataSet) -> Path:
    """Return the directory of the same rows as Parquet, one file a partition, snappy."""
    target = bench.root / f"{data_set.name}.parquet"
    done = target / "_SUCCESS"
    if not done.exists():
        target.mkdir(exist_ok=True)
        for number, table in enumerate(_tables(bench, data_set)):
            pq.write_table(table, target / f"part-{number:05d}.parquet", compression="snappy")
        done.touch()
    return target


class _ScanReader:
    """One source over one data set."""

    def __init__(
        self, name: str, load: Callable[[], DataFrame], data_set: DataSet, *, real: bool
    ) -> None:
        self.name = name
        self.records = data_set.records
        self.log_bytes = data_set.log_bytes
        self._load = load
        self._data_set = data_set
        self._real = real

    def check(self) -> None:
        """Compare count and sums with what was written, then warm the session up."""
        rows, values, offsets = (
            self._load()
            .agg(sf.count("*"), sf.sum(sf.length("value")), sf.sum("offset"))
            .collect()[0]
        )
        written = self._data_set
        ensure_equal(self.name, (rows, values), (written.records, written.tally.value_bytes))
        if self._real:
            ensure_equal(f"{self.name}: offsets", offsets, written.offsets)
        for _ in range(WARM_UPS):
            self._scan()

    def repeat(self) -> Run:
        """Scan everything, counted: planning, tasks and commit."""
        return timed(self._scan)

    def _scan(self) -> None:
        save(self._load)


def _readers(
    session: SparkSession, bench: Bench, data_set: DataSet, rows: int
) -> list[_ScanReader]:
    directory = str(bench.directory(data_set.name))
    parquet = str(_parquet(bench, data_set))
    options = {
        "records": str(data_set.records),
        "partitions": str(data_set.partitions),
        "batchrows": str(rows),
        "valuebytes": str(data_set.value_bytes),
    }
    read = session.read

    def prebuilt(cycles: int) -> DataFrame:
        return session.read.format(NAME).options(**options, cycles=cycles).load()

    return [
        _ScanReader(OURS, lambda: read.format("pylog").load(directory), data_set, real=True),
        _ScanReader(PREBUILT, lambda: prebuilt(0), data_set, real=False),
        _ScanReader(CYCLING, lambda: prebuilt(1), data_set, real=False),
        _ScanReader(PARQUET, lambda: session.read.parquet(parquet), data_set, real=True),
    ]


def scan_by_spark(
    bench: Bench, value_sizes: list[int], rounds: int, say: Callable[[str], None]
) -> list[SparkResult]:
    """Return the result of each value size; the sources take turns."""
    results = []
    session = spark_session()
    try:
        settings = f"{MASTER}, {UNIX_SOCKET}={session.conf.get(UNIX_SOCKET, 'unset')}"
        for value_bytes in value_sizes:
            data_set = bench.spark(value_bytes)
            say(f"Spark over {data_set.name}")
            rows = ours.rows_of_a_batch(bench.directory(data_set.name))
            readers = _readers(session, bench, data_set, rows)
            figures = rounds_of(readers, max(rounds, LEAST_ROUNDS))
            by_name = {figure.reader: figure for figure in figures}
            results.append(SparkResult(data_set, rows, by_name, settings))
    finally:
        session.stop()
    return results

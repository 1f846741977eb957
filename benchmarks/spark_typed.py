"""Typed values in Spark: what they cost beside bytes, and beside Spark's own way to them.

A program of its own, as `benchmarks.kafka_source` is. The same 10 fields as Avro and as JSON, each
in a topic of four partitions; the broker gets copies of them.
"""

import argparse
import datetime as dt
import json
import tempfile
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pylog
from benchmarks.data_sets import Bench
from benchmarks.kafka_source import LEAST_ROUNDS, Topic, broker_with, kafka_session
from benchmarks.measuring import ensure_equal
from benchmarks.own_program import figures_of_program, write_figures
from benchmarks.pair_figure import PairFigure
from benchmarks.spark_scan import save

PLAIN = "the plain scan"
FROM_AVRO = "Spark's kafka source and from_avro"
FROM_JSON = "Spark's kafka source and from_json"
SPARK_AVRO = "org.apache.spark:spark-avro_2.13:4.2.0"
"""The newest that Maven Central has; it runs in later versions of Spark, too."""
_RECORDS, _QUICK_RECORDS, _PARTITIONS = 400_000, 20_000, 4
_SECONDS = 1800
_STEP = 50_000
_PREFIX_BYTES = 5

_STAMP = {"type": "long", "logicalType": "timestamp-micros"}
_AMOUNT = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}
_FIELDS = {
    "id": "long",
    "user": "int",
    "status": "string",
    "name": "string",
    "at": _STAMP,
    "amount": _AMOUNT,
    "price": "double",
    "is_new": "boolean",
    "note": ["null", "string"],
    "count": ["null", "long"],
}
AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": name, "type": kind} for name, kind in _FIELDS.items()],
    }
)
DDL = (
    "id BIGINT, user BIGINT, status STRING, name STRING, at TIMESTAMP, amount DOUBLE, "
    "price DOUBLE, is_new BOOLEAN, note STRING, count BIGINT"
)
_JSON_TYPES = {
    "BIGINT": {"type": "integer"},
    "STRING": {"type": "string"},
    "TIMESTAMP": {"type": "string", "format": "date-time"},
    "DOUBLE": {"type": "number"},
    "BOOLEAN": {"type": "boolean"},
}
JSON_SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            name: _JSON_TYPES[kind] for name, kind in (each.split() for each in DDL.split(", "))
        },
    }
)


def _order(number: int) -> dict[str, object]:
    return {
        "id": number,
        "user": number * 7_919 % 100_000,
        "status": ("new", "sent", "returned")[number % 3],
        "name": f"customer {number % 977}",
        "at": dt.datetime(2026, 11, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=number),
        "amount": Decimal(number * 37 % 1_000_000).scaleb(-2),
        "price": number / 8,
        "is_new": number % 2 == 0,
        "note": None if number % 4 else f"note {number}",
        "count": None if number % 5 else number % 11,
    }


def _write(directory: Path, records: int) -> dict[str, Topic]:
    """Write both topics, beside the registry with their schemas."""
    schemas = {"avro": directory / "order.avsc", "json": directory / "order.json"}
    schemas["avro"].write_text(AVRO)
    schemas["json"].write_text(JSON_SCHEMA)
    logs = directory / "logs"
    for first in range(0, records, _STEP):
        orders = [_order(number) for number in range(first, min(first + _STEP, records))]
        given = {
            "avro": orders,
            "json": [{**each, "amount": float(each["amount"])} for each in orders],  # type: ignore[arg-type]
        }
        partitions = pa.array([place % _PARTITIONS for place in range(len(orders))], pa.int32())
        for name, schema in schemas.items():
            rows = pa.table({"value": pa.array(given[name]), "partition": partitions})
            pylog.write_topic(
                logs,
                name,
                rows,
                partitions=_PARTITIONS,
                partition="partition",
                value_schema=schema,
            )
    return {
        name: Topic([logs / f"{name}-{number}" for number in range(_PARTITIONS)], records)
        for name in schemas
    }


_Read = Callable[[], DataFrame]


class _Ways:
    """All ways to read, in one session."""

    def __init__(self, spark: SparkSession, servers: str) -> None:
        self._spark, self._servers = spark, servers

    def plain(self, topic: Topic, **options: str) -> DataFrame:
        reader = self._spark.read.format("pylog").options(subscribe=topic.name, **options)
        return reader.load(topic.path).select("value")

    def typed(self, topic: Topic) -> DataFrame:
        return self.plain(topic, valueFormat="auto")

    def theirs(self, topic: Topic) -> DataFrame:
        reader = self._spark.read.format("kafka").option("subscribe", topic.name)
        frame = reader.option("kafka.bootstrap.servers", self._servers).load()
        payload = sf.expr(f"substring(value, {_PREFIX_BYTES + 1})")
        if topic.name == "json":
            return frame.select(sf.from_json(payload.cast("string"), DDL).alias("value"))
        mode = sf.create_map(sf.lit("mode"), sf.lit("FAILFAST"))
        return frame.select(
            sf.call_function("from_avro", payload, sf.lit(AVRO), mode).alias("value")
        )


def _checked(topic: Topic, name: str, typed: _Read, other: _Read) -> None:
    """Compare what both read, which also warms up."""
    fields = [f"value.{each}" for each in ("id", "user", "status", "at", "amount", "note")]
    found = []
    for read in (typed, other):
        frame = read()
        if frame.schema["value"].dataType.typeName() == "binary":
            ensure_equal(name, frame.count(), topic.records)
            continue
        hashes = frame.select(sf.xxhash64(*fields).alias("hash"))
        found.append(hashes.agg(sf.count("hash"), sf.bit_xor("hash")).first())
    ensure_equal(name, found[0][0], topic.records)  # type: ignore[index]
    ensure_equal(name, found[0], found[-1])


def _measure(rounds: int, *, quick: bool) -> list[PairFigure]:
    with tempfile.TemporaryDirectory(prefix="pylog-bench-typed") as folder:
        topics = _write(Path(folder), _QUICK_RECORDS if quick else _RECORDS)
        with broker_with(list(topics.values())) as broker:
            spark = kafka_session(with_sockets=True, more_packages=SPARK_AVRO)
            ways = _Ways(spark, broker.bootstrap_servers)
            pairs: list[tuple[PairFigure, _Read, _Read]] = []
            for name, topic in topics.items():
                typed = partial(ways.typed, topic)
                others = {PLAIN: partial(ways.plain, topic)}
                others[FROM_AVRO if name == "avro" else FROM_JSON] = partial(ways.theirs, topic)
                for peer, other in others.items():
                    title = f"typed scan, {'Avro' if name == 'avro' else 'JSON'} of 10 fields"
                    _checked(topic, f"{title}, {peer}", typed, other)
                    pairs.append((PairFigure(title, peer), typed, other))
            for _ in range(rounds):
                for figure, ours, theirs in pairs:
                    figure.measure_round(partial(save, ours), partial(save, theirs))
            spark.stop()
    return [figure for figure, _, _ in pairs]


def measure_spark_typed(bench: Bench, rounds: int, say: Callable[[str], None]) -> list[PairFigure]:
    """Return the figures, measured by a process of its own.

    Raises
    ------
    NotHereError
        There is no broker, or the jars cannot be fetched.
    """
    say("Spark's typed values")
    arguments = ["--rounds", str(max(rounds, LEAST_ROUNDS)), *["--quick"] * bench.quick]
    return [PairFigure(**each) for each in figures_of_program(__spec__.name, arguments, _SECONDS)]


def main() -> None:
    """Measure, and write a line of JSON a figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=LEAST_ROUNDS)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    write_figures(lambda: _measure(given.rounds, quick=given.quick))


if __name__ == "__main__":
    main()

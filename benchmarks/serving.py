"""`pylog serve` against a real broker: the same log, the same machine, the same two clients.

librdkafka, told not to sleep, and a client of one socket that asks for 1 MiB after the other and
does next to nothing with it. The log is in the page cache. Processor time is the server's; its
memory is the most that it has had.

The first read of all stands apart: ours checks each batch then, and loads its kernels; a broker
compiles what it runs.
"""

import json
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import confluent_kafka

from benchmarks.data_sets import Bench, DataSet
from benchmarks.measuring import NotHereError, WrongAnswerError
from benchmarks.planning import PARTITIONS, planning_directory
from benchmarks.start_up import program
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_broker_jars import KafkaNotFoundError
from tests.support.raw_client import RawClient

OURS, BROKER = "pylog serve", "broker"
SOCKET, LIBRDKAFKA = "a socket", "librdkafka"
TOPIC = "served"
_SETS = ((100, "none"), (100, "zstd"), (1000, "none"), (1000, "zstd"))
_FETCH_BYTES = 1 << 20
_TICKS = 100
_DELTA_AT = 23


class ReadFigure(NamedTuple):
    """One read, or the best of several."""

    megabytes_per_second: float
    cpu_seconds_per_gb: float


@dataclass(frozen=True, slots=True)
class ServingFigure:
    """The fastest of several reads of a whole log, after the first one of all (None: no such)."""

    server: str
    client: str
    data_set: str
    first: ReadFigure | None
    later: ReadFigure
    most_memory_bytes: int


@dataclass(frozen=True, slots=True)
class FirstRecordFigure:
    """Seconds from the start of the process to the first record, with so many partitions.

    For a client that reads one of them, and for one that reads all.
    """

    partitions: int
    seconds_of_one: float
    seconds_of_all: float


class _Process:
    """What the system knows of a server."""

    def __init__(self, process_id: int) -> None:
        self._directory = Path(f"/proc/{process_id}")

    def cpu_seconds(self) -> float:
        fields = (self._directory / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def most_memory_bytes(self) -> int:
        lines = (self._directory / "status").read_text().splitlines()
        (line,) = (each for each in lines if each.startswith("VmHWM"))
        return int(line.split()[1]) << 10


def measure_serving(
    bench: Bench, rounds: int, say: Callable[[str], None]
) -> tuple[list[ServingFigure], FirstRecordFigure]:
    """Return the figures of both servers and, of ours, the time to a first record."""
    figures = []
    for value_bytes, codec in _SETS:
        data_set = bench.base(value_bytes, codec)
        say(f"serving {data_set.name}")
        with tempfile.TemporaryDirectory(dir=bench.root) as work:
            for name, started in ((OURS, _ours), (BROKER, _broker)):
                with started(bench, data_set, Path(work)) as (address, process):
                    first: ReadFigure | None = _best(data_set, 1, process, _by_socket, address)
                    for client, read in ((SOCKET, _by_socket), (LIBRDKAFKA, _by_librdkafka)):
                        later = _best(data_set, rounds, process, read, address)
                        memory = process.most_memory_bytes()
                        figures.append(
                            ServingFigure(name, client, data_set.name, first, later, memory)
                        )
                        first = None
    return figures, _first_record(planning_directory(bench, PARTITIONS, say))


def _best(
    data_set: DataSet,
    rounds: int,
    process: _Process,
    read: Callable[[str], int],
    address: str,
) -> ReadFigure:
    best, cpu = float("inf"), float("inf")
    for _ in range(rounds):
        before, started = process.cpu_seconds(), time.perf_counter()
        offset = read(address)
        best = min(best, time.perf_counter() - started)
        cpu = min(cpu, process.cpu_seconds() - before)
        if offset != data_set.records:
            raise WrongAnswerError(f"read up to {offset}, not {data_set.records}")
    megabytes = data_set.log_bytes / 1e6
    return ReadFigure(megabytes / best, cpu / megabytes * 1000)


def _partition(bench: Bench, data_set: DataSet) -> Path:
    return bench.logs(data_set.name)[0].parent


@contextmanager
def _ours(bench: Bench, data_set: DataSet, work: Path) -> Iterator[tuple[str, _Process]]:
    directory = work / "ours"
    target = directory / f"{TOPIC}-0"
    shutil.copytree(_partition(bench, data_set), target)
    with _served(directory) as found:
        yield found


@contextmanager
def _served(directory: Path) -> Iterator[tuple[str, _Process]]:
    command = [program(), "serve", str(directory), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        try:
            yield json.loads(running.stdout.readline())["address"], _Process(running.pid)
        finally:
            running.terminate()


@contextmanager
def _broker(bench: Bench, data_set: DataSet, work: Path) -> Iterator[tuple[str, _Process]]:
    """Run a broker that has made the topic, and been given the log while it was down."""
    try:
        broker = KafkaBroker(work / "broker")
    except KafkaNotFoundError as error:
        raise NotHereError(str(error)) from error
    with broker:
        # The records may be older than what brokers keep by default.
        broker.create_topic(TOPIC, config={"retention.ms": "-1"})
        broker.stop()
        for path in broker.partition_directory(TOPIC).glob("0*"):
            path.unlink()
        for path in _partition(bench, data_set).glob("0*"):
            shutil.copyfile(path, broker.partition_directory(TOPIC) / path.name)
        broker.start()
        yield broker.bootstrap_servers, _Process(broker.process_id)


def _by_socket(address: str) -> int:
    """Return the offset after the last record."""
    partition = {"partition": 0, "partitionMaxBytes": _FETCH_BYTES}
    offset = 0
    with RawClient(address) as client:
        while True:
            asked = {"topic": TOPIC, "partitions": [{**partition, "fetchOffset": offset}]}
            request = {"maxWaitMs": 500, "minBytes": 1, "maxBytes": _FETCH_BYTES, "topics": [asked]}
            (topic,) = client.ask("Fetch", 12, request)["responses"]
            (found,) = topic["partitions"]
            if found["errorCode"]:
                raise WrongAnswerError(f"error {found['errorCode']} at offset {offset}")
            offset = _next_offset(found["records"])
            if offset >= found["highWatermark"]:
                return offset


def _next_offset(records: bytes) -> int:
    position, offset = 0, 0
    while position + _DELTA_AT + 4 <= len(records):
        base, size = struct.unpack_from(">qi", records, position)
        if position + 12 + size > len(records):
            break
        (delta,) = struct.unpack_from(">i", records, position + _DELTA_AT)
        offset = base + delta + 1
        position += 12 + size
    return offset


def _by_librdkafka(address: str) -> int:
    client = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "nobody",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            # By default it sleeps for a second whenever it has 100,000 messages.
            "fetch.queue.backoff.ms": 1,
        }
    )
    try:
        client.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
        offset = 0
        while True:
            for message in client.consume(10_000, 1):
                if message.error() is not None:
                    return offset
                offset = (message.offset() or 0) + 1
    finally:
        client.close()


def _first_record(directory: Path) -> FirstRecordFigure:
    partitions, of_one = _seconds_to_record(directory, most_partitions=1)
    _, of_all = _seconds_to_record(directory)
    return FirstRecordFigure(partitions, of_one, of_all)


def _seconds_to_record(directory: Path, most_partitions: int | None = None) -> tuple[int, float]:
    started = time.perf_counter()
    with _served(directory) as (address, _), RawClient(address) as client:
        topics = client.ask("Metadata", 12, {"topics": None})["topics"]
        partitions = [
            {"partition": each["partitionIndex"], "partitionMaxBytes": _FETCH_BYTES}
            for each in topics[0]["partitions"][:most_partitions]
        ]
        asked = [{"topic": topics[0]["name"], "partitions": partitions}]
        request = {"maxWaitMs": 500, "minBytes": 1, "maxBytes": _FETCH_BYTES, "topics": asked}
        found = client.ask("Fetch", 12, request)["responses"][0]["partitions"]
        if not any(each["records"] for each in found):
            raise WrongAnswerError("no record came")
        seconds = time.perf_counter() - started
    return sum(len(each["partitions"]) for each in topics), seconds

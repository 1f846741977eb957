"""Segments that hold the same offsets: a reader gets what a consumer gets that begins there.

The expected rows are what librdkafka got of Kafka 4.4.0 on these logs, after a clean stop and after
a crash alike. A value tells which segment its record is from.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

import pylog
from pylog.errors import OffsetOutOfRangeError
from tests.support.batches import Built, Stored, batch_v2, with_bad_crc
from tests.support.damage import with_base_offset
from tests.support.log_files import segment_path, write_partition
from tests.support.reading import read_skipping_damage

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

Run = tuple[int, int, int]
"""First and last offset, and the segment that they are from."""


def run(segment: int, first: int, end: int, per: int = 10, codec: str = "none") -> list[Built]:
    return [
        batch_v2(
            [
                Stored(offset, 1_000 + offset, b"k", b"%d" % segment)
                for offset in range(at, min(at + per, end))
            ],
            codec=codec,
        )
        for at in range(first, end, per)
    ]


LOGS = {
    "partly": {0: run(0, 0, 500), 300: run(300, 300, 800), 800: run(800, 800, 850)},
    "inside": {0: run(0, 0, 500), 100: run(100, 100, 200), 600: run(600, 600, 650)},
    "three deep": {
        0: run(0, 0, 500),
        100: run(100, 100, 600),
        200: run(200, 200, 300),
        650: run(650, 650, 700),
    },
    "equal ends": {0: run(0, 0, 500), 300: run(300, 300, 500), 500: run(500, 500, 550)},
    "straddling": {
        0: run(0, 0, 495, codec="gzip"),
        300: run(300, 300, 700, 7, "gzip"),
        700: run(700, 700, 720, codec="gzip"),
    },
}
CONSUMED: dict[tuple[str, int], list[Run]] = {
    ("partly", 0): [(0, 499, 0), (500, 799, 300), (800, 849, 800)],
    ("partly", 150): [(150, 499, 0), (500, 799, 300), (800, 849, 800)],
    ("partly", 350): [(350, 799, 300), (800, 849, 800)],
    ("partly", 499): [(499, 799, 300), (800, 849, 800)],
    ("inside", 0): [(0, 499, 0), (600, 649, 600)],
    ("inside", 150): [(150, 199, 100), (600, 649, 600)],
    ("inside", 350): [(600, 649, 600)],
    ("three deep", 0): [(0, 499, 0), (650, 699, 650)],
    ("three deep", 150): [(150, 599, 100), (650, 699, 650)],
    ("three deep", 350): [(650, 699, 650)],
    ("equal ends", 0): [(0, 499, 0), (500, 549, 500)],
    ("equal ends", 350): [(350, 499, 300), (500, 549, 500)],
    ("straddling", 0): [(0, 494, 0), (495, 699, 300), (700, 719, 700)],
    ("straddling", 150): [(150, 494, 0), (495, 699, 300), (700, 719, 700)],
    ("straddling", 499): [(499, 699, 300), (700, 719, 700)],
}


def runs(table: pa.Table) -> list[Run]:
    rows = zip(table["offset"].to_pylist(), table["value"].to_pylist(), strict=True)
    found = []
    for (_, segment), each in groupby(
        enumerate(rows), lambda row: (row[1][0] - row[0], int(row[1][1]))
    ):
        offsets = [row[0] for _, row in each]
        found.append((offsets[0], offsets[-1], segment))
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_partition_bytes": 700},
        {"max_records_per_partition": 37},
        {"use_indexes": False},
        {"mode": "DROPMALFORMED"},
        {"threads": 3, "max_partition_bytes": 3_000},
    ],
    ids=str,
)
@pytest.mark.parametrize(("log", "start"), CONSUMED)
def test_a_read_gives_what_a_consumer_gets_from_there(
    tmp_path: Path, log: str, start: int, options: dict[str, object]
) -> None:
    directory = write_partition(tmp_path, LOGS[log])
    scan = pylog.scan(directory, start=start, **options)  # type: ignore[arg-type]
    assert runs(scan.to_table()) == CONSUMED[log, start]
    assert not list(scan.damage)
    assert scan.count() == sum(last - first + 1 for first, last, _ in CONSUMED[log, start])


@pytest.mark.parametrize("low", [0, 150, 299, 300, 350, 499, 500, 550, 600])
@pytest.mark.parametrize("log", LOGS)
def test_a_filter_takes_rows_away_and_changes_none(tmp_path: Path, log: str, low: int) -> None:
    directory = write_partition(tmp_path, LOGS[log])
    whole = pylog.scan(directory).to_table().select(["offset", "value"]).to_pylist()
    for high in (low + 7, low + 400):
        where = pylog.RecordFilter(min_offset=low, max_offset=high)
        found = pylog.scan(directory, where=where).to_table().select(["offset", "value"])
        assert found.to_pylist() == [each for each in whole if low <= each["offset"] <= high]
    late = pylog.RecordFilter(min_timestamp=1_000 + low)
    found = pylog.scan(directory, where=late).to_table().select(["offset", "value"])
    assert found.to_pylist() == [each for each in whole if each["offset"] >= low]
    last = pylog.scan(directory).last(120).to_table().select(["offset", "value"])
    assert last.to_pylist() == whole[-120:]


def test_a_file_that_is_given_alone_is_read_as_it_is(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, LOGS["partly"])
    paths = [segment_path(directory, base) for base in (0, 300)]
    assert runs(pylog.scan(paths[0]).to_table()) == [(0, 499, 0)]
    assert runs(pylog.scan(paths[1]).to_table()) == [(300, 799, 300)]
    assert runs(pylog.scan(paths).to_table()) == [(0, 499, 0), (500, 799, 300)]


def test_a_last_segment_inside_another_one_ends_the_log(tmp_path: Path) -> None:
    # A broker says the log ends at 400, too; a consumer from 0 gets up to 499 and is out of range.
    directory = write_partition(tmp_path, {0: run(0, 0, 500), 300: run(300, 300, 400)})
    assert runs(pylog.scan(directory).to_table()) == [(0, 399, 0)]
    assert runs(pylog.scan(directory, start=350).to_table()) == [(350, 399, 300)]
    with pytest.raises(OffsetOutOfRangeError):
        pylog.scan(directory, start=401).to_table()
    (finding,) = [each for each in _findings(directory) if each.code == "overlapping_segments"]
    assert "has more up to 499, after which a consumer is out of range" in finding.message


@pytest.mark.parametrize("base", [300, 305], ids=["at a batch", "amid a batch"])
def test_an_empty_last_segment_inside_another_one_ends_the_log(tmp_path: Path, base: int) -> None:
    directory = write_partition(tmp_path, {0: run(0, 0, 500), base: []})
    assert runs(pylog.scan(directory).to_table()) == [(0, base - 1, 0)]
    (finding,) = _findings(directory)
    assert (finding.next_offset, finding.end_offset) == (base, 500)
    assert "has more up to 499, after which a consumer is out of range" in finding.message
    [affected] = pylog.doctor(directory).verdict.consumers
    assert (affected.from_offset, affected.to_offset) == (base, 500)
    with pylog.serve(tmp_path) as server:
        consumer = Consumer(
            {
                "bootstrap.servers": server.address,
                "group.id": "g",
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition("orders", 0, 0)])
        offsets: list[int] = []
        while True:
            [message] = consumer.consume(1, 20)
            stopped = message.error()
            if stopped is not None:
                break
            offsets.append(message.offset() or 0)
        consumer.close()
    # As of a broker, a batch comes whole; what follows is out of range.
    assert offsets == list(range(310 if base == 305 else 300))
    error = KafkaError._AUTO_OFFSET_RESET if base == 305 else KafkaError._PARTITION_EOF
    assert stopped.code() == error


@pytest.mark.parametrize("base", [95, 200, 2**20])
def test_one_batch_with_a_wrong_offset_makes_no_overlap(tmp_path: Path, base: int) -> None:
    batches = [*run(0, 0, 90), with_base_offset(run(0, 90, 100)[0], base)]
    directory = write_partition(tmp_path, {0: batches, 100: run(100, 100, 200)}, with_index=False)
    found, (damaged,) = read_skipping_damage(directory)
    assert found == list(range(200))
    assert damaged.is_kept


def test_where_the_last_batch_of_a_segment_is_damaged_the_next_one_has_its_records(
    tmp_path: Path,
) -> None:
    batches = [*run(0, 0, 490), with_bad_crc(run(0, 490, 500)[0])]
    directory = write_partition(tmp_path, {0: batches, 300: run(300, 300, 800)})
    scan = pylog.scan(directory, mode="DROPMALFORMED")
    assert runs(scan.to_table()) == [(0, 489, 0), (490, 799, 300)]


def _findings(directory: Path) -> list[pylog.results.Finding]:
    return list(pylog.doctor(directory).findings)


def test_the_doctor_warns_of_both_files_and_the_range(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, LOGS["partly"])
    (finding,) = [each for each in _findings(directory) if each.severity != "info"]
    assert (finding.severity, finding.code) == ("warning", "overlapping_segments")
    assert finding.path == str(segment_path(directory, 0))
    assert (finding.next_offset, finding.end_offset) == (300, 500)
    assert "offsets 300 to 499 are in 00000000000000000300.log, too" in finding.message
    (report,) = pylog.doctor(directory).partitions
    assert report.offsets.records == 850


@pytest.mark.parametrize("log", LOGS)
def test_a_repaired_copy_has_what_a_consumer_from_the_start_gets(tmp_path: Path, log: str) -> None:
    directory = write_partition(tmp_path / "from", LOGS[log])
    summary = pylog.repair_copy(directory.parent, tmp_path / "to")
    assert runs(pylog.scan(tmp_path / "to").to_table()) == CONSUMED[log, 0]
    (partition,) = summary.partitions
    first, second, *_ = sorted(LOGS[log])
    end = 495 if log == "straddling" else 500
    assert partition.kept[0] == (second, end, segment_path(directory, first).name)


@pytest.mark.parametrize("log", LOGS)
def test_tables_and_statistics_count_each_offset_once(tmp_path: Path, log: str) -> None:
    directory = write_partition(tmp_path, LOGS[log])
    expected = sum(last - first + 1 for first, last, _ in CONSUMED[log, 0])
    for read in ("headers", "all"):
        statistics = pylog.stats(directory, read=read)
        assert statistics.tables["topics"]["records"].to_pylist() == [expected]

"""`pylog.stats` against what whoever wrote the logs knows of them."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import LogDirectoryError, UnknownTopicOrPartitionError
from tests.support.batches import (
    COMMIT,
    Built,
    Stored,
    batch_v2,
    marker,
    plain_records,
    with_bad_crc,
    wrapper,
)
from tests.support.log_files import write_partition
from tests.support.random_log import RandomLog
from tests.unit.statistics.random_topics import NOW_MS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MINUTE_MS = 60_000


def random_batches(seed: int) -> list[Built]:
    return [
        built for each in RandomLog(seed).rounds() for step in each.steps for built in step.batches
    ]


def split(batches: Sequence[Built], draw: random.Random) -> dict[int, list[Built]]:
    """Return the batches by the base offset of their segment."""
    segments: dict[int, list[Built]] = {}
    for built in batches:
        if not segments or draw.random() < 0.1:
            segments[built.base_offset] = []
        segments[max(segments)].append(built)
    return segments


def is_counted(built: Built) -> bool:
    """Whether the header says how many records a batch holds."""
    return built.magic == 2 or built.codec == "none"


def rows(found: pylog.results.LogStatistics, name: str, *columns: str) -> list[Any]:
    document = found.document()[name]
    return [tuple(row[column] for column in columns) for row in document]


@pytest.mark.parametrize("read", ["headers", "sample", "all"])
@pytest.mark.parametrize("seed", range(12))
def test_counts_are_those_of_what_was_written(seed: int, read: str, tmp_path: Path) -> None:
    partitions = {number: random_batches(100 * seed + number) for number in range(3)}
    draw = random.Random(seed)
    for number, batches in partitions.items():
        write_partition(
            tmp_path,
            split(batches, draw),
            name=f"keyed-{number}",
            with_index=False,
            with_time_index=False,
        )
    found = pylog.stats(tmp_path, read=read, now_ms=NOW_MS)
    everything = [built for batches in partitions.values() for built in batches]
    data = [built for built in everything if not built.is_control]
    [topic] = found.document()["topics"]
    assert found.problems == []
    assert topic["sizeInBytes"] == sum(len(built.data) for built in everything)
    assert topic["batches"] == len(data)
    assert topic["bytes"] == sum(len(built.data) for built in data)
    counted = data if read == "all" else [built for built in data if is_counted(built)]
    assert topic["records"] == sum(len(built.records) for built in counted)
    assert topic["uncountedBatches"] == len(data) - len(counted)
    assert topic["controlBatches"] == len(everything) - len(data)
    assert topic["futureBatches"] == sum(built.max_timestamp > NOW_MS for built in data)
    assert rows(found, "partitions", "partition", "sizeInBytes") == [
        (number, sum(len(built.data) for built in batches))
        for number, batches in partitions.items()
    ]
    ensure_histograms(found, data, counted)
    ensure_times(found, data)
    assert topic["lateBatches"] == sum(map(late_batches, partitions.values()))
    if read != "headers":
        ensure_keys(found, data)


def late_batches(batches: Sequence[Built]) -> int:
    highest, late = -1, 0
    for built in batches:
        if built.is_control or built.max_timestamp < 0:
            continue
        late += built.max_timestamp < highest
        highest = max(highest, built.max_timestamp)
    return late


def ensure_histograms(
    found: pylog.results.LogStatistics, data: Sequence[Built], known: Sequence[Built]
) -> None:
    by_codec: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for built in data:
        by_codec[built.codec][0] += 1
        by_codec[built.codec][1] += len(built.data)
    assert {
        codec: [batches, size]
        for codec, batches, size in rows(found, "codecs", "codec", "batches", "bytes")
    } == dict(by_codec)
    for measure, values in (
        ("bytes", [len(built.data) for built in data]),
        ("records", [len(built.records) for built in known]),
    ):
        counted = {
            (row["start"], row["end"]): row["batches"]
            for row in found.document()["batchSizes"]
            if row["measure"] == measure
        }
        for (start, end), batches in counted.items():
            assert batches == sum(start <= value < end for value in values)
        assert sum(counted.values()) == len(values)


def ensure_times(found: pylog.results.LogStatistics, data: Sequence[Built]) -> None:
    expected: Counter[int | None] = Counter()
    for built in data:
        at = built.max_timestamp
        expected[None if at < 0 else at // MINUTE_MS * MINUTE_MS] += len(built.data)
    assert dict(rows(found, "times", "start", "bytes")) == dict(expected)


def ensure_keys(found: pylog.results.LogStatistics, data: Sequence[Built]) -> None:
    """So small a topic is read as a whole, so that shares are certain."""
    records = [record for built in data for record in built.records]
    counts = Counter(record.key for record in records)
    document = found.document()
    assert [row["records"] for row in document["hotKeys"] if row["offset"] is not None] == sorted(
        (number for key, number in counts.items() if key is not None), reverse=True
    )[:10]
    for row in document["hotKeys"]:
        assert not row["isSampled"]
        key = None if row["key"] is None else row["key"].encode()
        assert counts[key] == row["records"]
        share = counts[key] / len(records)
        assert row["ofRecords"] == {"share": share, "low": share, "high": share}
    if records:
        [first, *_] = document["largestRecords"]
        longest = max(len(record.key or b"") + len(record.value or b"") for record in records)
        assert first["recordBytes"] >= longest


def test_damage_is_named_and_everything_sound_is_counted(tmp_path: Path) -> None:
    sound = [batch_v2(plain_records(5 * place, 5)) for place in range(4)]
    broken = bytearray(sound[1].data)
    broken[16] = 7  # no magic
    batches = [sound[0], Built(bytes(broken), (), 2, 5, 9), *sound[2:]]
    write_partition(tmp_path, {0: batches, 20: [batch_v2(plain_records(20, 5))]})
    write_partition(tmp_path, {0: sound}, name="orders-1")
    found = pylog.stats(tmp_path)
    assert rows(found, "partitions", "partition", "records") == [(0, 20), (1, 20)]
    [problem] = found.problems
    assert "5 records may be missing, offsets 5 to 9" in problem
    assert found.document()["partitions"][0]["problems"] == [problem]


def test_a_wrong_checksum_is_seen_where_records_are_read(tmp_path: Path) -> None:
    sound = [batch_v2(plain_records(5 * place, 5)) for place in range(3)]
    write_partition(tmp_path, {0: [sound[0], with_bad_crc(sound[1]), sound[2]]})
    assert pylog.stats(tmp_path).problems == []
    found = pylog.stats(tmp_path, read="all")
    assert rows(found, "topics", "records") == [(10,)]
    assert len(found.problems) == 1
    [problem] = pylog.stats(tmp_path, read="sample").problems
    assert "batch CRC stored" in problem


def test_control_records_are_not_traffic(tmp_path: Path) -> None:
    data = batch_v2(plain_records(0, 3), producer_id=1, producer_epoch=0, is_transactional=True)
    write_partition(tmp_path, {0: [data, marker(3, COMMIT)]})
    [topic] = pylog.stats(tmp_path, read="all").document()["topics"]
    assert (topic["batches"], topic["records"], topic["controlBatches"]) == (1, 3, 1)
    assert topic["transactionalRecords"] == 3


@pytest.mark.parametrize("magic", [0, 1])
def test_wrappers_hide_how_many_records_they_hold_unless_all_are_read(
    magic: int, tmp_path: Path
) -> None:
    records = [each for each in plain_records(0, 9) if each.offset not in (0, 3, 4)]
    write_partition(tmp_path, {0: [wrapper(records, magic=magic, codec="gzip")]})
    for read, expected in (("sample", (1, 0, 1)), ("all", (1, 6, 0))):
        found = pylog.stats(tmp_path, read=read).document()
        [topic] = found["topics"]
        assert (topic["batches"], topic["records"], topic["uncountedBatches"]) == expected
        assert sum(row["records"] for row in found["hotKeys"]) == 6
    [segment] = found["segments"]
    assert segment["records"] == 6


def test_topics_and_partitions_are_chosen(tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1", "users-0", "__consumer_offsets-3"):
        write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]}, name=name)
    everything = pylog.stats(tmp_path)
    assert rows(everything, "topics", "topic") == [("__consumer_offsets",), ("orders",), ("users",)]
    assert rows(
        pylog.stats(tmp_path, topics=["orders"], partitions=[1]), "partitions", "topic", "partition"
    ) == [("orders", 1)]
    with pytest.raises(UnknownTopicOrPartitionError, match="no topic has a partition 7 here"):
        pylog.stats(tmp_path, partitions=[7])
    with pytest.raises(UnknownTopicOrPartitionError, match="no topic 'order' here"):
        pylog.stats(tmp_path, topics=["order"])


def test_where_no_partition_is_live_the_error_says_so(tmp_path: Path) -> None:
    name = "orders-0.0123456789abcdef0123456789abcdef-delete"
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]}, name=name)
    with pytest.raises(LogDirectoryError, match="no live partition here"):
        pylog.stats(tmp_path)


def test_progress_ends_with_all_bytes(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]})
    calls: list[tuple[int, int]] = []
    pylog.stats(tmp_path, progress=lambda done, total: calls.append((done, total)))
    size = len(batch_v2(plain_records(0, 2)).data)
    assert calls[-1] == (size, size)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"read": "some"}, "read is 'some', expected one of 'headers', 'sample', 'all'"),
        ({"sample_bytes": 0}, "sample_bytes is 0, expected 1 or more"),
        ({"most": 0}, "most is 0, expected 1 or more"),
        ({"threads": 0}, "threads is 0, expected 1 or more"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    arguments: dict[str, Any], message: str, tmp_path: Path
) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]})
    with pytest.raises(ValueError, match=message):
        pylog.stats(tmp_path, **arguments)


def test_of_a_compacted_topic_it_says_what_is_live(tmp_path: Path) -> None:
    batches = [batch_v2([Stored(place, NOW_MS, b"k", b"v" * 40)]) for place in range(10)]
    write_partition(tmp_path, {0: batches})
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 5\n")
    [topic] = pylog.stats(tmp_path, read="all").document()["topics"]
    size = len(batches[0].data)
    assert (topic["isCompacted"], topic["liveBytes"], topic["deadBytes"]) == (True, size, 9 * size)
    assert pylog.stats(tmp_path).document()["topics"][0]["liveBytes"] is None


def test_all_files_on_the_disk_are_counted(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 3))]}, name="orders-0")
    (tmp_path / "orders-0" / "00000000000000000000.log.deleted").write_bytes(b"x" * 99)
    (tmp_path / "notes").write_bytes(b"x" * 7)
    found = pylog.stats(tmp_path)
    rows = {row["kind"]: row["size_in_bytes"] for row in found.tables["disk"].to_pylist()}
    assert (rows["deleted"], rows["beside"]) == (99, 7)
    total = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert sum(rows.values()) == total == found.document()["summary"]["diskBytes"]

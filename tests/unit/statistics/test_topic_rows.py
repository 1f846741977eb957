"""Rows of `pylog.stats` against what whoever wrote the logs knows of them."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import (
    COMMIT,
    Built,
    batch_v2,
    marker,
    plain_records,
    wrapper,
)
from tests.support.log_files import write_partition
from tests.support.random_log import RandomLog
from tests.unit.statistics.random_topics import NOW_MS, rows

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

"""A timeline is the scan of its partitions in a sorted order, forwards and backwards."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

import pytest

import pylog
from pylog.reading import timeline
from tests.support.batches import Built, Stored, batch_v2, wrapper
from tests.support.log_files import write_partition
from tests.support.registry_records import schema, write_registry

if TYPE_CHECKING:
    from pathlib import Path

SEED = 20_261_123
LOGS = 60


class Row(NamedTuple):
    partition: int
    offset: int
    timestamp: int


def random_partition(chance: random.Random, directory: Path, number: int) -> list[Row]:
    """Write a partition of some segments, its timestamps in some disorder; return its rows."""
    segments: dict[int, list[Built]] = {}
    rows, offset, stamp = [], chance.choice([0, 5]), chance.randint(0, 50)
    disorder = chance.choice([0, 0, 3, 40])
    for _ in range(chance.randint(1, 3)):
        segments[offset] = []
        base = offset
        for _ in range(chance.randint(1, 12)):
            records = []
            for _ in range(chance.randint(1, 5)):
                stamp += chance.choice([0, 0, 1, 7])
                at = max(0, stamp - chance.randint(0, disorder))
                value = b"v" * chance.randint(0, 400)
                records.append(Stored(offset, at, b"k", value, (("h", b"1"),)))
                rows.append(Row(number, offset, at))
                offset += 1
            codec = chance.choice(["none", "zstd"])
            if chance.random() < 0.1:
                plain = [each._replace(headers=()) for each in records]
                segments[base].append(wrapper(plain, magic=1, codec="gzip"))
            else:
                segments[base].append(batch_v2(records, codec=codec))
            offset += chance.choice([0, 0, 2])
    has_index = chance.random() < 0.7
    write_partition(directory, segments, name=f"t-{number}", with_index=has_index)
    return rows


def ranked(rows: list[Row], *, is_reversed: bool) -> list[tuple[int, Row]]:
    """Return one partition's rows in their order, with what the timeline orders them by."""
    found, highest = [], -(1 << 63)
    for row in rows[::-1] if is_reversed else rows:
        highest = max(highest, -row.timestamp if is_reversed else row.timestamp)
        found.append((highest, row))
    return found


def expected(partitions: list[list[Row]], *, is_reversed: bool) -> list[Row]:
    entries = []
    for place, rows in enumerate(partitions):
        own = -place if is_reversed else place
        ranks = ranked(rows, is_reversed=is_reversed)
        entries += [(rank, own, at, row) for at, (rank, row) in enumerate(ranks)]
    return [entry[3] for entry in sorted(entries)]


def rows_of(scan: pylog.results.Scan, *, is_reversed: bool, memory_bytes: int) -> list[Row]:
    found: list[Row] = []
    merged = pylog.merge_by_timestamp(scan, reverse=is_reversed, memory_bytes=memory_bytes)
    for batch in merged:
        assert batch.schema.names == scan.schema.names
        columns = [batch.column("partition"), batch.column("offset")]
        columns.append(batch.column("timestamp").cast("int64"))
        found += map(Row, *(column.to_pylist() for column in columns))
    return found


@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_timeline_is_a_sorted_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_reversed: bool
) -> None:
    monkeypatch.setattr(timeline, "_LEAST_BLOCK_BYTES", 200)
    chance = random.Random(SEED)
    for number in range(LOGS):
        directory = tmp_path / str(number)
        partitions = [
            random_partition(chance, directory, partition)
            for partition in range(chance.randint(1, 4))
        ]
        columns = ("partition", "offset", "timestamp", "value", "headers")
        scan = pylog.scan(directory, columns=columns, timestamp_unit="ms")
        memory_bytes = chance.choice([1, 2_000, 1 << 20])
        found = rows_of(scan, is_reversed=is_reversed, memory_bytes=memory_bytes)
        assert found == expected(partitions, is_reversed=is_reversed), (SEED, number)


def test_topics_with_columns_of_their_own_are_merged_in_runs(tmp_path: Path) -> None:
    write_registry(
        tmp_path, [schema("a-value", 1, 1, '"long"'), schema("b-value", 1, 2, '"string"')]
    )
    for topic, value, first in (("a", b"\0\0\0\0\x01\x02", 0), ("b", b"\0\0\0\0\x02\x02x", 15)):
        stored = [Stored(each, first + 10 * each, None, value) for each in range(4)]
        write_partition(tmp_path, {0: [batch_v2(stored)]}, name=f"{topic}-0")
    each = pylog.jobs.ValueFormat(topics="each")
    scan = pylog.scan(tmp_path, pattern="^[ab]$", value_format=each, columns=["topic", "value"])
    for is_reversed in (False, True):
        batches = pylog.merge_by_timestamp(scan, reverse=is_reversed)
        rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
        expected = [("a", 1)] * 2 + [("b", "x"), ("a", 1)] * 2 + [("b", "x")] * 2
        assert rows == (expected[::-1] if is_reversed else expected)

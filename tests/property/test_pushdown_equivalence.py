"""Any filter gives what the same filter keeps of a full scan, whatever the index files say."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import pylog
from tests.support.batches import Built, Stored, batch_v2, wrapper
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Counted, HowMany

CASES = 10_000
LOGS = 100
SEED = 20_261_121
COLUMNS = ("offset", "timestamp", "key", "value")
KEYS = [None, b"", b"a", b"b", b"key-3", b"a longer key of thirty bytes ..."]


class Row(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


@dataclass
class Log:
    directory: Path
    rows: list[Row]


def rows_of(scan: pylog.results.Scan) -> list[Row]:
    found: list[Row] = []
    for batch in scan.to_batches():
        columns = [batch.column("offset"), batch.column("timestamp").cast("int64")]
        columns += [batch.column("key"), batch.column("value")]
        found += map(Row, *(column.to_pylist() for column in columns))
    return found


def random_log(chance: random.Random, directory: Path) -> Log:
    """Write a log of several segments, formats and gaps, with timestamps in some disorder."""
    segments: dict[int, list[Built]] = {}
    offset, stamp = 0, 1_000
    disorder = chance.choice([0, 0, 5, 500])
    for _ in range(chance.randint(1, 4)):
        built: list[Built] = []
        base = offset
        for _ in range(chance.randint(1, 8)):
            records = []
            for _ in range(chance.randint(1, 6)):
                stamp += chance.randint(0, 10)
                at = max(0, stamp - chance.randint(0, disorder))
                value = chance.choice([None, b"", b"v" * chance.randint(0, 40)])
                records.append(Stored(offset, at, chance.choice(KEYS), value))
                offset += 1
            built.append(_batch(chance, records))
            offset += chance.choice([0, 0, 0, 3])
        segments[base] = built
    written = write_partition(
        directory, segments, with_time_index=chance.random() < 0.9, with_index=chance.random() < 0.9
    )
    _spoil_indexes(chance, written)
    return Log(written, rows_of(pylog.scan(written, columns=COLUMNS, timestamp_unit="ms")))


def _batch(chance: random.Random, records: list[Stored]) -> Built:
    if chance.random() < 0.15:
        return wrapper(records, magic=1, codec="gzip")
    codec = chance.choice(["none", "none", "gzip", "lz4"])
    return batch_v2(records, codec=codec)


def _spoil_indexes(  # noqa: C901 - one case a way to be wrong
    chance: random.Random, directory: Path
) -> None:
    """Make index files missing, truncated, stale, or lie in entries that look sound."""
    for path in sorted(directory.glob("*.*index")):
        data = bytearray(path.read_bytes())
        width = 8 if path.suffix == ".index" else 12
        match chance.randrange(8):
            case 0:
                path.unlink()
            case 1:
                path.write_bytes(data[: chance.randrange(len(data) + 1)])
            case 2:
                path.write_bytes(data[: len(data) // width // 2 * width])
            case 3 if data:
                for _ in range(chance.randint(1, 4)):
                    data[chance.randrange(len(data))] ^= chance.choice([0x01, 0x80, 0xFF])
                path.write_bytes(data)
            case 4:
                others = [p for p in directory.glob(f"*{path.suffix}") if p != path]
                if others:
                    shutil.copy(chance.choice(others), path)
            case 5 if len(data) >= 2 * width:
                # Each entry is one that some batch bears out, at another one's place.
                entries = [data[at : at + width] for at in range(0, len(data), width)]
                path.write_bytes(b"".join(chance.choices(entries, k=len(entries))))
            case 6:
                path.write_bytes(data + bytes(chance.randint(1, 40)))
            case _:
                pass


def random_filter(chance: random.Random, log: Log) -> pylog.RecordFilter:
    def maybe(value: int, share: float) -> int | None:
        return value + chance.randint(-3, 3) if chance.random() < share else None

    stamps = [row.timestamp for row in log.rows]
    chosen: dict[str, Any] = {
        "min_offset": maybe(chance.choice(log.rows).offset, 0.3),
        "max_offset": maybe(chance.choice(log.rows).offset, 0.3),
        "min_timestamp": maybe(chance.choice(stamps), 0.5),
        "max_timestamp": maybe(chance.choice(stamps), 0.5),
    }
    if chance.random() < 0.3:
        count = chance.randint(0, 3)
        chosen["keys"] = frozenset(chance.choices([k for k in KEYS if k is not None], k=count))
    if chance.random() < 0.1:
        chosen["partitions"] = frozenset(chance.choices(range(3), k=2))
    return pylog.RecordFilter(**chosen)


def passes(row: Row, where: pylog.RecordFilter) -> bool:
    """Tell what is to pass, sharing nothing with the code under test."""
    return (
        (where.min_offset is None or row.offset >= where.min_offset)
        and (where.max_offset is None or row.offset <= where.max_offset)
        and (where.min_timestamp is None or row.timestamp >= where.min_timestamp)
        and (where.max_timestamp is None or row.timestamp <= where.max_timestamp)
        and (where.keys is None or (row.key is not None and row.key in where.keys))
        and (where.partitions is None or 0 in where.partitions)
    )


@pytest.mark.slow
def test_any_filter_is_that_filter_after_a_full_scan(
    tmp_path: Path, counted: Counted, how_many: HowMany
) -> None:
    cases = how_many(500, CASES)
    chance = random.Random(SEED)
    logs = max(LOGS // 4, cases // 100)
    for number in range(logs):
        log = random_log(chance, tmp_path / str(number))
        for _ in range(cases // logs):
            where = random_filter(chance, log)
            scan = pylog.scan(
                log.directory,
                columns=COLUMNS,
                timestamp_unit="ms",
                where=where,
                window_bytes=chance.choice([200, 1 << 22]),
                max_partition_bytes=chance.choice([None, 300]),
            )
            expected = [row for row in log.rows if passes(row, where)]
            assert rows_of(scan) == expected, (SEED, number, where)
            assert scan.count() == len(expected), (SEED, number, where)
        shutil.rmtree(tmp_path / str(number))
    counted("pushdown cases", {"equal to a filtered full scan": cases // logs * logs})

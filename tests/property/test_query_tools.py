"""Polars and DuckDB give the rows that a predicate keeps of the whole log, in every mode."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pytest

import pylog
import pylog.duckdb
import pylog.polars
from tests.support.batches import Built, Stored, batch_v2, with_bad_crc, wrapper
from tests.support.log_files import write_partition
from tests.support.query_predicates import Row, random_predicate

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Counted, HowMany

CASES = 500
LOGS = 50
SEED = 20_261_123
PARTITIONS = ("orders-0", "orders-1", "payments-3")
KEYS = [None, b"", b"a", b"b", b"key-3", b"a longer key of thirty bytes ..."]
COLUMNS = ["topic", "partition", "offset", "timestamp", "key"]


def random_directory(chance: random.Random, directory: Path) -> Path:
    """Write partitions of several segments; of some batches the checksum is wrong."""
    damage = chance.choice((0.0, 0.0, 0.2))
    for name in PARTITIONS:
        segments: dict[int, list[Built]] = {}
        offset = chance.choice((0, 0, 1_000))
        stamp = 1_700_000_000_000
        for _ in range(chance.randint(1, 3)):
            base, built = offset, []
            for _ in range(chance.randint(1, 6)):
                records = []
                for _ in range(chance.randint(1, 5)):
                    stamp += chance.randint(0, 4)
                    at = stamp - chance.choice((0, 0, 0, 7))
                    records.append(
                        Stored(offset, at, chance.choice(KEYS), b"v" * chance.randint(0, 9))
                    )
                    offset += 1
                if chance.random() < 0.15:
                    batch = wrapper(records, magic=1, codec="gzip")
                else:
                    batch = batch_v2(records, codec=chance.choice(("none", "none", "lz4", "zstd")))
                    batch = with_bad_crc(batch) if chance.random() < damage else batch
                built.append(batch)
                offset += chance.choice((0, 0, 3))
            segments[base] = built
        write_partition(directory, segments, name=name)
    return directory


def rows_of(table: pa.Table) -> list[Row]:
    stamps = table.column("timestamp").cast(pa.timestamp("us", "UTC")).cast("int64")
    columns = [stamps if name == "timestamp" else table.column(name) for name in COLUMNS]
    return [Row(*row) for row in zip(*(each.to_pylist() for each in columns), strict=True)]


def of_polars(frame: pl.LazyFrame) -> list[Row]:
    return rows_of(frame.collect().to_arrow())


def of_duckdb(database: pylog.duckdb.LogDatabase, sql: str) -> list[Row]:
    return rows_of(database.query(sql).read_all())


@pytest.mark.slow
def test_a_query_gives_what_its_predicate_keeps_of_the_whole_log(
    tmp_path: Path, counted: Counted, how_many: HowMany
) -> None:
    cases = how_many(100, CASES)
    chance = random.Random(SEED)
    logs = min(LOGS, cases // 10)
    for number in range(logs):
        directory = random_directory(chance, tmp_path / str(number))
        arguments: dict[str, Any] = {
            "mode": chance.choice(("DROPMALFORMED", "PERMISSIVE")),
            "columns": COLUMNS,
            "window_bytes": chance.choice((200, 1 << 22)),
            "threads": chance.choice((1, 2)),
        }
        rows = rows_of(pylog.scan(directory, **arguments).to_table())
        frame = pylog.polars.scan(directory, **arguments)
        unit = chance.choice(("us", "ms"))
        with pylog.duckdb.LogDatabase(directory, **arguments, timestamp_unit=unit) as database:
            for _ in range(cases // logs):
                where = random_predicate(chance, rows)
                case = (SEED, number, where.sql)
                expected = [row for row in rows if where.holds(row)]
                count = chance.randint(0, 5)

                found = frame.filter(where.polars)
                assert of_polars(found) == expected, case
                assert of_polars(found.head(count)) == expected[:count], case
                first = [row for row in rows[:count] if where.holds(row)]
                assert of_polars(frame.head(count).filter(where.polars)) == first, case
                assert found.select(pl.len()).collect().item() == len(expected), case

                names = ", ".join(f'"{name}"' for name in COLUMNS)
                sql = f"SELECT {names} FROM records WHERE {where.sql}"  # noqa: S608
                assert of_duckdb(database, sql) == expected, case
                assert of_duckdb(database, f"{sql} LIMIT {count}") == expected[:count], case
                total = f"SELECT count(*) FROM records WHERE {where.sql}"  # noqa: S608
                assert database.query(total).read_all().column(0).to_pylist() == [len(expected)]
        shutil.rmtree(directory)
    counted("queries of Polars and DuckDB", {"equal to a filtered full scan": cases // LOGS * LOGS})

"""A scan given to libraries that take Arrow streams: the rows are those of `to_table`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import pylog
from tests.support.batches import batch_v2, plain_records, with_bad_crc
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.golden import GoldenRoot

PARTITIONS = (
    "4.3.0/txn:payments-0",
    "2.8.2/mixed-magic:upgraded-0",
    "0.8.2.2/codec-snappy:u-snappy-0",
)


def queried(query: str, scan: pylog.results.Scan) -> duckdb.DuckDBPyRelation:
    """Return what DuckDB makes of a query over ``scan``, which it finds by the variable's name."""
    assert scan is not None
    relation = duckdb.sql(query)
    assert relation is not None  # as for statements without rows
    return relation


def with_pyarrow(scan: pylog.results.Scan) -> pa.Table:
    return pa.table(scan)


def with_polars(scan: pylog.results.Scan) -> pa.Table:
    return pl.DataFrame(scan).to_arrow()


def with_polars_from_arrow(scan: pylog.results.Scan) -> pa.Table:
    rows = pl.from_arrow(scan)
    # Polars 2 makes a series of structs of a stream that is not pyarrow's own.
    return (rows.struct.unnest() if isinstance(rows, pl.Series) else rows).to_arrow()


def with_duckdb(scan: pylog.results.Scan) -> pa.Table:
    return queried("SELECT * FROM scan", scan).to_arrow_table()


CONSUMERS = [with_pyarrow, with_polars, with_polars_from_arrow, with_duckdb]


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("partition_id", PARTITIONS)
def test_a_consumer_of_arrow_streams_gets_the_rows_of_to_table(
    golden_root: GoldenRoot, partition_id: str, consumer: Callable[[pylog.results.Scan], pa.Table]
) -> None:
    directory = golden_root.partition(partition_id).directory
    scan = pylog.scan(directory, include_headers=True)
    expected = scan.to_table()
    assert expected.num_rows > 0
    rows = consumer(scan)
    assert rows.column_names == expected.column_names
    assert rows.to_pylist() == expected.to_pylist()
    assert consumer(scan).num_rows == expected.num_rows  # each use reads anew


def test_a_scan_is_written_to_another_topic(golden_root: GoldenRoot, tmp_path: Path) -> None:
    directory = golden_root.partition("4.3.0/txn:payments-0").directory
    columns = ["key", "value", "timestamp", "headers"]
    scan = pylog.scan(directory, isolation="read_committed", columns=columns)
    summary = pylog.write_topic(tmp_path / "copy", "payments", scan, partitions=1)
    assert summary.records == scan.count() > 0
    copied = pylog.scan(tmp_path / "copy", columns=columns).to_table()
    assert copied.to_pylist() == scan.to_table().to_pylist()


def test_duckdb_filters_and_counts_a_scan(golden_root: GoldenRoot) -> None:
    directory = golden_root.partition("4.3.0/txn:payments-0").directory
    scan = pylog.scan(directory, isolation="read_committed")
    offsets = scan.to_table().column("offset").to_pylist()
    middle = offsets[len(offsets) // 2]
    query = f'SELECT count(*), min("offset") FROM scan WHERE "offset" >= {middle}'  # noqa: S608
    assert queried(query, scan).fetchall() == [(sum(o >= middle for o in offsets), middle)]
    assert queried('SELECT "offset" FROM scan LIMIT 2', scan).fetchall() == [
        (each,) for each in offsets[:2]
    ]


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_damage_is_an_error_of_the_consumer_with_our_text(
    tmp_path: Path, consumer: Callable[[pylog.results.Scan], pa.Table]
) -> None:
    batches = [batch_v2(plain_records(0, 5)), with_bad_crc(batch_v2(plain_records(5, 5)))]
    scan = pylog.scan(write_partition(tmp_path, {0: batches}))
    with pytest.raises(Exception, match=r"0{20}\.log at byte .*: batch CRC stored 0x"):
        consumer(scan)


def test_a_schema_that_is_asked_for_is_cast_to(tmp_path: Path) -> None:
    scan = pylog.scan(
        write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]}), columns=["partition"]
    )
    wide = pa.schema([pa.field("partition", pa.int64(), nullable=False)])
    assert pa.table(scan, schema=wide).schema.field("partition").type == pa.int64()

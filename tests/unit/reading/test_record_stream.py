from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pytest

import pylog
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for number in range(2):
        batches = [batch_v2(plain_records(at, 4)) for at in range(0, 40, 4)]
        write_partition(tmp_path, {0: batches}, name=f"t-{number}")
    return tmp_path


def test_the_schema_is_given_without_a_read(directory: Path) -> None:
    scan = pylog.scan(directory, columns=["offset", "timestamp"])
    assert pa.schema(scan) == scan.schema
    assert scan.scanned.size_bytes == 0


def test_options_of_pandas_are_passed_on(directory: Path) -> None:
    frame = pylog.scan(directory).to_pandas(types_mapper=pd.ArrowDtype)
    assert frame["offset"].dtype == pd.ArrowDtype(pa.int64())
    assert pylog.scan(directory).to_pandas()["offset"].dtype == "int64"


def test_a_part_of_a_scan_is_counted_as_of_it(directory: Path) -> None:
    scan = pylog.scan(directory, window_bytes=300, timestamp_unit="ms")
    part = scan.narrowed(
        ["partition", "timestamp", "headers"],
        where=pylog.RecordFilter(partitions=frozenset({1}), min_offset=38),
    )
    table = part.to_table()
    assert table.column("partition").to_pylist() == [1, 1]
    assert table.schema.names == ["partition", "timestamp", "headers"]
    assert table.schema.field("timestamp").type == pa.timestamp("ms", tz="UTC")
    assert scan.scanned is part.scanned
    assert scan.damage is part.damage
    assert 0 < scan.scanned.size_bytes <= 300


def test_filters_and_limits_add_up(directory: Path) -> None:
    scan = pylog.scan(directory, where=pylog.RecordFilter(min_offset=10))
    part = scan.narrowed(
        ["offset"], where=pylog.RecordFilter(max_offset=11, partitions=frozenset({0}))
    )
    assert part.to_table().column("offset").to_pylist() == [10, 11]
    assert scan.narrowed(limit=3).narrowed(limit=5).to_table().num_rows == 3
    assert scan.narrowed(limit=5).narrowed(limit=3).to_table().num_rows == 3
    assert scan.narrowed().to_table() == scan.to_table()
    assert scan.last(2).narrowed(["offset"]).to_table().num_rows == 4


def test_a_part_covers_what_its_scan_does_though_the_log_grows(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, {0: [batch_v2(plain_records(0, 4))]})
    scan = pylog.scan(directory)
    assert scan.to_table().num_rows == 4
    with (directory / f"{0:020}.log").open("ab") as log:
        log.write(batch_v2(plain_records(4, 4)).data)
    where = pylog.RecordFilter(min_offset=3)
    assert scan.narrowed(["offset"], where=where).to_table().column(0).to_pylist() == [3]
    assert pylog.scan(directory, where=where).to_table().num_rows == 5


def test_what_would_not_be_a_part_is_refused(directory: Path) -> None:
    scan = pylog.scan(directory)
    where = pylog.RecordFilter(min_offset=3)
    with pytest.raises(ValueError, match="a scan with a limit cannot be narrowed by a filter"):
        scan.narrowed(limit=3).narrowed(where=where)
    with pytest.raises(ValueError, match="a scan of the last records cannot be narrowed"):
        scan.last(3).narrowed(where=where)
    with pytest.raises(ValueError, match="no column 'ofset'; did you mean 'offset'"):
        scan.narrowed(["ofset"])
    with pytest.raises(ValueError, match="limit is -1"):
        scan.narrowed(limit=-1)

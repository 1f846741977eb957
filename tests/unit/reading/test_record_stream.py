from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pytest

import pylog
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import segment_path, write_partition, write_segment

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


def segmented(directory: Path) -> Path:
    return write_partition(
        directory,
        {
            base: [batch_v2(plain_records(at, 4, timestamp=1_000)) for at in (base, base + 4)]
            for base in (0, 8, 16)
        },
    )


def grow(path: Path, base_offset: int) -> None:
    """Append as a broker does that rolls a segment."""
    with segment_path(path, 16).open("ab") as log:
        log.write(batch_v2(plain_records(24, 4, timestamp=1_000)).data)
    write_segment(path, base_offset, [batch_v2(plain_records(base_offset, 4, timestamp=1_000))])


def remove_first_segment(path: Path) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        segment_path(path, 0, suffix).unlink()


LATE = pylog.RecordFilter(min_timestamp=1_000)


def test_a_filtered_part_covers_no_more_than_the_scan_though_files_change_meanwhile(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = segmented(tmp_path)
    scan = pylog.scan(path, fail_on_data_loss=False)
    assert scan.count() == 24
    grow(path, 28)
    remove_first_segment(path)  # planning by timestamp meets that, and looks again
    assert scan.narrowed(["offset"], where=LATE).to_table()["offset"].to_pylist() == [*range(8, 24)]
    assert "planned to be read, offsets 0 to 7;" in caplog.text


def test_what_was_lost_since_a_scan_was_planned_is_an_error_of_its_filtered_parts(
    tmp_path: Path,
) -> None:
    path = segmented(tmp_path)
    scan = pylog.scan(path)
    assert scan.narrowed(where=LATE).count() == 24
    remove_first_segment(path)
    with pytest.raises(pylog.LogStorageError, match=r"orders-0 are lost .* offsets 0 to 7;"):
        scan.narrowed(where=LATE).count()
    # Of what is not asked for nothing is lost.
    late_part = pylog.RecordFilter(min_timestamp=1_000, min_offset=8)
    assert scan.narrowed(where=late_part).count() == 16
    with segment_path(path, 16).open("ab") as log:
        log.truncate(0)
    with pytest.raises(pylog.LogStorageError, match=r"are lost, offsets 16 to 23;"):
        scan.narrowed(where=late_part).count()

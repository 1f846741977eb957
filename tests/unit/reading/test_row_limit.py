"""A limit gives the first rows, and nothing after them is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import pylog
from tests.support.batches import batch_v2, plain_records, with_bad_crc
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

PER_PARTITION = 40


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for number in range(3):
        batches = [batch_v2(plain_records(at, 4)) for at in range(0, PER_PARTITION, 4)]
        write_partition(tmp_path, {0: batches}, name=f"t-{number}")
    return tmp_path


def places(table: pa.Table | pa.RecordBatch) -> list[tuple[int, int]]:
    return list(
        zip(table.column("partition").to_pylist(), table.column("offset").to_pylist(), strict=True)
    )


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("limit", [0, 1, 4, 5, 39, 40, 41, 119, 120, 500])
def test_a_limit_is_of_the_rows_that_come_first(directory: Path, limit: int, threads: int) -> None:
    everything = places(pylog.scan(directory).to_table())
    assert len(everything) == 3 * PER_PARTITION
    scan = pylog.scan(directory, limit=limit, threads=threads, window_bytes=300)
    assert places(scan.to_table()) == everything[:limit]
    assert scan.to_reader().read_all().num_rows == pa.table(scan).num_rows == scan.count()
    assert scan.count() == min(limit, len(everything))
    assert len(scan.to_pandas()) == len(list(scan.records())) == scan.count()


def test_a_limit_stops_reading(directory: Path) -> None:
    whole = pylog.scan(directory, window_bytes=300)
    whole.to_table()
    scan = pylog.scan(directory, window_bytes=300, limit=5)
    scan.to_table()
    assert 0 < scan.scanned.size_bytes < whole.scanned.size_bytes / 10
    nothing = pylog.scan(directory, limit=0)
    nothing.to_table()
    assert nothing.scanned.size_bytes == 0


def test_a_limit_is_of_what_a_filter_passes(directory: Path) -> None:
    where = pylog.RecordFilter(min_offset=PER_PARTITION - 2)
    scan = pylog.scan(directory, where=where, limit=3)
    assert places(scan.to_table()) == [(0, 38), (0, 39), (1, 38)]


def test_damage_after_the_limit_does_not_matter(tmp_path: Path) -> None:
    batches = [batch_v2(plain_records(0, 5)), with_bad_crc(batch_v2(plain_records(5, 5)))]
    path = write_partition(tmp_path, {0: batches})
    assert pylog.scan(path, limit=5).to_table().num_rows == 5


def test_a_limit_below_zero_makes_no_sense(directory: Path) -> None:
    with pytest.raises(ValueError, match=r"^limit is -1, expected 0 or more$"):
        pylog.scan(directory, limit=-1)


def test_what_has_another_order_refuses_the_limit_of_a_scan(
    directory: Path, tmp_path: Path
) -> None:
    scan = pylog.scan(directory, limit=3)
    assert repr(scan).endswith("limit=3)")
    with pytest.raises(ValueError, match="a timeline is made of a scan without a limit"):
        list(pylog.merge_by_timestamp(scan))
    with pytest.raises(ValueError, match="a scan with a limit is written to one file"):
        pylog.export(scan, tmp_path / "{topic}.parquet")
    [written] = pylog.export(scan, tmp_path / "all.parquet")
    assert written.rows == 3


@pytest.mark.parametrize("limit", [0, 1, 39, 40, 41, 119, 120, 500])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_limit_of_a_timeline_is_of_the_rows_that_come_first(
    directory: Path, limit: int, *, reverse: bool
) -> None:
    def timeline(most: int | None) -> list[tuple[int, int]]:
        scan = pylog.scan(directory, columns=["partition", "offset"])
        merged = pylog.merge_by_timestamp(scan, reverse=reverse, limit=most)
        return [place for each in merged for place in places(each)]

    everything = timeline(None)
    assert len(everything) == 3 * PER_PARTITION
    assert timeline(limit) == everything[:limit]


@pytest.mark.parametrize("limit", [0, 1, 41])
def test_a_limit_of_what_is_followed_is_of_all_looks_together(directory: Path, limit: int) -> None:
    records = pylog.results.FollowedRecords(pylog.follow(directory), limit=limit, window_bytes=300)
    found = [place for each in records.poll() for place in places(each)]
    assert found == [(number // PER_PARTITION, number % PER_PARTITION) for number in range(limit)]
    assert list(records.poll()) == []


def test_a_limit_below_zero_is_refused_before_anything_is_read(directory: Path) -> None:
    with pytest.raises(ValueError, match=r"^limit is -1, expected 0 or more$"):
        list(pylog.merge_by_timestamp(pylog.scan(directory), limit=-1))
    with pytest.raises(ValueError, match=r"^limit is -1, expected 0 or more$"):
        pylog.results.FollowedRecords(pylog.follow(directory), limit=-1)


@pytest.mark.parametrize("limit", [1.5, "3", [3]])
def test_a_limit_that_is_no_whole_number_is_refused_before_anything_is_read(
    directory: Path,
    limit: Any,  # noqa: ANN401 - of any type
) -> None:
    with pytest.raises(TypeError, match=r"^limit is .*, expected a whole number, or None for all$"):
        pylog.scan(directory, limit=limit)


def test_a_limit_may_be_larger_than_any_log(directory: Path) -> None:
    assert pylog.scan(directory, limit=1 << 80).to_table().num_rows == 3 * PER_PARTITION

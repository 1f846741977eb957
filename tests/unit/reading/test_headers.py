"""Timestamps that headers tell, and files that change under a reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import Built, Stored, batch_v2, batch_v2_of, plain_records
from tests.support.log_files import segment_path, write_partition

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from pylog.tables import TableName


def stamps(table: pa.Table, *names: str) -> list[tuple[int | None, ...]]:
    columns = [table[name].cast("int64").to_pylist() for name in names]
    return list(zip(*columns, strict=True))


def segment_times(directory: Path, *batches: Built) -> tuple[int | None, ...]:
    write_partition(directory, {0: batches}, with_time_index=False)
    table = pylog.read_table(directory, "segments")
    (found,) = stamps(table, "min_timestamp", "max_timestamp")
    return found


def test_times_of_a_segment_are_those_of_all_its_windows(tmp_path: Path) -> None:
    falling = [
        batch_v2([Stored(offset, 100_000 - offset, None, b"v" * 900)]) for offset in range(2_000)
    ]
    assert segment_times(tmp_path, *falling) == (98_001, 100_000)


def test_an_earlier_first_record_is_known_from_its_header(tmp_path: Path) -> None:
    batch = batch_v2([Stored(0, 1000, None, None), Stored(1, 5000, None, None)])
    assert segment_times(tmp_path, batch) == (1000, 5000)


def test_times_of_records_that_the_broker_stamped_are_the_brokers(tmp_path: Path) -> None:
    batch = batch_v2([Stored(0, 1000, None, None)], append_time=7000)
    assert segment_times(tmp_path, batch) == (7000, 7000)
    assert stamps(pylog.read_table(tmp_path, "partitions"), "first_timestamp") == [(7000,)]


def test_a_delete_horizon_is_not_the_time_of_a_record(tmp_path: Path) -> None:
    batch = batch_v2([Stored(0, 1000, b"k", None)], delete_horizon=90)
    assert segment_times(tmp_path, batch) == (1000, 1000)
    assert stamps(pylog.read_table(tmp_path, "partitions"), "first_timestamp") == [(1000,)]
    batches = pylog.read_table(tmp_path, "batches")
    assert stamps(batches, "base_timestamp", "delete_horizon") == [(None, 90)]


def test_a_first_batch_that_cannot_be_read_is_a_defect_in_the_row(tmp_path: Path) -> None:
    batches = [batch_v2(plain_records(offset, 2)) for offset in range(0, 20, 2)]
    directory = write_partition(tmp_path, {0: batches[:5], 10: batches[5:]})
    path = segment_path(directory, 0)
    data = bytearray(path.read_bytes())
    data[16] = 9  # the magic
    path.write_bytes(data)
    (row,) = pylog.read_table(tmp_path, "partitions").to_pylist()
    assert (row["log_end_offset"], row["first_timestamp"]) == (20, None)
    assert len(row["defects"]) == 1
    assert "record format (magic) is 9" in row["defects"][0]
    (row,) = pylog.read_table(tmp_path, "partitions", mode="DROPMALFORMED").to_pylist()
    assert row["first_timestamp"] is None


def test_a_codec_that_nobody_knows_has_no_name(tmp_path: Path) -> None:
    unknown = Built(batch_v2_of(b"", attributes=5), (), 2, 0, 0)
    write_partition(tmp_path, {0: [unknown]}, with_time_index=False)
    table = pylog.read_table(tmp_path, "batches")
    assert (table["attributes"].to_pylist(), table["codec"].to_pylist()) == ([5], [None])


def test_records_without_a_timestamp_have_none(tmp_path: Path) -> None:
    assert segment_times(tmp_path, batch_v2([Stored(0, -1, None, None)])) == (None, None)
    table = pylog.read_table(tmp_path, "partitions")
    assert stamps(table, "first_timestamp", "last_timestamp") == [(None, None)]


def test_the_last_batch_may_lie_before_empty_segments(tmp_path: Path) -> None:
    batch = batch_v2(plain_records(0, 2, timestamp=1000), leader_epoch=4)
    write_partition(tmp_path, {0: [batch], 2: [], 3: []})
    table = pylog.read_table(tmp_path, "partitions")
    assert stamps(table, "first_timestamp", "last_timestamp") == [(1000, 1001)]
    assert table["leader_epoch"].to_pylist() == [4]
    assert table["log_end_offset"].to_pylist() == [3]
    segments = pylog.read_table(tmp_path, "segments")
    assert segments["next_offset"].to_pylist() == [2, 2, 3]
    assert segments["records"].to_pylist() == [2, 0, 0]


@pytest.mark.parametrize("name", ["segments", "batches", "transactions"])
def test_a_log_that_compaction_has_changed_is_looked_at_again(
    tmp_path: Path, name: TableName
) -> None:
    batches = [batch_v2(plain_records(offset, 2)) for offset in (0, 2)]
    directory = write_partition(tmp_path, {0: batches, 4: [batch_v2(plain_records(4, 1))]})
    opened = pylog.open_directory(tmp_path)
    (view,) = opened  # a partition is listed when it is first asked for
    assert len(view.segments) == 2
    path = segment_path(directory, 0)
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes())
    other.rename(path)
    assert pylog.read_table(opened, name) == pylog.read_table(tmp_path, name)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import pylog
from pylog.errors import TimestampOverflowError
from tests.support.batches import (
    COMMIT,
    Stored,
    batch_v2,
    marker,
    message,
    plain_records,
    with_bad_crc,
    wrapper,
)
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pylog.reading.damage import ReadModeName


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    batches = [
        message(plain_records(0, 1)[0], magic=0),
        wrapper(plain_records(1, 4), magic=1, codec="gzip"),
        batch_v2(plain_records(5, 5), codec="zstd"),
        batch_v2(plain_records(10, 3), is_transactional=True, producer_id=1),
        marker(13, COMMIT),
    ]
    return write_partition(tmp_path, {0: batches})


def test_all_ways_give_the_same_rows(directory: Path) -> None:
    scan = pylog.scan(directory)
    table = scan.to_table()
    assert table.num_rows == scan.count() == 13
    assert scan.to_reader().read_all() == table
    assert pa.Table.from_batches(scan.to_batches()) == table
    assert scan.to_pandas()["offset"].tolist() == list(range(13))
    assert table.schema == scan.schema


@pytest.mark.parametrize("columns", [[], ["value"], ["offset", "headers"], ["batch"]])
def test_a_count_does_not_depend_on_the_columns(directory: Path, columns: list[str]) -> None:
    for start, end in ((0, 13), (2, 12), (6, 7), (3, 3)):
        scan = pylog.scan(directory, columns=columns, start=start, end=end)
        assert scan.count() == scan.to_table().num_rows == end - start


@pytest.mark.parametrize("columns", [[], ["topic"], ["partition", "topic"], ["topic", "offset"]])
@pytest.mark.parametrize("limit", [None, 0, 3])
def test_counted_batches_have_the_rows_of_a_full_read(
    directory: Path, columns: list[str], limit: int | None
) -> None:
    for start, end in ((0, 13), (2, 12), (6, 7), (3, 3)):
        scan = pylog.scan(directory, columns=columns, start=start, end=end, limit=limit)
        counted = pa.Table.from_batches(scan.counted_batches(), scan.schema)
        assert counted.num_rows == min(end - start, 13 if limit is None else limit)
        assert counted == scan.to_table()


@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"])
def test_a_count_takes_no_notice_of_a_timestamp_that_fits_no_column(
    tmp_path: Path, mode: ReadModeName
) -> None:
    late = [Stored(offset, 1 << 60, b"k", b"v") for offset in range(4)]  # in milliseconds
    batches = [
        wrapper(late, magic=1, codec="gzip"),
        batch_v2([each._replace(offset=each.offset + 4) for each in late]),
    ]
    directory = write_partition(tmp_path, {0: batches})
    for start, end in ((0, 8), (1, 7), (5, 6)):
        scan = pylog.scan(directory, mode=mode, start=start, end=end)
        assert scan.count() == end - start
        with pytest.raises(TimestampOverflowError):
            scan.to_table()
    where = pylog.RecordFilter(min_timestamp=1 << 60)
    assert pylog.scan(directory, mode=mode, where=where).count() == 8


def test_a_window_may_be_of_any_size(directory: Path) -> None:
    expected = pylog.scan(directory).to_table()
    for window_bytes in (17, 64, 200, 1 << 20):
        assert pylog.scan(directory, window_bytes=window_bytes).to_table() == expected


@pytest.mark.parametrize("side", ["start", "end"])
@pytest.mark.parametrize("spec", ["eerliest", {"t": "eerliest"}, {("t", 0): "eerliest"}])
def test_a_position_that_is_none_is_reported_before_anything_is_read(
    tmp_path: Path, side: str, spec: object
) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 1))]}, name="t-0")
    options: dict[str, Any] = {side: spec}
    with pytest.raises(ValueError, match="'eerliest' is not a position; did you mean 'earliest'"):
        pylog.scan(tmp_path, **options)


def test_a_single_column_may_be_given_by_its_name(directory: Path) -> None:
    assert pylog.scan(directory, columns="key").schema.names == ["key"]


def test_a_function_is_not_a_filter(directory: Path) -> None:
    where: Any = lambda row: row.key  # noqa: E731
    with pytest.raises(TypeError) as caught:
        pylog.scan(directory, where=where)
    assert str(caught.value) == (
        "where is a function, expected a pylog.RecordFilter, such as "
        "pylog.RecordFilter(min_offset=10, keys=b'k1'), or the text of a condition on decoded "
        "fields, such as 'value.id = 7'. To filter by anything else, filter what "
        "the scan gives, as in scan.to_table().filter(...)"
    )


@pytest.mark.parametrize("use", [iter, len, list, lambda scan: scan[0]])
def test_a_scan_that_is_used_as_a_sequence_says_what_to_use(
    directory: Path, use: Callable[[Any], object]
) -> None:
    scan = pylog.scan(directory)
    with pytest.raises(TypeError, match=r"not a sequence of records; use scan.to_batches\(\) or"):
        use(scan)
    assert bool(scan)


def test_arguments_that_make_no_sense_are_reported_before_anything_is_read(directory: Path) -> None:
    with pytest.raises(ValueError, match="isolation level 'committed' is neither"):
        pylog.scan(directory, isolation="committed")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no column 'keys'; did you mean 'key'"):
        pylog.scan(directory, columns=["keys"])
    with pytest.raises(ValueError, match="timestamp unit 's'"):
        pylog.scan(directory, timestamp_unit="s")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="is not a position"):
        pylog.scan(directory, start="begin").plan()


def test_isolation_levels_are_named_in_any_case(directory: Path) -> None:
    for level in ("READ_COMMITTED", "read_committed", pylog.IsolationLevel.READ_COMMITTED):
        assert pylog.scan(directory, isolation=level).count() == 13  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["partition", "partitions"])
def test_whoever_asks_for_a_partition_is_told_of_assign(directory: Path, name: str) -> None:
    with pytest.raises(TypeError, match=rf"no argument '{name}'; partitions are chosen by assign,"):
        pylog.scan(directory, **{name: 0})  # type: ignore[arg-type]


@pytest.mark.parametrize("topics", [("orders", 0), [("orders", 0)]])
def test_a_topic_with_a_partition_is_not_a_name(directory: Path, topics: object) -> None:
    with pytest.raises(TypeError, match=r"expected names of topics; partitions are chosen by assi"):
        pylog.scan(directory, topics=topics).plan()  # type: ignore[arg-type]


@pytest.mark.parametrize("assign", [[("orders", 0)], ["orders-0"]])
def test_partitions_are_given_by_topic(directory: Path, assign: object) -> None:
    with pytest.raises(
        TypeError, match=r"^assign is \[.*, expected partitions by topic; partition"
    ):
        pylog.scan(directory, assign=assign).plan()  # type: ignore[arg-type]


def test_a_scan_shows_what_it_reads(directory: Path) -> None:
    scan = pylog.scan(
        directory,
        start={"orders": 3},
        end=pylog.Timestamp(7),
        isolation="read_committed",
        columns=["key", "offset"],
        mode="permissive",  # type: ignore[arg-type]
        where=pylog.RecordFilter(min_offset=2),
    )
    assert repr(scan).startswith(
        f"Scan('{directory}', topics={{'orders': [0]}}, columns=['key', 'offset'], "
        "start={'orders': 3}, end=Timestamp(milliseconds=7, if_missing='error'), "
        "isolation='read_committed', mode='PERMISSIVE', where=RecordFilter("
    )
    assert repr(pylog.scan(directory)).endswith(
        "start='earliest', end='latest', isolation='read_uncommitted', mode='FAILFAST')"
    )


def test_the_damage_of_a_scan_is_iterated_over(tmp_path: Path) -> None:
    batches = [batch_v2(plain_records(offset, 5)) for offset in (0, 5, 10)]
    batches[1] = with_bad_crc(batches[1])
    scan = pylog.scan(write_partition(tmp_path, {0: batches}), mode="DROPMALFORMED")
    assert list(scan.damage) == []
    assert not scan.damage
    scan.to_table()
    assert [(each.next_offset, each.end_offset) for each in scan.damage] == [(5, 10)]
    assert len(scan.damage) == 1
    assert repr(scan.damage).startswith("DamageReport(ranges=[DamagedRange(path=")


def test_control_records_are_never_given(directory: Path) -> None:
    assert 13 not in pylog.scan(directory).to_table().column("offset").to_pylist()
    assert pylog.open_directory(directory)["orders", 0].log_end_offset == 14

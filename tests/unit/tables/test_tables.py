"""What `pylog.read_table` chooses, refuses and raises; what is in the tables is held in golden."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from pylog.errors import CorruptRecordError, LogDirectoryError, UnknownTopicOrPartitionError
from pylog.tables import TABLE_NAMES
from pylog.tables.tables import METADATA_TABLES, metadata_table
from tests.support.batches import Stored, batch_v2, plain_records
from tests.support.log_files import segment_path, write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.tables import TableName


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Give orders-0, -2 and -10 and invoices-0, with offsets 0 to 9 in two segments each."""
    batches = [batch_v2(plain_records(offset, 2)) for offset in range(0, 10, 2)]
    for name in ("orders-0", "orders-2", "orders-10", "invoices-0"):
        write_partition(tmp_path, {0: batches[:3], 6: batches[3:]}, name=name)
    return tmp_path


def partitions(table: pa.Table) -> list[tuple[str, int]]:
    names = zip(table["topic"].to_pylist(), table["partition"].to_pylist(), strict=True)
    return list(dict.fromkeys(names))


def test_internal_topics_are_in_a_table_when_all_topics_are_named(logs: Path) -> None:
    write_partition(logs, {0: [batch_v2(plain_records(0, 1))]}, name="__consumer_offsets-3")
    opened = pylog.open_directory(logs)
    assert ("__consumer_offsets", 3) not in partitions(pylog.read_table(opened, "partitions"))
    table = pylog.read_table(opened, "partitions", topics=opened.topics)
    assert partitions(table)[0] == ("__consumer_offsets", 3)


def test_rows_are_ordered_by_topic_partition_and_offset(logs: Path) -> None:
    table = pylog.read_table(logs, "batches")
    assert partitions(table) == [("invoices", 0), ("orders", 0), ("orders", 2), ("orders", 10)]
    assert table["base_offset"].to_pylist() == [0, 2, 4, 6, 8] * 4


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"topics": "invoices"}, [("invoices", 0)]),
        ({"topics": ["orders"]}, [("orders", 0), ("orders", 2), ("orders", 10)]),
        ({"assign": {"orders": [10, 2]}}, [("orders", 2), ("orders", 10)]),
        ({"pattern": "inv"}, [("invoices", 0)]),
    ],
)
def test_partitions_are_chosen_as_for_a_scan(
    logs: Path, options: dict[str, object], expected: list[tuple[str, int]]
) -> None:
    assert partitions(pylog.read_table(logs, "segments", **options)) == expected  # type: ignore[arg-type]
    opened = pylog.open_directory(logs)
    assert partitions(pylog.read_table(opened, "segments", **options)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("name", TABLE_NAMES)
def test_every_table_begins_with_topic_and_partition(logs: Path, name: TableName) -> None:
    table = pylog.read_table(logs, name)
    assert table.schema == metadata_table(name).schema
    assert table.schema.names[:2] == ["topic", "partition"]
    stamps = {field.type for field in table.schema if pa.types.is_timestamp(field.type)}
    assert stamps <= {pa.timestamp("ms", tz="UTC")}


def test_the_environment_says_how_many_threads_read(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYLOG_NUM_THREADS", "no")
    with pytest.raises(ValueError, match="PYLOG_NUM_THREADS is 'no', expected a number"):
        pylog.read_table(logs, "segments")


def test_a_table_without_rows_has_all_columns(logs: Path) -> None:
    table = pylog.read_table(logs, "transactions")
    assert table.num_rows == 0
    assert table.schema == metadata_table("transactions").schema


@pytest.mark.parametrize(
    ("timestamp", "is_far"),
    [
        (253_402_300_799_999, False),  # the last of year 9999
        (253_402_300_800_000, True),
        (1_763_769_600_000_000, True),  # microseconds
        (-62_135_596_800_000, False),  # the first of year 1
        (-62_135_596_800_001, True),
    ],
)
def test_a_time_that_no_datetime_can_be_is_given_in_milliseconds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, timestamp: int, *, is_far: bool
) -> None:
    records = [Stored(0, timestamp, b"k", b"v")]
    write_partition(tmp_path, {0: [batch_v2(records)]}, name="orders-0")
    for name, column in (
        ("batches", "base_timestamp"),
        ("batches", "max_timestamp"),
        ("segments", "max_timestamp"),
        ("latest", "timestamp"),
    ):
        caplog.clear()
        table = pylog.read_table(tmp_path, name)  # type: ignore[arg-type]
        (row,) = table.to_pylist()
        assert pa.types.is_int64(table.schema.field(column).type) == is_far
        assert (f"column {column} is in milliseconds" in caplog.text) == is_far
        if is_far:
            assert row[column] == timestamp
        else:
            assert row[column].year in {1, 9999}


def test_findings_about_log_directories_come_first_without_a_topic(logs: Path) -> None:
    (logs / "lost+found").mkdir()
    (logs / "meta.properties").write_text("version=nonsense\n", "utf-8")
    rows = pylog.read_table(logs, "findings", topics="orders").to_pylist()
    found = [(row["code"], row["topic"], row["partition"]) for row in rows]
    assert found == [
        ("damaged_meta_properties", None, None),
        ("misnamed_directory", None, None),
    ]
    ours = pylog.doctor(logs).to_table()
    assert ours.to_pylist() == rows
    partition = next(iter(pylog.open_directory(logs)))
    assert pylog.read_table(partition.directory.path, "findings").num_rows == 0


def test_what_two_log_directories_contradict_each_other_in_is_told_once(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_partition(tmp_path / name, {0: [batch_v2(plain_records(0, 2))]}, name=f"{name}-0")
        (tmp_path / name / "meta.properties").write_text(
            "version=0\ncluster.id=c\nbroker.id=1\ndirectory.id=Igo74ZAZCxWJ1lxdTzs-vQ\n", "utf-8"
        )
        stray = f"x.{32 * '0'}-stray" if name == "one" else f"y.{32 * '0'}-stray"
        write_partition(tmp_path / name, {0: []}, name=stray.replace(".", "-0."))
    rows = pylog.read_table([tmp_path / "one", tmp_path / "two"], "findings").to_pylist()
    assert [row["code"] for row in rows] == [
        "stray_directory",
        "stray_directory",
        "meta_properties_disagree",
    ]


def test_an_unknown_table_is_reported_with_the_nearest_name(logs: Path) -> None:
    with pytest.raises(
        ValueError, match=r"^records are not a table, pylog\.scan reads them\. The "
    ):
        pylog.read_table(logs, "records")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"no table 'segmnt'; did you mean 'segments'\? The tab"):
        pylog.read_table(logs, "segmnt")  # type: ignore[arg-type]


def test_bytes_of_a_path_that_are_not_utf_8_are_escaped(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"b\xff")
    write_partition(odd, {0: [batch_v2(plain_records(0, 2))]}, name="orders-0")
    directory = rf"{tmp_path}/b\udcff/orders-0"
    file = f"{directory}/{0:020}.log"
    tables = {"partitions": directory, "batches": directory, "segments": file, "cleaning": file}
    for name, path in tables.items():
        assert pylog.read_table(odd, name)["path"].to_pylist() == [path]  # type: ignore[arg-type]
    of_stats = pylog.stats(odd).tables
    assert of_stats["partitions"]["path"].to_pylist() == [directory]
    assert set(of_stats["disk"]["path"].to_pylist()) == {rf"{tmp_path}/b\udcff"}
    (odd / "orders-0" / "leader-epoch-checkpoint").write_text("nonsense")
    checkpoint = f"{directory}/leader-epoch-checkpoint"
    assert pylog.read_table(odd, "findings")["path"].to_pylist() == [checkpoint]


def test_checksums_are_for_batches_alone(logs: Path) -> None:
    with pytest.raises(ValueError, match="check_crc is for table 'batches', table 'segments' has"):
        pylog.read_table(logs, "segments", check_crc=True)


def test_a_directory_without_logs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LogDirectoryError, match="no Kafka log here"):
        pylog.read_table(tmp_path, "partitions")


def test_an_unknown_topic_is_an_error(logs: Path) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match="did you mean 'orders'"):
        pylog.read_table(logs, "partitions", topics="order")


@pytest.mark.parametrize("name", ["segments", "batches", "transactions"])
@pytest.mark.parametrize("base_offset", [0, 6])
def test_a_damaged_header_is_an_error_with_file_and_byte(
    logs: Path, name: TableName, base_offset: int
) -> None:
    path = segment_path(logs / "orders-2", base_offset)
    content = bytearray(path.read_bytes())
    size = 12 + int.from_bytes(content[8:12], "big")
    content[size + 8 : size + 12] = b"\xff\xff\xff\xff"  # the second batch's size
    path.write_bytes(content)
    with pytest.raises(CorruptRecordError) as caught:
        pylog.read_table(logs, name)
    assert (str(caught.value.path), caught.value.position) == (str(path), size)
    assert pylog.read_table(logs, name, topics="invoices") is not None


def test_damage_is_left_out_and_logged_where_that_is_asked_for(
    logs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = segment_path(logs / "orders-2", 0)
    content = bytearray(path.read_bytes())
    size = 12 + int.from_bytes(content[8:12], "big")
    content[size + 8 : size + 12] = b"\xff\xff\xff\xff"  # the second batch's size
    path.write_bytes(content)
    table = pylog.read_table(logs, "batches", mode="dropmalformed")  # type: ignore[arg-type]
    assert table["base_offset"].to_pylist() == [0, 2, 4, 6, 8] * 2 + [0, 4, 6, 8] + [0, 2, 4, 6, 8]
    (record,) = caplog.records
    assert f"{path}: bytes {size} to {2 * size - 1} are damaged" in record.getMessage()
    for name in TABLE_NAMES:
        assert partitions(pylog.read_table(logs, name, mode="PERMISSIVE")) in (
            [("orders", 2)] if name == "findings" else [],
            [("invoices", 0), ("orders", 0), ("orders", 2), ("orders", 10)],
        )
    with pytest.raises(ValueError, match="mode 'DROP' is not one of FAILFAST"):
        pylog.read_table(logs, "batches", mode="DROP")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["segments", "batches", "transactions"])
def test_offsets_that_go_back_are_an_error(tmp_path: Path, name: TableName) -> None:
    batches = [batch_v2(plain_records(offset, 2)) for offset in (0, 2, 1)]
    write_partition(tmp_path, {0: batches, 5: [batch_v2(plain_records(5, 1))]}, with_index=False)
    with pytest.raises(CorruptRecordError, match=r"offsets 1 to 2, expected from 4 on and below 5"):
        pylog.read_table(tmp_path, name)


@pytest.mark.parametrize("name", ["segments", "batches", "transactions"])
def test_batches_that_are_missing_before_the_next_segment_are_an_error(
    logs: Path, name: TableName
) -> None:
    path = segment_path(logs / "orders-2", 0)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(CorruptRecordError, match="whole batches end"):
        pylog.read_table(logs, name)


def test_a_log_longer_than_a_window_is_described_whole(tmp_path: Path) -> None:
    batches = [
        batch_v2([Stored(offset, 1000 + offset, None, b"v" * 900)]) for offset in range(9_000)
    ]
    write_partition(tmp_path, {0: batches})
    table = pylog.read_table(tmp_path, "batches")
    assert table["last_offset"].to_pylist() == list(range(9_000))
    ends = table["position"].to_numpy() + table["size_in_bytes"].to_numpy()
    assert table["position"].to_pylist() == [0, *ends[:-1].tolist()]
    (segment,) = pylog.read_table(tmp_path, "segments").to_pylist()
    assert (segment["batches"], segment["records"]) == (9_000, 9_000)


def test_the_names_of_tables_need_no_arrow() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, pylog, pylog.tables; print('pyarrow' in sys.modules)",
        ],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ},
    )
    assert done.stdout == "False\n"


def test_every_table_has_a_name_that_is_offered_and_the_other_way_round() -> None:
    assert tuple(metadata_table(name).name for name in TABLE_NAMES) == TABLE_NAMES
    assert tuple(table.name for table in METADATA_TABLES) == TABLE_NAMES

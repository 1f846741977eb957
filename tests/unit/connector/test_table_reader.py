"""Option ``table``: names, what goes with it, schemas and readers; no Spark is running."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict, InputPartition
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pylog.errors import LogDirectoryError, TimestampOverflowError
from pylog.tables import TABLE_NAMES
from pyspark_pylog import DefaultSource
from pyspark_pylog.options import READ_OPTIONS, LoadOptions
from pyspark_pylog.schemas import check_table_schema, table_schema
from pyspark_pylog.table_reader import PylogTableReader
from tests.support.batches import Stored, batch_v2, plain_records
from tests.support.log_files import write_high_watermarks, write_partition

if TYPE_CHECKING:
    from pathlib import Path

COMMON = {"path", "paths", "subscribe", "assign", "subscribePattern", "columns", "mode", "table"}
COMMON |= {"includeStray", "maxDecompressedBytes", "packPartitions", "checkKeys", "replica"}

VALUES = {
    "maxPartitionBytes": "1m",
    "minPartitions": "2",
    "maxRecordsPerPartition": "2",
    "pushdown": "off",
    "timestampUnit": "milliseconds",
    "timestampDisorder": "1s",
    "trustBatchTimestamps": "true",
    "useIndexes": "false",
    "leavePageCache": "true",
    "startingOffsets": "earliest",
    "endingOffsets": "latest",
    "startingTimestamp": "5",
    "endingTimestamp": "5",
    "startingOffsetsByTimestamp": '{"t":5}',
    "endingOffsetsByTimestamp": '{"t":5}',
    "startingOffsetsByTimestampStrategy": "latest",
    "isolationLevel": "read_committed",
    "kafka.isolation.level": "read_committed",
}


def source(path: object, **options: str) -> DefaultSource:
    return DefaultSource(CaseInsensitiveDict({"path": str(path), **options}))


def test_records_are_read_unless_a_table_is_named() -> None:
    assert LoadOptions.parse({"path": "/logs"}).table == "records"
    given = {"path": "/logs", "table": " Records ", "startingOffsets": "earliest"}
    assert LoadOptions.parse(given).table == "records"


@pytest.mark.parametrize("name", TABLE_NAMES)
def test_every_table_can_be_named(name: str) -> None:
    given = {"path": "/logs", "TABLE": name, "assign": '{"t":[0]}', "columns": "topic"}
    assert LoadOptions.parse(given).table == name


@pytest.mark.parametrize(
    "option", [*(name for name in READ_OPTIONS if name not in COMMON), "kafka.isolation.level"]
)
def test_options_of_records_are_refused(option: str) -> None:
    value = VALUES.get(option, "true")
    with pytest.raises(ValueError, match=r".") as caught:
        LoadOptions.parse({"path": "/logs", "table": "batches", option: value})
    assert f"takes no option {option}; " in str(caught.value)


@pytest.mark.parametrize("table", ["segments", "records"])
def test_keys_are_of_one_table_alone(table: str) -> None:
    with pytest.raises(ValueError, match=r"option checkKeys is for table 'cleaning'"):
        LoadOptions.parse({"path": "/logs", "table": table, "checkKeys": "false"})


@pytest.mark.parametrize(("value", "live"), [("true", 1), ("false", None)])
def test_keys_are_read_where_they_are_asked_for(
    tmp_path: Path, value: str, live: int | None
) -> None:
    records = [Stored(offset, 5, b"key", b"value") for offset in range(3)]
    write_partition(tmp_path, {0: [batch_v2(records)]})
    write_high_watermarks(tmp_path, {("orders", 0): 3})
    reading = source(tmp_path, table="cleaning", checkKeys=value)
    reader = reading.reader(reading.schema())
    [batch] = reader.read(reader.partitions()[0])
    assert isinstance(batch, pa.RecordBatch)
    assert batch["live_records"].to_pylist() == [live]


def test_findings_about_log_directories_have_a_task_of_their_own(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]})
    (tmp_path / "lost+found").mkdir()
    reading = source(tmp_path, table="findings", columns="code,topic,partition")
    reader: PylogTableReader = pickle.loads(  # noqa: S301 - our own
        pickle.dumps(reading.reader(reading.schema()))
    )
    partitions = pickle.loads(pickle.dumps(reader.partitions()))  # noqa: S301 - our own
    first, *others = [list(reader.read(each)) for each in partitions]
    assert [batch.to_pylist() for batch in first] == [
        [{"code": "misnamed_directory", "topic": None, "partition": None}]
    ]
    assert others == [[]]


def test_topics_may_be_null_where_rows_are_about_log_directories() -> None:
    topic = StructType([StructField("topic", StringType(), nullable=False)])
    with pytest.raises(ValueError, match="declares 'topic' NOT NULL"):
        check_table_schema("findings", topic)


def test_a_readers_partitions_travel_pickled(tmp_path: Path) -> None:
    for name in ("orders-10", "orders-2"):
        write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]}, name=name)
    shipped = pickle.loads(pickle.dumps(source(tmp_path, table="segments")))  # noqa: S301 - our own
    reader = shipped.reader(shipped.schema())
    partitions = pickle.loads(pickle.dumps(reader.partitions()))  # noqa: S301 - our own
    again: PylogTableReader = pickle.loads(pickle.dumps(reader))  # noqa: S301 - our own
    found = [batch for each in partitions for batch in again.read(each)]
    assert [batch["partition"].to_pylist() for batch in found] == [[2], [10]]
    assert found[0].schema.field("max_timestamp").type == pa.timestamp("us", tz="UTC")
    assert list(again.read(InputPartition(None))) == []


def test_the_schema_may_be_a_part_of_the_tables() -> None:
    columns = ("codec", "base_offset")
    schema = table_schema("batches", columns)
    assert schema == StructType(
        [StructField("codec", StringType()), StructField("base_offset", LongType())]
    )
    check_table_schema("batches", schema)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (StructField("codek", StringType()), "which is not a column; did you mean 'codec'"),
        (StructField("codec", LongType()), "the type bigint, it is string"),
        (StructField("codec", StringType(), nullable=False), "declares 'codec' NOT NULL"),
    ],
)
def test_a_schema_that_is_not_a_part_of_the_tables_is_refused(
    field: StructField, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        check_table_schema("batches", StructType([field]))


def test_topic_and_partition_may_be_declared_not_null() -> None:
    check_table_schema("batches", StructType([StructField("topic", StringType(), nullable=False)]))


def test_a_schema_that_contradicts_option_columns_is_refused(tmp_path: Path) -> None:
    options = LoadOptions.parse({"path": str(tmp_path), "table": "batches", "columns": "codec"})
    with pytest.raises(ValueError, match="give one of them"):
        PylogTableReader(options, table_schema("batches", ("crc",)))


def test_a_timestamp_beyond_microseconds_is_an_error_unless_left_out(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [batch_v2([Stored(0, 2**62, None, None)])]})
    with_stamps = source(tmp_path, table="batches", columns="max_timestamp")
    reader = with_stamps.reader(with_stamps.schema())
    with pytest.raises(TimestampOverflowError, match="a max_timestamp does not fit into 64-bit"):
        list(reader.read(reader.partitions()[0]))
    without = source(tmp_path, table="batches", columns="position")
    reader = without.reader(without.schema())
    batches = [
        batch for batch in reader.read(reader.partitions()[0]) if isinstance(batch, pa.RecordBatch)
    ]
    assert [batch["position"].to_pylist() for batch in batches] == [[0]]


def test_a_partition_that_cannot_be_read_hides_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]})
    (tmp_path / "orders-1").symlink_to(tmp_path / "nowhere")

    def rows(table: str, **options: str) -> list[dict[str, object]]:
        chosen = {"path": str(tmp_path), "table": table, **options}
        reader = PylogTableReader(LoadOptions.parse(chosen), table_schema(table))
        tasks = pickle.loads(pickle.dumps(reader.partitions()))  # noqa: S301 - our own
        return [row for task in tasks for batch in reader.read(task) for row in batch.to_pylist()]

    assert [row["log_end_offset"] for row in rows("partitions")] == [2, None]
    assert [row["partition"] for row in rows("batches", mode="DROPMALFORMED")] == [0]
    assert "table batches has not all of orders-1" in caplog.text
    with pytest.raises(LogDirectoryError, match=r"host .*orders-1"):
        rows("batches")

"""Each option of a read does in Spark what it does in Spark's own ``kafka`` source.

How values are parsed is tested without Spark in tests/unit/connector.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from chispa import assert_df_equality
from pyspark.sql import Row
from pyspark.sql.types import LongType, StructType

from tests.support.batches import ABORT, Stored, batch_v2, marker
from tests.support.log_files import write_log_start_offsets, write_partition
from tests.support.spark_session import NEEDS_SPARK, last_line, load

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.support.batches import Built

pytestmark = NEEDS_SPARK

Offsets = dict[str, list[int]]

# Out of order on purpose: a position by timestamp is a look-up, and no filter.
TIMES = [1000, 2000, 5000, 3000, 4000, 6000, 7000, 8000]
ORDERS, INVOICES = [*range(8)], [*range(5, 9)]
CONSUMER_OFFSETS = "__consumer_offsets"


@pytest.fixture(scope="module")
def log_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give orders-0 and -1 (0 to 7), invoices-eu-0 (5 to 8), and an internal topic."""
    directory = tmp_path_factory.mktemp("kafka-logs")
    batches = [
        batch_v2([Stored(offset, time, b"k%d" % offset, b"v%d" % offset, (("h", b"x"),))])
        for offset, time in enumerate(TIMES)
    ]
    for name in ("orders-0", "orders-1", f"{CONSUMER_OFFSETS}-7"):
        write_partition(directory, {0: batches[:5], 5: batches[5:]}, name=name)
    late = [batch_v2([Stored(offset, 9000 + offset, None, None)]) for offset in INVOICES]
    write_partition(directory, {5: late}, name="invoices-eu-0")
    return directory


def offsets(frame: DataFrame) -> Offsets:
    """Return the offsets read, in the order read, by partition."""
    found: Offsets = {}
    for row in frame.select("topic", "partition", "offset").toArrow().to_pylist():
        found.setdefault(f"{row['topic']}-{row['partition']}", []).append(row["offset"])
    return found


ALL = {"invoices-eu-0": INVOICES, "orders-0": ORDERS, "orders-1": ORDERS}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ALL),
        ({"subscribe": "orders"}, {"orders-0": ORDERS, "orders-1": ORDERS}),
        (
            {"assign": f'{{"orders":[0],"{CONSUMER_OFFSETS}":[7]}}'},
            {"orders-0": ORDERS, f"{CONSUMER_OFFSETS}-7": ORDERS},
        ),
        ({"subscribePattern": "rder"}, {"orders-0": ORDERS, "orders-1": ORDERS}),
    ],
)
def test_topics_are_chosen(
    spark: SparkSession, log_directory: Path, options: dict[str, str], expected: Offsets
) -> None:
    assert offsets(load(spark, log_directory, **options)) == expected


def with_orders_0(first: int, last: int) -> Offsets:
    return {**ALL, "orders-0": [*range(first, last + 1)]}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": "EARLIEST", "endingOffsets": "latest"}, ALL),
        ({"endingOffsets": '{"orders":"latest","invoices-eu":6}'}, {**ALL, "invoices-eu-0": [5]}),
        (
            {"startingOffsets": '{"orders":{"0":4}}', "endingOffsets": '{"orders":{"0":6}}'},
            with_orders_0(4, 5),
        ),
        (
            {"subscribe": "orders", "startingOffsets": '{"orders":8}'},
            {},
        ),
    ],
)
def test_offsets_bound_the_read(
    spark: SparkSession, log_directory: Path, options: dict[str, str], expected: Offsets
) -> None:
    assert offsets(load(spark, log_directory, **options)) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # First offset at or after 3000 ms is 2 (5000 ms); 3 and 4 are earlier and read as well.
        ({"startingTimestamp": 3000}, [2, 3, 4, 5, 6, 7]),
        # First offset at or after 4000 ms is 2: 3 (3000 ms) is cut though it is earlier.
        ({"endingTimestamp": 4000}, [0, 1]),
        ({"startingOffsetsByTimestamp": '{"orders":{"0":7000}}'}, [6, 7]),
        ({"endingOffsetsByTimestamp": '{"orders":7000}'}, [0, 1, 2, 3, 4, 5]),
        # Without such a record.
        ({"startingTimestamp": 9000, "startingOffsetsByTimestampStrategy": "latest"}, []),
    ],
)
def test_timestamps_are_looked_up(
    spark: SparkSession, log_directory: Path, options: dict[str, object], expected: list[int]
) -> None:
    frame = load(spark, log_directory, assign='{"orders":[0]}', **options)
    assert offsets(frame) == ({"orders-0": expected} if expected else {})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "order"}, "no topic 'order' here; did you mean 'orders'?"),
        ({"startingOffset": "earliest"}, "unknown option 'startingoffset'; did you mean 'starti"),
    ],
)
def test_a_wrong_option_or_value_is_refused_at_load(
    spark: SparkSession, log_directory: Path, options: dict[str, str], message: str
) -> None:
    assert message in last_line(lambda: load(spark, log_directory, **options))


def test_a_position_the_log_does_not_have_is_refused_at_the_first_action(
    spark: SparkSession, log_directory: Path
) -> None:
    for options, message in (
        # At load() Spark does not say that this is no stream, which may start there.
        ({"startingOffsets": "latest"}, "ValueError: option startingOffsets holds latest (-1)"),
        ({"startingOffsets": '{"orders":{"0":-1}}'}, "option startingOffsets holds latest (-1)"),
        (
            {"startingOffsets": '{"orders":{"0":9}}'},
            "offset 9 of orders-0 is out of range: the log",
        ),
        ({"startingOffsets": '{"order":{"0":1}}'}, "a position is given for order-0, which is not"),
        (
            {"startingTimestamp": 8500, "subscribe": "orders"},
            "no record of orders-0 has a timestam",
        ),
    ):
        frame = load(spark, log_directory, **options)
        assert message in last_line(frame.count)


def test_without_fail_on_data_loss_the_nearest_offsets_count(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = [batch_v2([Stored(offset, 0, None, b"v")]) for offset in range(4, 10)]
    write_partition(tmp_path, {4: batches}, name="orders-0")
    write_log_start_offsets(tmp_path, {("orders", 0): 6})
    outside = {
        "startingOffsets": '{"orders":{"0":2}}',
        "endingOffsets": '{"orders":{"0":99}}',
    }
    frame = load(spark, tmp_path, failOnDataLoss=False, **outside)
    assert offsets(frame) == {"orders-0": [6, 7, 8, 9]}
    for fails in ({}, {"failOnDataLoss": "true"}):
        message = last_line(load(spark, tmp_path, **fails, **outside).count)
        assert message.endswith(
            "OffsetOutOfRangeError: offset 2 of orders-0 is out of range: the log holds offsets 6 "
            "to 10 (exclusive)"
        )


def transactional(record: Stored, producer_id: int) -> Built:
    return batch_v2([record], producer_id=producer_id, producer_epoch=0, is_transactional=True)


@pytest.mark.parametrize("option", ["isolationLevel", "kafka.isolation.level"])
def test_isolation_levels_differ_by_aborted_and_open_transactions(
    spark: SparkSession, tmp_path: Path, option: str
) -> None:
    batches = [
        batch_v2([Stored(0, 0, None, b"plain")]),
        transactional(Stored(1, 0, None, b"aborted"), producer_id=1),
        batch_v2([Stored(2, 0, None, b"plain")]),
        marker(3, ABORT, producer_id=1),
        transactional(Stored(4, 0, None, b"open"), producer_id=2),
        batch_v2([Stored(5, 0, None, b"after it")]),
    ]
    write_partition(tmp_path, {0: batches}, name="orders-0")
    assert offsets(load(spark, tmp_path)) == {"orders-0": [0, 1, 2, 4, 5]}
    for level, expected in (
        ("read_uncommitted", [0, 1, 2, 4, 5]),
        ("read_committed", [0, 2]),
        ("READ_COMMITTED", [0, 2]),
    ):
        frame = load(spark, tmp_path, **{option: level})
        assert offsets(frame) == {"orders-0": expected}


def test_headers_and_batch_metadata_are_there_when_asked_for(
    spark: SparkSession, log_directory: Path
) -> None:
    plain = load(spark, log_directory, assign='{"orders":[0]}')
    assert plain.columns == [
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
    ]
    full = load(spark, log_directory, includeHeaders=True, includeBatchMetadata=True)
    assert full.columns == [*plain.columns, "headers", "batch"]
    row = full.where("topic = 'orders' AND partition = 1 AND offset = 6").head()
    assert row is not None
    assert row.headers == [Row(key="h", value=bytearray(b"x"))]
    batch = row.batch.asDict()
    assert batch.pop("segment").endswith("00000000000000000005.log")
    assert batch.pop("position") > 0
    assert batch.pop("sizeInBytes") > 61
    assert batch == {
        "baseOffset": 6,
        "lastOffset": 6,
        "leaderEpoch": 0,
        "producerId": None,
        "producerEpoch": None,
        "sequence": None,
        "isTransactional": False,
        "magic": 2,
        "compression": "none",
    }
    without = full.where("topic = 'invoices-eu'").select("key", "value", "headers").distinct()
    assert without.collect() == [Row(key=None, value=None, headers=None)]


@pytest.mark.parametrize(
    "names", [["offset"], ["value", "key"], ["batch", "timestampType", "headers", "topic"]]
)
def test_columns_and_a_schema_both_give_these_columns_in_this_order(
    spark: SparkSession, log_directory: Path, names: list[str]
) -> None:
    full = load(spark, log_directory, includeHeaders=True, includeBatchMetadata=True)
    expected = full.select(*names)
    by_option = load(spark, log_directory, columns=",".join(names))
    by_schema = spark.read.format("pylog").schema(expected.schema).load(str(log_directory))
    for frame in (by_option, by_schema):
        assert frame.columns == names
        assert_df_equality(frame, expected)


def test_a_schema_may_say_not_null_of_what_never_is(
    spark: SparkSession, log_directory: Path
) -> None:
    ddl = "timestamp TIMESTAMP NOT NULL, value BINARY, offset BIGINT NOT NULL COMMENT 'of it'"
    frame = spark.read.format("pylog").schema(ddl).load(str(log_directory))
    assert [field.nullable for field in frame.schema] == [False, True, False]
    expected = load(spark, log_directory, columns=",".join(frame.columns))
    assert_df_equality(frame, expected, ignore_nullable=True, ignore_metadata=True)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("ofset BIGINT", "the schema names 'ofset', which is not a column; did you mean 'offset'?"),
        ("offset INT", "the schema gives column 'offset' the type int, it is bigint"),
    ],
)
def test_a_schema_that_cannot_be_is_refused_at_the_first_action(
    spark: SparkSession, log_directory: Path, schema: str, message: str
) -> None:
    frame = spark.read.format("pylog").schema(schema).load(str(log_directory))
    assert message in last_line(frame.count)


def test_option_columns_beside_another_schema_is_refused(
    spark: SparkSession, log_directory: Path
) -> None:
    schema = StructType().add("offset", LongType())
    reader = spark.read.format("pylog").schema(schema).option("columns", "key")
    message = last_line(reader.load(str(log_directory)).count)
    assert message == (
        "ValueError: option columns says key and the schema offset; give one of them"
    )


def test_a_path_may_be_given_in_any_form(spark: SparkSession, log_directory: Path) -> None:
    read = spark.read.format("pylog")
    partitions = [str(log_directory / name) for name in ("orders-0", "orders-1", "invoices-eu-0")]
    forms = {
        "a string": read.load(str(log_directory)),
        "a trailing slash": read.load(f"{log_directory}/"),
        "the option": read.option("path", str(log_directory)).load(),
        "a list of one": spark.read.format("pylog").load([str(log_directory)]),
        "a list of partition directories": spark.read.format("pylog").load(partitions),
        "a URI": spark.read.format("pylog").load(log_directory.as_uri()),
        "twice the same": spark.read.format("pylog").load([str(log_directory), partitions[0]]),
    }
    assert {name: offsets(frame) for name, frame in forms.items()} == dict.fromkeys(forms, ALL)
    one = spark.read.format("pylog").load(partitions[0])
    assert offsets(one) == {"orders-0": ORDERS}


def test_a_relative_path_is_one_of_the_driver_s_working_directory(
    spark: SparkSession,
) -> None:
    # The JVM's, which started where pytest did; Python's own may have changed since.
    here = spark._jvm.java.lang.System.getProperty("user.dir")  # type: ignore[union-attr]
    message = last_line(lambda: load(spark, "no-such-directory/kafka-logs"))
    assert f" {here}/no-such-directory/kafka-logs: no such directory" in message


def test_options_of_kafka_clients_are_accepted(spark: SparkSession, log_directory: Path) -> None:
    client = {
        "kafka.bootstrap.servers": "broker:9092",
        "kafka.security.protocol": "SASL_SSL",
        "groupIdPrefix": "x",
        "minPartitions": 8,
    }
    assert offsets(load(spark, log_directory, **client)) == ALL


def test_offsets_read_may_be_given_as_kafka_s_source_writes_them(
    spark: SparkSession, log_directory: Path
) -> None:
    # Continue where the last batch ended: endingOffsets of one run are startingOffsets of the next.
    ends = json.dumps({"orders": {"0": 3, "1": 8}, "invoices-eu": {"0": 9}})
    first = load(spark, log_directory, endingOffsets=ends)
    rest = load(spark, log_directory, startingOffsets=ends)
    assert offsets(first) == with_orders_0(0, 2)
    assert offsets(rest) == {"orders-0": [3, 4, 5, 6, 7]}

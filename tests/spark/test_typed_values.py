"""Typed keys and values in Spark: the structs that Confluent's serializers wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

import pylog
from pyspark_pylog import table
from tests.support.avro_schemas import zigzag
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.support.registry_records import ORDER, ORDER_2, schema, write_registry
from tests.support.spark_session import NEEDS_SPARK, spark
from tests.unit.reading.typed_logs import FIRST, OF_USER, SECOND, write_orders, write_values

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["spark"]
pytestmark = NEEDS_SPARK

NOT_DECODED = "orders-1, offset 1: the value cannot be decoded: it starts with 74 65 78 74"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return write_orders(tmp_path)


def load(spark: SparkSession, logs: Path, topic: str = "orders", **options: Any) -> DataFrame:  # noqa: ANN401 - of Spark
    return spark.read.format("pylog").options(subscribe=topic, **options).load(str(logs))


def ids(frame: DataFrame) -> list[int | None]:
    return [row.id for row in frame.orderBy("partition", "offset").select("value.id").collect()]


def test_values_are_structs(spark: SparkSession, logs: Path) -> None:
    frame = load(spark, logs, valueFormat="auto")
    assert frame.schema["value"].dataType.simpleString() == "struct<id:bigint,note:string>"
    assert ids(frame) == [1, None, 2]
    assert frame.filter("value.note = 'x'").count() == 1
    assert frame.count() == 3
    of_first = load(spark, logs, valueFormat="avro", subjectVersion=1)
    assert of_first.schema["value"].dataType.simpleString() == "struct<id:bigint>"
    of_all = load(spark, logs, valueFormat="avro", subjectVersion="union")
    assert of_all.schema["value"].dataType.simpleString() == "struct<id:bigint,note:string>"


def test_keys_are_typed_and_compared_as_they_are_decoded(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_registry(tmp_path, [schema("t-key", 1, 1, '"bytes"')])
    write_values(tmp_path, "t-0", [b"v"], key=b"\0\0\0\0\x01abc")
    frame = load(spark, tmp_path, "t", keyFormat="auto", pushdown="on")
    assert [bytes(row.key) for row in frame.filter("key = X'616263'").collect()] == [b"abc"]


def test_columns_say_what_a_value_was(spark: SparkSession, logs: Path) -> None:
    columns = "value_raw,value_schema_id,value_subject"
    rows = load(spark, logs, valueFormat="auto", columns=columns).collect()
    assert [(row[0], row[1], row[2]) for row in rows] == [
        (FIRST, 1, "orders-value"),
        (None, None, None),
        (SECOND, 2, "orders-value"),
    ]


def test_what_cannot_be_decoded_is_handled_by_the_mode(spark: SparkSession, logs: Path) -> None:
    write_values(logs, "orders-1", [FIRST, b"text", SECOND])
    with pytest.raises(PySparkException, match=NOT_DECODED):
        load(spark, logs, valueFormat="auto").collect()
    assert ids(load(spark, logs, valueFormat="auto", mode="DROPMALFORMED")) == [1, None, 2, 1, 2]
    columns = "partition,offset,value,value_raw,_corrupt_record"
    permissive = load(spark, logs, valueFormat="auto", mode="PERMISSIVE", columns=columns)
    (row,) = permissive.filter("_corrupt_record IS NOT NULL").collect()
    assert (row.offset, row.value, bytes(row.value_raw)) == (1, None, b"text")
    assert row._corrupt_record.startswith(NOT_DECODED)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subject": "orders-value"}, "option subject is for options valueFormat and keyFormat"),
        ({"valueFormat": "thrift"}, "valueFormat"),
        ({"valueFormat": "auto", "subject": "x"}, "no subject 'x' here"),
        ({"valueFormat": "auto", "schemas": "/nowhere"}, "/nowhere"),
    ],
)
def test_options_that_make_no_sense(
    options: dict[str, str], message: str, spark: SparkSession, logs: Path
) -> None:
    with pytest.raises(PySparkException, match=message):
        load(spark, logs, **options).collect()


def test_a_topic_of_several_subjects_names_them(spark: SparkSession, logs: Path) -> None:
    write_values(logs, "mixed-0", [FIRST, OF_USER])
    with pytest.raises(PySparkException, match=r"several subjects: User, orders-value\. Choose"):
        load(spark, logs, "mixed", valueFormat="auto").collect()


def test_a_table_narrows_a_read_of_typed_values(spark: SparkSession, logs: Path) -> None:
    orders = table(spark, str(logs), subscribe="orders", valueFormat="auto", keyFormat="auto")
    assert orders.count() == 3
    assert ids(orders.where("offset > 0").to_df()) == [None, 2]
    found = orders.where("value.note = 'x' AND key.name = 'ab'").select("offset", "value.id")
    assert [tuple(row) for row in found.collect()] == [(2, 2)]


def test_a_table_compares_typed_keys_as_they_are_decoded(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_registry(tmp_path, [schema("t-key", 1, 1, '"bytes"')])
    write_values(tmp_path, "t-0", [b"v"], key=b"\0\0\0\0\x01abc")
    found = table(spark, str(tmp_path), subscribe="t", keyFormat="auto").where("key = X'616263'")
    assert found.count() == 1


def test_a_stream_has_typed_values_also_by_schemas_that_are_registered_later(
    spark: SparkSession, tmp_path: Path
) -> None:
    logs, file = str(tmp_path / "logs"), tmp_path / "order.avsc"

    def write(schema: str | None, value: object) -> None:
        file.write_text(schema or "")
        given = file if schema else None
        pylog.write_topic(logs, "orders", [{"value": value}], value_schema=given)

    write(ORDER, {"id": 1})
    frame = spark.readStream.format("pylog").options(
        subscribe="orders", valueFormat="auto", startingOffsets="earliest"
    )
    seen: list[tuple[int, int]] = []

    def take(batch: DataFrame, _: int) -> None:
        seen.extend((row.offset, row.id) for row in batch.select("offset", "value.id").collect())

    writer = frame.load(logs).writeStream.foreachBatch(take)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        query.processAllAvailable()
        write(ORDER_2, {"id": 2, "note": "x"})
        query.processAllAvailable()
        write(None, b"\0\0\0\0\x09\x02")
        with pytest.raises(PySparkException, match="orders-0, offset 2: the value cannot"):
            query.processAllAvailable()
    finally:
        query.stop()
    assert seen == [(0, 1), (1, 2)]


def test_rows_are_encoded_and_read_back(spark: SparkSession, tmp_path: Path) -> None:
    fields = (
        '{"name":"id","type":"long"},{"name":"tags","type":{"type":"map","values":"int"}},'
        '{"name":"price","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},'
        '{"name":"at","type":["null",{"type":"long","logicalType":"timestamp-micros"}]},'
        '{"name":"items","type":{"type":"array","items":{"type":"record","name":"I","fields":'
        '[{"name":"n","type":"string"}]}}}'
    )
    file = tmp_path / "order.avsc"
    file.write_text(f'{{"type":"record","name":"Order","fields":[{fields}]}}')
    rows = spark.range(100).selectExpr(
        "CAST(id AS STRING) AS key",
        "struct(id, map('a', CAST(id AS INT)) AS tags, CAST(id / 4 AS DECIMAL(9, 2)) AS price, "
        "timestamp_micros(id) AS at, array(struct('x' AS n)) AS items) AS value",
    )
    logs = tmp_path / "logs"

    writer = rows.write.format("pylog").option("topic", "orders").mode("append")
    writer.option("valueSchema", str(file)).option("numPartitions", 3).save(str(logs))

    frame = load(spark, logs, valueFormat="auto").selectExpr(
        "CAST(key AS STRING) AS key", "value.*"
    )
    expected = rows.select("key", "value.*")
    assert sorted(frame.collect()) == sorted(expected.collect())
    with pytest.raises(PySparkException, match="id: null is not long"):
        rows.selectExpr("named_struct('id', CAST(NULL AS BIGINT)) AS value").write.format(
            "pylog"
        ).option("topic", "orders").option("valueSchema", "latest").mode("append").save(str(logs))


NESTED = (
    '{"type":"record","name":"Order","fields":[{"name":"user","type":{"type":"record","name":"User",'
    '"fields":[{"name":"id","type":"long"},{"name":"name","type":["null","string"]}]}},'
    '{"name":"at","type":{"type":"long","logicalType":"timestamp-millis"}},'
    '{"name":"rest","type":"string"}]}'
)


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    """Return a log of orders of users 0 to 4; the key of user 3 is no text."""
    of_keys = schema("orders-key", 1, 2, '"string"')
    write_registry(tmp_path, [schema("orders-value", 1, 1, NESTED), of_keys])
    stored = [
        Stored(
            *(user, 1_000, b"\0\0\0\0\x02\x02" + (b"\xff" if user == 3 else b"k")),
            b"\0\0\0\0\x01" + zigzag(user) + b"\x02\x02u" + zigzag(1_000 * user) + b"\x02x",
        )
        for user in range(5)
    ]
    write_partition(tmp_path, {0: [batch_v2(stored)]}, name="orders-0")
    return tmp_path


CONDITIONS = {
    "value.user.id = 2": [2],
    "value.user.id >= 1 AND value.user.id < 3": [1, 2],
    "value.user.id IN (0, 4, 9)": [0, 4],
    "value.user.name = 'u' AND value.user.id < 1": [0],
    "value.at = TIMESTAMP '1970-01-01 00:00:04Z'": [4],
    "value.user.id + 0 = 2 AND value.user.id < 3": [2],
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_on_nested_fields_leave_rows_out_before_the_rest_is_decoded(
    spark: SparkSession, nested: Path, condition: str
) -> None:
    orders = table(spark, str(nested), subscribe="orders", valueFormat="auto", keyFormat="auto")
    found = [row.offset for row in orders.where(condition).select("offset", "key").collect()]
    assert found == CONDITIONS[condition]


def test_other_conditions_read_all_rows(spark: SparkSession, nested: Path) -> None:
    orders = table(spark, str(nested), subscribe="orders", valueFormat="auto", keyFormat="auto")
    for condition in ("value.user.id + 1 = 3", "value.user.id = 2 OR value.rest = 'x'"):
        with pytest.raises(PySparkException, match="offset 3: the key cannot be decoded"):
            orders.where(condition).select("offset", "key").collect()


@pytest.mark.parametrize("condition", CONDITIONS)
def test_pushed_filters_on_nested_fields(spark: SparkSession, nested: Path, condition: str) -> None:
    name = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(name, "true")
    try:
        frame = load(spark, nested, valueFormat="auto", keyFormat="auto", pushdown="on")
        found = [row.offset for row in frame.where(condition).select("offset", "key").collect()]
    finally:
        spark.conf.unset(name)
    assert found == CONDITIONS[condition]


def test_reasons_are_there_without_the_typed_column(spark: SparkSession, nested: Path) -> None:
    columns = "offset,_corrupt_record"
    typed = {"valueFormat": "auto", "keyFormat": "auto", "mode": "PERMISSIVE"}
    frame = load(spark, nested, **typed, columns=columns)
    (row,) = frame.where("_corrupt_record IS NOT NULL").collect()
    assert (row.offset, "the text is not UTF-8" in row._corrupt_record) == (3, True)
    columns = "offset,value,_corrupt_record"
    orders = table(spark, str(nested), subscribe="orders", **typed, columns=columns)
    found = orders.where("_corrupt_record IS NOT NULL").select("offset")
    assert [row.offset for row in found.collect()] == [3]


def test_topics_without_a_schema_are_left_out_of_a_whole_directory(
    spark: SparkSession, logs: Path
) -> None:
    write_values(logs, "notes-0", [b"{}"])
    whole = spark.read.format("pylog").option("valueFormat", "auto")
    frame = whole.load(str(logs))
    assert {row.topic for row in frame.select("topic", "value").collect()} == {"orders"}
    assert frame.count() == 3
    with pytest.raises(PySparkException, match="no subject 'notes-value' here"):
        whole.option("subscribe", "orders,notes").load(str(logs)).collect()
    stream = spark.readStream.format("pylog").option("valueFormat", "auto").load(str(logs))
    query = stream.writeStream.format("noop").start()
    try:
        with pytest.raises(PySparkException, match="no schema is known for _schemas, notes"):
            query.processAllAvailable()
    finally:
        query.stop()

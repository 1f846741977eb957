"""Envelopes as Debezium's documentation shows them, as changes and as the state of a table."""

from __future__ import annotations

import json
from itertools import cycle
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import pylog
from pyspark_pylog import table
from pyspark_pylog.debezium import debezium
from tests.support.spark_session import NEEDS_SPARK

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = NEEDS_SPARK

ROW = "id BIGINT, first_name STRING"
SOURCE = {"version": "3.0.0.Final", "connector": "postgresql", "name": "pg", "lsn": 24023128}


def event(
    op: str,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
    *,
    has_schema: bool = False,
) -> bytes:
    change = {"before": before, "after": after, "source": SOURCE, "op": op, "ts_ms": 1559033904863}
    whole = {"schema": {"type": "struct", "name": "Envelope"}, "payload": change}
    return json.dumps(whole if has_schema else change).encode()


def anne(name: str) -> dict[str, Any]:
    return {"id": 1, "first_name": name, "email": "annek@noanswer.org"}


def write(logs: Path, *values: bytes | None) -> None:
    keys = [b'{"id":1}'] * len(values)
    table = pa.table({"key": keys, "value": pa.array(values, pa.binary())})
    pylog.write_topic(logs, "customers", table)


def test_envelopes_become_changes_with_and_without_schemas(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(
        tmp_path,
        event("c", None, anne("Anne")),
        event("u", anne("Anne"), anne("Anne Marie"), has_schema=True),
        event("d", anne("Anne Marie"), None),
        None,
    )
    changes = debezium(table(spark, str(tmp_path)), ROW)
    rows = changes.select("offset", "op", "ts_ms", "before.first_name", "id", changes[-1]).collect()
    assert [tuple(row) for row in rows] == [
        (0, "c", 1559033904863, None, 1, "Anne"),
        (1, "u", 1559033904863, "Anne", 1, "Anne Marie"),
        (2, "d", 1559033904863, "Anne Marie", 1, "Anne Marie"),
    ]
    state = table(spark, str(tmp_path), table="latest", endingOffsets='{"customers": {"0": 2}}')
    assert [row.first_name for row in debezium(state, ROW).collect()] == ["Anne Marie"]
    assert table(spark, str(tmp_path), table="latest").count() == 0


ALL_KINDS = [
    event("r", None, anne("Anne")),
    event("u", anne("Anne"), anne("Anne Marie"), has_schema=True),
    event("d", anne("Anne Marie"), None),
    None,
    event("t", None, None),
    event("c", None, {"id": 2, "first_name": None}, has_schema=True),
    event("d", None, None, has_schema=True),
    None,
]
"""A row each but for the tombstones, at offsets 3 and 7."""
FILTERS = {
    "true": [0, 1, 2, 4, 5, 6],
    "false": [],
    "topic = 'customers'": [0, 1, 2, 4, 5, 6],
    "partition = 0 AND offset >= 3": [4, 5, 6],
    "offset = 3": [],
    "op = 'd'": [2, 6],
    "op <> 'd'": [0, 1, 4, 5],
    "op IS NULL": [],
    "op = 't' OR id = 2": [4, 5],
    "ts_ms > 0": [0, 1, 2, 4, 5, 6],
    "ts_ms IS NULL": [],
    "before IS NULL": [0, 4, 5, 6],
    "before.first_name = 'Anne'": [1],
    "after IS NOT NULL": [0, 1, 5],
    "after.id = 1": [0, 1],
    "id = 1": [0, 1, 2],
    "id IS NULL": [4, 6],
    "id IN (1, 2) AND first_name IS NULL": [5],
    "first_name LIKE 'Anne M%'": [1, 2],
    "upper(first_name) = 'ANNE' AND op = 'r'": [0],
    "coalesce(id, 0) < 1": [4, 6],
}


def test_every_filter_projection_aggregate_and_join_passes_over_tombstones(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path, *ALL_KINDS)
    changes = debezium(table(spark, str(tmp_path)), ROW)
    for condition, expected in FILTERS.items():
        filtered = changes.where(condition)
        for columns in (["offset", "id", "op"], ["offset"]):
            found = [each.offset for each in filtered.select(*columns).collect()]
            assert found == expected, (condition, columns)
        assert filtered.count() == len(expected), condition
    groups = changes.where("id > 0").groupBy("id").count().orderBy("id").collect()
    assert [tuple(each) for each in groups] == [(1, 3), (2, 1)]
    names = spark.createDataFrame([(1, "x"), (2, "y")], "id BIGINT, other STRING")
    joined = changes.join(names, "id").where("op <> 'r' AND other <> 'z'").select("offset", "other")
    assert sorted(tuple(each) for each in joined.collect()) == [(1, "x"), (2, "x"), (5, "y")]
    both = changes.alias("a").join(changes.alias("b"), "id").where("a.op = 'r' AND b.op = 'd'")
    assert [tuple(each) for each in both.select("a.offset", "b.offset").collect()] == [(0, 2)]


@pytest.mark.thorough(one_in=5)
@pytest.mark.parametrize(
    "value", [b"no JSON", b"", b'{"id": 1}', b"[]", b'{"op": "c", "after": {"id"', b"null"]
)
def test_what_is_no_envelope_is_an_error_that_names_the_record(
    spark: SparkSession, tmp_path: Path, value: bytes
) -> None:
    write(tmp_path, event("c", None, anne("Anne")), None, value)
    message = "not a change event of Debezium in JSON: customers-0 offset 2"
    changes = debezium(table(spark, str(tmp_path)), ROW)
    columns = ("offset", "op", "ts_ms", "before", "after", "id", "1 AS one")
    conditions = cycle(("true", "op = 'c'", "id = 1", "first_name IS NULL", "before IS NULL"))
    for column, condition in zip(columns, conditions, strict=False):
        with pytest.raises(Exception, match=message):
            changes.where(condition).selectExpr(column).collect()
    with pytest.raises(Exception, match=message):
        changes.count()


def test_a_time_is_a_text_and_a_number_is_no_time(spark: SparkSession, tmp_path: Path) -> None:
    text, number = "2026-11-20T00:00:00.123456Z", 1_795_132_800_123
    row = {"id": 1, "at": text}
    write(
        tmp_path,
        event("u", {"id": 1, "at": None}, row, has_schema=True),
        event("d", row, None),
        event("c", None, {"id": 1, "at": number}),
    )
    records = table(spark, str(tmp_path)).where("offset < 2")
    changes = debezium(records, "id BIGINT, at TIMESTAMP").selectExpr(
        "op", "unix_micros(before.at)", "unix_micros(after.at)", "unix_micros(at)"
    )
    micros = 1_795_132_800_123_456
    assert [tuple(each) for each in changes.collect()] == [
        ("u", None, micros, micros),
        ("d", micros, None, micros),
    ]
    whole = table(spark, str(tmp_path))
    message = "at is a TIMESTAMP, and the value has no text of a time .*: customers-0 offset 2"
    for column, condition in (("at", "true"), ("op", "op = 'u'"), ("id", "at > '2020-01-01'")):
        with pytest.raises(Exception, match=message):
            debezium(whole, "id BIGINT, at TIMESTAMP").where(condition).select(column).collect()
    last = debezium(whole, "id BIGINT, at BIGINT").where("offset = 2").select("at").collect()
    assert [each.at for each in last] == [number]

"""Envelopes as Debezium's documentation shows them, as changes and as the state of a table."""

from __future__ import annotations

import json
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


@pytest.mark.thorough(one_in=4)
@pytest.mark.parametrize("value", [b"no JSON", b'{"id": 1}', b"[]", b'{"op": "c", "after": {"id"'])
def test_what_is_no_envelope_is_an_error_that_names_the_record(
    spark: SparkSession, tmp_path: Path, value: bytes
) -> None:
    write(tmp_path, event("c", None, anne("Anne")), value)
    message = "not a change event of Debezium in JSON: customers-0 offset 1"
    for column in ("op", "ts_ms", "before", "after", "id"):
        with pytest.raises(Exception, match=message):
            debezium(table(spark, str(tmp_path)), ROW).select(column).collect()


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
    with pytest.raises(Exception, match="at is a TIMESTAMP, and the value has no text of a time"):
        debezium(whole, "id BIGINT, at TIMESTAMP").select("at").collect()
    last = debezium(whole, "id BIGINT, at BIGINT").where("offset = 2").select("at").collect()
    assert [each.at for each in last] == [number]

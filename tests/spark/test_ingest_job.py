"""Ingestion: rows of a source become records, once; expressions that make no sense are named."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog_jobs import ingest
from pylog_jobs.ingest import IngestParameters
from pylog_jobs.ingest_config import read_ingest_config
from pylog_jobs.job import UsageError
from tests.support.spark_session import NEEDS_SPARK

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = NEEDS_SPARK

CSV = (
    "id,name,at\n1,Ann,2026-11-22T00:00:00Z\n2,,2026-11-22T01:00:00Z\n3,Zoë,2026-11-22T02:00:00Z\n"
)
SOURCE = """
[source]
format = "csv"
path = "{folder}/in"
schema = "id BIGINT, name STRING, at TIMESTAMP"
options.header = true
"""
RECORD = """
[record]
key = "CAST(id AS STRING)"
value = "name"
timestamp = "at"
headers.origin = "'csv'"
"""
TARGET = """
[target]
directory = "{folder}/logs"
topic = "orders"
partitions = 2
job_id = "orders-{{date}}"
"""
TRIGGER = """
[trigger]
kind = "available_now"
checkpoint = "{folder}/checkpoint"
"""


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    return spark.newSession()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text(CSV, "utf-8")
    return tmp_path


def run(
    session: SparkSession,
    folder: Path,
    text: str,
    *,
    date: dt.date = dt.date(2026, 11, 22),
    is_dry_run: bool = False,
) -> dict[str, Any]:
    path = folder / "ingest.toml"
    path.write_text(text.format(folder=folder), "utf-8")
    config = read_ingest_config(str(path), date)
    outcome = ingest.run(session, IngestParameters(config=config, is_dry_run=is_dry_run))
    assert outcome.status == 0
    json.dumps(outcome.summary)
    return dict(outcome.summary)


def refusal(session: SparkSession, folder: Path, text: str) -> str:
    with pytest.raises(UsageError) as caught:
        run(session, folder, text)
    assert not (folder / "logs").exists()
    return str(caught.value)


def rows_of(folder: Path, topic: str = "orders") -> list[dict[str, Any]]:
    rows = pylog.scan(folder / "logs", topics=topic).to_table().to_pylist()
    return sorted(rows, key=lambda row: (row["key"] or b"", row["offset"]))


def test_a_table_becomes_records(session: SparkSession, folder: Path) -> None:
    summary = run(session, folder, SOURCE + RECORD + TARGET)
    assert (summary["rows"], summary["alreadyCommitted"]) == (3, False)
    assert summary["jobId"] == "orders-2026-11-22"
    rows = rows_of(folder)
    assert [(row["key"], row["value"]) for row in rows] == [
        (b"1", b"Ann"),
        (b"2", None),
        (b"3", "Zoë".encode()),
    ]
    assert [row["timestamp"] for row in rows] == [
        dt.datetime(2026, 11, 22, hour, tzinfo=dt.UTC) for hour in range(3)
    ]
    assert {row["partition"] for row in rows} <= {0, 1}


def test_another_run_of_the_same_day_writes_nothing_and_one_of_the_next_day_does(
    session: SparkSession, folder: Path
) -> None:
    for date, rows in ((22, 3), (22, 0), (23, 3)):
        summary = run(session, folder, SOURCE + RECORD + TARGET, date=dt.date(2026, 11, date))
        assert (summary["rows"], summary["alreadyCommitted"]) == (rows, rows == 0)
    assert len(rows_of(folder)) == 6


def test_a_whole_row_as_json_has_every_column(session: SparkSession, folder: Path) -> None:
    record = '[record]\nvalue_format = "json"\nvalue_columns = ["name", "id"]\n'
    run(session, folder, SOURCE + record + TARGET)
    assert sorted(row["value"].decode() for row in rows_of(folder)) == [
        '{"name":"Ann","id":1}',
        '{"name":"Zoë","id":3}',
        '{"name":null,"id":2}',
    ]


def test_a_query_over_the_source_and_a_topic_for_each_row(
    session: SparkSession, folder: Path
) -> None:
    query = "sql = \"SELECT *, if(id < 3, 'small', 'large') AS size FROM source WHERE id > 1;\"\n"
    record = RECORD + 'topic = "size"\n'
    record = record.replace("headers.origin = \"'csv'\"\n", "")
    run(session, folder, SOURCE + query + record + TARGET.replace('topic = "orders"\n', ""))
    assert [row["key"] for row in rows_of(folder, "small")] == [b"2"]
    assert [row["key"] for row in rows_of(folder, "large")] == [b"3"]


def test_a_query_without_a_source(session: SparkSession, folder: Path) -> None:
    source = "[source]\nsql = \"SELECT 'v' AS name, 7 AS id, current_timestamp() AS at\"\n"
    assert run(session, folder, source + RECORD + TARGET)["rows"] == 1
    assert [row["key"] for row in rows_of(folder)] == [b"7"]


def test_a_dry_run_shows_plan_and_first_rows_and_writes_nothing(
    session: SparkSession, folder: Path
) -> None:
    summary = run(session, folder, SOURCE + RECORD + TARGET, is_dry_run=True)
    assert summary["firstRows"][0] == {
        "key": "1",
        "timestamp": "2026-11-22T00:00:00+00:00",
        "value": "Ann",
        "headers": [{"key": "origin", "value": "csv"}],
    }
    assert summary["plan"]["topicExists"] is False
    assert summary["plan"]["columns"]["timestamp"] == "timestamp"
    assert not (folder / "logs").exists()
    stream = SOURCE + RECORD + TARGET.replace('job_id = "orders-{{date}}"\n', "") + TRIGGER
    assert len(run(session, folder, stream, is_dry_run=True)["firstRows"]) == 3
    assert not (folder / "checkpoint").exists()


def test_a_stream_goes_on_where_it_was(session: SparkSession, folder: Path) -> None:
    query = 'sql = "SELECT * FROM source WHERE id != 2"\n'  # counted is what is written
    text = SOURCE + query + RECORD + TARGET.replace('job_id = "orders-{{date}}"\n', "") + TRIGGER
    assert run(session, folder, text)["rows"] == 2
    (folder / "in" / "b.csv").write_text("id,name,at\n4,Bo,2026-11-22T03:00:00Z\n", "utf-8")
    assert run(session, folder, text)["rows"] == 1
    assert run(session, folder, text)["rows"] == 0
    assert [row["key"] for row in rows_of(folder)] == [b"1", b"3", b"4"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '"CAST(id AS STRING)"',
            '"id"',
            "[record]: key has type BIGINT, expected STRING or BINARY; write CAST(id AS STRING)",
        ),
        ('"name"', '"nme"', "[record]: value = 'nme': [UNRESOLVED_COLUMN.WITH_SUGGESTION] A "),
        ('"name"', '"name +"', "[record]: value = 'name +': [PARSE_SYNTAX_ERROR] Syntax error"),
        (
            'timestamp = "at"',
            'timestamp = "name"',
            "[record]: timestamp has type STRING, expected TIMESTAMP; write CAST(name AS",
        ),
        (
            "headers.origin = \"'csv'\"",
            'headers.origin = "id"',
            "[record]: headers.origin has type BIGINT, expected STRING or BINARY; write CAST(id AS",
        ),
        (
            "headers.origin = \"'csv'\"",
            'headers = "name"',
            "[record]: headers has type STRING, expected ARRAY<STRUCT<key: STRING, value: BINARY>>",
        ),
        (
            'value = "name"',
            'value_format = "json"\nvalue_columns = ["nme"]',
            "[record]: value_columns names 'nme', which is not a column; the columns are: id, ",
        ),
        (
            'value = "name"',
            'value_format = "avro"',
            (
                "[record]: value_format = 'avro': Spark has no to_avro without its Avro package; "
                "add --packages org.apache.spark:spark-avro_2.13:4"
            ),
        ),
        ("[record]", 'sql = "DROP TABLE x"\n[record]', "[source]: sql: [PARSE_SYNTAX_ERROR]"),
        ("[record]", 'sql = "SELECT nme FROM source"\n[record]', "[source]: sql: [UNRESOLVED_COL"),
    ],
)
def test_an_expression_that_makes_no_sense_is_named_before_anything_is_written(
    session: SparkSession, folder: Path, old: str, new: str, message: str
) -> None:
    assert old in SOURCE + RECORD
    line = refusal(session, folder, (SOURCE + RECORD).replace(old, new) + TARGET)
    assert line.startswith(message), line
    assert "\n" not in line

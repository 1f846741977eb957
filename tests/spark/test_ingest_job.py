"""Ingestion: rows of a source become records, once; expressions that make no sense are named."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import random
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog_jobs import clock, ingest
from pylog_jobs.config_file import ConfigFile
from pylog_jobs.ingest import IngestParameters
from pylog_jobs.ingest_config import read_ingest_config
from pylog_jobs.job import UsageError
from pylog_jobs.record_frame import MissingInputError
from pylog_jobs.run_window import RunWindow
from pylog_jobs.secret_values import SecretValues
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


@pytest.fixture(autouse=True)
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all windows of these tests be over."""
    monkeypatch.setattr(clock, "now", lambda: dt.datetime(2026, 12, 1, tzinfo=dt.UTC))


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
    config = read_ingest_config(ConfigFile(str(path)), RunWindow.of_day(date))
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


def test_an_id_that_has_been_committed_from_another_path_is_refused_before_spark_starts(
    session: SparkSession, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(session, folder, SOURCE + RECORD + TARGET)
    (folder / "in").rename(folder / "elsewhere")
    moved = SOURCE.replace("/in", "/elsewhere") + RECORD + TARGET
    (folder / "ingest.toml").write_text(moved.format(folder=folder), "utf-8")
    arguments = ["--config", str(folder / "ingest.toml"), "--date", "2026-11-22"]
    assert ingest.JOB.main(arguments) == 2
    summary = json.loads(capsys.readouterr().out)
    assert summary["error"].startswith(
        "job 'orders-2026-11-22' has been committed before, with 3 records from another source"
    )
    assert len(rows_of(folder)) == 3


ONE_TOPIC = TARGET.replace("orders-{{date}}", "orders")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (SOURCE.replace("/in", "/later"), "[source]: [PATH_NOT_FOUND] Path does not exist: file:"),
        (SOURCE.replace("/in", "/later/*.csv"), "[source]: [PATH_NOT_FOUND] Path does not exist"),
        (SOURCE.replace("/in", "/empty"), "[source]: there are no files in "),
        (
            '[source]\nformat = "parquet"\npath = "{folder}/empty"\n',
            "[source]: [UNABLE_TO_INFER_SCHEMA] Unable to infer schema for Parquet.",
        ),
        ('[source]\nsql = "SELECT name FROM tomorrow"\n', "[source]: [TABLE_OR_VIEW_NOT_FOUND] "),
        (
            '[source]\nformat = "pylog"\npath = "{folder}/later"\noptions.subscribe = "x"\n',
            "[source]: pylog.errors.LogDirectoryError: host ",
        ),
    ],
)
def test_an_input_that_is_not_there_is_tried_again_skipped_or_refused(
    session: SparkSession, folder: Path, source: str, message: str
) -> None:
    (folder / "empty").mkdir()
    text = source + "{{}}" + '[record]\nvalue = "name"\n' + ONE_TOPIC
    with pytest.raises(MissingInputError) as caught:
        run(session, folder, text.replace("{{}}", ""))
    assert str(caught.value).startswith(message)
    summary = run(session, folder, text.replace("{{}}", 'on_missing = "skip"\n'))
    assert (summary["inputMissing"], summary["rows"]) == (True, 0)
    assert refusal(session, folder, text.replace("{{}}", 'on_missing = "fail"\n')) == str(
        caught.value
    )


@pytest.mark.parametrize(
    ("source", "package"),
    [
        ('format = "avro"\npath = "{folder}/in"', "org.apache.spark:spark-avro_2.13:4."),
        (
            'format = "kafka"\noptions.subscribe = "x"',
            "org.apache.spark:spark-sql-kafka-0-10_2.13:4.",
        ),
        ('format = "delta"\npath = "{folder}/in"', "io.delta:delta-spark_2.13:VERSION"),
        (
            'format = "jdbc"\noptions.url = "jdbc:postgresql://h/x"\noptions.dbtable = "t"',
            "org.postgresql:postgresql:VERSION",
        ),
        (
            (
                'format = "jdbc"\noptions.url = "jdbc:oracle:thin:@h"\noptions.dbtable = "t"\n'
                'options.driver = "oracle.jdbc.OracleDriver"'
            ),
            "com.oracle.database.jdbc:ojdbc11:VERSION",
        ),
        ('format = "csv"\npath = "s3a://bucket/x"', "org.apache.hadoop:hadoop-aws:VERSION"),
        ('format = "org.example.Nothing"', "GROUP:NAME:VERSION"),
    ],
)
def test_what_nothing_reads_is_refused_with_the_package_that_would(
    session: SparkSession, folder: Path, source: str, package: str
) -> None:
    line = refusal(session, folder, f"[source]\n{source}\n" + '[record]\nvalue = "1"\n' + ONE_TOPIC)
    assert f"; start the job by spark-submit --packages {package}" in line


PLACES = (  # of {{date}}, with what makes the days differ
    SOURCE.replace("/in", "/days/{{date}}.csv"),
    SOURCE.replace("/in", "/days").replace(
        "options.header", 'options.pathGlobFilter = "{{date}}*"\noptions.header'
    ),
    SOURCE.replace("/in", "/days").replace(
        "options.header",
        "sql = \"SELECT * FROM source WHERE to_date(at) = '{{date}}'\"\noptions.header",
    ),
)


@pytest.mark.thorough(one_in=10)
@pytest.mark.parametrize("seed", range(200))
def test_a_schedule_that_misses_days_and_repeats_them_gives_the_rows_of_the_source(
    session: SparkSession, folder: Path, seed: int
) -> None:
    rng = random.Random(seed)
    text = rng.choice(PLACES) + RECORD + TARGET
    is_query = "sql =" in text
    (folder / "days").mkdir()
    written: set[int] = set()
    for _ in range(6):
        day = rng.randrange(1, 5)
        file = folder / "days" / f"2026-11-0{day}.csv"
        if rng.random() < 0.7 and not file.exists():
            file.write_text(f"id,name,at\n{day},n{day},2026-11-0{day}T05:00:00Z\n", "utf-8")
        is_there = any((folder / "days").iterdir()) if is_query else file.exists()
        if not is_there:
            with pytest.raises(MissingInputError):
                run(session, folder, text, date=dt.date(2026, 11, day))
            continue
        summary = run(session, folder, text, date=dt.date(2026, 11, day))
        if day not in written and not file.exists():
            # The query finds other days' files alone: an empty day, which is written as such.
            assert summary["rows"] == 0
            break
        assert summary["alreadyCommitted"] is (day in written)
        written.add(day)
    found = rows_of(folder) if written else []
    assert sorted(int(row["key"]) for row in found) == sorted(written), f"seed {seed}"


def backfill(
    session: SparkSession,
    folder: Path,
    text: str,
    days: str,
    every: str = "1d",
    more: tuple[str, ...] = (),
) -> tuple[int, Any]:
    path = folder / "ingest.toml"
    path.write_text(text.format(folder=folder), "utf-8")
    parser = argparse.ArgumentParser()
    ingest.add_arguments(parser)
    given = ["--config", str(path), "--backfill", days, "--every", every, *more]
    parameters = ingest.prepare(
        parser.parse_args(given, argparse.Namespace(secrets=SecretValues()))
    )
    outcome = ingest.run(session, parameters)
    json.dumps(outcome.summary)
    return outcome.status, outcome.summary


def test_a_backfill_runs_what_is_missing_in_order_and_stops_at_the_first_failure(
    session: SparkSession, folder: Path
) -> None:
    text = PLACES[0] + RECORD + TARGET
    (folder / "days").mkdir()
    for day in (1, 2, 4):
        file = folder / "days" / f"2026-11-0{day}.csv"
        file.write_text(f"id,name,at\n{day},n{day},2026-11-0{day}T05:00:00Z\n", "utf-8")
    run(session, folder, text, date=dt.date(2026, 11, 2))
    status, summary = backfill(session, folder, text, "2026-11-01..2026-11-06")
    assert (status, summary["rows"]) == (3, 1)
    assert "PATH_NOT_FOUND" in summary["error"]
    assert [each["start"][:10] for each in summary["windows"]] == [
        "2026-11-01",
        "2026-11-02",
        "2026-11-03",
    ]
    assert [each.get("alreadyCommitted") for each in summary["windows"]] == [False, True, None]
    assert [row["key"] for row in rows_of(folder)] == [b"1", b"2"]
    skipping = text.replace("[source]", '[source]\non_missing = "skip"')
    status, summary = backfill(session, folder, skipping, "2026-11-01..2026-11-06")
    assert (status, summary["rows"]) == (0, 1)
    assert [row["key"] for row in rows_of(folder)] == [b"1", b"2", b"4"]


def test_a_backfill_whose_windows_are_one_job_is_refused(
    session: SparkSession, folder: Path
) -> None:
    with pytest.raises(UsageError, match="is 'orders-2026-11-01' for the window 2026-11-01T00"):
        backfill(session, folder, PLACES[0] + RECORD + TARGET, "2026-11-01..2026-11-02", "12h")


HOSTILE = (
    *("x' OR '1'='1", "it's", 'a"b', "a\\", "\\'", "${spark.app.name}", "$", "{to}", "{{a}}", "%_"),
    *("-- a", "/* a", "`a`", "Zoë\n", ":a", "''", "\\u0041", ""),
)


def test_a_value_of_a_parameter_stays_a_value_wherever_it_stands(
    session: SparkSession, folder: Path
) -> None:
    source = SOURCE + (  # noqa: S608 - that is the question
        "sql = \"\"\"SELECT *, '{{x}}' AS whole, 'a-{{x}}-b' AS part, CASE WHEN '{{x}}' = 'it''s' "
        "THEN 1 END AS n, '{{date}}' AS day FROM source WHERE 'b{{x}}' LIKE 'b%' LIMIT 1\"\"\"\n"
    )
    record = (
        '[record]\nvalue = """to_json(struct(whole, part, \'{{x}}\' AS literal, '
        "concat('c', '-{{x}}') AS expression, day))\"\"\"\n"
    )
    path = folder / "ingest.toml"
    target = TARGET.replace('job_id = "orders-{{date}}"', "")
    path.write_text((source + record + target).format(folder=folder), "utf-8")
    for value in HOSTILE:
        window = RunWindow.of_day(dt.date(2026, 11, 22), {"x": value})
        config = read_ingest_config(ConfigFile(str(path)), window)
        ingest.run(session, IngestParameters(config=config))
    found = pylog.scan(folder / "logs", topics="orders").to_table().column("value").to_pylist()
    assert sorted(json.dumps(json.loads(bytes(each))) for each in found) == sorted(
        json.dumps(
            {
                "whole": value,
                "part": f"a-{value}-b",
                "literal": value,
                "expression": f"c-{value}",
                "day": "2026-11-22",
            }
        )
        for value in HOSTILE
    )


def test_values_to_escape_are_refused_where_spark_reads_no_escapes(
    session: SparkSession, folder: Path
) -> None:
    path = folder / "ingest.toml"
    path.write_text((SOURCE + RECORD + TARGET).replace("'csv'", "'{{x}}'").format(folder=folder))
    session.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    for value, is_refused in (("it's", True), ("its", False)):
        window = RunWindow.of_day(dt.date(2026, 11, 22), {"x": value})
        config = read_ingest_config(ConfigFile(str(path)), window)
        if is_refused:
            with pytest.raises(UsageError, match="escapedStringLiterals is true, so that Spark"):
                ingest.run(session, IngestParameters(config=config))
        else:
            assert ingest.run(session, IngestParameters(config=config)).status == 0


def test_a_backfill_says_which_windows_wait_and_an_open_one_is_marked(
    session: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "now", lambda: dt.datetime(2026, 11, 22, 3, 15, tzinfo=dt.UTC))
    text = SOURCE.replace("/in", "/{{date}}") + RECORD + TARGET
    for day in ("2026-11-21", "2026-11-22"):
        (folder / day).mkdir()
        (folder / day / "a.csv").write_text(CSV, "utf-8")
    status, summary = backfill(session, folder, text, "2026-11-21..2026-11-24")
    assert (status, summary["rows"], summary["openWindows"]) == (0, 3, 2)
    assert summary["openWindowsFrom"] == "2026-11-23T00:00:00Z"
    assert ["isOpen" in each for each in summary["windows"]] == [False]
    given = ("--allow-open-window",)
    status, summary = backfill(session, folder, text, "2026-11-22..2026-11-23", more=given)
    assert (status, summary["rows"], summary["openWindows"]) == (0, 3, 0)
    assert summary["windows"][0]["isOpen"] is True

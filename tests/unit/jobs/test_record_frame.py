"""From rows of a source to records: expressions, inputs that are not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog_jobs.job import UsageError
from pylog_jobs.record_frame import MissingInputError
from tests.support.spark_session import NEEDS_SPARK
from tests.unit.jobs.ingested import RECORD, SOURCE, TARGET, folder, later, rows_of, run

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["folder", "later"]


pytestmark = NEEDS_SPARK


def refusal(session: SparkSession, folder: Path, text: str) -> str:
    with pytest.raises(UsageError) as caught:
        run(session, folder, text)
    assert not (folder / "logs").exists()
    return str(caught.value)


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


def test_rows_of_all_paths_are_records(session: SparkSession, folder: Path) -> None:
    (folder / "more").mkdir()
    (folder / "more" / "b.csv").write_text("id,name,at\n4,Bo,2026-11-22T03:00:00Z\n", "utf-8")
    source = SOURCE.replace('"{folder}/in"', '["{folder}/in", "{folder}/more"]')
    run(session, folder, source + RECORD + TARGET)
    assert sorted(row["key"] for row in rows_of(folder)) == [b"1", b"2", b"3", b"4"]


def test_a_query_without_a_source(session: SparkSession, folder: Path) -> None:
    source = "[source]\nsql = \"SELECT 'v' AS name, 7 AS id, current_timestamp() AS at\"\n"
    assert run(session, folder, source + RECORD + TARGET)["rows"] == 1
    assert [row["key"] for row in rows_of(folder)] == [b"7"]


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

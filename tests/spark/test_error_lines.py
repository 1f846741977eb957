"""What people are told of a failure inside of Spark: which record, and why; and its status."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import pytest

from pylog_jobs import ingest
from pylog_jobs.error_text import describe
from pylog_jobs.exit_status import FAILED, UNUSABLE, status_of
from pylog_jobs.secret_values import SecretValues
from tests.support.spark_session import NEEDS_SPARK

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

pytestmark = [*NEEDS_SPARK]

OF_FILES = """
[source]
format = "{kind}"
path = "{folder}/in"
schema = "id BIGINT, region {type}"
options.header = true
options.mode = "FAILFAST"
"""
OF_A_DATABASE = """
[source]
format = "jdbc"
options.url = "jdbc:derby:memory:{name};create=true"
options.driver = "org.apache.derby.jdbc.EmbeddedDriver"
options.query = "{query}"
"""
RECORD = """
[record]
key = "{key}"
value_format = "json"
[target]
directory = "{folder}/logs"
topic = "t"
{more}
"""


def failure(spark: SparkSession, folder: Path, source: str, **given: str) -> Exception:
    """Return what an ingest raises."""
    values = {"key": "CAST(id AS STRING)", "more": "", "folder": str(folder), "type": "INT"} | given
    (folder / "x.toml").write_text((source + RECORD).format(**values))
    parser = argparse.ArgumentParser()
    ingest.add_arguments(parser)
    arguments = ["--config", str(folder / "x.toml")]
    parsed = parser.parse_args(arguments, argparse.Namespace(secrets=SecretValues()))
    with pytest.raises(Exception) as raised:  # noqa: PT011 - of any kind
        ingest.run(spark, ingest.prepare(parsed))
    assert isinstance(raised.value, Exception)
    return raised.value


@pytest.mark.parametrize(
    ("kind", "text", "parts"),
    [
        (
            "csv",
            "id,region\n1,eu\n",
            ["/in/a.csv: ", "[1,null]. Parse Mode: FAILFAST.", 'For input string: "eu"'],
        ),
        (
            "json",
            '{"id": 1, "region": 3}\n{"id": oops\n',
            ["/in/a.json: ", "[null,null]. Parse Mode", "Unrecognized token 'oops'", "column: 8]"],
        ),
    ],
)
def test_a_malformed_record_is_told_with_its_file_and_its_values(
    spark: SparkSession, tmp_path: Path, kind: str, text: str, parts: list[str]
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / f"a.{kind}").write_text(text)
    error = failure(spark, tmp_path, OF_FILES, kind=kind)
    line = describe(error)
    assert [part for part in parts if part not in line] == []
    assert "\n" not in line
    assert status_of(error) == UNUSABLE


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("CAST(CAST(region AS INT) AS STRING)", "The value 'eu' of the type"),
        ("CAST(id / (id - 1) AS STRING)", "[DIVIDE_BY_ZERO] Division by zero."),
        ("CAST(id + 9223372036854775807 AS STRING)", "[ARITHMETIC_OVERFLOW]"),
    ],
)
def test_a_value_that_the_sql_does_not_take_is_told_with_the_expression(
    spark: SparkSession, tmp_path: Path, key: str, told: str
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,region\n1,eu\n")
    error = failure(spark, tmp_path, OF_FILES, kind="csv", key=key, type="STRING")
    line = describe(error)
    assert told in line
    assert line.endswith(f"(in {key})")
    assert "spark.sql.ansi.enabled" not in line  # which would write other values
    assert status_of(error) == UNUSABLE


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("properties.max.message.bytes = 60", "max.message.bytes of the topic is 60: raise it"),
        ('properties.cleanup.policy = "compact"', "has no key, and topic 't' is compacted"),
    ],
)
def test_a_row_that_cannot_be_a_record_is_told_with_the_way_out(
    spark: SparkSession, tmp_path: Path, more: str, told: str
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text(f"id,region\n1,{'eu' * 99}\n")
    given = {"kind": "csv", "type": "STRING", "more": more, "key": "CAST(NULL AS STRING)"}
    error = failure(spark, tmp_path, OF_FILES, **given)
    assert told in describe(error)
    assert status_of(error) == UNUSABLE


@pytest.mark.parametrize(
    ("query", "told", "status"),
    [
        ("SELECT 1 / (n - 1) AS id FROM (VALUES 1) AS t(n)", "divide by zero", UNUSABLE),
        ("SELECT nope AS id FROM (VALUES 1) AS t(n)", "'NOPE' is", UNUSABLE),
    ],
)
def test_an_error_of_a_database_has_its_text_and_the_status_of_its_sqlstate(
    spark: SparkSession, tmp_path: Path, query: str, told: str, status: int
) -> None:
    error = failure(spark, tmp_path, OF_A_DATABASE, query=query, name=tmp_path.name)
    assert told in describe(error)
    assert status_of(error) == status


def test_a_python_worker_tells_all_lines_of_its_error(spark: SparkSession) -> None:
    def raises(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        raise LookupError("the record\n  number 3\nis no good")

    with pytest.raises(Exception, match="no good") as raised:
        spark.range(2).mapInArrow(raises, "id long").collect()
    assert isinstance(raised.value, Exception)
    assert describe(raised.value) == "LookupError: the record number 3 is no good"
    assert status_of(raised.value) == FAILED

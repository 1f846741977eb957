"""Parameters of an export that make no sense are refused before Spark starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog_jobs import export
from pylog_jobs.job import UsageError
from tests.support.spark_session import NEEDS_SPARK
from tests.unit.jobs.exported_tables import (
    Config,
    append,
    catalog_variables,
    prepared,
    pyiceberg_catalog,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


pytestmark = [*NEEDS_SPARK, pytest.mark.filterwarnings("default")]  # pyiceberg's own


@pytest.fixture(autouse=True)
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pyiceberg know the catalog ``lake``, in SQLite."""
    for name, value in catalog_variables(tmp_path).items():
        monkeypatch.setenv(name, value)
    # It looks at the environment when it is imported.
    monkeypatch.setattr(pyiceberg_catalog, "_ENV_CONFIG", Config())


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("hour", "expected topic, partition, date or NAME=EXPRESSION"),
        ("key=topic", "key is a column already"),
        ("Key=topic", "Key is a column already"),
    ],
)
def test_partitions_that_make_no_sense_are_refused_before_spark_starts(
    tmp_path: Path, by: str, message: str
) -> None:
    append(tmp_path / "logs", range(2))
    with pytest.raises(UsageError, match=message):
        prepared(tmp_path / "logs", "delta", "--partition-by", by)


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("k=CAST(key AS STRING)", "it may use topic, partition and timestamp"),
        ("x=nope(", "Syntax error|PARSE"),
        (
            "t=timestamp",
            r"has type TIMESTAMP, expected one of STRING, DATE, INT, BIGINT; write CAST",
        ),
    ],
)
def test_expressions_that_make_no_sense_are_refused(
    session: SparkSession, tmp_path: Path, by: str, message: str
) -> None:
    append(tmp_path / "logs", range(2))
    with pytest.raises(UsageError, match=message):
        export.run(session, prepared(tmp_path / "logs", "delta", "--partition-by", by))
    assert not (tmp_path / "delta").exists()


def test_what_would_be_exported_by_mistake_is_refused(tmp_path: Path) -> None:
    append(tmp_path / "logs", range(2))
    with pytest.raises(UsageError, match="--topic '' names no topic; without --topic, all are"):
        prepared(tmp_path / "logs", "csv", "--topic", "")
    with pytest.raises(UsageError, match="PyArrow passes over directories whose names begin with"):
        prepared(tmp_path / "logs", "csv", "--partition-by", "_hour=date_format(timestamp, 'HH')")


@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED"])
def test_a_partition_with_a_defect_is_left_out_by_failfast_alone(tmp_path: Path, mode: str) -> None:
    append(tmp_path / "logs", range(4))
    (tmp_path / "logs" / "orders-1" / "leader-epoch-checkpoint").write_text("no numbers\n")
    plan = prepared(tmp_path / "logs", "csv", "--mode", mode).find_plan(None)
    left_out = [(each.topic, each.partition) for each in plan.damaged]
    exported = [(each.topic, each.partition) for each in plan.ranges]
    assert left_out == ([("orders", 1)] if mode == "FAILFAST" else [])
    assert sorted([*exported, *left_out]) == [("orders", 0), ("orders", 1)]

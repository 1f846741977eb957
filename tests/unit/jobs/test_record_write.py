"""Records are written once, in batches and in a stream; a dry run writes none."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING

from pylog_jobs import ingest
from tests.support.spark_session import NEEDS_SPARK
from tests.unit.jobs.ingested import RECORD, SOURCE, TARGET, folder, later, rows_of, run

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession

__all__ = ["folder", "later"]


pytestmark = NEEDS_SPARK
TRIGGER = """
[trigger]
kind = "available_now"
checkpoint = "{folder}/checkpoint"
"""


def test_another_run_of_the_same_day_writes_nothing_and_one_of_the_next_day_does(
    session: SparkSession, folder: Path
) -> None:
    for date, rows in ((22, 3), (22, 0), (23, 3)):
        summary = run(session, folder, SOURCE + RECORD + TARGET, date=dt.date(2026, 11, date))
        assert (summary["rows"], summary["alreadyCommitted"]) == (rows, rows == 0)
    assert len(rows_of(folder)) == 6


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

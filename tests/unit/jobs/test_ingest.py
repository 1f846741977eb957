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
from tests.unit.jobs.ingested import CSV, RECORD, SOURCE, TARGET, folder, later, rows_of, run

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["folder", "later"]


pytestmark = NEEDS_SPARK


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

"""Ingests of a folder of CSV, as tests run them."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog_jobs import clock, ingest
from pylog_jobs.config_file import ConfigFile
from pylog_jobs.ingest import IngestParameters
from pylog_jobs.ingest_config import read_ingest_config
from pylog_jobs.run_window import RunWindow

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

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


def rows_of(folder: Path, topic: str = "orders") -> list[dict[str, Any]]:
    rows = pylog.scan(folder / "logs", topics=topic).to_table().to_pylist()
    return sorted(rows, key=lambda row: (row["key"] or b"", row["offset"]))


@pytest.fixture(autouse=True)
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all windows of these tests be over."""
    monkeypatch.setattr(clock, "now", lambda: dt.datetime(2026, 12, 1, tzinfo=dt.UTC))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text(CSV, "utf-8")
    return tmp_path

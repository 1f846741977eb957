"""Incremental ingests of a folder, as tests run them."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pylog
from pylog_jobs import ingest
from pylog_jobs.config_file import ConfigFile
from pylog_jobs.ingest import IngestParameters
from pylog_jobs.ingest_config import read_ingest_config
from pylog_jobs.run_window import RunWindow

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


SOURCE = """
[source]
format = "csv"
path = "{folder}/in"
schema = "id BIGINT, name STRING, at TIMESTAMP, day DATE, local TIMESTAMP_NTZ"
"""
REST = """
[record]
key = "CAST(id AS STRING)"
value_format = "json"
[target]
directory = "{folder}/logs"
topic = "orders"
job_id = "orders"
"""
WINDOW = RunWindow.of_day(dt.date(2026, 11, 22))


def add(folder: Path, name: str, *rows: tuple[int, str]) -> Path:
    """Add rows, each with a number and the minute of 2026-11-22 00:00 that all its times have."""
    path = folder / "in" / f"{name}.csv"
    lines = [
        f"{number},n{number},2026-11-22T{at}Z,2026-11-{at[:2]},2026-11-22T{at}\n"
        for number, at in rows
    ]
    path.write_text("".join(lines), "utf-8")
    return path


def run(
    session: SparkSession,
    folder: Path,
    incremental: str,
    *,
    source: str = SOURCE,
    status: int = 0,
    **how: Any,  # noqa: ANN401
) -> dict[str, Any]:
    path = folder / "ingest.toml"
    path.write_text((source + REST + incremental).format(folder=folder), "utf-8")
    config = read_ingest_config(ConfigFile(str(path)), WINDOW)
    outcome = ingest.run(session, IngestParameters(config=config, **how))
    assert outcome.status == status
    json.dumps(outcome.summary)
    return dict(outcome.summary)


def keys(folder: Path) -> list[int]:
    rows = pylog.scan(folder / "logs", topics="orders").to_table().to_pylist()
    return sorted(int(row["key"]) for row in rows)

"""Files of ingests as tests read them, and how they are refused."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from pylog_jobs.config_file import ConfigFile
from pylog_jobs.ingest_config import read_ingest_config
from pylog_jobs.job import UsageError
from pylog_jobs.run_window import RunWindow

if TYPE_CHECKING:
    from pathlib import Path

    from pylog_jobs.ingest_config import IngestConfig

DAY = dt.date(2026, 11, 22)
SOURCE = '[source]\nformat = "csv"\npath = "/in/{date}.csv"\n'
RECORD = '[record]\nvalue = "body"\n'
TARGET = '[target]\ndirectory = "/data/logs"\ntopic = "orders"\n'


def read(tmp_path: Path, text: str, window: RunWindow | None = None) -> IngestConfig:
    (tmp_path / "ingest.toml").write_text(text, "utf-8")
    file = ConfigFile(str(tmp_path / "ingest.toml"))
    return read_ingest_config(file, window or RunWindow.of_day(DAY))


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    line = str(caught.value)
    assert "\n" not in line
    return line.removeprefix(f"{tmp_path}/ingest.toml: ")


JOB_ID = 'job_id = "orders-{date}"\n'


def fingerprint(tmp_path: Path, text: str) -> str:
    found = read(tmp_path, text).target.fingerprint
    assert found is not None
    return found


SOURCE_OF_JDBC = """
[source]
format = "jdbc"
sql = "SELECT * FROM source"
[source.options]
url = "jdbc:postgresql://db/shop"
dbtable = "orders"
user = "etl"
password = "hunter2"
"""

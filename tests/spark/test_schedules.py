"""Every schedule that the project ships, over three nights: each row of a whole day, once."""

from __future__ import annotations

import datetime as dt
import json
import re
import shlex
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog_jobs import clock
from tests.support.spark_session import NEEDS_SPARK

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

pytestmark = NEEDS_SPARK

ROOT = Path(__file__).parents[2]
SCHEDULERS = ROOT / "jobs" / "schedulers"
FIRST = dt.datetime(2026, 11, 22, 3, 15, tzinfo=dt.UTC)
CONFIG = """
[source]
format = "csv"
path = "{folder}/in"
schema = "id STRING, at TIMESTAMP"
sql = "SELECT * FROM source WHERE at >= '{{start}}' AND at < '{{end}}'"
[record]
value = "id"
[target]
directory = "{folder}/logs"
topic = "orders"
job_id = "orders-{{date}}"
"""
OF_AIRFLOW = "{{ macros.ds_add(dag_run.run_after | ds, -1) }}"


class OneSession:
    """A session that jobs share: none of them stops it."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of a session
        return getattr(self._spark, name)

    def stop(self) -> None:
        """Leave it to the tests."""


def cron(_: dt.datetime) -> list[str]:
    page = (ROOT / "docs" / "jobs.md").read_text("utf-8")
    [line] = [line for line in page.splitlines() if line.startswith("15 3 * * *  ")]
    command = line.split(maxsplit=5)[5].replace(r"\%", "%")
    [arguments] = re.findall(r"python -m pylog_jobs\.(ingest .*?) >> ", command)
    assert "$" not in arguments  # what a shell would replace
    return shlex.split(arguments)


def systemd(_: dt.datetime) -> list[str]:
    service = (SCHEDULERS / "pylog-ingest-orders.service").read_text("utf-8")
    assert "OnCalendar=*-*-* 03:15:00 UTC" in (SCHEDULERS / "pylog-ingest-orders.timer").read_text(
        "utf-8"
    )
    [arguments] = re.findall(r"^ExecStart=\S+ -m pylog_jobs\.(.*)$", service, re.MULTILINE)
    return shlex.split(arguments)


def kubernetes(_: dt.datetime) -> list[str]:
    text = (SCHEDULERS / "kubernetes_cronjob.yaml").read_text("utf-8")
    assert '  schedule: "15 3 * * *"\n  timeZone: Etc/UTC\n' in text
    assert 'command: ["python", "-m", "pylog_jobs.ingest"]' in text
    [arguments] = re.findall(r"^ +args: (.*)$", text, re.MULTILINE)
    return ["ingest", *json.loads(arguments)]


def databricks(_: dt.datetime) -> list[str]:
    job = json.loads((SCHEDULERS / "databricks_job.json").read_text("utf-8"))
    assert job["schedule"]["quartz_cron_expression"] == "0 15 3 * * ?"
    arguments: list[str] = job["tasks"][0]["spark_python_task"]["parameters"]
    assert not any("{{" in each for each in arguments)  # what Databricks would replace
    return arguments


def airflow(run_after: dt.datetime) -> list[str]:
    text = (SCHEDULERS / "airflow_dag.py").read_text("utf-8")
    assert 'schedule="15 3 * * *"' in text
    assert "catchup=True" in text
    assert f'DAY = "{OF_AIRFLOW}"' in text
    [arguments] = re.findall(r'job="ingest",\n\s+arguments=\[(.*)\],', text)
    day = str(run_after.date() - dt.timedelta(days=1))  # as that template says; nox -s airflow
    of_file = {'"--config"': "--config", 'f"{HOME}/orders.toml"': "/srv/pylog/orders.toml"}
    words = [each.strip() for each in arguments.split(",")]
    return ["ingest", *({**of_file, '"--date"': "--date", "DAY": day}[each] for each in words)]


SCHEDULES = [cron, systemd, kubernetes, databricks, airflow]


@pytest.fixture
def folder(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "orders.toml").write_text(CONFIG.format(folder=tmp_path), "utf-8")
    session = OneSession(spark.newSession())
    monkeypatch.setattr("pylog_jobs.job.spark_session", lambda *_, **__: session)
    return tmp_path


def arrive(folder: Path, name: str, at: dt.datetime) -> None:
    """Have a row arrive at the source."""
    (folder / "in" / f"{name}.csv").write_text(f"{name},{at.isoformat()}\n", "utf-8")


def run(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    schedule: Callable[[dt.datetime], list[str]],
    now: dt.datetime,
    run_after: dt.datetime | None = None,
) -> int:
    monkeypatch.setattr(clock, "now", lambda: now)
    name, *arguments = schedule(run_after or now)
    config = str(folder / "orders.toml")
    given = [re.sub(r"^.*orders\.toml$", config, each) for each in arguments]
    assert given.count(config) == 1
    status: int = import_module(f"pylog_jobs.{name}").JOB.main(given)
    return status


def topic(folder: Path) -> list[str]:
    values = pylog.scan(folder / "logs", topics="orders").to_table().column("value").to_pylist()
    return sorted(bytes(each).decode() for each in values)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_three_nights_write_each_row_of_a_day_that_is_over_once(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    schedule: Callable[[dt.datetime], list[str]],
) -> None:
    over: list[str] = []
    arrive(folder, "evening21", FIRST - dt.timedelta(hours=5))
    over.append("evening21")
    today: list[str] = []
    for day in range(3):
        now = FIRST + dt.timedelta(days=day)
        name = now.day
        arrive(folder, f"night{name}", now - dt.timedelta(hours=2))
        for _ in range(2):  # a repetition changes nothing
            assert run(folder, monkeypatch, schedule, now) == 0
            assert topic(folder) == sorted(over)
        arrive(folder, f"noon{name}", now + dt.timedelta(hours=9))
        arrive(folder, f"last{name}", now.replace(hour=23, minute=59, second=59))
        today = [f"night{name}", f"noon{name}", f"last{name}"]
        over += today


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_run_that_is_late_loses_no_day(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    schedule: Callable[[dt.datetime], list[str]],
) -> None:
    for day in range(21, 26):
        arrive(folder, f"noon{day}", dt.datetime(2026, 11, day, 12, tzinfo=dt.UTC))
    assert run(folder, monkeypatch, schedule, FIRST) == 0
    # Nothing ran on the 23rd and 24th. The machine starts in the night of the 25th, and a failure
    # has the run tried again after midnight. Airflow has a run for each of the nights.
    late = dt.datetime(2026, 11, 26, 0, 3, tzinfo=dt.UTC)
    nights = [FIRST + dt.timedelta(days=each) for each in (1, 2, 3)]
    for night in nights if schedule is airflow else nights[-1:]:
        assert run(folder, monkeypatch, schedule, late, night) == 0
    expected = [f"noon{day}" for day in range(21, 25)]
    assert topic(folder) == (expected if schedule is airflow else [*expected, "noon25"])

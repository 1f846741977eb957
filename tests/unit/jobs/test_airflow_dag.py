"""The DAG in Airflow itself: it loads, a run is executed, and statuses decide about retries.

Airflow has too many requirements for the environment of development: ``nox -s airflow`` makes one
of its own. Everywhere else this file is skipped.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.skipif(find_spec("airflow") is None, reason="Airflow is not installed"),
    pytest.mark.thorough,
    pytest.mark.filterwarnings("default"),
]

SCHEDULERS = Path(__file__).parents[3] / "jobs" / "schedulers"
DAY, NEXT_DAY = "2026-11-22", "2026-11-23"

PROGRAM = """#!/bin/sh
echo "$@" >> "$PYLOG_HOME/calls"
echo '{"job": "'$2'"}'
exit $(cat "$PYLOG_HOME/status")
"""
"""In place of the environment's Python: notes its arguments, ends with the status that is asked."""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """Give a PYLOG_HOME, and an Airflow with a database of its own: it must not be imported yet."""
    assert "airflow" not in sys.modules
    with TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / ".venv" / "bin" / "python"
        program.parent.mkdir(parents=True)
        program.write_text(PROGRAM)
        program.chmod(program.stat().st_mode | stat.S_IEXEC)
        os.environ.update(
            {
                "PYLOG_HOME": str(folder),
                "AIRFLOW_HOME": str(folder / "airflow"),
                "AIRFLOW__CORE__DAGS_FOLDER": str(SCHEDULERS),
                "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            }
        )
        command = [sys.executable, "-m", "airflow", "db", "migrate"]
        subprocess.run(command, check=True, timeout=300)
        yield folder


@pytest.fixture
def dag(home: Path) -> object:
    from airflow.dag_processing.dagbag import DagBag  # noqa: PLC0415 - as above

    (home / "calls").write_text("")
    bag = DagBag(str(SCHEDULERS / "airflow_dag.py"))
    assert bag.import_errors == {}
    return bag.dags["pylog_orders"]


def run(dag: object) -> dict[str, str]:
    """Run the DAG for a day, without waiting between attempts; return the tasks' states."""
    import datetime as dt  # noqa: PLC0415 - beside the others

    for task in dag.tasks:  # type: ignore[attr-defined]
        task.retry_delay = dt.timedelta(0)
    at = dt.datetime.fromisoformat(f"{NEXT_DAY}T03:15:00+00:00")
    done = dag.test(run_after=at, logical_date=at)  # type: ignore[attr-defined]
    return {each.task_id: str(each.state) for each in done.get_task_instances()}


def test_a_run_is_executed_in_order(dag: object, home: Path) -> None:
    (home / "status").write_text("0")
    states = run(dag)
    assert states == dict.fromkeys(("ingest", "verify", "export"), "success")
    calls = (home / "calls").read_text().splitlines()
    assert [call.split()[1] for call in calls] == [
        *("pylog_jobs.ingest", "pylog_jobs.verify", "pylog_jobs.export")
    ]
    assert f"--date {DAY}" in calls[0]


@pytest.mark.parametrize("status", [1, 2, 4])
def test_what_would_come_again_fails_at_once(dag: object, home: Path, status: int) -> None:
    (home / "status").write_text(str(status))
    states = run(dag)
    assert states["ingest"] == "failed"
    assert len((home / "calls").read_text().splitlines()) == 1


@pytest.mark.parametrize("status", [3, 130, 143])
def test_what_may_be_mended_is_tried_again(dag: object, home: Path, status: int) -> None:
    (home / "status").write_text(str(status))
    states = run(dag)
    assert states["ingest"] in ("failed", "up_for_retry")
    assert states["ingest"] == "up_for_retry" or len((home / "calls").read_text().splitlines()) > 1

"""A DAG for Airflow 3: each day is ingested, verified and exported, each once whatever is repeated.

A run is for the day before the time from which it may run: retries, runs that are late, and those
of a backfill name their own day.

Put this file into the folder of DAGs. Variables of the environment say where things are:
``PYLOG_HOME`` (by default ``/srv/pylog``) has ``.venv``, ``orders.toml``, ``logs`` and ``lake``.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.hooks.subprocess import SubprocessHook
from airflow.sdk import DAG, BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

if TYPE_CHECKING:
    from collections.abc import Sequence

HOME = os.environ.get("PYLOG_HOME", "/srv/pylog")
DAY = "{{ macros.ds_add(dag_run.run_after | ds, -1) }}"
"""The logical date is no day that is over: of a cron string it is the time of the run."""
RETRIED = (3, 130, 143)
"""Exit statuses after which the next attempt may succeed; any other one would come again."""


class PylogJobOperator(BaseOperator):
    """Runs a job of ``pylog_jobs``. Retries are for what they may mend: see `RETRIED`.

    The job's summary, one line of JSON, is the XCom of the task.
    """

    template_fields = ("arguments",)

    def __init__(self, *, job: str, arguments: Sequence[str], **given: Any) -> None:  # noqa: ANN401 - of BaseOperator
        super().__init__(**given)
        self.job = job
        self.arguments = list(arguments)
        self._hook: SubprocessHook | None = None

    def execute(self, context: Any) -> str:  # noqa: ANN401 - Airflow's
        """Run the job; fail for good where another attempt would fail in the same way."""
        self._hook = SubprocessHook()
        command = [f"{HOME}/.venv/bin/python", "-m", f"pylog_jobs.{self.job}", *self.arguments]
        result = self._hook.run_command(command)
        if result.exit_code == 0:
            return str(result.output)
        message = f"{self.job} ended with status {result.exit_code}: {result.output}"
        if result.exit_code in RETRIED:
            raise AirflowException(message)
        raise AirflowFailException(message)

    def on_kill(self) -> None:
        """Have the job remove what it has staged: it ends with status 143."""
        if self._hook is not None:
            self._hook.send_sigterm()


with DAG(
    "pylog_orders",
    schedule="15 3 * * *",
    start_date=datetime(2026, 11, 1, tzinfo=timezone.utc),  # noqa: UP017 - as Airflow's pages have it
    catchup=True,  # a night without Airflow is made up for
    max_active_runs=1,  # a log directory has one writer at a time
    default_args={"retries": 3, "retry_delay": timedelta(minutes=5)},
) as dag:
    ingest = PylogJobOperator(
        task_id="ingest",
        job="ingest",
        arguments=["--config", f"{HOME}/orders.toml", "--date", DAY],
    )
    verify = PylogJobOperator(
        task_id="verify", job="verify", arguments=[f"{HOME}/logs", "--topic", "orders"]
    )
    export = PylogJobOperator(
        task_id="export",
        job="export",
        arguments=[f"{HOME}/logs", f"{HOME}/lake", "--topic", "orders"],
    )
    ingest >> verify >> export

"""Jobs as a scheduler runs them: processes with a status, two streams of text, and signals."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pylog
import pylog_jobs
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import segment_path, write_partition
from tests.support.spark_session import NEEDS_SPARK, SPARK_CONF, require_java

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [*NEEDS_SPARK, pytest.mark.slow]

TIMEOUT_SECONDS = 300
KILLS = 2
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (?:INFO|WARNING|ERROR) \w+: .*")

STREAM = """
[source]
format = "rate"
options.rowsPerSecond = 50
[record]
value_format = "json"
[target]
directory = "{folder}/logs"
topic = "ticks"
[trigger]
kind = "interval"
interval = "1 seconds"
checkpoint = "{folder}/checkpoint"
"""
BATCH = """
[source]
sql = "SELECT CAST(id AS STRING) AS text FROM range(0, 200000000, 1, 4)"
[record]
value = "text"
[target]
directory = "{folder}/logs"
topic = "numbers"
"""


def environment() -> dict[str, str]:
    beside = str(Path(sys.executable).parent)
    return {
        **os.environ,
        # spark-submit looks for its home with the python3 of the PATH, which need not be ours.
        "PATH": os.pathsep.join([beside, os.environ.get("PATH", "")]),
        "JAVA_HOME": str(require_java()),
        "SPARK_CONF_DIR": str(SPARK_CONF),
        "PYSPARK_PYTHON": sys.executable,
    }


def python(job: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", f"pylog_jobs.{job}", *map(str, arguments)]


def run(command: list[str] | str, **given: Any) -> subprocess.CompletedProcess[str]:  # noqa: ANN401 - of subprocess
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_SECONDS,
        env=environment(),
        **given,
    )


def summary_of(output: str) -> dict[str, Any]:
    """Return the one line that a job prints."""
    [line] = output.splitlines()
    return dict(json.loads(line))


def log_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if LOG_LINE.fullmatch(line)]


def test_spark_submit_passes_on_status_and_summary(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]})
    path = segment_path(directory, 0)
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    submit = Path(sys.executable).with_name("spark-submit")
    job = Path(pylog_jobs.__path__[0], "verify.py")
    done = run([str(submit), "--master", "local[2]", str(job), str(tmp_path)])
    assert done.returncode == 1, done.stderr
    # Which has the program's log lines, too: spark-submit makes one stream of both.
    *before, last = done.stdout.splitlines(keepends=True)
    summary = summary_of(last)
    assert (summary["job"], summary["status"], summary["errors"]) == ("verify", "findings", 1)
    lines = log_lines("".join(before))
    assert any("ERROR verify: error: damaged_batches: orders-0: " in line for line in lines)


def test_what_is_wrong_before_spark_starts_costs_no_start_of_spark(tmp_path: Path) -> None:
    done = run(python("verify", tmp_path / "nope"))
    assert done.returncode == 2
    message = f"{tmp_path}/nope: no such directory (is it mounted on this host?)"
    assert summary_of(done.stdout)["error"] == message
    [line] = done.stderr.splitlines()  # neither a JVM's notice nor a traceback
    assert line.endswith(f"ERROR verify: {message}")


def test_several_configurations_run_in_one_session_that_hands_nothing_on(tmp_path: Path) -> None:
    configs, metrics = tmp_path / "conf.d", tmp_path / "metrics"
    configs.mkdir()
    metrics.mkdir()
    target = f'[record]\nvalue = "word"\n[target]\ndirectory = "{tmp_path}/logs"\ntopic = "%s"\n'
    (tmp_path / "words.txt").write_text("eins\nzwei\n")
    text = f'[source]\nformat = "text"\nschema = "word STRING"\npath = "{tmp_path}/words.txt"\n'
    query = 'sql = "SELECT word FROM source"\n'
    (configs / "1-first.toml").write_text(f"{text}{query}{target % 'first'}")
    # Which is the view of the first one, if that is still there.
    (configs / "2-second.toml").write_text(f"[source]\n{query}{target % 'second'}")
    third = 'sql = "SELECT concat(current_database(), 3) AS word"\n'
    (configs / "3-third.toml").write_text(f"[source]\n{third}{target % 'third'}")
    done = run(python("ingest", "--config", configs, "--metrics-file", metrics))
    assert done.returncode == 3, done.stderr
    summaries = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(each["name"], each["exitStatus"], each.get("rows")) for each in summaries] == [
        ("1-first", 0, 2),
        ("2-second", 3, None),
        ("3-third", 0, 1),
    ]
    assert "TABLE_OR_VIEW_NOT_FOUND" in summaries[1]["error"]
    assert [each["topic"] for each in summaries] == ["first", "second", "third"]
    assert sorted(pylog.open_directory(tmp_path / "logs").topics) == ["first", "third"]
    assert done.stderr.count("Setting default log level") <= 1
    lines = log_lines(done.stderr)
    assert any("INFO ingest: 3-third: wrote 1 rows" in line for line in lines)
    second = (metrics / "ingest-2-second.prom").read_text()
    labels = f'name="2-second",directory="{tmp_path}/logs",topic="second"'
    assert f'pylog_job_exit_status{{job="ingest",{labels}}} 3\n' in second
    assert len(list(metrics.iterdir())) == 3


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Give a list of processes that are killed at the end of the test, if they still run."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for each in processes:
        each.kill()
        each.wait()


@pytest.mark.thorough
def test_a_stream_ends_in_order_at_sigterm_and_goes_on_later(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    (tmp_path / "ticks.toml").write_text(STREAM.format(folder=tmp_path))
    for _ in range(2):
        with (tmp_path / "log").open("w+") as log:
            stream = subprocess.Popen(
                python("ingest", "--config", tmp_path / "ticks.toml"),
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment(),
            )
            started.append(stream)
            wait_until(lambda: " INFO ingest: batch " in (tmp_path / "log").read_text(), stream)
            stream.send_signal(signal.SIGTERM)
            output, _ = stream.communicate(timeout=TIMEOUT_SECONDS)
            assert stream.returncode == 128 + signal.SIGTERM, (tmp_path / "log").read_text()
            summary = summary_of(output)
            assert (summary["status"], summary["error"]) == ("stopped", "stopped by SIGTERM")
            lines = log_lines((tmp_path / "log").read_text())
            assert any("WARNING ingest: SIGTERM: cancelling" in line for line in lines)
    values = [
        json.loads(row["value"])["value"]
        for row in pylog.scan(tmp_path / "logs").to_table().to_pylist()
    ]
    assert sorted(values) == list(range(len(values)))


@pytest.mark.thorough
def test_a_batch_that_is_ended_by_sigterm_leaves_nothing_staged(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    (tmp_path / "long.toml").write_text(BATCH.format(folder=tmp_path))
    logs = tmp_path / "logs"
    with (tmp_path / "log").open("w+") as log:
        job = subprocess.Popen(
            python("ingest", "--config", tmp_path / "long.toml"),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment(),
        )
        started.append(job)
        wait_until(lambda: any(logs.glob(".pylog-*")), job)
        job.send_signal(signal.SIGTERM)
        output, _ = job.communicate(timeout=TIMEOUT_SECONDS)
    assert job.returncode == 128 + signal.SIGTERM, (tmp_path / "log").read_text()
    assert summary_of(output)["status"] == "stopped"
    assert list(logs.glob(".pylog-*")) == []
    assert list(logs.glob("numbers-*")) == []


def wait_until(condition: Any, process: subprocess.Popen[str]) -> None:  # noqa: ANN401 - a function
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert process.poll() is None, "it ended by itself"
        assert time.monotonic() < deadline
        time.sleep(0.02)


def published(output: Path) -> list[int]:
    """Return the offsets that a reader of the output sees, in order."""
    files = output.glob("run=*/**/*.parquet")
    return sorted(
        offset
        for path in files
        for offset in pq.ParquetFile(path).read(["offset"])["offset"].to_pylist()
    )


@pytest.mark.thorough
def test_an_export_that_is_killed_loses_no_record_and_doubles_none(
    tmp_path: Path, started: list[subprocess.Popen[str]], request: pytest.FixtureRequest
) -> None:
    logs, output = tmp_path / "logs", tmp_path / "out"
    count = 0
    for number in range(request.config.getoption("--soak") or KILLS):
        pylog.write_topic(logs, "orders", pa.table({"value": [b"v" * 100] * 50_000}))
        count += 50_000
        job = subprocess.Popen(
            python("export", logs, output),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment(),
        )
        started.append(job)

        def is_under_way(job: subprocess.Popen[str] = job) -> bool:
            # The last rounds are killed at any time, also after the job has ended.
            return job.poll() is not None or any(output.glob("_staging-*"))

        while not is_under_way():
            time.sleep(0.01)
        time.sleep(0.4 * (number % 10))
        job.kill()
        job.wait()
        seen = published(output)
        assert seen == list(range(len(seen)))
        assert len(seen) % 50_000 == 0  # runs as a whole
    done = run(python("export", logs, output))
    assert done.returncode == 0, done.stderr
    assert published(output) == list(range(count))
    assert not list(output.glob("_staging-*"))


PAGE = (Path(__file__).parents[2] / "docs" / "jobs.md").read_text("utf-8")
SRV = "/srv/pylog"
DAY = "2024-02-29"
DAY_OF_RUN = "{{ macros.ds_add(dag_run.run_after | ds, -1) }}"


class FakeOperator:
    """In place of Airflow's ``BaseOperator``: keeps what comes after it."""

    every: list[FakeOperator] = []  # noqa: RUF012 - one test alone
    arguments: list[str]

    def __init__(self, *, task_id: str) -> None:
        self.task_id = task_id
        self.followers: list[FakeOperator] = []
        self.every.append(self)

    def __rshift__(self, other: FakeOperator) -> FakeOperator:
        self.followers.append(other)
        return other

    def execute(self, context: object) -> str:
        """Be what the file's own operator has in place of it."""
        raise NotImplementedError


class FakeHook:
    """In place of Airflow's ``SubprocessHook``."""

    def run_command(self, command: list[str]) -> types.SimpleNamespace:
        done = run([each.replace(DAY_OF_RUN, DAY) for each in command])
        return types.SimpleNamespace(exit_code=done.returncode, output=done.stdout.strip())


class FakeDag:
    """In place of Airflow's ``DAG``."""

    def __init__(self, dag_id: str, **_: object) -> None:
        self.dag_id = dag_id

    def __enter__(self) -> FakeDag:
        return self

    def __exit__(self, *_: object) -> None:
        """Keep nothing."""


@pytest.fixture
def srv(tmp_path: Path) -> Path:
    """Give what the page has in /srv/pylog: an environment, a configuration, a source."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    program = tmp_path / ".venv" / "bin" / "python"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    program.chmod(0o755)
    [text] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "orders.toml").write_text(text.replace(SRV, str(tmp_path)))
    yesterday = time.strftime("%Y-%m-%d", time.gmtime(time.time() - 86_400))
    for day, row in ((DAY, "1,Ann,9.90,2024-02-29T01:00:00Z"), (yesterday, "2,Bo,1.00,")):
        (tmp_path / "in" / day).mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / day / f"{row[0]}.csv").write_text(f"id,customer,amount,at\n{row}\n")
    return tmp_path


@pytest.mark.thorough
def test_the_line_for_cron_runs(srv: Path) -> None:
    [line] = [line for line in PAGE.splitlines() if line.startswith("15 3 * * *  ")]
    # As cron does: five fields, then a command in which only \% is a percent sign.
    command = line.split(maxsplit=5)[5].replace(r"\%", "%").replace(SRV, str(srv))
    done = run(["/bin/sh", "-c", command])
    assert done.returncode == 0, (srv / "ingest.log").read_text()
    assert (done.stdout, done.stderr) == ("", "")
    summary = summary_of((srv / "ingest.jsonl").read_text())
    assert (summary["status"], summary["rows"]) == ("done", 1)
    assert log_lines((srv / "ingest.log").read_text())


@pytest.mark.thorough
def test_the_dag_for_airflow_runs_and_runs_again(
    srv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = {"AirflowException": RuntimeError, "AirflowFailException": ValueError}
    for name, values in (
        ("airflow", {}),
        ("airflow.sdk", {"DAG": FakeDag, "BaseOperator": FakeOperator}),
        ("airflow.sdk.exceptions", errors),
        ("airflow.providers", {}),
        ("airflow.providers.standard", {}),
        ("airflow.providers.standard.hooks", {}),
        ("airflow.providers.standard.hooks.subprocess", {"SubprocessHook": FakeHook}),
    ):
        module = types.ModuleType(name)
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("PYLOG_HOME", str(srv))
    path = Path(__file__).parents[2] / "jobs" / "schedulers" / "airflow_dag.py"
    exec(compile(path.read_text("utf-8"), path, "exec"), {"__name__": "dag"})  # noqa: S102 - ours
    ingest, verify, export = FakeOperator.every
    assert (ingest.followers, verify.followers) == ([verify], [export])
    assert DAY_OF_RUN in ingest.arguments
    found = [json.loads(task.execute(None)) for task in (ingest, verify, export, ingest)]
    assert [each.get("rows") for each in found] == [1, None, 1, 0]
    assert found[3]["alreadyCommitted"] is True
    ingest.arguments.append("--nope")
    with pytest.raises(ValueError, match="ingest ended with status 2"):
        ingest.execute(None)

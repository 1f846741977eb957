"""The files of ``jobs/schedulers``: each runs jobs that exist, and retries what may be mended."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from pylog_jobs.exit_status import DONE, FAILED, FINDINGS, OF_SIGNALS, UNUSABLE

if TYPE_CHECKING:
    from types import ModuleType

SCHEDULERS = Path(__file__).parents[3] / "jobs" / "schedulers"
RETRIED = [FAILED, OF_SIGNALS + 2, OF_SIGNALS + 15]


def module(name: str) -> ModuleType:
    """Return a file of the folder, which is no package, as a module."""
    spec = importlib.util.spec_from_file_location(name, SCHEDULERS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def ensure_arguments(job: str, arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    importlib.import_module(f"pylog_jobs.{job}").JOB.add_arguments(parser)
    parser.parse_args(arguments)


def test_kubernetes_takes_the_cron_job() -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    yaml = pytest.importorskip("yaml")
    manifest = yaml.safe_load((SCHEDULERS / "kubernetes_cronjob.yaml").read_text("utf-8"))
    kubernetes_validate.validate(manifest, "1.31", strict=True)
    assert manifest["spec"]["concurrencyPolicy"] == "Forbid"
    job = manifest["spec"]["jobTemplate"]["spec"]
    [container] = job["template"]["spec"]["containers"]
    assert job["template"]["spec"]["restartPolicy"] == "Never"
    [fails] = [rule for rule in job["podFailurePolicy"]["rules"] if rule["action"] == "FailJob"]
    assert fails["onExitCodes"] == {
        "containerName": container["name"],
        "operator": "NotIn",
        "values": RETRIED,
    }
    assert container["command"] == ["python", "-m", "pylog_jobs.ingest"]
    ensure_arguments("ingest", container["args"])


def test_systemd_takes_service_and_timer(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd here")
    python = "/srv/pylog/.venv/bin/python"
    for path in SCHEDULERS.glob("pylog-*"):
        (tmp_path / path.name).write_text(path.read_text("utf-8").replace(python, "/bin/true"))
    units = [str(path) for path in sorted(tmp_path.iterdir())]
    assert [Path(each).suffix for each in units] == [".service", ".timer"]
    done = subprocess.run(
        [program, "verify", *units], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    service = (SCHEDULERS / "pylog-ingest-orders.service").read_text("utf-8")
    [command] = re.findall(rf"^ExecStart={python} -m pylog_jobs\.ingest (.*)$", service, re.M)
    ensure_arguments("ingest", command.split())
    [kept] = re.findall(r"^RestartPreventExitStatus=(.*)$", service, re.M)
    assert {FINDINGS, UNUSABLE} <= set(map(int, kept.split()))
    assert not set(RETRIED) & set(map(int, kept.split()))


def test_the_job_of_databricks_runs_run_job() -> None:
    job = json.loads((SCHEDULERS / "databricks_job.json").read_text("utf-8"))
    assert job["max_concurrent_runs"] == 1
    names = [each["task_key"] for each in job["tasks"]]
    for number, task in enumerate(job["tasks"]):
        assert [each["task_key"] for each in task.get("depends_on", [])] == names[:number][-1:]
        assert task["max_retries"] == 0  # run_job.py knows better
        assert Path(task["spark_python_task"]["python_file"]).name == "run_job.py"
        name, *arguments = task["spark_python_task"]["parameters"]
        assert name in module("run_job").JOBS
        ensure_arguments(name, arguments)


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([DONE], DONE),
        ([FINDINGS], FINDINGS),
        ([UNUSABLE], UNUSABLE),
        ([4], 4),
        ([143], 143),
        ([FAILED, FAILED, DONE], DONE),
        ([FAILED, UNUSABLE], UNUSABLE),
        ([FAILED] * 4, FAILED),
    ],
)
def test_run_job_tries_again_what_may_succeed(
    monkeypatch: pytest.MonkeyPatch, statuses: list[int], expected: int
) -> None:
    left = list(statuses)
    given: list[Any] = []
    waited: list[float] = []

    def run(arguments: list[str]) -> int:
        given.append(arguments)
        return left.pop(0)

    ingest = importlib.import_module("pylog_jobs.ingest")
    monkeypatch.setattr(ingest, "JOB", SimpleNamespace(main=run))
    assert module("run_job").main(["ingest", "--config", "x.toml"], waited.append) == expected
    assert given == [["--config", "x.toml"]] * len(statuses)
    assert (left, len(waited)) == ([], len(statuses) - 1)


def test_run_job_knows_its_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    assert module("run_job").main(["nope"]) == UNUSABLE
    assert "name a job first: ingest, export" in capsys.readouterr().err

"""``make cluster-demo``: jobs on a real standalone cluster, submitted as users do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.delivery import ROOT
from tests.support.spark_session import NEEDS_SPARK, require_java

pytestmark = [*NEEDS_SPARK, pytest.mark.e2e, pytest.mark.slow]

STEPS = ["ingest", "export", "retention plan", "retention", "compact", "read", "verify"]


def start(directory: Path) -> subprocess.Popen[str]:
    require_java()
    return subprocess.Popen(
        [sys.executable, "-m", "tests.cluster_demo", directory, "--delivery", "wheel", "--once"],
        cwd=ROOT,
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def processes_that_name(path: Path) -> list[bytes]:
    lines = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = each.read_bytes()
        except OSError:  # it has ended
            continue
        if os.fsencode(path) in line:
            lines.append(line)
    return lines


@pytest.mark.thorough
def test_every_job_runs_on_a_cluster_which_is_stopped_then(tmp_path: Path) -> None:
    stdout, stderr = start(tmp_path / "demo").communicate(timeout=1200)
    assert stdout.endswith("\nAll counts are right; the cluster has been stopped.\n"), stderr
    ran = [line[2:16].rstrip() for line in stdout.splitlines() if " s  " in line]
    assert ran == STEPS
    assert processes_that_name(tmp_path) == []


def test_ctrl_c_stops_the_cluster(tmp_path: Path) -> None:
    process = start(tmp_path / "demo")
    assert process.stdout is not None
    for line in process.stdout:
        if "logs in" in line:
            break
    time.sleep(1)  # the first job is being submitted
    assert processes_that_name(tmp_path)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stderr == "cluster-demo: interrupted; the cluster has been stopped\n"
    assert processes_that_name(tmp_path) == []

"""Exports to tables whose process is killed, by SIGKILL, at any time: each record is there once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.kills.kill_point import kill_session
from tests.spark.test_job_processes import environment, python
from tests.support.spark_session import NEEDS_SPARK
from tests.unit.jobs.exported_tables import ICEBERG, append, catalog_variables
from tests.unit.jobs.test_export_tables import TABLES, catalog, numbers

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["catalog"]  # a fixture

pytestmark = [
    *NEEDS_SPARK,
    pytest.mark.slow,
    pytest.mark.thorough,
    pytest.mark.filterwarnings("default"),
]

KILLS = 6
SEED = 20261127
RUN_SECONDS = 300


def exported(folder: Path, kind: str, kill_after: float | None = None) -> dict[str, object] | None:
    """Run the job as a process; return its summary, None where it was killed before its end."""
    output = ICEBERG if kind == "iceberg" else str(folder / kind)
    process = subprocess.Popen(
        python("export", folder / "logs", output, "--format", kind),
        env={**environment(), **catalog_variables(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        out, _ = process.communicate(timeout=RUN_SECONDS if kill_after is None else kill_after)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        kill_session(process.pid)
        process.communicate()
        return None
    assert process.returncode == 0
    return dict(json.loads(out))


@pytest.mark.parametrize("kind", TABLES)
def test_a_killed_export_loses_and_doubles_nothing(tmp_path: Path, kind: str) -> None:
    chance = random.Random(SEED)
    sys.stdout.write(f"seed {SEED}\n")
    append(tmp_path / "logs", range(2_000))
    began = time.monotonic()
    exported(tmp_path, kind)
    whole = time.monotonic() - began
    count, killed = 2_000, 0
    for _ in range(KILLS):
        append(tmp_path / "logs", range(count, count + 500))
        count += 500
        # The start of the JVM is of no interest.
        killed += exported(tmp_path, kind, chance.uniform(whole * 0.4, whole * 1.05)) is None
        found = numbers(tmp_path, kind)
        assert found == list(range(len(found)))
    assert killed
    exported(tmp_path, kind)
    assert numbers(tmp_path, kind) == list(range(count))

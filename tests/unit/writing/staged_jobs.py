"""Write jobs as tests stage them, and what is in a directory afterwards."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import pylog
from pylog.testing import ManualClock

if TYPE_CHECKING:
    from pathlib import Path

NOW_MS = 1_700_000_000_000


def job_in(directory: Path, job_id: str = "nightly", **options: object) -> pylog.jobs.WriteJob:
    options.setdefault("topic", "orders")
    return pylog.jobs.WriteJob(str(directory), job_id, **options)  # type: ignore[arg-type]


def stage(
    job: pylog.jobs.WriteJob, *columns: dict[str, Any], now_ms: int = NOW_MS
) -> pylog.jobs.StagedRecords:
    context = pylog.logs.LogContext(clock=ManualClock(now_ms))
    with job.stage("attempt", context=context) as attempt:
        for each in columns:
            attempt.append(pa.record_batch(each))
    return attempt.staged


def values_in(directory: Path) -> dict[tuple[str, int], list[str]]:
    found = defaultdict(list)
    table = pylog.scan(directory, columns=["topic", "partition", "value"]).to_table()
    for row in table.to_pylist():
        found[row["topic"], row["partition"]].append(row["value"].decode())
    return dict(found)


def job_files(directory: Path) -> list[str]:
    names = {path.name for path in directory.iterdir() if path.name.startswith(".pylog-")}
    return sorted(names - {".pylog-ledger", ".pylog-only-replica"})

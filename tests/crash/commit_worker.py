"""Commits jobs, each in a child of its own that a test may kill: ``python -m … DIRECTORY``.

For each number that comes in by a line, a child stages and commits a job, and its process id goes
out once it has staged everything. After another line the child is waited for; then ``ended`` goes
out.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pyarrow as pa

import pylog

TASKS = 2
PROPERTIES = {"segment.bytes": "30000", "index.interval.bytes": "1000"}


def job_in(directory: Path, number: int) -> pylog.jobs.WriteJob:
    """Return the job of a number."""
    job_id = f"job {number}"
    return pylog.jobs.WriteJob(
        str(directory), job_id, partitions=2, batch_size_bytes=1_000, config=PROPERTIES
    )


def rows_of(number: int, task: int) -> list[tuple[str, int, str]]:
    """Return topic, partition and value of what a task of a job writes: much to one partition."""
    places = [("orders", 0)] * 300 + [("orders", 1)] * 30 + [(f"new-{number}", 1)] * 30
    return [
        (*place, f"job {number} task {task} row {row:04} {'x' * 40}")
        for row, place in enumerate(places)
    ]


def stage(job: pylog.jobs.WriteJob, number: int) -> list[pylog.jobs.StagedRecords]:
    """Stage what all tasks of a job write."""
    staged = []
    for task in range(TASKS):
        topics, partitions, values = zip(*rows_of(number, task), strict=True)
        with job.stage(f"task-{task}") as attempt:
            numbers = pa.array(partitions, pa.int32())
            columns = {"topic": topics, "partition": numbers, "value": values}
            attempt.append(pa.record_batch(columns))
        staged.append(attempt.staged)
    return staged


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(directory: Path) -> None:
    """Serve until there are no more lines."""
    with tempfile.TemporaryDirectory() as other:  # import and load, once for all children
        job = job_in(Path(other), 0)
        job.commit(stage(job, 0))
    while line := sys.stdin.readline():
        job = job_in(directory, int(line))
        child = os.fork()
        if child == 0:
            staged = stage(job, int(line))
            _say(str(os.getpid()))
            job.commit(staged)
            os._exit(0)
        sys.stdin.readline()
        os.waitpid(child, 0)  # not before: until then nobody else has its number
        _say("ended")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

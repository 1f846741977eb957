"""Runs jobs without Spark, each in a child that is killed where a kill point says.

``python -m tests.kills.job_server DIRECTORY``: a line for each job comes in, see `Request`; the
exit status of the child goes out, negative for a signal.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import traceback
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyarrow as pa

import pylog
from tests.kills.jobs import (
    BATCH_SIZE_BYTES,
    CONFIG,
    PARTITIONS,
    TOPIC,
    partition_of,
    row_count,
    value_of,
)
from tests.kills.kill_point import KillPoint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

PROJECT = Path(__file__).parents[2]
JOBS_A_QUERY = 50
"""The ledger keeps the newest hundred micro-batches of a query."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a child is to do.

    Attributes
    ----------
    number
        Of the job, which is run as a scheduler does it: what an attempt before left is removed.
        None: the log directory is opened and closed, as another writer would.
    makes_topic
        Whether some rows go to a topic that is not there yet.
    kill
        A `KillPoint` as JSON; None to let the child live.
    """

    number: int | None
    makes_topic: bool = False
    kill: str | None = None


def job_of(directory: str, number: int) -> pylog.jobs.WriteJob:
    """Return a job, by turns of its own and a micro-batch of a query."""
    is_batch = number % 4 < 2
    return pylog.jobs.WriteJob(
        directory,
        f"job {number}" if is_batch else f"query {number // JOBS_A_QUERY}",
        None if is_batch else number,
        partitions=PARTITIONS,
        batch_size_bytes=BATCH_SIZE_BYTES,
        config=CONFIG,
    )


def _stage(job: pylog.jobs.WriteJob, request: Request) -> Iterator[pylog.jobs.StagedRecords]:
    number = request.number or 0
    small = f"new-{number:05}" if request.makes_topic else TOPIC
    for task in range(2):
        rows = range(task, row_count(number), 2)
        partitions = [partition_of(row) for row in rows]
        with job.stage(f"task-{task}") as attempt:
            columns = {
                "topic": [TOPIC if each < 2 else small for each in partitions],
                "partition": pa.array(partitions, pa.int32()),
                "value": [value_of(number, row) for row in rows],
            }
            attempt.append(pa.record_batch(columns))
        yield attempt.staged


def run(directory: str, request: Request) -> None:
    """Do what is asked for, and die where it says so."""
    point = KillPoint.from_json(request.kill) if request.kill else None
    with point.armed(point.step) if point else nullcontext():
        if request.number is None:
            with pylog.logs.LogManager([directory]):
                return
        job = job_of(directory, request.number)
        job.abort()
        job.commit(list(_stage(job, request)))


class JobServer:
    """The process that forks those that are killed.

    Parameters
    ----------
    directory
        The log directory.
    """

    def __init__(self, directory: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(directory)],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate(timeout=60)

    def run(self, request: Request) -> int:
        """Return the exit status of a child."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(asdict(request))}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def _warm_up() -> None:
    """Import and load, once for all children, what a job and another opener need."""
    with tempfile.TemporaryDirectory() as directory:
        run(directory, Request(0, makes_topic=True))
        run(directory, Request(None))


def _serve(directory: str) -> None:
    _warm_up()
    while line := sys.stdin.readline():
        child = os.fork()
        if child == 0:
            status = 1
            try:
                run(directory, Request(**json.loads(line)))
                status = 0
            finally:
                if status:
                    traceback.print_exc()
                os._exit(status)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve(sys.argv[1])

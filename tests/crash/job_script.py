"""A job that writes to four partitions in every way there is, and what they are to hold of it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pyarrow as pa

import pylog
from pylog.files.file_names import MANIFEST
from pylog.log.log_context import LogContext
from pylog.testing import ManualClock, ManualScheduler
from tests.support.recording_io import ForgetfulIO

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.files.durable_io import DurableIO

NOW_MS = 1_700_000_000_000
SEGMENT_BYTES = 1_000
PROPERTIES = {
    "segment.bytes": str(SEGMENT_BYTES),
    "index.interval.bytes": "200",
    "segment.index.bytes": "240",
}
Content = dict[str, list[str]]
"""Values by partition, in the order of their offsets."""


def context_of(io: DurableIO) -> LogContext:
    """Return time and background work that tests decide on."""
    clock = ManualClock(NOW_MS)
    return LogContext(io=io, clock=clock, scheduler=ManualScheduler(clock))


def job_in(directory: Path) -> pylog.jobs.WriteJob:
    """Return the job: it finds two topics and makes one."""
    return pylog.jobs.WriteJob(
        str(directory),
        "nightly",
        partitions=1,
        batch_size_bytes=300,
        config=PROPERTIES,
    )


def prepare(directory: Path, io: DurableIO) -> None:
    """Write what is there before the job: two topics, one of them stamped by the log."""
    pylog.write_topic(
        directory,
        "orders",
        [(None, f"old {each}") for each in range(4)],
        partitions=2,
        partitioner="round_robin",
        config=PROPERTIES,
        context=context_of(io),
    )
    pylog.write_topic(
        directory,
        "stamped",
        [(None, "old stamped")],
        config={**PROPERTIES, "message.timestamp.type": "LogAppendTime"},
        context=context_of(io),
    )


def before() -> Content:
    """Return what `prepare` writes."""
    return {
        "orders-0": ["old 0", "old 2"],
        "orders-1": ["old 1", "old 3"],
        "stamped-0": ["old stamped"],
    }


def rows_of(task: int) -> list[tuple[str, int, str]]:
    """Return what a task stages: topic, partition, value."""
    large = [("orders", 0, f"task {task} large {each:03} {'x' * 30}") for each in range(14)]
    small = [("orders", 1, f"task {task} small {each}") for each in range(3)]
    stamped = [("stamped", 0, f"task {task} stamped {each}") for each in range(3)]
    new = [("new", 0, f"task {task} new {each} {'x' * 20}") for each in range(12)]
    return [*large, *small, *stamped, *new]


def after() -> Content:
    """Return what the directory holds once the job was committed."""
    content = defaultdict(list, {name: list(values) for name, values in before().items()})
    for task in range(2):
        for topic, partition, value in rows_of(task):
            content[f"{topic}-{partition}"].append(value)
    return dict(content)


def stage(job: pylog.jobs.WriteJob, io: DurableIO) -> list[pylog.jobs.StagedRecords]:
    """Stage what both tasks write."""
    staged = []
    for task in range(2):
        topics, partitions, values = zip(*rows_of(task), strict=True)
        with job.stage(f"task-{task}", context=context_of(io)) as attempt:
            numbers = pa.array(partitions, pa.int32())
            columns = {"topic": topics, "partition": numbers, "value": values}
            attempt.append(pa.record_batch(columns))
        staged.append(attempt.staged)
    return staged


def run_again(directory: Path) -> pylog.results.WriteJobSummary:
    """Run the job as its scheduler does after a failure: what was staged is staged anew."""
    job, io = job_in(directory), ForgetfulIO()
    job.abort(context=context_of(io))
    return job.commit(stage(job, io), context=context_of(io))


def visible(directory: Path) -> Content:
    """Return what a reader finds."""
    content: dict[str, list[str]] = defaultdict(list)
    scan = pylog.scan(directory, columns=["topic", "partition", "value"])
    for topic, partition, value in zip(*scan.to_table().to_pydict().values(), strict=True):
        content[f"{topic}-{partition}"].append(value.decode())
    return dict(content)


def leftovers(directory: Path) -> list[str]:
    """Return the files of jobs that are still there, but the ledger."""
    return [
        path.name
        for path in directory.iterdir()
        if path.name.startswith(".pylog-")
        and path.name not in (".pylog-ledger", ".pylog-only-replica")
    ]


def append_as_a_broker(directory: Path) -> bool:
    """Open the directory as one who knows no manifest, and append a record to each partition.

    Returns whether there was a manifest.
    """
    manifest, aside = directory / MANIFEST, directory.parent / "manifest-aside"
    is_there = manifest.exists()
    if is_there:
        manifest.rename(aside)
    with pylog.logs.LogManager([directory], context=context_of(ForgetfulIO())) as manager:
        for topic_partition, log in manager.logs.items():
            batch = pylog.logs.RecordBatchBuilder()
            batch.append(NOW_MS, None, f"broker {topic_partition}".encode())
            log.append_as_leader(batch.build())
    if is_there:
        aside.rename(manifest)
    return is_there

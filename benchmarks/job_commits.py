"""Part ``commit``: the commit of a write job whose rows lie in staged files.

Uncompressed values of 100 B. One task for one partition stages a file that fills a segment of the
default size; many tasks for several partitions, as Spark has them, stage many smaller files. The
commit adopts all of them. What it does grows with the batches, so it is measured with two sizes of
these. The disk is synced before the clock starts: what tasks have forced to it is not the commit's.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

import pylog
from benchmarks.data_sets import Bench
from benchmarks.measuring import Run, ensure_equal, timed

VALUE_BYTES = 100
JOB_BYTES = 1_000_000_000
QUICK_BYTES = 50_000_000
SHAPES = ((16_384, 1, 1), (262_144, 1, 1), (16_384, 16, 4))
"""Bytes of a batch, tasks, partitions."""
_ROWS = 8_192
_SEED = 20_261_122


@dataclass(slots=True)
class CommitFigure:
    """Commits of jobs of one size."""

    batch_bytes: int
    tasks: int
    partitions: int
    job_bytes: int = 0
    files: int = 0
    batches: int = 0
    runs: list[Run] = field(default_factory=list)


def _stage(job: pylog.jobs.WriteJob, tasks: int, job_bytes: int) -> list[pylog.jobs.StagedRecords]:
    values = np.random.default_rng(_SEED).bytes(_ROWS * VALUE_BYTES)
    column = pa.Array.from_buffers(pa.binary(VALUE_BYTES), _ROWS, [None, pa.py_buffer(values)])
    numbers = pa.array(np.arange(_ROWS, dtype=np.int32) % (job.partitions or 1))
    batch = pa.record_batch({"value": column, "partition": numbers})
    staged = []
    for task in range(tasks):
        with job.stage(f"bench-{task}") as stage:
            for _ in range(job_bytes // (tasks * _ROWS * (VALUE_BYTES + 8))):
                stage.append(batch)
        staged.append(stage.staged)
    return staged


def measure_job_commits(
    bench: Bench, rounds: int, say: Callable[[str], None]
) -> list[CommitFigure]:
    """Return what commits take, by the size of batches."""
    figures = [CommitFigure(*shape) for shape in SHAPES]
    directory = bench.root / "job-commit"
    for round_number in range(rounds):
        for figure in figures:
            shape = f"{figure.tasks} tasks, batches of {figure.batch_bytes:,} B"
            say(f"commit of a job, round {round_number + 1}, {shape}")
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            job = pylog.jobs.WriteJob(
                str(directory),
                "bench",
                topic="job",
                partitions=figure.partitions,
                batch_size_bytes=figure.batch_bytes,
            )
            staged = _stage(job, figure.tasks, QUICK_BYTES if bench.quick else JOB_BYTES)
            files = [file for each in staged for file in each.files]
            figure.job_bytes = sum(each.size_bytes for each in files)
            figure.files = len(files)
            figure.batches = sum(each.batch_count for each in files)
            os.sync()
            figure.runs.append(timed(lambda: job.commit(staged)))  # noqa: B023 - called at once
            ends = [each.log_end_offset for each in pylog.open_directory(directory)]
            records = sum(each.record_count for each in staged)
            ensure_equal("records of a committed job", sum(ends), records)
    shutil.rmtree(directory, ignore_errors=True)
    return figures

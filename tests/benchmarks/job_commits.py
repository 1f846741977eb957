"""Part ``commit``: the commit of a write job whose rows lie in staged files.

One partition, uncompressed values of 100 B; what is staged fills a segment of the default size,
which the commit adopts. What it does grows with the batches, so it is measured with two sizes of
these. The disk is synced before the clock starts: what tasks have forced to it is not the commit's.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

import pylog
from tests.benchmarks.data_sets import Bench
from tests.benchmarks.measuring import Run, ensure_equal, timed

VALUE_BYTES = 100
JOB_BYTES = 1_000_000_000
QUICK_BYTES = 50_000_000
BATCH_BYTES = (16_384, 262_144)
_ROWS = 65_536
_SEED = 20_261_122


@dataclass(slots=True)
class CommitFigure:
    """Commits of jobs of one size."""

    batch_bytes: int
    job_bytes: int = 0
    batches: int = 0
    runs: list[Run] = field(default_factory=list)


def _stage(job: pylog.WriteJob, job_bytes: int) -> pylog.StagedRecords:
    values = np.random.default_rng(_SEED).bytes(_ROWS * VALUE_BYTES)
    column = pa.Array.from_buffers(pa.binary(VALUE_BYTES), _ROWS, [None, pa.py_buffer(values)])
    batch = pa.record_batch({"value": column})
    with job.stage("bench") as stage:
        for _ in range(job_bytes // (_ROWS * (VALUE_BYTES + 8))):
            stage.append(batch)
    return stage.staged


def measure_job_commits(
    bench: Bench, rounds: int, say: Callable[[str], None]
) -> list[CommitFigure]:
    """Return what commits take, by the size of batches."""
    figures = [CommitFigure(batch_bytes) for batch_bytes in BATCH_BYTES]
    directory = bench.root / "job-commit"
    for round_number in range(rounds):
        for figure in figures:
            say(f"commit of a job, round {round_number + 1}, batches of {figure.batch_bytes:,} B")
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            job = pylog.WriteJob(
                str(directory), "bench", topic="job", batch_size_bytes=figure.batch_bytes
            )
            staged = _stage(job, QUICK_BYTES if bench.quick else JOB_BYTES)
            figure.job_bytes = staged.size_bytes
            figure.batches = sum(each.batch_count for each in staged.files)
            os.sync()
            figure.runs.append(timed(lambda: job.commit([staged])))  # noqa: B023 - called at once
            ends = [each.log_end_offset for each in pylog.open_directory(directory)]
            ensure_equal("records of a committed job", ends, [staged.record_count])
    shutil.rmtree(directory, ignore_errors=True)
    return figures

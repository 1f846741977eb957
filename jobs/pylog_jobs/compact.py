"""Keep the last record of each key, in topics that are compacted, as a broker's cleaner does.

Spark's tasks clean the partitions; the driver owns the log directory from the plan to the end, and
puts what tasks have written in the place of what was there. A partition whose keys no task's memory
holds is cleaned by all tasks together.

``python -m pylog_jobs.compact LOG_DIRECTORY``, or ``spark-submit``; see docs/jobs.md.
"""

from __future__ import annotations

import heapq
import logging
import pickle
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as sf

import pylog
from pylog_jobs.cleanup import add_arguments as add_common_arguments
from pylog_jobs.cleanup import cleanup_outcome, parameters_of
from pylog_jobs.job import Job, end_process
from pylog_jobs.stop_request import StopRequest
from pyspark_pylog.jobs import place_of_write_added, prepare_worker

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from pylog_jobs.job import Outcome

_LOGGER = logging.getLogger("pylog_jobs.compact")  # also where this is __main__

_TASKS_A_CORE = 8
"""Small partitions share tasks: more tasks would cost more than they level out."""
_KEYS = "hash_0 long, hash_1 long, offset long, group int, is_mapped boolean"
_CLEANED = pa.schema([pa.field("cleaned", pa.binary(), nullable=False)])
_NO_OFFSET = -1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this job."""
    add_common_arguments(
        parser,
        topics="all compacted ones",
        counted="lags and delete horizons",
        once="Only partitions that a broker's cleaner would choose now, by dirty ratio and lag.",
    )


def prepare(arguments: argparse.Namespace) -> pylog.jobs.CompactionJob:
    """Return the compaction, which owns nothing yet."""
    return pylog.jobs.CompactionJob(**parameters_of(arguments))


def run(
    spark: SparkSession, compaction: pylog.jobs.CompactionJob, stop: StopRequest | None = None
) -> Outcome:
    """Compact; return what went."""
    stop = stop or StopRequest()
    with compaction:
        tasks = compaction.tasks
        _LOGGER.info(
            "%d partitions to clean, %d bytes", len(tasks), sum(each.size_bytes for each in tasks)
        )
        staged = {each.topic_partition: each for each in clean_by_tasks(spark, tasks)}
        by_engine = 0
        for large in compaction.large(tuple(staged.values())):
            stop.ensure_not_requested()
            _LOGGER.info(
                "%s has more keys than fit into log.cleaner.dedupe.buffer.size: it is cleaned in "
                "%d groups of segments by all tasks together",
                *(large.topic_partition, large.group_count),
            )
            staged[large.topic_partition] = clean_by_engine(spark, large)
            by_engine += 1
        stop.ensure_not_requested()
        summary = compaction.commit(staged.values())
    return cleanup_outcome(
        compaction.directory,
        summary,
        logger=_LOGGER,
        failure="%s cannot be cleaned: %s",
        removed=lambda totals: (
            pylog.jobs.counted(totals.records, "record"),
            totals.cleaned_partitions,
            totals.removed_bytes,
        ),
        more={"partitionsByEngine": by_engine},
    )


def clean_by_tasks(
    spark: SparkSession, tasks: Sequence[pylog.jobs.CleaningTask]
) -> list[pylog.jobs.StagedCleaning]:
    """Run tasks, each partition in one of them; return what they have staged, in any order."""
    if not tasks:
        return []
    context = spark.sparkContext
    packed = pack(tasks, _TASKS_A_CORE * context.defaultParallelism)
    staged: list[pylog.jobs.StagedCleaning] = (
        context.parallelize(packed, len(packed)).flatMap(_clean_all).collect()
    )
    return staged


def pack(
    tasks: Sequence[pylog.jobs.CleaningTask], most: int
) -> list[tuple[pylog.jobs.CleaningTask, ...]]:
    """Return tasks in at most so many groups of about the same size, the largest group first."""
    groups: list[list[pylog.jobs.CleaningTask]] = [[] for _ in range(min(len(tasks), most))]
    lightest = [(0, number) for number in range(len(groups))]
    for task in sorted(tasks, key=lambda task: -task.size_bytes):
        weight, number = heapq.heappop(lightest)
        groups[number].append(task)
        heapq.heappush(lightest, (weight + task.size_bytes, number))
    heaviest_first = sorted(lightest, key=lambda each: (-each[0], each[1]))
    return [tuple(groups[number]) for _, number in heaviest_first]


def _clean_all(tasks: tuple[pylog.jobs.CleaningTask, ...]) -> list[pylog.jobs.StagedCleaning]:
    prepare_worker()
    with place_of_write_added():
        return [task.run() for task in tasks]


def _read_transactions(task: pylog.jobs.SegmentTransactionsTask) -> pylog.jobs.SegmentTransactions:
    prepare_worker()
    return task.run()


def clean_by_engine(
    spark: SparkSession, large: pylog.jobs.LargeCleaning
) -> pylog.jobs.StagedCleaning:
    """Clean one partition by a shuffle of its keys' hashes; return what was staged."""
    tasks = large.transactions
    found = spark.sparkContext.parallelize(tasks, len(tasks)).map(_read_transactions).collect()
    plan = large.plan(found)
    if plan.failure is not None:
        return plan.failure
    keys, groups = plan.record_keys, plan.groups

    def read_keys(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from keys[number].read()

    def clean_group(rows: pa.Table) -> pa.Table:
        prepare_worker()
        number = rows.column("group")[0].as_py()
        with place_of_write_added():
            cleaned = groups[number].run(rows.column("offset").to_numpy())
        return pa.table([[pickle.dumps(cleaned)]], schema=_CLEANED)

    records = spark.range(0, len(keys), 1, len(keys)).mapInArrow(read_keys, _KEYS)
    mapped = sf.when(sf.col("is_mapped"), sf.col("offset"))
    last = sf.max(mapped).over(Window.partitionBy("hash_0", "hash_1"))
    superseded = records.withColumn("last", last).where("offset < last").select("group", "offset")
    # A row for each group, so that those are cleaned, too, that lose no record for its key.
    every = spark.range(len(groups)).select(
        sf.col("id").cast("int").alias("group"), sf.lit(_NO_OFFSET).cast("long").alias("offset")
    )
    cleaned = (
        superseded.unionByName(every)
        .repartition(len(groups), "group")
        .groupBy("group")
        .applyInArrow(clean_group, "cleaned binary")
    )
    rows = cleaned.collect()
    return plan.merge(pickle.loads(row["cleaned"]) for row in rows)  # noqa: S301 - our own


JOB = Job("compact", __doc__, add_arguments, prepare, run)

if __name__ == "__main__":
    end_process(JOB.main())

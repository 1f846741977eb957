"""Keep the last record of each key, in topics that are compacted, as a broker's cleaner does.

Spark's tasks clean the partitions; the driver owns the log directory from the plan to the end, and
puts what tasks have written in the place of what was there. A partition whose keys no task's memory
holds is cleaned by all tasks together.

``python -m pylog_jobs.compact LOG_DIRECTORY``, or ``spark-submit``; see docs/jobs.md.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pylog
from pylog_jobs.cleanup_arguments import add_arguments as add_common_arguments
from pylog_jobs.cleanup_arguments import parameters_of
from pylog_jobs.cleanup_outcome import cleanup_outcome
from pylog_jobs.compaction_tasks import clean_by_engine, clean_by_tasks
from pylog_jobs.job import Job, end_process
from pylog_jobs.stop_request import StopRequest

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import SparkSession

    from pylog_jobs.job import Outcome

_LOGGER = logging.getLogger("pylog_jobs.compact")  # also where this is __main__


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this job."""
    add_common_arguments(
        parser,
        topics="all compacted ones",
        once="only partitions that a broker's cleaner would choose now, by dirty ratio and lag",
    )


def prepare(arguments: argparse.Namespace) -> pylog.CompactionJob:
    """Return the compaction, which owns nothing yet.

    Raises
    ------
    LogStorageError
        The directory is not a log directory, has not the topics asked for, or of some of them the
        configuration is not known.
    ValueError
        An argument is malformed, or a topic is not compacted.
    """
    parameters = parameters_of(arguments)
    return pylog.CompactionJob(
        parameters.directory,
        topics=parameters.topics,
        server_properties=parameters.server_properties,
        config=parameters.config,
        now_ms=parameters.now_ms,
        once=parameters.once,
        dry_run=parameters.dry_run,
    )


def run(
    spark: SparkSession, compaction: pylog.CompactionJob, stop: StopRequest | None = None
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
    return _outcome(compaction.directory, summary, by_engine)


def _outcome(directory: str, summary: pylog.CompactionSummary, by_engine: int) -> Outcome:
    would = "would be" if summary.is_dry_run else "were"

    def removed(totals: pylog.CompactionTotals) -> str | None:
        if not totals.cleaned_partitions:
            return None
        return (
            f"{totals.records} records of {totals.cleaned_partitions} partitions {would} removed "
            f"({totals.removed_bytes} bytes); {totals.size_bytes} bytes remain"
        )

    return cleanup_outcome(
        directory,
        summary,
        logger=_LOGGER,
        failure="%s cannot be cleaned: %s",
        removed=removed,
        counts=_counts,
        more={"partitionsByEngine": by_engine},
    )


def _counts(totals: pylog.CompactionTotals) -> dict[str, int | bool]:
    return {
        "partitions": totals.partitions,
        "cleanedPartitions": totals.cleaned_partitions,
        "removedRecords": totals.records,
        "removedBytes": totals.removed_bytes,
        "sizeInBytes": totals.size_bytes,
        "isComplete": totals.is_complete,
    }


JOB = Job("compact", __doc__, add_arguments, prepare, run)

if __name__ == "__main__":
    end_process(JOB.main())

"""Remove the segments that topics no longer keep, by age and size, as a broker does.

Names, indexes and batch headers tell which; so the driver does all of it, and starts no task.

``python -m pylog_jobs.retention LOG_DIRECTORY``, or ``spark-submit``; see docs/jobs.md.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pylog
from pylog.errors import UnknownTopicConfigError, UnknownTopicOrPartitionError
from pylog_jobs.cleanup import add_arguments as add_common_arguments
from pylog_jobs.cleanup import cleanup_outcome, parameters_of
from pylog_jobs.job import Job, UsageError, end_process
from pylog_jobs.stop_request import StopRequest

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import SparkSession

    from pylog_jobs.job import Outcome

_LOGGER = logging.getLogger("pylog_jobs.retention")  # also where this is __main__


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this job."""
    add_common_arguments(
        parser,
        topics="all",
        counted="ages",
        once="One pass, which is all that retention ever needs; compact has the same option.",
    )


def run(
    spark: SparkSession, parameters: dict[str, Any], stop: StopRequest | None = None
) -> Outcome:
    """Remove; return what went."""
    stop = stop or StopRequest()
    of_library = {name: value for name, value in parameters.items() if name != "once"}
    try:
        summary = pylog.apply_retention(
            **of_library, progress=lambda _done, _total: stop.ensure_not_requested()
        )
    except (UnknownTopicConfigError, UnknownTopicOrPartitionError, ValueError) as error:
        raise UsageError(str(error)) from error
    would = "would be" if summary.is_dry_run else "were"
    return cleanup_outcome(
        parameters["directory"],
        summary,
        logger=_LOGGER,
        failure=f"nothing {would} removed from %s: %s",
        removed=lambda totals: (
            pylog.jobs.counted(totals.segments, "segment"),
            totals.changed_partitions,
            totals.deleted_bytes,
        ),
    )


JOB = Job("retention", __doc__, add_arguments, parameters_of, run)

if __name__ == "__main__":
    end_process(JOB.main())

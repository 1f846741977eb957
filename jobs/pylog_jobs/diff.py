"""Compare logs: replicas, a topic and its copy, or compacted logs, one partition per task.

``python -m pylog_jobs.diff PATH PATH``, or ``spark-submit``; see docs/jobs.md.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pylog
from pylog_jobs.by_partition import PartitionParameters, for_each_partition, partition_parameters
from pylog_jobs.by_partition import add_arguments as add_common_arguments
from pylog_jobs.exit_status import DONE, FINDINGS
from pylog_jobs.job import Job, Outcome, UsageError, end_process
from pylog_jobs.stop_request import StopRequest

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import SparkSession

_IN_SUMMARY = 20
_LOGGER = logging.getLogger("pylog_jobs.diff")  # also where this is __main__


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this job."""
    add_common_arguments(parser, pylog.jobs.diff_options())


def prepare(arguments: argparse.Namespace) -> PartitionParameters:
    """Return the parameters, after a look at the directories."""
    if len(arguments.paths) < 2:
        raise UsageError("give at least two logs to compare")
    return partition_parameters(arguments, pylog.jobs.diff_options())


def run(
    spark: SparkSession, parameters: PartitionParameters, stop: StopRequest | None = None
) -> Outcome:
    """Compare; return which partitions are different."""
    (stop or StopRequest()).ensure_not_requested()
    paths, partitions, of_library = parameters[:3]
    if not parameters.by_name:  # two of them are compared whatever their names are
        topics = sorted({each.topic for each in partitions})
        numbers = sorted({each.partition for each in partitions})
        partitions = partitions[:1]

    def compare(place: pylog.TopicPartition, _attempt: int) -> pylog.results.DiffSummary:
        if not parameters.by_name:
            return pylog.jobs.diff(*paths, topics=topics, partitions=numbers, **of_library)
        return pylog.jobs.diff(
            *paths, topics=[place.topic], partitions=[place.partition], **of_library
        )

    found = [
        pair
        for summary in for_each_partition(spark, partitions, compare)
        for pair in summary.partitions
    ]
    different = [each for each in found if not each.is_alike]
    for each in different:
        counts = ", ".join(f"{kind} {count}" for kind, count in each.counts.items())
        _LOGGER.warning(
            "%s-%d: different from offset %s on (%s, %s): %s",
            *(each.topic, each.partition, each.first_offset, each.left, each.right, counts),
        )
    return Outcome(
        FINDINGS if different else DONE,
        {
            "paths": list(paths),
            "pairs": len(found),
            "differentPairs": len(different),
            "records": sum(each.records for each in found),
            "differences": [
                {
                    "topic": each.topic,
                    "partition": each.partition,
                    "left": each.left,
                    "right": each.right,
                    "mode": each.mode,
                    "firstOffset": each.first_offset,
                    "counts": {
                        pylog.jobs.json_name(kind.replace("-", "_")): count
                        for kind, count in each.counts.items()
                    },
                }
                for each in different[:_IN_SUMMARY]
            ],
        },
    )


JOB = Job("diff", __doc__, add_arguments, prepare, run)

if __name__ == "__main__":
    end_process(JOB.main())

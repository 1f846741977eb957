"""Copy a part of some logs into a new log directory, at the same offsets, one partition per task.

``python -m pylog_jobs.extract PATH... --to DIR``, or ``spark-submit``; see docs/jobs.md.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pylog
from pylog_jobs.by_partition import (
    PartitionParameters,
    for_each_partition,
    milliseconds_of,
    partition_parameters,
)
from pylog_jobs.by_partition import add_arguments as add_common_arguments
from pylog_jobs.exit_status import DONE, FINDINGS
from pylog_jobs.job import Job, Outcome, UsageError, end_process
from pylog_jobs.stop_request import StopRequest

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import SparkSession

_IN_SUMMARY = 20
_LOGGER = logging.getLogger("pylog_jobs.extract")  # also where this is __main__


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this job."""
    add_common_arguments(parser, pylog.jobs.extract_options())


def prepare(arguments: argparse.Namespace) -> PartitionParameters:
    """Return the parameters, after a look at the directories."""
    parameters = partition_parameters(
        arguments,
        pylog.jobs.extract_options(),
        start=_position(arguments, "start", "earliest"),
        end=_position(arguments, "end", "latest"),
        leaves_out=("__cluster_metadata",),
        with_internal=False,
    )
    pylog.jobs.PartwiseDirectory(parameters.to or "", parameters.paths)  # refuses now
    return parameters


def _position(
    arguments: argparse.Namespace, which: str, default: str
) -> str | int | pylog.Timestamp:
    given = vars(arguments)
    offset: int | None = given[f"{which}_offset"]
    instant = milliseconds_of(f"{which}-timestamp", given[f"{which}_timestamp"])
    if offset is not None and instant is not None:
        raise UsageError(f"give either --{which}-offset or --{which}-timestamp, not both")
    if instant is not None:
        return pylog.Timestamp(instant, if_missing="latest")
    return default if offset is None else offset


def run(
    spark: SparkSession, parameters: PartitionParameters, stop: StopRequest | None = None
) -> Outcome:
    """Copy; return what was copied, and which transactions are cut."""
    stop = stop or StopRequest()
    paths, partitions, of_library, to, dry_run = parameters[:5]
    parts = pylog.jobs.PartwiseDirectory(to or "", paths)
    places = parts.places

    def extract(place: pylog.TopicPartition, attempt: int) -> pylog.results.Extraction:
        return pylog.jobs.extract(
            *paths,
            to=places.of(place, attempt),
            topics=[place.topic],
            partitions=[place.partition],
            dry_run=dry_run,
            **of_library,
        )

    with nullcontext() if dry_run else parts:
        results = for_each_partition(spark, partitions, extract)
        stop.ensure_not_requested()
        for one in results:
            if one.is_written:
                parts.take(one.to)
    copied = [each for one in results for each in one.partitions]
    cut = [each for one in results for each in one.cut_transactions]
    is_left_open = bool(cut) and of_library["transactions"] != "abort"
    missing = [(each, *gap) for each in copied for gap in each.missing]
    for copy, start, end in missing:
        lost = pylog.jobs.offsets_text(start, end)
        _LOGGER.warning(
            "%s-%d: %s missing, in the source already", *(copy.topic, copy.partition, lost)
        )
    for each in cut:
        _LOGGER.warning(
            "%s-%d: the transaction of producer %d from offset %d on is cut: %s",
            *(each.topic, each.partition, each.producer_id, each.first_offset, each.state),
        )
    return Outcome(
        FINDINGS if is_left_open or missing else DONE,
        {
            "directory": parts.to,
            "dryRun": dry_run,
            "partitions": len(copied),
            "batches": sum(each.batches for each in copied),
            "rewrittenBatches": sum(each.rewritten_batches for each in copied),
            "leftOutRecords": sum(each.left_out_records for each in copied),
            "sizeInBytes": sum(each.size_bytes for each in copied),
            "missing": [
                {
                    "topic": each.topic,
                    "partition": each.partition,
                    "startOffset": start,
                    "endOffset": end,
                }
                for each, start, end in missing[:_IN_SUMMARY]
            ],
            "cutTransactions": pylog.jobs.document_of(cut[:_IN_SUMMARY]),
        },
    )


JOB = Job("extract", __doc__, add_arguments, prepare, run)

if __name__ == "__main__":
    end_process(JOB.main())

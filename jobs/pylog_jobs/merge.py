"""Write one log of each partition from damaged replicas, batch for batch, one partition per task.

``python -m pylog_jobs.merge PATH... --to DIR``, or ``spark-submit``; see docs/jobs.md.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pylog
from pylog.errors import DivergedReplicasError
from pylog_jobs.by_partition import (
    PartitionParameters,
    for_each_partition,
    offset_or_time_of,
    partition_parameters,
)
from pylog_jobs.by_partition import add_arguments as add_common_arguments
from pylog_jobs.exit_status import DONE, FINDINGS
from pylog_jobs.job import Job, Outcome, UsageError, end_process, topics_of
from pylog_jobs.stop_request import StopRequest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

_Result = tuple[list[str], list[pylog.results.MergedPartition], list[str], str | None]

_IN_SUMMARY = 20
_LOGGER = logging.getLogger("pylog_jobs.merge")  # also where this is __main__


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this job."""
    add_common_arguments(parser, pylog.jobs.merge_options())


def prepare(arguments: argparse.Namespace) -> PartitionParameters:
    """Return the parameters, after a look at the directories."""
    prefer = _location(arguments.prefer)
    parameters = partition_parameters(
        arguments,
        pylog.jobs.merge_options(),
        metadata=_location(arguments.metadata),
        prefer=prefer,
        until=offset_or_time_of("until", arguments.until),
        leaves_out=("__cluster_metadata",),
    )
    if prefer is not None and prefer not in parameters.paths:
        raise UsageError(f"the preferred replica {prefer!r} is none of the paths")
    pylog.jobs.PartwiseDirectory(parameters.to or "", parameters.paths)  # refuses now
    # Those, too, whose files are all lost.
    partitions = pylog.jobs.merge_partitions(
        *parameters.paths,
        topics=topics_of(arguments.topic),
        partitions=arguments.partition or None,
        metadata=parameters.of_library["metadata"],
    )
    return parameters._replace(partitions=tuple(partitions))


def _location(path: str | None) -> str | None:
    return None if path is None else pylog.jobs.absolute_location(path)


def run(
    spark: SparkSession, parameters: PartitionParameters, stop: StopRequest | None = None
) -> Outcome:
    """Merge; return what is missing."""
    stop = stop or StopRequest()
    paths, partitions, of_library, to, dry_run = parameters[:5]
    parts = pylog.jobs.PartwiseDirectory(to or "", paths)
    places = parts.places
    cuts, moved = _cuts(spark, parameters), list[pylog.results.MovedGroup]()
    partitions = tuple(cuts) or partitions

    def merge(place: pylog.TopicPartition, attempt: int) -> _Result:
        try:
            done = pylog.jobs.merge(
                *paths,
                to=places.of(place, attempt),
                topics=[place.topic],
                partitions=[place.partition],
                dry_run=dry_run,
                **{**of_library, "until": cuts.get(place)},
            )
        except DivergedReplicasError as error:
            return list(error.divergences), [], [], None
        return [], done.partitions, done.notes, done.to

    with nullcontext() if dry_run else parts:
        results = for_each_partition(spark, partitions, merge)
        undecided = [text for texts, _, _, _ in results for text in texts]
        if undecided:
            raise DivergedReplicasError(undecided)
        stop.ensure_not_requested()
        for _, _, _, place in results:
            if place is not None:
                parts.take(place)
        if cuts:
            ends = {
                pylog.TopicPartition(each.topic, each.partition): each.end_offset
                for _, found, _, _ in results
                for each in found
            }
            parts.then(
                lambda whole: moved.extend(pylog.jobs.MergeCuts.bring_back_groups(whole, ends))
            )
    merged = [each for _, found, _, _ in results for each in found]
    with_gaps = [each for each in merged if not each.is_complete]
    _log(merged, dict.fromkeys(note for _, _, notes, _ in results for note in notes))
    return Outcome(
        FINDINGS if with_gaps else DONE,
        {
            "directory": parts.to,
            "dryRun": dry_run,
            "partitions": len(merged),
            "partitionsWithGaps": len(with_gaps),
            "isProven": all(each.is_proven for each in merged),
            "openTransactions": sum(
                transaction.appended is None for each in merged for transaction in each.transactions
            ),
            "groupsMoved": len(moved),
            "sizeInBytes": sum(each.size_bytes for each in merged),
            "gaps": [
                {
                    "topic": each.topic,
                    "partition": each.partition,
                    **pylog.jobs.document_of(gap, {"causes": None}),
                }
                for each in with_gaps
                for gap in each.gaps
            ][:_IN_SUMMARY],
        },
    )


def _log(merged: Iterable[pylog.results.MergedPartition], notes: Iterable[str]) -> None:
    for text in notes:
        _LOGGER.warning("%s", text)
    for each in merged:
        for text in (*map(str, each.branches), *each.notes):
            _LOGGER.info("%s-%d: %s", each.topic, each.partition, text)
        for gap in each.gaps:
            said = "; ".join(f"{cause.source}: {cause.found}" for cause in gap.causes)
            _LOGGER.warning(
                "%s-%d: missing %s: %s",
                *(each.topic, each.partition),
                *(pylog.jobs.offsets_text(gap.start_offset, gap.end_offset), said),
            )


def _cuts(spark: SparkSession, parameters: PartitionParameters) -> Mapping[Any, Any]:
    """Return where the partitions end; nothing where they end by themselves."""
    until, prefer = parameters.of_library["until"], parameters.of_library["prefer"]
    if until is None:
        return {}
    search = pylog.jobs.MergeCuts(
        parameters.paths,
        until,
        parameters.of_library["metadata"],
        None if prefer is None else parameters.paths.index(prefer),
    )
    return search.find(
        parameters.partitions, lambda places, task: for_each_partition(spark, places, task)
    )


JOB = Job("merge", __doc__, add_arguments, prepare, run)

if __name__ == "__main__":
    end_process(JOB.main())

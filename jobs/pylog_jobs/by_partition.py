"""What the jobs share that do one thing with each partition: arguments, and a task for each."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pyspark import TaskContext

import pylog
from pylog_jobs.job import UsageError, topics_of
from pylog_jobs.shared_options import add_options, passed_on
from pyspark_pylog.jobs import prepare_worker

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

_Result = TypeVar("_Result")


class PartitionParameters(NamedTuple):
    """What a job works on, checked: partitions of some paths, and arguments of the library."""

    paths: tuple[str, ...]
    partitions: tuple[pylog.TopicPartition, ...]
    of_library: dict[str, Any]
    to: str | None = None
    dry_run: bool = False
    by_name: bool = True  # unless each path has one partition


def add_arguments(
    parser: argparse.ArgumentParser, options: Mapping[str, pylog.jobs.CleanupOption]
) -> None:
    """Add the paths, and the options of the command of that name."""
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", help="a log directory, or a topic-partition directory"
    )
    add_options(parser, options)


def partition_parameters(
    arguments: argparse.Namespace,
    options: Mapping[str, pylog.jobs.CleanupOption],
    *,
    leaves_out: Sequence[str] = (),
    with_internal: bool = True,
    **of_library: Any,  # noqa: ANN401 - arguments of a function of the library
) -> PartitionParameters:
    """Return what the arguments mean; which partitions there are, is looked up.

    The library's function gets ``of_library`` beside the options that are passed on as they are.

    Topics that are left out, or internal ones, may be chosen by name, but for the metadata's.
    """
    paths = tuple(pylog.jobs.absolute_location(each) for each in arguments.paths)
    topics = topics_of(arguments.topic)
    numbers = set(arguments.partition or ())
    by_path = [
        {
            each.topic_partition
            for each in directory
            if each.topic not in leaves_out
            and (topics is None or each.topic in topics)
            and (not numbers or each.partition in numbers)
            and (with_internal or topics is not None or not each.topic.startswith("__"))
        }
        for directory in pylog.jobs.open_each(paths)
    ]
    found = set().union(*by_path)
    to = getattr(arguments, "to", None)
    missing = [] if topics is None else sorted(set(topics) - {each.topic for each in found})
    if missing or not found:
        what = f"no partition of topic {', '.join(missing)}" if missing else "no partition"
        raise UsageError(f"{what} that is wanted is under the paths")
    return PartitionParameters(
        paths,
        tuple(sorted(found)),
        passed_on(arguments, options) | of_library,
        None if to is None else pylog.jobs.absolute_location(to),
        getattr(arguments, "dry_run", False),
        by_name=any(len(each) != 1 for each in by_path),
    )


def milliseconds_of(name: str, text: str | None) -> int | None:
    """Return the time that an option says."""
    if text is None:
        return None
    try:
        return pylog.jobs.parse_time(text, int(time.time() * 1000))
    except ValueError as error:
        raise UsageError(f"--{name} {error}") from error


def offset_or_time_of(name: str, text: str | None) -> int | pylog.Timestamp | None:
    """Return the offset or the time that an option says: a whole number is an offset."""
    if text is None:
        return None
    if text.isascii() and text.isdecimal():
        return int(text)
    return pylog.Timestamp(milliseconds_of(name, text) or 0)


def for_each_partition(
    spark: SparkSession,
    partitions: Sequence[pylog.TopicPartition],
    task: Callable[[pylog.TopicPartition, int], _Result],
) -> list[_Result]:
    """Run a task for each partition on Spark; return what they return, in their order.

    A task is told which attempt it is: one that has died may have left files.
    """

    def run(number: int) -> tuple[int, _Result]:
        prepare_worker()
        context = TaskContext.get()
        return number, task(places[number], 0 if context is None else context.attemptNumber())

    places = tuple(partitions)
    numbers = spark.sparkContext.parallelize(range(len(places)), len(places))
    return [result for _, result in sorted(numbers.map(run).collect(), key=lambda each: each[0])]

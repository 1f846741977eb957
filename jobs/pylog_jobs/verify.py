"""Everything that is wrong with the logs of a directory, found by Spark's tasks.

Every record is read and every checksum verified; headers are held against indexes, side files
against both. Ends with exit status 1 if something is wrong.

``python -m pylog_jobs.verify LOG_DIRECTORY``, or ``spark-submit``; see docs/jobs.md.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

import pylog
from pylog_jobs.exit_status import DONE, FINDINGS
from pylog_jobs.job import Job, Outcome, end_process, topics_of

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import DataFrame, SparkSession

    from pylog_jobs.stop_request import StopRequest

_SEVERITIES = tuple(str(each) for each in pylog.results.Severity)
_IN_SUMMARY = 20
_LEVELS = {"error": logging.ERROR, "warning": logging.WARNING, "info": logging.INFO}

_LOGGER = logging.getLogger("pylog_jobs.verify")  # also where this is __main__


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyParameters:
    """The parameters of the job, checked."""

    paths: tuple[str, ...]
    topics: tuple[str, ...]  # all that are read, internal ones included
    partitions: int  # how many
    fail_on: str = "warning"
    max_findings: int = 1000

    @property
    def failing(self) -> tuple[str, ...]:
        """The severities that make the exit status 1."""
        return _SEVERITIES[: _SEVERITIES.index(self.fail_on) + 1]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this job."""
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", help="a log directory, or a topic-partition directory"
    )
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument(
        "--topic",
        metavar="T[,T...]",
        help="only these topics; by default all of them, internal ones included",
    )
    choice.add_argument("--pattern", metavar="REGEX", help="only topics that the pattern finds")
    parser.add_argument(
        "--fail-on",
        choices=_SEVERITIES,
        default="warning",
        help="the least severity that makes the exit status 1 (default: %(default)s)",
    )
    parser.add_argument(
        "--max-findings",
        metavar="N",
        type=int,
        default=1000,
        help="how many findings are logged, the most severe first (default: %(default)s)",
    )


def prepare(arguments: argparse.Namespace) -> VerifyParameters:
    """Return the parameters, after a look at the directory."""
    paths = tuple(pylog.jobs.absolute_location(each) for each in arguments.paths)
    directory = pylog.open_directory(*paths)
    topics = topics_of(None if arguments.topic is None else [arguments.topic])
    if topics is None and arguments.pattern is None:
        topics = tuple(directory.topics)
    views = directory.select(topics=topics, pattern=arguments.pattern)
    if not views:
        msg = f"there is nothing to verify: no topic of {', '.join(map(str, paths))} was chosen"
        raise ValueError(msg)
    return VerifyParameters(
        paths=paths,
        topics=tuple(sorted({view.topic for view in views})),
        partitions=len(views),
        fail_on=arguments.fail_on,
        max_findings=arguments.max_findings,
    )


def run(
    spark: SparkSession, parameters: VerifyParameters, stop: StopRequest | None = None
) -> Outcome:
    """Verify; return how many findings there are, and the first of them."""
    _LOGGER.info(
        "reading %d partitions of %d topics", parameters.partitions, len(parameters.topics)
    )
    findings = read_findings(spark, parameters).persist()
    try:
        counts = Counter(
            {
                (row["severity"], row["code"]): row["count"]
                for row in findings.groupBy("severity", "code").count().collect()
            }
        )
        listed = _most_severe(findings, parameters.max_findings)
    finally:
        findings.unpersist()
    for each in listed:
        of_directory = each["topic"] is None
        place = f"{each['path']}" if of_directory else "{topic}-{partition}: {path}".format(**each)
        level = _LEVELS[str(each["severity"])]
        _LOGGER.log(level, "%s: %s: %s: %s", each["severity"], each["code"], place, each["message"])
    if counts.total() > len(listed):
        _LOGGER.warning("%d more findings are not listed", counts.total() - len(listed))
    by_severity = Counter(dict.fromkeys(_SEVERITIES, 0))
    for (severity, _), count in counts.items():
        by_severity[severity] += count
    is_bad = any(by_severity[severity] for severity in parameters.failing)
    _LOGGER.info(
        "%d errors, %d warnings, %d infos", *(by_severity[severity] for severity in _SEVERITIES)
    )
    return Outcome(
        FINDINGS if is_bad else DONE,
        {
            "paths": [str(path) for path in parameters.paths],
            "topics": len(parameters.topics),
            "partitions": parameters.partitions,
            "errors": by_severity["error"],
            "warnings": by_severity["warning"],
            "infos": by_severity["info"],
            "codes": {code: count for (_, code), count in sorted(counts.items())},
            "findings": [
                {pylog.jobs.json_name(name): value for name, value in each.items()}
                for each in listed[:_IN_SUMMARY]
            ],
        },
    )


def read_findings(spark: SparkSession, parameters: VerifyParameters) -> DataFrame:
    """Return table ``findings`` of the topics: one task per partition; small ones share tasks."""
    reader = spark.read.format("pylog").option("table", "findings")
    return reader.option("subscribe", ",".join(parameters.topics)).load(list(parameters.paths))


def _most_severe(findings: DataFrame, limit: int) -> list[dict[str, object]]:
    rank = sf.array_position(sf.lit(list(_SEVERITIES)), sf.col("severity"))
    ordered = findings.orderBy(rank, "topic", "partition", "path", "position", "code")
    return [row.asDict() for row in ordered.limit(limit).collect()]


JOB = Job("verify", __doc__, add_arguments, prepare, run)

if __name__ == "__main__":
    end_process(JOB.main())

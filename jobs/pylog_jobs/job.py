"""What every job does: arguments, checks, Spark, one line of JSON, an exit status.

A job checks whatever it can before Spark starts (`Job.prepare`), then works (`Job.run`). Standard
output gets one line, the summary, also when the job fails. Everything for people goes to standard
error, one line each: ``2026-11-22T03:15:02Z INFO export: run 7 is published``. (``spark-submit``
makes one stream of both, which ends with the summary.)

A process may have several runs, such as one for each configuration of ``ingest``: all are checked
before Spark starts, then they follow each other in one Spark application, each in a session of its
own and with a summary of its own. One that fails stops no other one; a signal stops all that
remain. The process ends with the status of the first run that failed, or with the signal's.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import logging
import os
import re
import shlex
import signal
import sys
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, TypeVar

import pylog
from pylog.errors import LogStorageError
from pylog_jobs.error_text import describe
from pylog_jobs.exit_status import (
    DONE,
    OF_SIGNALS,
    STATUS_NAMES,
    STOPPED_NAME,
    UNUSABLE,
    status_of,
)
from pylog_jobs.job_report import Lineage, metrics_path, write_metrics
from pylog_jobs.secret_values import SecretValues
from pylog_jobs.session import separate_session, spark_session
from pylog_jobs.stop_request import StoppableWork, StoppedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from pylog_jobs.stop_request import StopRequest

_MOST_OF_DESCRIPTION = 200
_ALONE = ""
"""The name of a run without a name."""

_OURS = ("pylog_jobs", "pylog", "pyspark_pylog")
# Control characters, separators of lines and what reorders text, as in names of files and topics.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)

_P = TypeVar("_P")
_LOGGER = logging.getLogger(__name__)


def _printable(text: str) -> str:
    return _UNPRINTABLE.sub(lambda match: ascii(match[0])[1:-1], text)


@contextmanager
def logging_of(job: str, secrets: SecretValues) -> Iterator[JobLines]:
    """Have what the job, the library and the data source log written to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    lines = JobLines(job, secrets)
    handler.setFormatter(lines)
    levels = {}
    for name in _OURS:
        logger = logging.getLogger(name)
        levels[logger] = logger.level
        logger.setLevel(logging.INFO)
        logger.addHandler(handler)
    try:
        yield lines
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)
            logger.removeHandler(handler)


class JobLines(logging.Formatter):
    """Formats a record as one line, in UTC, whatever its text holds."""

    converter = staticmethod(time.gmtime)

    def __init__(self, job: str, secrets: SecretValues) -> None:
        self.change(job, secrets)
        super().__init__(
            "%(asctime)s %(levelname)s %(job)s: %(message)s", datefmt="%Y-%m-%dT%H:%M:%SZ"
        )

    def change(self, job: str, secrets: SecretValues) -> None:
        """Have the next lines be of another run."""
        self._job, self._secrets = job, secrets

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a traceback, of ``--debug`` alone, follows it."""
        record.job = self._job
        text = self._secrets.hide(record.getMessage())
        record.message = _printable(text)
        record.asctime = self.formatTime(record, self.datefmt)
        line = self.formatMessage(record)
        if record.exc_info:
            trace = self._secrets.hide(self.formatException(record.exc_info)).expandtabs(4)
            line = "\n".join([line, *map(_printable, trace.split("\n"))])
        return line


class UsageError(ValueError):
    """An argument or a configuration that makes no sense; another attempt will not help."""


class JobFailedError(RuntimeError):
    """The job cannot do what it was asked to; another attempt may."""


class CheckFailedError(RuntimeError):
    """The rows are not as the configuration says that they have to be; nothing is published."""


class Outcome(NamedTuple):
    """The exit status of a job, and what its JSON says besides job, status and times."""

    status: int
    summary: Mapping[str, object]
    reads: tuple[str, str] | None = None  # namespace and name of a data set that is no log


class _Reports:
    """The metrics file and the lineage service that are told of a run."""

    metrics_file: str | None = None
    lineage: Lineage | None = None

    def begin(self, job: str, arguments: argparse.Namespace) -> None:
        """Check where to, and say that the run has begun."""
        if arguments.metrics_file is not None:
            self.metrics_file = metrics_path(
                arguments.metrics_file, job, arguments.name, is_alone=arguments.is_alone
            )
        if arguments.lineage is not None:
            self.lineage = Lineage(arguments.lineage, job)
            self.lineage.start()

    def end(self, summary: Mapping[str, Any], reads: tuple[str, str] | None) -> None:
        """Say how it has ended; what cannot be told does not change the job's own end."""
        if self.metrics_file is not None:
            try:
                write_metrics(self.metrics_file, summary, dt.datetime.now(dt.UTC))
            except OSError as error:
                _LOGGER.warning("no metrics were written: %s", describe(error))
        if self.lineage is not None:
            self.lineage.end(summary, reads)


class _Run(Generic[_P]):
    """One run of a job: what it is to do, how it ended, and what is told of it."""

    parameters: _P

    def __init__(self, job: str, *, is_debug: bool) -> None:
        self.secrets, self.reports = SecretValues(), _Reports()
        self.labels: dict[str, object] = {}
        self.title = self._job = job
        self._is_debug = is_debug
        self.outcome: Outcome | None = None
        self.is_told = False
        self.begin()

    def begin(self) -> None:
        """Count time from now."""
        self._began, self._clock = dt.datetime.now(dt.UTC), time.monotonic()

    def fail(self, error: Exception, status: int) -> None:
        """End with an error, which becomes one line."""
        text = describe(error)
        _LOGGER.error("%s", text, exc_info=error if self._is_debug else None)
        self.outcome = Outcome(status, {"error": text})

    def tell(self) -> None:
        """Tell once how it ended."""
        if self.outcome is None or self.is_told:
            return
        self.is_told = True
        summary: dict[str, Any] = {
            "schemaVersion": pylog.jobs.JSON_SCHEMA_VERSION,
            "job": self._job,
            "status": STATUS_NAMES.get(self.outcome.status, STOPPED_NAME),
            "exitStatus": self.outcome.status,
            "started": f"{self._began:%Y-%m-%dT%H:%M:%SZ}",
            "seconds": round(time.monotonic() - self._clock, 3),
            **self.secrets.hide({**self.labels, **self.outcome.summary}),
        }
        self.reports.end(summary, self.secrets.hide(self.outcome.reads))
        sys.stdout.write(json.dumps(summary) + "\n")
        sys.stdout.flush()


def labels_of(arguments: argparse.Namespace) -> dict[str, object]:
    """Return what every summary of a run has, also if it fails; ``prepare`` may add to it."""
    labels: dict[str, object] = vars(arguments).setdefault("labels", {})
    return labels


@dataclass(frozen=True, slots=True)
class Job(Generic[_P]):
    """One job: how it is called and what it does.

    ``prepare`` returns what the arguments mean, checked as far as that is possible without Spark:
    what it raises is exit status 2, unless the table in `pylog_jobs.exit_status` says 3. ``run``
    does the work, and first checks what only Spark can check. ``split`` returns the arguments of
    each run by its name; without it, there is one run.
    """

    name: str
    description: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    prepare: Callable[[argparse.Namespace], _P]
    run: Callable[[SparkSession, _P, StopRequest], Outcome]
    split: Callable[[argparse.Namespace], Mapping[str, argparse.Namespace]] | None = None

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Run the job with arguments, by default those of the process; return the exit status."""
        given = sys.argv[1:] if arguments is None else list(arguments)
        first: _Run[_P] = _Run(self.name, is_debug="--debug" in given)
        with logging_of(self.name, first.secrets) as lines:
            runs = self._prepared(given, first, lines)
            work = StoppableWork(lambda stop: self._work(runs, given, lines, stop))
            try:
                if any(each.outcome is None for each in runs):
                    work.run()
            except Exception as error:  # noqa: BLE001 - the last place to withhold a traceback
                for each in runs:
                    if each.outcome is None:
                        lines.change(each.title, each.secrets)
                        each.fail(error, status_of(error))
            for each in runs:
                each.tell()
        failed = [each.outcome.status for each in runs if each.outcome and each.outcome.status]
        return next((each for each in failed if each > OF_SIGNALS), [*failed, DONE][0])

    def _prepared(self, given: list[str], first: _Run[_P], lines: JobLines) -> list[_Run[_P]]:
        """Return the runs, each checked; one that is no good has its outcome already."""
        runs = [first]
        try:
            parsed = self._parser().parse_args(given, argparse.Namespace(secrets=first.secrets))
            each_of = {_ALONE: parsed} if self.split is None else self.split(parsed)
            runs += [_Run(self.name, is_debug=parsed.debug) for _ in list(each_of)[1:]]
            for run, (name, of_run) in zip(runs, each_of.items(), strict=True):
                is_alone = len(runs) == 1
                run.title = self.name if is_alone else f"{self.name}: {name}"
                lines.change(run.title, run.secrets)
                vars(of_run).update(secrets=run.secrets, labels=run.labels)
                vars(of_run).update(name=name, is_alone=is_alone)
                self._prepare(run, of_run)
        except ValueError as error:
            first.fail(error, UNUSABLE)
        except KeyboardInterrupt:
            stopped = StoppedError(signal.SIGINT)
            for run in runs:
                run.fail(stopped, status_of(stopped))
        return runs

    def _prepare(self, run: _Run[_P], arguments: argparse.Namespace) -> None:
        try:
            if arguments.name:
                run.labels["name"] = arguments.name
            run.reports.begin(self.name, arguments)
            run.parameters = self.prepare(arguments)
        except (ValueError, OverflowError, LogStorageError, OSError, JobFailedError) as error:
            run.fail(error, status_of(error, otherwise=UNUSABLE))

    def _parser(self) -> argparse.ArgumentParser:
        parser = _Parser(
            prog=f"python -m pylog_jobs.{self.name}",
            description=self.description,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.add_arguments(parser)
        parser.add_argument(
            "--debug", action="store_true", help="log Python's traceback with an error"
        )
        parser.add_argument(
            "--metrics-file",
            metavar="FILE",
            help="at the end, replace this file by metrics for Prometheus's textfile collector; in "
            "a folder, a file for each run",
        )
        parser.add_argument(
            "--lineage",
            metavar="NAMESPACE",
            help="send OpenLineage events of the job under this namespace (needs extra `lineage`)",
        )
        return parser

    def _work(
        self, runs: Sequence[_Run[_P]], given: list[str], lines: JobLines, stop: StopRequest
    ) -> None:
        """Run one after the other, and tell of each when it ends."""
        spark = None
        try:
            for run in runs:
                if run is not runs[0]:
                    run.begin()
                lines.change(run.title, run.secrets)
                try:
                    if run.outcome is None:
                        spark = spark or spark_session(f"pylog {self.name}", master=None)
                        own = spark if len(runs) == 1 else separate_session(spark)
                        run.outcome = self._turn(own, run, given, stop)
                except Exception as error:  # noqa: BLE001 - the others go on
                    self._fail(run, error, stop)
                if len(runs) > 1:
                    run.tell()
        finally:
            stop.cancel = None
            if spark is not None:
                spark.stop()

    @staticmethod
    def _fail(run: _Run[_P], error: Exception, stop: StopRequest) -> None:
        if stop.received is not None:  # what went wrong after that is the signal's doing
            stopped = StoppedError(stop.received)
            stopped.__cause__ = error
            error = stopped
        run.fail(error, status_of(error))

    def _turn(
        self, spark: SparkSession, run: _Run[_P], given: list[str], stop: StopRequest
    ) -> Outcome:
        stop.cancel = spark.sparkContext.cancelAllJobs
        stop.ensure_not_requested()
        call = shlex.join([f"pylog {run.title}", *given]).replace("'", "", 2)
        spark.sparkContext.setJobGroup(
            f"pylog-{self.name}-{uuid.uuid4()}", run.secrets.hide(call)[:_MOST_OF_DESCRIPTION]
        )
        return self.run(spark, run.parameters, stop)


def say_in_ui(spark: SparkSession, text: str) -> None:
    """Have Spark's UI say what the next jobs of this thread are for."""
    spark.sparkContext.setLocalProperty("spark.job.description", text)


def topics_of(given: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the topics that values of ``--topic`` name, with commas; None without the option.

    An empty value is an error: a variable that is not set must not stand for every topic.
    """
    if not given:
        return None
    names = tuple(name for text in given for name in text.split(",") if name)
    if not names:
        raise UsageError(f"--topic {given[0]!r} names no topic; without --topic, all are meant")
    return names


class _Parser(argparse.ArgumentParser):
    """Raises what is wrong with the arguments in place of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def end_process(status: int) -> NoReturn:
    """End the process without waiting for work that a signal did not end in time."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if status > OF_SIGNALS:
        os._exit(status)
    sys.exit(status)

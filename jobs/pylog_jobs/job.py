"""What every job does: arguments, checks, Spark, one line of JSON, an exit status.

A job checks whatever it can before Spark starts (`Job.prepare`), then works (`Job.run`). Standard
output gets one line, the summary, also when the job fails. Everything for people goes to standard
error, one line each: ``2026-11-22T03:15:02Z INFO export: run 7 is published``. (``spark-submit``
makes one stream of both, which ends with the summary.)

Exit statuses are the same for every job, and those of the command line where both have one:

====  ============================================================================================
0     what was asked was done; also if there was nothing new to do
1     ``verify``, ``export``, ``retention``, ``compact``: something is wrong with a log
2     wrong usage or configuration, or a path that cannot be read or holds no log: another attempt
      would end in the same way
3     the job failed: another attempt may succeed
4     ``ingest``: a check of the rows failed, and nothing was published
130   stopped by Ctrl-C
143   stopped by SIGTERM
====  ============================================================================================
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
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, TypeVar

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException

import pylog
from pylog.errors import LogStorageError
from pylog_jobs.java_home import JavaNotFoundError
from pylog_jobs.job_report import Lineage, write_metrics
from pylog_jobs.secret_values import SecretValues
from pylog_jobs.session import spark_session
from pylog_jobs.stop_request import StoppableWork, StoppedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from pylog_jobs.stop_request import StopRequest

DONE = 0
FINDINGS = 1
UNUSABLE = 2
FAILED = 3
REJECTED = 4
OF_SIGNALS = 128
"""Added to a signal's number: what a shell reports of a program that the signal ended."""
STATUS_NAMES = {
    DONE: "done",
    FINDINGS: "findings",
    UNUSABLE: "unusable",
    FAILED: "failed",
    REJECTED: "rejected",
}
"""What key ``status`` of a summary says."""
STOPPED_NAME = "stopped"
"""The same for a job that a signal ended."""

_MOST_OF_DESCRIPTION = 200
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+[.;]?.*$", re.DOTALL)
_STACK = re.compile(r"\n+(?:\s+at |Driver stacktrace:|JVM stacktrace:).*", re.DOTALL)
_CAUSE = re.compile(r"^Caused by: (.*)$", re.MULTILINE)
_TRACEBACK = "Traceback (most recent call last)"
_AT_COMMIT = "Failed to commit or abort Python data source"

_OURS = ("pylog_jobs", "pylog", "pyspark_pylog")
# Control characters, separators of lines and what reorders text, as in names of files and topics.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)

_P = TypeVar("_P")
_LOGGER = logging.getLogger(__name__)


def _printable(text: str) -> str:
    return _UNPRINTABLE.sub(lambda match: ascii(match[0])[1:-1], text)


def is_of_analysis(error: BaseException) -> bool:
    """Whether Spark refused what it was asked to do, before it did anything.

    What fails at a commit, such as a lock that somebody else holds, has the same class in Spark.
    """
    is_one = isinstance(error, (AnalysisException, ParseException))
    return is_one and _AT_COMMIT not in str(error)


def describe(error: BaseException) -> str:
    """Return what is wrong, in one line."""
    if isinstance(error, PySparkException):
        text = str(error)
        if isinstance(error, (AnalysisException, ParseException)) and _TRACEBACK not in text:
            # The text, and then where in the SQL it is, and a whole plan.
            return _SQLSTATE.sub("", text).strip().splitlines()[0]
        return _of_spark(text)
    if isinstance(error, Py4JJavaError):
        return _of_spark(str(error.java_exception))
    if isinstance(error, (Py4JError, ConnectionError, EOFError)):
        return f"Spark's JVM does not answer any more; its last lines may say why ({error})"
    if isinstance(error, OSError) and error.strerror:
        about = "" if error.filename is None else f"{error.filename}: "
        return f"{about}{error.strerror}"
    return str(error) or type(error).__name__


def _of_spark(text: str) -> str:
    """Return the line that says why: a worker's traceback ends with it."""
    if _TRACEBACK in text:
        traceback = _STACK.sub("", text[text.rindex(_TRACEBACK) :])
        return _SQLSTATE.sub("", traceback).strip().splitlines()[-1]
    causes = _CAUSE.findall(text)
    line = causes[-1] if causes else _STACK.sub("", text).strip().splitlines()[0]
    return _SQLSTATE.sub("", line).strip()


@contextmanager
def logging_of(job: str, secrets: SecretValues) -> Iterator[None]:
    """Have what the job, the library and the data source log written to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine(job, secrets))
    levels = {}
    for name in _OURS:
        logger = logging.getLogger(name)
        levels[logger] = logger.level
        logger.setLevel(logging.INFO)
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)
            logger.removeHandler(handler)


class _OneLine(logging.Formatter):
    """Formats a record as one line, in UTC, whatever its text holds."""

    converter = staticmethod(time.gmtime)

    def __init__(self, job: str, secrets: SecretValues) -> None:
        self._secrets = secrets
        super().__init__(
            f"%(asctime)s %(levelname)s {job}: %(message)s", datefmt="%Y-%m-%dT%H:%M:%SZ"
        )

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a traceback, of ``--debug`` alone, follows it."""
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
    """Who else is told of a run."""

    metrics_file: str | None = None
    lineage: Lineage | None = None

    def begin(self, job: str, arguments: argparse.Namespace) -> None:
        """Check where to, and say that the run has begun."""
        path = arguments.metrics_file
        if path is not None and not Path(path).absolute().parent.is_dir():
            raise UsageError(f"--metrics-file {path}: there is no such folder")
        self.metrics_file = path
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


@dataclass(frozen=True, slots=True)
class Job(Generic[_P]):
    """One job: how it is called and what it does.

    ``prepare`` returns what the arguments mean, checked as far as that is possible without Spark:
    its ``ValueError``, ``OverflowError``, ``OSError`` or `LogStorageError` is exit status 2, its
    `JobFailedError` 3. ``run`` does the work, and first checks what only Spark can check.
    """

    name: str
    description: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    prepare: Callable[[argparse.Namespace], _P]
    run: Callable[[SparkSession, _P, StopRequest], Outcome]

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Run the job with arguments, by default those of the process; return the exit status."""
        given = sys.argv[1:] if arguments is None else list(arguments)
        began = dt.datetime.now(dt.UTC)
        clock = time.monotonic()
        is_debug = "--debug" in given
        secrets, reports = SecretValues(), _Reports()
        with logging_of(self.name, secrets):
            outcome = self._outcome(given, secrets, reports, is_debug=is_debug)
            summary: dict[str, Any] = {
                "schemaVersion": pylog.jobs.JSON_SCHEMA_VERSION,
                "job": self.name,
                "status": STATUS_NAMES.get(outcome.status, STOPPED_NAME),
                "exitStatus": outcome.status,
                "started": f"{began:%Y-%m-%dT%H:%M:%SZ}",
                "seconds": round(time.monotonic() - clock, 3),
                **secrets.hide(dict(outcome.summary)),
            }
            reports.end(summary, secrets.hide(outcome.reads))
        sys.stdout.write(json.dumps(summary) + "\n")
        sys.stdout.flush()
        return outcome.status

    def _outcome(
        self, arguments: list[str], secrets: SecretValues, reports: _Reports, *, is_debug: bool
    ) -> Outcome:
        """Return the outcome; every error becomes one, with a log line."""
        try:
            parsed = self._parser().parse_args(arguments, argparse.Namespace(secrets=secrets))
            reports.begin(self.name, parsed)
            parameters = self.prepare(parsed)
        except (ValueError, OverflowError, LogStorageError, OSError) as error:
            return self._failure(error, UNUSABLE, is_debug=is_debug)
        except JobFailedError as error:
            return self._failure(error, FAILED, is_debug=is_debug)
        except KeyboardInterrupt:
            stopped = StoppedError(signal.SIGINT)
            return self._failure(stopped, status_of(stopped), is_debug=is_debug)
        try:
            work = StoppableWork(lambda stop: self._run(parameters, stop, arguments, secrets))
            return work.run()
        except Exception as error:  # noqa: BLE001 - the last place where a traceback can be withheld
            return self._failure(error, status_of(error), is_debug=is_debug)

    def _failure(self, error: Exception, status: int, *, is_debug: bool) -> Outcome:
        text = describe(error)
        _LOGGER.error("%s", text, exc_info=error if is_debug else None)
        return Outcome(status, {"error": text})

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
            help="at the end, replace this file by metrics for Prometheus's textfile collector",
        )
        parser.add_argument(
            "--lineage",
            metavar="NAMESPACE",
            help="send OpenLineage events of the job under this namespace (needs extra `lineage`)",
        )
        return parser

    def _run(
        self, parameters: _P, stop: StopRequest, arguments: list[str], secrets: SecretValues
    ) -> Outcome:
        spark = spark_session(f"pylog {self.name}", master=None)
        stop.cancel = spark.sparkContext.cancelAllJobs
        try:
            stop.ensure_not_requested()
            call = secrets.hide(shlex.join([f"pylog {self.name}", *arguments]).replace("'", "", 2))
            spark.sparkContext.setJobGroup(
                f"pylog-{self.name}-{uuid.uuid4()}", call[:_MOST_OF_DESCRIPTION]
            )
            return self.run(spark, parameters, stop)
        finally:
            stop.cancel = None
            spark.stop()


def say_in_ui(spark: SparkSession, text: str) -> None:
    """Have Spark's UI say what the next jobs of this thread are for."""
    spark.sparkContext.setLocalProperty("spark.job.description", text)


def status_of(error: Exception) -> int:
    """Return the exit status of a job whose work ended with ``error``."""
    if isinstance(error, StoppedError):
        return OF_SIGNALS + error.signal
    if isinstance(error, CheckFailedError):
        return REJECTED
    if isinstance(error, (UsageError, JavaNotFoundError)) or is_of_analysis(error):
        return UNUSABLE
    return FAILED


def topics_of(given: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the topics that values of ``--topic`` name, with commas; None if there is none.

    An empty value is an error: a variable that is not set must not stand for every topic.
    """
    if given is None:
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

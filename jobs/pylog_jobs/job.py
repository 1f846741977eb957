"""What every job does: arguments, checks, Spark, one line of JSON, an exit status.

A job checks whatever it can before Spark starts (`Job.prepare`), then works (`Job.run`). Standard
output gets one line, the summary, also of a job that failed; everything for people goes to standard
error, see `pylog_jobs.job_log`. (``spark-submit`` makes one stream of both, which ends with it.)
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import logging
import os
import signal
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, NoReturn, TypeVar

import pylog
from pylog.errors import LogStorageError
from pylog_jobs import exit_status
from pylog_jobs.error_text import describe, is_of_analysis
from pylog_jobs.java_home import JavaNotFoundError
from pylog_jobs.job_log import logging_of
from pylog_jobs.session import spark_session
from pylog_jobs.stop_request import StoppableWork, StoppedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from pylog_jobs.stop_request import StopRequest

_P = TypeVar("_P")

_LOGGER = logging.getLogger(__name__)


class UsageError(ValueError):
    """An argument or a configuration that makes no sense; another attempt will not help."""


class JobFailedError(RuntimeError):
    """The job cannot do what it was asked to; another attempt may."""


class Outcome(NamedTuple):
    """What came of a job.

    Attributes
    ----------
    status
        Exit status.
    summary
        What the line of JSON says besides job, status and times; names in camelCase.
    """

    status: int
    summary: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Job(Generic[_P]):
    """One job: how it is called and what it does.

    Attributes
    ----------
    name
        In log lines, the summary, and for Spark.
    description
        For ``--help``.
    add_arguments
        Adds the job's own arguments.
    prepare
        Returns what the arguments mean, checked as far as that can be done without Spark. A
        ``ValueError``, ``OSError`` or `LogStorageError` of it is exit status 2.
    run
        Does the work. Checks what only Spark can check first.
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
        with logging_of(self.name):
            outcome = self._outcome(given, is_debug=is_debug)
        summary = {
            "schemaVersion": pylog.JSON_SCHEMA_VERSION,
            "job": self.name,
            "status": exit_status.STATUS_NAMES.get(outcome.status, exit_status.STOPPED_NAME),
            "exitStatus": outcome.status,
            "started": f"{began:%Y-%m-%dT%H:%M:%SZ}",
            "seconds": round(time.monotonic() - clock, 3),
            **outcome.summary,
        }
        sys.stdout.write(json.dumps(summary) + "\n")
        sys.stdout.flush()
        return outcome.status

    def _outcome(self, arguments: list[str], *, is_debug: bool) -> Outcome:
        """Return the outcome; every error becomes one, with a log line."""
        try:
            parsed = self._parser().parse_args(arguments)
            parameters = self.prepare(parsed)
        except (ValueError, LogStorageError, OSError) as error:
            return self._failure(error, exit_status.UNUSABLE, is_debug=is_debug)
        except KeyboardInterrupt:
            stopped = StoppedError(signal.SIGINT)
            return self._failure(stopped, status_of(stopped), is_debug=is_debug)
        try:
            return StoppableWork(lambda stop: self._run(parameters, stop)).run()
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
        return parser

    def _run(self, parameters: _P, stop: StopRequest) -> Outcome:
        spark = spark_session(f"pylog {self.name}", master=None)
        stop.cancel = spark.sparkContext.cancelAllJobs
        try:
            stop.ensure_not_requested()
            return self.run(spark, parameters, stop)
        finally:
            stop.cancel = None
            spark.stop()


def status_of(error: Exception) -> int:
    """Return the exit status of a job whose work ended with ``error``."""
    if isinstance(error, StoppedError):
        return exit_status.OF_SIGNALS + error.signal
    if isinstance(error, (UsageError, JavaNotFoundError)) or is_of_analysis(error):
        return exit_status.UNUSABLE
    return exit_status.FAILED


class _Parser(argparse.ArgumentParser):
    """Raises what is wrong with the arguments in place of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def end_process(status: int) -> NoReturn:
    """End the process without waiting for work that a signal did not end in time."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if status > exit_status.OF_SIGNALS:
        os._exit(status)
    sys.exit(status)

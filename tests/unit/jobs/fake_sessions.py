"""A session of Spark in name only, and what a job prints."""

from __future__ import annotations

import argparse
import json
import logging
from typing import TYPE_CHECKING

import pytest

from pylog_jobs import job
from pylog_jobs.job import Job, Outcome, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from pylog_jobs.stop_request import StopRequest


class FakeContext:
    """In place of a SparkContext."""

    def cancelAllJobs(self) -> None:  # noqa: N802 - Spark's name
        """Have nothing to cancel."""

    def setJobGroup(self, group: str, description: str) -> None:  # noqa: N802 - Spark's name
        """Keep what Spark's UI would show."""
        self.group, self.description = group, description


class FakeSession:
    """In place of a session of Spark."""

    def __init__(self) -> None:
        self.sparkContext = FakeContext()
        self.is_stopped = False

    def stop(self) -> None:
        self.is_stopped = True


def sample(
    work: Callable[[], Outcome], prepare: Callable[[], object] = lambda: None
) -> Job[object]:
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--number", type=int, default=0)

    def run(spark: SparkSession, parameters: object, stop: StopRequest) -> Outcome:
        return work()

    return Job("sample", "A job for tests.", add_arguments, lambda _: prepare(), run)


def summary_of(capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, object], str]:
    out, err = capsys.readouterr()
    assert out.endswith("}\n")
    assert out.count("\n") == 1
    return json.loads(out), err


def several(
    work: Callable[[str, StopRequest], Outcome],
    prepare: Callable[[argparse.Namespace], str] = lambda arguments: str(arguments.name),
) -> Job[str]:
    """Make a job with a run for each letter of an argument."""

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("letters")

    def split(arguments: argparse.Namespace) -> dict[str, argparse.Namespace]:
        copies = {name: argparse.Namespace(**vars(arguments)) for name in arguments.letters}
        if not copies:
            message = "there is no letter"
            raise UsageError(message)
        return copies

    def run(spark: SparkSession, name: str, stop: StopRequest) -> Outcome:
        logging.getLogger("pylog_jobs").info("working")
        return work(name, stop)

    return Job("sample", "A job for tests.", add_arguments, prepare, run, split)


def summaries_of(capsys: pytest.CaptureFixture[str]) -> tuple[list[dict[str, object]], list[str]]:
    out, err = capsys.readouterr()
    return [json.loads(line) for line in out.splitlines()], err.splitlines()


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> FakeSession:
    session = FakeSession()
    monkeypatch.setattr(job, "spark_session", lambda name, master: session)
    monkeypatch.setattr(job, "separate_session", lambda spark: spark)
    return session

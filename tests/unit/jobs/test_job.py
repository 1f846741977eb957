"""What every job does around its work: one line on standard output, a status, log lines."""

from __future__ import annotations

import json
import re
import signal
from typing import TYPE_CHECKING

import pytest

from pylog.errors import LogDirectoryError
from pylog_jobs import job
from pylog_jobs.job import Job, JobFailedError, Outcome, UsageError
from pylog_jobs.stop_request import StoppedError, StopRequest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from pyspark.sql import SparkSession

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (INFO|WARNING|ERROR) sample: [^\n]*\n")


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


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> FakeSession:
    session = FakeSession()
    monkeypatch.setattr(job, "spark_session", lambda name, master: session)
    return session


def sample(
    work: Callable[[], Outcome], prepare: Callable[[], object] = lambda: None
) -> Job[object]:
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--number", type=int, default=0)

    def run(spark: SparkSession, parameters: object, stop: StopRequest) -> Outcome:
        return work()

    return Job("sample", "A job for tests.", add_arguments, lambda _: prepare(), run)


def raising(error: Exception) -> Callable[[], Outcome]:
    def work() -> Outcome:
        raise error

    return work


def summary_of(capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, object], str]:
    out, err = capsys.readouterr()
    assert out.endswith("}\n")
    assert out.count("\n") == 1
    return json.loads(out), err


def test_what_was_done_is_one_line_of_json(
    session: FakeSession, capsys: pytest.CaptureFixture[str]
) -> None:
    status = sample(lambda: Outcome(job.DONE, {"rows": 3})).main([])
    summary, err = summary_of(capsys)
    assert (status, err) == (0, "")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(summary.pop("started")))
    assert float(str(summary.pop("seconds"))) >= 0
    assert next(iter(summary)) == "schemaVersion"
    assert summary == {
        "schemaVersion": 1,
        "job": "sample",
        "status": "done",
        "exitStatus": 0,
        "rows": 3,
    }
    assert session.is_stopped


@pytest.mark.parametrize(
    ("error", "status", "name"),
    [
        (UsageError("wrong"), 2, "unusable"),
        (JobFailedError("wrong"), 3, "failed"),
        (LogDirectoryError("wrong"), 3, "failed"),
        (ValueError("wrong"), 3, "failed"),
    ],
)
def test_an_error_of_the_work_is_one_line_and_a_status(
    session: FakeSession,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    status: int,
    name: str,
) -> None:
    assert sample(raising(error)).main([]) == status
    summary, err = summary_of(capsys)
    assert (summary["status"], summary["exitStatus"]) == (name, status)
    assert summary["error"] == "wrong"
    assert LINE.fullmatch(err)
    assert err.endswith("ERROR sample: wrong\n")
    assert session.is_stopped


@pytest.mark.parametrize(
    "error", [UsageError("wrong"), LogDirectoryError("wrong"), OSError(2, "wrong"), ValueError("x")]
)
def test_what_is_wrong_before_spark_starts_is_status_2(
    capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    # Without the fixture: a session that were started would be a real one.
    assert sample(raising(AssertionError()), prepare=raising(error)).main([]) == 2
    assert summary_of(capsys)[0]["status"] == "unusable"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nubmer", "1"], "unrecognized arguments: --nubmer 1"),
        (["--num", "1"], "unrecognized arguments: --num 1"),  # no abbreviations
        (["--number", "x"], "argument --number: invalid int value: 'x'"),
    ],
)
def test_wrong_arguments_are_one_line_too(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert sample(raising(AssertionError())).main(arguments) == 2
    summary, err = summary_of(capsys)
    assert summary["error"] == f"{message} (see python -m pylog_jobs.sample --help)"
    assert LINE.fullmatch(err)


def test_a_traceback_is_shown_by_debug_alone(
    session: FakeSession, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = sample(raising(JobFailedError("wrong")))
    failing.main(["--debug"])
    assert "Traceback (most recent call last)" in capsys.readouterr().err
    failing.main([])
    assert "Traceback" not in capsys.readouterr().err


def test_a_log_line_stays_one_whatever_a_file_is_called(
    session: FakeSession, capsys: pytest.CaptureFixture[str]
) -> None:
    sample(raising(JobFailedError("a\nb\x1b[2J\u202e"))).main([])
    summary, err = summary_of(capsys)
    assert LINE.fullmatch(err)
    assert r"a\nb\x1b[2J\u202e" in err
    assert summary["error"] == "a\nb\x1b[2J\u202e"


def test_a_signal_is_a_status_of_its_own(
    session: FakeSession, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sample(raising(StoppedError(signal.SIGTERM))).main([]) == 143
    summary, err = summary_of(capsys)
    assert (summary["status"], summary["error"]) == ("stopped", "stopped by SIGTERM")
    assert err.endswith("ERROR sample: stopped by SIGTERM\n")


def test_ctrl_c_before_spark_starts_is_one_line_too(capsys: pytest.CaptureFixture[str]) -> None:
    def prepare() -> None:
        raise KeyboardInterrupt

    assert sample(raising(AssertionError()), prepare=prepare).main([]) == 130
    assert summary_of(capsys)[0]["status"] == "stopped"

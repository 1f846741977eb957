"""What every job does around its work: one line on standard output, a status, log lines."""

from __future__ import annotations

import os
import re
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from pylog.errors import LogDirectoryError, LogLockedError
from pylog_jobs import job, stop_request
from pylog_jobs.exit_status import DONE, FAILED, UNUSABLE
from pylog_jobs.job import JobFailedError, Outcome, UsageError
from pylog_jobs.stop_request import StoppedError, StopRequest
from tests.unit.jobs.fake_sessions import (
    FakeSession,
    sample,
    session,
    several,
    summaries_of,
    summary_of,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["session"]


LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (INFO|WARNING|ERROR) sample: [^\n]*\n")


def raising(error: Exception) -> Callable[[], Outcome]:
    def work() -> Outcome:
        raise error

    return work


def test_what_was_done_is_one_line_of_json(
    session: FakeSession, capsys: pytest.CaptureFixture[str]
) -> None:
    status = sample(lambda: Outcome(DONE, {"rows": 3})).main([])
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
        (LogDirectoryError("wrong"), 2, "unusable"),
        (LogLockedError("wrong"), 3, "failed"),
        (RuntimeError("wrong"), 3, "failed"),
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


def test_a_traceback_has_no_escape_sequence(
    session: FakeSession, capsys: pytest.CaptureFixture[str]
) -> None:
    sample(raising(JobFailedError("a\x1b[2Jb"))).main(["--debug"])
    err = capsys.readouterr().err
    assert "JobFailedError: a\\x1b[2Jb\n" in err
    assert "\x1b" not in err


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (OverflowError("date value out of range"), UNUSABLE),
        (JobFailedError("no"), FAILED),
    ],
)
def test_what_is_wrong_before_spark_starts_is_a_summary(
    capsys: pytest.CaptureFixture[str], error: Exception, status: int
) -> None:
    failing = sample(raising(AssertionError()), prepare=raising(error))
    assert failing.main([]) == status
    summary, _ = summary_of(capsys)
    assert summary["error"] == str(error)


@pytest.mark.parametrize("given", [[""], [",", ""]])
def test_an_empty_topic_does_not_stand_for_all(given: list[str]) -> None:
    assert job.topics_of(None) is None
    assert job.topics_of(["a,b", "c,"]) == ("a", "b", "c")
    with pytest.raises(UsageError, match="names no topic; without --topic, all are meant"):
        job.topics_of(given)


def test_several_runs_have_a_summary_each_and_the_status_of_the_first_failure(
    session: FakeSession, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def prepare(arguments: argparse.Namespace) -> str:
        asked.append(f"prepare {arguments.name}")
        job.labels_of(arguments)["topic"] = f"topic-{arguments.name}"
        if arguments.name == "b":
            message = "b is wrong"
            raise UsageError(message)
        return str(arguments.name)

    def work(name: str, stop: StopRequest) -> Outcome:
        asked.append(f"run {name}")
        if name == "c":
            message = "c failed"
            raise JobFailedError(message)
        return Outcome(DONE, {"rows": 1})

    assert several(work, prepare).main(["abcd"]) == UNUSABLE
    # Everything is checked before Spark starts.
    assert asked == [*(f"prepare {each}" for each in "abcd"), *(f"run {each}" for each in "acd")]
    summaries, lines = summaries_of(capsys)
    assert [each["name"] for each in summaries] == ["a", "b", "c", "d"]
    assert [each["exitStatus"] for each in summaries] == [0, 2, 3, 0]
    assert [each["topic"] for each in summaries] == [f"topic-{each}" for each in "abcd"]
    assert [each.get("error") for each in summaries] == [None, "b is wrong", "c failed", None]
    assert [line.split(" ", 1)[1] for line in lines] == [
        "ERROR sample: b: b is wrong",
        "INFO sample: a: working",
        "INFO sample: c: working",
        "ERROR sample: c: c failed",
        "INFO sample: d: working",
    ]
    assert session.is_stopped


def test_no_run_that_is_any_good_starts_no_spark(capsys: pytest.CaptureFixture[str]) -> None:
    # Without the fixture: a session that were started would be a real one.
    def prepare(arguments: argparse.Namespace) -> str:
        raise UsageError(arguments.name)

    assert several(lambda *_: Outcome(DONE, {}), prepare).main(["ab"]) == UNUSABLE
    assert [each["error"] for each in summaries_of(capsys)[0]] == ["a", "b"]
    assert several(lambda *_: Outcome(DONE, {}), prepare).main([""]) == UNUSABLE
    assert [each["error"] for each in summaries_of(capsys)[0]] == ["there is no letter"]


def test_a_signal_stops_all_runs_that_remain_and_each_says_so(
    session: FakeSession, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(name: str, stop: StopRequest) -> Outcome:
        if name == "a":
            message = "before the signal"
            raise UsageError(message)
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(10)
        message = "this is the signal's doing"
        raise RuntimeError(message)

    assert several(work).main(["abcd"]) == 143
    summaries, _ = summaries_of(capsys)
    assert [each["status"] for each in summaries] == ["unusable", *["stopped"] * 3]
    assert [each["error"] for each in summaries[1:]] == ["stopped by SIGTERM"] * 3


def test_work_that_does_not_end_after_a_signal_leaves_no_run_without_a_summary(
    session: FakeSession,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stop_request, "GRACE_SECONDS", 0.1)
    goes_on = threading.Event()

    def work(name: str, stop: StopRequest) -> Outcome:
        os.kill(os.getpid(), signal.SIGINT)
        goes_on.wait(30)
        return Outcome(DONE, {})

    assert several(work).main(["ab"]) == 130
    assert [each["status"] for each in summaries_of(capsys)[0]] == ["stopped", "stopped"]
    goes_on.set()


def test_a_run_that_fails_has_its_labels_also_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def prepare(arguments: argparse.Namespace) -> str:
        job.labels_of(arguments).update(directory="/data/logs", topic="orders")
        message = "then it is wrong"
        raise UsageError(message)

    metrics = tmp_path / "job.prom"
    given = ["a", "--metrics-file", str(metrics)]
    assert several(lambda *_: Outcome(DONE, {}), prepare).main(given) == UNUSABLE
    [summary], _ = summaries_of(capsys)
    assert (summary["name"], summary["directory"], summary["topic"]) == (
        *("a", "/data/logs"),
        "orders",
    )
    labels = '{job="sample",name="a",directory="/data/logs",topic="orders"}'
    assert f"pylog_job_exit_status{labels} 2\n" in metrics.read_text()

"""What every job does around its work: one line on standard output, a status, log lines."""

from __future__ import annotations

import json
import logging
import re
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from pylog.errors import LogDirectoryError
from pylog_jobs import job
from pylog_jobs.job import Job, JobFailedError, Outcome, UsageError
from pylog_jobs.stop_request import StoppedError, StopRequest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from pathlib import Path

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


def test_secrets_are_in_nothing_that_a_run_tells(
    session: FakeSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYLOG_TEST_SECRET", 'correct "horse"')

    def prepare(arguments: argparse.Namespace) -> str:
        return str(arguments.secrets.resolve("jdbc:x?password=${env:PYLOG_TEST_SECRET}"))

    def run(spark: SparkSession, url: str, stop: StopRequest) -> Outcome:
        logging.getLogger("pylog_jobs").info("reading %s", url)
        message = f"cannot read {url}"
        raise JobFailedError(message)

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--topic")

    metrics = tmp_path / "job.prom"
    given = ["--metrics-file", str(metrics), "--topic", 'correct "horse"', "--debug"]
    assert Job("sample", "", add_arguments, prepare, run).main(given) == job.FAILED
    summary, log = summary_of(capsys)
    assert summary["error"] == "cannot read jdbc:x?password=${env:PYLOG_TEST_SECRET}"
    told = [json.dumps(summary), log, metrics.read_text(), session.sparkContext.description]
    assert [text for text in told if "horse" in text] == []
    assert "reading jdbc:x?password=${env:PYLOG_TEST_SECRET}" in log
    assert session.sparkContext.description.startswith("pylog sample --metrics-file ")


def test_metrics_have_the_numbers_of_the_summary(
    session: FakeSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = tmp_path / "job.prom"
    done = Outcome(job.DONE, {"rows": 3, "alreadyCommitted": False, "topic": 'a"b', "left": 2.5})
    assert sample(lambda: done).main(["--metrics-file", str(metrics)]) == job.DONE
    lines = metrics.read_text().splitlines()
    labels = '{job="sample",topic="a\\"b"}'
    assert f"pylog_job_rows{labels} 3" in lines
    assert f"pylog_job_already_committed{labels} 0" in lines
    assert f"pylog_job_left{labels} 2.5" in lines
    assert f"pylog_job_exit_status{labels} 0" in lines
    samples = [line for line in lines if not line.startswith("#")]
    assert len(lines) == 3 * len(samples)
    assert all(re.fullmatch(r"pylog_job_\w+\{.*\} [0-9.e+]+", line) for line in samples)
    assert list(tmp_path.iterdir()) == [metrics]
    capsys.readouterr()
    missing = tmp_path / "nope" / "job.prom"
    assert sample(lambda: done).main(["--metrics-file", str(missing)]) == job.UNUSABLE
    assert summary_of(capsys)[0]["error"] == f"--metrics-file {missing}: there is no such folder"


def test_lineage_tells_what_is_read_and_written(
    session: FakeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openlineage.client")
    events = tmp_path / "events"
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", str(events))
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__APPEND", "true")
    done = Outcome(
        job.DONE,
        {"directory": "/data/logs", "topic": "orders"},
        ("postgresql://db/shop", "public.orders"),
    )
    assert sample(lambda: done).main(["--lineage", "shop"]) == job.DONE
    start, end = map(json.loads, events.read_text().splitlines())
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == end["run"]["runId"]
    assert (end["job"]["namespace"], end["job"]["name"]) == ("shop", "sample")
    [read], [written] = end["inputs"], end["outputs"]
    assert (read["namespace"], read["name"]) == ("postgresql://db/shop", "public.orders")
    assert (written["namespace"], written["name"]) == ("file:///data/logs", "orders")


def test_lineage_without_its_package_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "openlineage.client", None)
    assert sample(lambda: Outcome(job.DONE, {})).main(["--lineage", "shop"]) == job.UNUSABLE
    assert "pip install 'pyspark-pylog[lineage]'" in str(summary_of(capsys)[0]["error"])


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


def test_a_traceback_has_no_escape_sequence(
    session: FakeSession, capsys: pytest.CaptureFixture[str]
) -> None:
    sample(raising(JobFailedError("a\x1b[2Jb"))).main(["--debug"])
    err = capsys.readouterr().err
    assert "JobFailedError: a\\x1b[2Jb\n" in err
    assert "\x1b" not in err


@pytest.mark.parametrize(
    ("error", "status"),
    [(OverflowError("date value out of range"), job.UNUSABLE), (JobFailedError("no"), job.FAILED)],
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

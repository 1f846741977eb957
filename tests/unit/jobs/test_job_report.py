"""What a job reports of a run: metrics, lineage, no secrets."""

from __future__ import annotations

import json
import logging
import re
import sys
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog_jobs import job
from pylog_jobs.exit_status import DONE, FAILED, UNUSABLE
from pylog_jobs.job import Job, JobFailedError, Outcome
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
    from pathlib import Path

    from pyspark.sql import SparkSession

    from pylog_jobs.stop_request import StopRequest

__all__ = ["session"]


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
    assert Job("sample", "", add_arguments, prepare, run).main(given) == FAILED
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
    told = {"rows": 3, "alreadyCommitted": False, "topic": 'a"b', "left": 2.5, "windows": [{}, {}]}
    done = Outcome(DONE, told)
    assert sample(lambda: done).main(["--metrics-file", str(metrics)]) == DONE
    lines = metrics.read_text().splitlines()
    labels = '{job="sample",topic="a\\"b"}'
    assert f"pylog_job_rows{labels} 3" in lines
    assert f"pylog_job_already_committed{labels} 0" in lines
    assert f"pylog_job_left{labels} 2.5" in lines
    assert f"pylog_job_windows{labels} 2" in lines
    assert f"pylog_job_exit_status{labels} 0" in lines
    samples = [line for line in lines if not line.startswith("#")]
    assert len(lines) == 3 * len(samples)
    assert all(re.fullmatch(r"pylog_job_\w+\{.*\} [0-9.e+]+", line) for line in samples)
    assert list(tmp_path.iterdir()) == [metrics]
    capsys.readouterr()
    missing = tmp_path / "nope" / "job.prom"
    assert sample(lambda: done).main(["--metrics-file", str(missing)]) == UNUSABLE
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
        DONE,
        {"directory": "/data/logs", "topic": "orders"},
        ("postgresql://db/shop", "public.orders"),
    )
    assert sample(lambda: done).main(["--lineage", "shop"]) == DONE
    start, end = map(json.loads, events.read_text().splitlines())
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == end["run"]["runId"]
    assert (end["job"]["namespace"], end["job"]["name"]) == ("shop", "sample")
    [read], [written] = end["inputs"], end["outputs"]
    assert (read["namespace"], read["name"]) == ("postgresql://db/shop", "public.orders")
    assert (written["namespace"], written["name"]) == ("file:///data/logs", "orders")


def test_lineage_of_a_run_that_failed_takes_no_log_for_its_input(
    session: FakeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openlineage.client")
    events = tmp_path / "events"
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", str(events))
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__APPEND", "true")

    def prepare(arguments: argparse.Namespace) -> str:
        job.labels_of(arguments).update(directory="/data/logs", topic="orders")
        return ""

    def work(name: str, stop: StopRequest) -> Outcome:
        raise JobFailedError(name)

    assert several(work, prepare).main(["a", "--lineage", "shop"]) == FAILED
    _, end = map(json.loads, events.read_text().splitlines())
    assert (end["eventType"], end["inputs"], end["outputs"]) == ("FAIL", [], [])


def test_lineage_without_its_package_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "openlineage.client", None)
    assert sample(lambda: Outcome(DONE, {})).main(["--lineage", "shop"]) == UNUSABLE
    assert pylog.jobs.install_command("lineage") in str(summary_of(capsys)[0]["error"])


def test_what_a_run_reads_secretly_is_hidden_in_its_own_reports_alone(
    session: FakeSession,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYLOG_TEST_SECRET", "orders")

    def prepare(arguments: argparse.Namespace) -> str:
        if arguments.name == "a":
            arguments.secrets.resolve("${env:PYLOG_TEST_SECRET}")
        return str(arguments.name)

    done = Outcome(DONE, {"topic": "orders"})
    assert several(lambda *_: done, prepare).main(["ab"]) == DONE
    topics = [each["topic"] for each in summaries_of(capsys)[0]]
    assert topics == ["${env:PYLOG_TEST_SECRET}", "orders"]


def test_several_runs_have_a_file_of_metrics_each(
    session: FakeSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(name: str, stop: StopRequest) -> Outcome:
        if name == "b":
            message = "b failed"
            raise JobFailedError(message)
        return Outcome(DONE, {"rows": 3})

    assert several(work).main(["ab", "--metrics-file", str(tmp_path)]) == FAILED
    ok, bad = tmp_path / "sample-a.prom", tmp_path / "sample-b.prom"
    assert sorted(tmp_path.iterdir()) == [ok, bad]
    assert 'pylog_job_rows{job="sample",name="a"} 3\n' in ok.read_text()
    assert 'pylog_job_exit_status{job="sample",name="b"} 3\n' in bad.read_text()
    template = str(tmp_path / "{name}.prom")
    assert several(work).main(["ab", "--metrics-file", template]) == FAILED
    assert (tmp_path / "b.prom").read_text().count('name="b"') == 3
    capsys.readouterr()
    one = tmp_path / "one.prom"
    assert several(work).main(["ab", "--metrics-file", str(one)]) == UNUSABLE
    errors = [str(each["error"]) for each in summaries_of(capsys)[0]]
    assert len(errors) == 2
    assert all(each.startswith(f"--metrics-file {one} is one file for several") for each in errors)
    assert several(work).main(["a", "--metrics-file", str(one)]) == DONE
    assert one.exists()

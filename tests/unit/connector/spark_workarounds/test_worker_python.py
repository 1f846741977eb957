"""Which Python Spark's workers run; sessions are stand-ins, tests/spark has real ones."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Any, ClassVar

import pyspark
import pytest

import pyspark_pylog
from pyspark_pylog import DefaultSource, java_home
from pyspark_pylog.errors import WorkerPythonError
from pyspark_pylog.spark_workarounds.worker_python import worker_python_checked


class Session:
    """A classic session, and the builder, the JVM and the registry that lead to it."""

    def __init__(self, workers: str | None = None, *, knows_source: bool = True) -> None:
        self._workers = workers
        self._knows_source = knows_source
        self.registered: list[object] = []

    @property
    def pythonExec(self) -> str:  # noqa: N802 - Spark's name
        return self._workers or os.environ["PYSPARK_PYTHON"]

    def dataSourceExists(self, name: str) -> bool:  # noqa: N802 - Spark's name
        assert name == "pylog"
        return self._knows_source

    def register(self, source: object) -> None:
        self.registered.append(source)

    def _itself(self) -> Session:
        return self

    getOrCreate = sessionState = dataSourceManager = _itself  # noqa: N815 - Spark's names
    sparkContext = dataSource = _jsparkSession = property(_itself)  # noqa: N815 - Spark's names


class ConnectSession:
    """A session of Spark Connect has no JVM beside it."""

    _options: ClassVar = {"spark.remote": "sc://server"}

    def getOrCreate(self) -> ConnectSession:  # noqa: N802 - Spark's name
        return self


def start(spark: Any) -> Any:  # noqa: ANN401 - a stand-in
    return pyspark_pylog.session(spark)


def make_program(path: Path) -> str:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "")  # so that it is restored
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setenv("JAVA_HOME", "/set")
    monkeypatch.setattr(java_home, "find_java_home", lambda: Path("/found"))
    monkeypatch.setattr(pyspark.SparkContext, "_gateway", None)


@pytest.mark.parametrize("given", [None, ""])
def test_a_session_has_its_workers_run_this_python(
    monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    if given is not None:
        monkeypatch.setenv("PYSPARK_PYTHON", given)
    spark = Session()
    assert start(spark) is spark
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert os.environ["JAVA_HOME"] == "/found"
    assert spark.registered == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PYSPARK_GATEWAY_PORT", "4711"),
        ("SPARK_REMOTE", "sc://server"),
        ("SPARK_CONNECT_MODE_ENABLED", "1"),
    ],
)
def test_no_java_is_looked_for_where_spark_starts_none(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    start(Session())
    assert os.environ["JAVA_HOME"] == "/set"


def test_a_jvm_that_runs_keeps_its_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark.SparkContext, "_gateway", object())
    start(Session())
    assert os.environ["JAVA_HOME"] == "/set"


def test_a_server_has_a_java_of_its_own() -> None:
    start(ConnectSession())
    assert os.environ["JAVA_HOME"] == "/set"


def test_a_python_that_the_user_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/on/executors/python")
    start(Session())
    assert os.environ["PYSPARK_PYTHON"] == "/on/executors/python"


def test_a_source_that_spark_has_not_found_is_registered() -> None:
    spark = Session(knows_source=False)
    start(spark)
    assert spark.registered == [DefaultSource]


def test_a_session_that_was_running_with_another_python_is_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        start(Session(workers="no-python3"))
    assert caplog.messages == [
        (
            "pylog: a Spark session was already running, and this is it; its Python workers run "
            f"'no-python3', not {sys.executable!r}. If reads fail because of that, call stop() on "
            "the session, and then pyspark_pylog.session() again"
        )
    ]


def test_a_session_that_was_running_with_this_python_under_another_name_is_not_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", make_program(tmp_path / "python3"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with caplog.at_level(logging.WARNING):
        start(Session(workers="python3"))
    assert caplog.messages == []


def test_a_session_that_was_running_is_warned_of_with_where_its_python_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make_program(tmp_path / "python3")
    monkeypatch.setenv("PATH", str(tmp_path))
    with caplog.at_level(logging.WARNING):
        start(Session(workers="python3"))
    assert f"its Python workers run 'python3' ({tmp_path}/python3), not " in caplog.text


def test_a_session_of_connect_is_left_as_it_is() -> None:
    spark = ConnectSession()
    assert start(spark) is spark


TO_SET = (
    f"; stop() this session and set environment variable PYSPARK_PYTHON to {sys.executable!r} "
    "before Spark starts again, or start it by pyspark_pylog.session(), which does so where the "
    "variable is not set"
)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            "…\nModuleNotFoundError: No module named 'pyspark_pylog'\n SQLSTATE: 38000",
            "has no module 'pyspark_pylog'",
        ),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in …",
            f"is Python 3.9, and this program runs Python 3.{sys.version_info.minor}",
        ),
        (
            'java.io.IOException: Cannot run program "/no/python": error=2, No such file\n\tat …',
            "cannot be started (error=2, No such file)",
        ),
    ],
)
def test_an_error_of_a_wrong_python_says_what_to_set(error: str, reason: str) -> None:
    spark: Any = Session(workers="/no/python")
    with pytest.raises(WorkerPythonError) as caught, worker_python_checked(spark):
        raise RuntimeError(error)
    assert str(caught.value) == f"Spark's Python workers run '/no/python', which {reason}{TO_SET}"
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_the_python_that_a_bare_name_stands_for_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = make_program(tmp_path / "python3")
    monkeypatch.setenv("PATH", str(tmp_path))
    spark: Any = Session(workers="python3")
    with (
        pytest.raises(WorkerPythonError, match=rf"run 'python3' \({python}\), which has no module"),
        worker_python_checked(spark),
    ):
        raise RuntimeError("ModuleNotFoundError: No module named 'pylog'")


@pytest.mark.parametrize(
    ("workers", "error"),
    [
        # A dependency is missing: another Python would not help.
        (sys.executable, "ModuleNotFoundError: No module named 'lz4'"),
        ("python3", "ValueError: no path"),
    ],
)
def test_other_errors_stay_what_they_are(workers: str, error: str) -> None:
    spark: Any = Session(workers=workers)
    with pytest.raises(RuntimeError, match=error) as caught, worker_python_checked(spark):
        raise RuntimeError(error)
    assert type(caught.value) is RuntimeError


def test_a_server_of_connect_without_pylog_is_told_of() -> None:
    spark: Any = ConnectSession()
    with (
        pytest.raises(
            WorkerPythonError,
            match=r"the Python of the Spark Connect server has no package pyspark-pylog; install "
            r"pyspark-pylog there, in the Python that the server's environment variable PYSPARK_PY",
        ),
        worker_python_checked(spark),
    ):
        raise RuntimeError("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: pylog.")

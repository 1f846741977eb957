"""The steps in an environment that is made up: each fails where the program says something else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.release_check import trial
from tests.release_check.fresh_environment import run
from tests.release_check.problem import StepFailedError
from tests.release_check.trial import steps

if TYPE_CHECKING:
    from pathlib import Path

DISTRIBUTIONS = f"python -c {trial._DISTRIBUTIONS}"
VERSIONS = "python -c import pylog; pylog.show_versions()"


class MadeUpEnvironment:
    """Says what it was told to."""

    def __init__(self, prefix: Path, logs: Path) -> None:
        self.prefix = prefix
        self.home = prefix / "home"
        self.files = {"pylog/__init__.py": "1"}
        self.answers = {
            "pylog --version": "pylog 1.2.0\n",
            "python -m pylog --version": "pylog 1.2.0\n",
            DISTRIBUTIONS: "pylog numpy\n",
            VERSIONS: f"pylog      1.2.0 ({prefix}/lib/pylog)\nPython 3\n",
            f"pylog ls {logs}": "orders 0\n",
            f"pylog ls --json {logs}": json.dumps({"schemaVersion": 1}),
            f"pylog cat {logs} --topic orders": "{}\n{}\n{}\n",
            f"pylog demo {logs.parent}/samples": "Try:\n",
            f"python -m pylog_jobs.demo {logs}": "== orders\n",
        }

    def run(self, program: str, *arguments: str) -> str:
        return self.answers[" ".join([program, *arguments])]

    def installed(self) -> dict[str, str]:
        return dict(self.files)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    for partition, lines in enumerate(("{}\n{}\n", "{}\n")):
        name = f"expected.orders-{partition}.uncommitted.jsonl"
        (tmp_path / "logs" / name).write_text(lines)
    return tmp_path / "logs"


@pytest.fixture
def environment(tmp_path: Path, logs: Path) -> MadeUpEnvironment:
    manual = tmp_path / "prefix" / "share" / "man" / "man1"
    manual.mkdir(parents=True)
    (tmp_path / "prefix" / "home").mkdir()
    (manual / "pylog.1").write_text(".TH")
    return MadeUpEnvironment(tmp_path / "prefix", logs)


def failing(environment: MadeUpEnvironment, logs: Path) -> list[str]:
    failed = []
    for what, attempt in steps(environment, logs, "1.2.0"):  # type: ignore[arg-type]
        try:
            attempt()
        except StepFailedError:
            failed.append(what)
    return failed


def test_all_steps_pass_where_the_programs_say_what_they_should(
    environment: MadeUpEnvironment, logs: Path
) -> None:
    assert failing(environment, logs) == []


@pytest.mark.parametrize(
    ("command", "answer", "step"),
    [
        ("pylog --version", "pylog 1.1.0\n", "pylog --version"),
        ("python -m pylog --version", "", "python -m pylog --version"),
        (DISTRIBUTIONS, "pylog numba", "neither Numba nor LLVM is there"),
        (VERSIONS, "pylog 1.2.0 (/clone/pylog)\n", "pylog.show_versions(), from the environment"),
        ("pylog ls LOGS", "nothing\n", "pylog ls"),
        ("pylog ls --json LOGS", '{"partitions": []}', "pylog ls"),
        (
            "pylog cat LOGS --topic orders",
            "{}\n{}\n",
            "pylog cat: as many records as Kafka's consumer got",
        ),
        ("pylog demo LOGS/../samples", "", "pylog demo"),
        ("python -m pylog_jobs.demo LOGS", "", "python -m pylog_jobs.demo, with Spark"),
    ],
)
def test_a_step_fails_where_a_program_says_something_else(
    environment: MadeUpEnvironment, logs: Path, command: str, answer: str, step: str
) -> None:
    command = command.replace("LOGS/..", str(logs.parent)).replace("LOGS", str(logs))
    assert command in environment.answers
    environment.answers[command] = answer
    assert failing(environment, logs) == [step]


def test_a_manual_page_that_is_not_installed_is_told(
    environment: MadeUpEnvironment, logs: Path
) -> None:
    (environment.prefix / "share" / "man" / "man1" / "pylog.1").unlink()
    assert failing(environment, logs) == ["the manual page"]


def test_what_programs_write_where_they_should_not_is_told(
    environment: MadeUpEnvironment, logs: Path
) -> None:
    attempts = dict(steps(environment, logs, "1.2.0"))  # type: ignore[arg-type]
    nothing = attempts["nothing in the home directory or beside the packages was written"]
    nothing()
    environment.files["pylog/kernels.nbc"] = "2"
    with pytest.raises(StepFailedError, match="nbc"):
        nothing()
    del environment.files["pylog/kernels.nbc"]
    (environment.home / ".cache").mkdir()
    with pytest.raises(StepFailedError, match="cache"):
        nothing()


def test_a_program_that_fails_is_told_with_its_last_lines(tmp_path: Path) -> None:
    assert run(["sh", "-c", "echo said"], tmp_path, {}) == "said\n"
    with pytest.raises(StepFailedError, match=r"ended with status 3:\n  why\Z"):
        run(["/bin/sh", "-c", "echo why >&2; exit 3"], tmp_path, {})
